import assert from 'node:assert/strict'
import test from 'node:test'
import { nodeName, pluginName, uniqueVolumeName } from '../../api/names.ts'
import { notFound, serviceUnavailable } from '../../api/status-error.ts'
import type { Client } from '../../client/client.ts'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { createPending } from '../../loop/pending.ts'
import { silentLog } from '../../telemetry/log.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { VolumeError } from '../../volume/effect.ts'
import { createRunner } from '../../volume/operation.ts'
import type { Attacher, ClusterPlugin } from '../../volume/plugin.ts'
import { createRegistry } from '../../volume/registry.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { ActualEvent } from './actual.ts'
import { attachOperation, detachOperation, verifyOperation } from './operations.ts'

const volume = uniqueVolumeName('kubernetes.io/csi/d^h')
const node = nodeName('a')
const spec = { name: 'pv', source: { kind: 'csi', value: { driver: 'd', volumeHandle: 'h' } } } as VolumeSpec

interface Given {
  readonly attach?: () => Promise<string>
  readonly detach?: () => Promise<void>
  readonly verify?: () => Promise<readonly boolean[]>
  readonly inUse?: readonly string[]
  readonly nodeError?: Error
  readonly flushError?: Error
  readonly attachable?: boolean
  readonly detachable?: boolean
}

function setUp(given: Given = {}) {
  const clock = createVirtualClock()
  const log: string[] = []
  const told: string[] = []
  const attacher: Attacher = {
    attach: given.attach ?? (async () => '/dev/x'),
    detach: async ({ volumeName }) => {
      log.push(`detach ${volumeName}`)
      await given.detach?.()
    },
    verify: given.verify ?? (async ({ specs }) => specs.map(() => true)),
  }
  const plugin: ClusterPlugin = {
    ...(given.detachable === false ? {} : { attacherByName: () => attacher }),
    ...(given.attachable === false ? {} : { attacher: () => attacher }),
  }
  const registry = createRegistry([
    {
      name: pluginName('kubernetes.io/csi'),
      traits: { takesMountOptions: true, remountOnPodUpdate: false },
      supports: ({ source }) => source.kind === 'csi',
      volumeName: () => 'd^h',
      plugin,
    },
  ])
  const get = (async () => {
    log.push('read node')
    if (given.nodeError) throw given.nodeError
    return { metadata: { name: node }, status: { volumesInUse: given.inUse ?? [] } }
  }) as unknown as Client['get']
  const flush = async () => {
    log.push('write node status')
    if (given.flushError) throw given.flushError
  }
  const runner = createRunner({ clock, pending: createPending(clock), log: silentLog, metrics: createMetrics() })
  const context = {
    apply: (event: ActualEvent) => void log.push(`${event.kind} ${event.node}`),
    tell: (type: string, reason: string, message: string) => void told.push(`${type} ${reason} ${message}`),
    signal: new AbortController().signal,
  }
  const finish = async (started: ReturnType<typeof runner.start>) => {
    assert.equal(started.kind, 'started')
    if (started.kind === 'started') await started.finished
    return { log, told }
  }
  const succeeded = (reason: string, message: string) => void told.push(`Normal ${reason} ${message}`)
  return {
    attach: () =>
      finish(
        runner.start(
          attachOperation,
          { volume, node, spec, multiAttach: false },
          { registry, nodeVersion: () => 7, succeeded },
          context,
        ),
      ),
    detach: (known: VolumeSpec | undefined = spec, verify = true) =>
      finish(
        runner.start(
          detachOperation,
          { volume, node, spec: known, multiAttach: false, verify },
          { registry, client: { get }, clock, nodeStatus: { flush } },
          context,
        ),
      ),
    async verify() {
      const missing = (name: string) => void log.push(`missing ${name}`)
      const unanswered = (name: string) => void log.push(`unanswered ${name}`)
      const entries = [
        { volume, spec },
        {
          volume: uniqueVolumeName('kubernetes.io/nfs/x'),
          spec: { ...spec, source: { kind: 'nfs', value: {} } } as VolumeSpec,
        },
      ]
      return finish(
        runner.start(
          verifyOperation,
          { node, entries },
          { registry, missing, unanswered },
          { ...context, apply: () => {} },
        ),
      )
    },
  }
}

test('a successful attach is marked, then told to the pods (ATT-4, ATT-5)', async () => {
  assert.deepEqual(await setUp().attach(), {
    log: ['attached a'],
    told: ['Normal SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "pv" '],
  })
})

test('without an attacher nothing is marked, and the users hear of it (ATT-1, ATT-2, DES-10)', async () => {
  const { log, told } = await setUp({ attachable: false }).attach()
  assert.deepEqual(log, [])
  assert.match(
    told[0]!,
    /^Warning FailedAttachVolume AttachVolume\.FindAttachablePluginBySpec failed for volume "pv" : /,
  )
})

test('any failed attach leaves doubt; only one that was never tried leaves nothing (ATT-3, EVT-2)', async () => {
  const failing = (effect: 'none' | 'unknown' | 'untried') => ({
    attach: async () => {
      throw new VolumeError('AttachFailed', 'backend says no', { effect })
    },
  })
  for (const effect of ['none', 'unknown'] as const) {
    assert.deepEqual(await setUp(failing(effect)).attach(), {
      log: ['attachFailed a'],
      told: ['Warning FailedAttachVolume AttachVolume.Attach failed for volume "pv" : backend says no'],
    })
  }
  assert.deepEqual((await setUp(failing('untried')).attach()).log, [])
})

test('a volume that dangles on another node is doubtful there (ATT-3, ERR-6, FD-7)', async () => {
  const attach = async () => {
    throw new VolumeError('Dangling', 'attached to b', { effect: 'none', attachedTo: { node: 'b', devicePath: '' } })
  }
  assert.deepEqual((await setUp({ attach }).attach()).log, ['attachFailed b'])
})

test('out of the report, the write confirmed, the live node read, then detached; nobody is told (NSP-4, DET-5, DET-7)', async () => {
  assert.deepEqual(await setUp().detach(), {
    log: ['reportWithdrawn a', 'write node status', 'read node', 'detach d^h', 'detached a'],
    told: [],
  })
})

test('a failed write of node status ends it; the volume is reported again (ADR-2, TA-17, WA-14)', async () => {
  const { log } = await setUp({ flushError: serviceUnavailable('away') }).detach()
  assert.deepEqual(log, ['reportWithdrawn a', 'write node status', 'reportRestored a'])
})

test('a node that still uses the volume keeps it, and it is doubtful from then on (DET-4, DET-6, NSP-5)', async () => {
  const { log } = await setUp({ inUse: [volume] }).detach()
  assert.deepEqual(log, ['reportWithdrawn a', 'write node status', 'read node', 'detachFailed a'])
})

test('a Node that is gone is safe; one that cannot be read is not (DET-4, NSP-6)', async () => {
  const gone = await setUp({ nodeError: notFound({ group: '', plural: 'nodes' }, 'a') }).detach()
  assert.deepEqual(gone.log.slice(-2), ['detach d^h', 'detached a'])
  const unread = await setUp({ nodeError: serviceUnavailable('away') }).detach()
  assert.deepEqual(unread.log.slice(-2), ['read node', 'detachFailed a'])
})

test('by force the node is not asked (FD-2, FD-4, NSP-6)', async () => {
  const { log } = await setUp({ inUse: [volume] }).detach(spec, false)
  assert.deepEqual(log, ['reportWithdrawn a', 'write node status', 'detach d^h', 'detached a'])
})

test('a failed detach leaves doubt, whatever the error says (DET-6)', async () => {
  for (const effect of ['none', 'unknown', 'untried'] as const) {
    const detach = async () => {
      throw new VolumeError('AttachFailed', 'no', { effect })
    }
    assert.equal((await setUp({ detach }).detach()).log.at(-1), 'detachFailed a')
  }
})

test('without a spec the name alone is enough (DET-2)', async () => {
  assert.deepEqual((await setUp().detach(undefined)).log.slice(-2), ['detach d^h', 'detached a'])
})

test('a driver that no longer wants attaching still lets go (DET-1)', async () => {
  assert.deepEqual((await setUp({ attachable: false }).detach()).log.slice(-2), ['detach d^h', 'detached a'])
})

test('only a definite no counts; no plugin is skipped, no answer keeps what we believed (VVA-1, VVA-2, VVA-3, DES-15, WA-16)', async () => {
  assert.deepEqual((await setUp().verify()).log, [])
  assert.deepEqual((await setUp({ verify: async () => [false] }).verify()).log, [`missing ${volume}`])
  const verify = async () => {
    throw new Error('no idea')
  }
  assert.deepEqual((await setUp({ verify }).verify()).log, ['unanswered kubernetes.io/csi'])
})

test('without a detacher nothing is touched: not the report, not the volume (DET-3)', async () => {
  for (const known of [spec, undefined]) {
    const { log } = await setUp({ attachable: false, detachable: false }).detach(known)
    assert.deepEqual(log, [])
  }
})
