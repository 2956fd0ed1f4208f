// Does `why` name the right cause, and tell it well? The rows of `test/why/rows.ts` one by one, then stories.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { OperationRecord } from '../api/generated/types.ts'
import { causes, pageName, speak } from './causes.ts'
import type { Cause } from './causes.ts'
import { explain } from './explain.ts'
import type { Facts } from './facts.ts'
import { claim, facts, failed, node, pod, record, snapshot, storageClass, volume, waits } from '../../test/why/facts.ts'
import {
  onClaim,
  onVolume,
  onPod,
  ofClaim,
  ofPod,
  ofVolume,
  ofNode,
  pending,
  mountFailed,
  started,
  offered,
  described,
  rows,
} from '../../test/why/rows.ts'

test('a pod that runs waits for no claim that none of its containers uses', () => {
  const running = { phase: 'Running', containerStatuses: [{ name: 'c', restartCount: 0, state: { running: {} } }] }
  assert.equal(explain(started(running, { claims: [], volumes: [] })).blocked, undefined)
})

test('a snapshot that is ready is in order', () => {
  const { verdict } = explain(described({ snapshots: [snapshot({ readyToUse: true })] }))
  assert.equal(verdict, 'healthy')
})

for (const [cause, given] of rows) {
  test(`${given.subject.kind}: ${causes[cause].title}`, () => {
    const { blocked, steps } = explain(given)
    assert.equal(blocked?.cause, cause, JSON.stringify({ steps, blocked }, null, 2))
    assert.ok(blocked.sentence.length > 10 && !blocked.sentence.includes('{'), blocked.sentence)
    assert.ok(blocked.hints.length > 0 && blocked.hints.every(({ command }) => !command.includes('{')))
    assert.equal(steps[blocked.step.number - 1]?.name, blocked.step.name)
  })
}

test('every cause is reached by some facts, and has a page', () => {
  const reached = new Set<string>(rows.map(([cause]) => cause))
  assert.deepEqual(
    Object.keys(causes).filter((cause) => !reached.has(cause)),
    [],
  )
  assert.ok(Object.keys(causes).length >= 40)
  for (const cause of Object.keys(causes) as Cause[]) {
    const page = join(import.meta.dirname, '../../docs/symptoms', `${pageName(cause)}.md`)
    assert.ok(existsSync(page), page)
  }
})

test('a failure carries the words of the driver, the step, the tries and the time of the next one', () => {
  const { blocked } = explain(mountFailed('UNAVAILABLE'))
  assert.deepEqual(
    { ...blocked, hints: [], sentence: '', page: '' },
    {
      cause: 'driverSaysUnavailable',
      sentence: '',
      hints: [],
      page: '',
      actor: 'node a',
      step: { number: 5, of: 6, name: 'claim data is mounted', inside: 'SetUp' },
      since: '2026-01-01T00:00:10.000Z',
      error: { code: 'UNAVAILABLE', message: 'own words', effect: 'none' },
      attempts: 3,
      nextTry: '2026-01-01T00:01:10.000Z',
    },
  )
})

test('a pod that runs with volumes that cannot be brought up to date is told so, with the next try', () => {
  const running = { phase: 'Running', containerStatuses: [{ name: 'c', state: { running: {} } }] }
  const { blocked, verdict } = explain(
    facts(ofPod, {
      pods: [pod({ node: 'a', configMap: 'settings', status: running })],
      nodes: [node()],
      operations: [failed('node a', 'volume_mount', [onPod], 'ENOSPC')],
    }),
  )
  assert.equal(verdict, 'waiting')
  assert.deepEqual(
    [blocked?.cause, blocked?.step.name, blocked?.nextTry],
    ['noSpaceOnNode', 'its volumes are kept up to date', '2026-01-01T00:01:10.000Z'],
  )
  const gone = failed('node a', 'volume_mount', [onPod], 'ObjectMissing')
  const pods = [pod({ node: 'a', configMap: 'settings', status: running })]
  assert.equal(explain(facts(ofPod, { pods, nodes: [node()], operations: [gone] })).verdict, 'healthy')
})

test('an inline volume’s missing driver is named', () => {
  const { spec, ...rest } = pod({ node: 'a' })
  const inline = { ...rest, spec: { ...spec, volumes: [{ name: 'v', csi: { driver: 'nobody.example.com' } }] } }
  const record = failed('node a', 'volume_mount', [onPod], 'DriverMissing')
  const { blocked } = explain(
    facts(ofPod, {
      pods: [inline],
      nodes: [node()],
      operations: [{ ...record, spec: { ...record.spec, volume: 'kubernetes.io/csi/uid-web-v' } }],
    }),
  )
  assert.match(blocked?.sentence ?? '', /^driver nobody\.example\.com is not registered/)
})

test('objects speak before records: a bound claim is bound whatever an older record says', () => {
  const { verdict } = explain(
    facts(ofClaim, {
      claims: [claim({ phase: 'Bound' })],
      operations: [waits('binding', onClaim, 'noVolumeFits'), failed('csi d', 'provision', [onClaim], 'INTERNAL')],
    }),
  )
  assert.equal(verdict, 'healthy')
})

test('a healthy pod tells its history, oldest first, with durations', () => {
  const done = (operation: string, objects: OperationRecord['spec']['objects'], at: number) =>
    record('x', operation, objects ?? [], {
      phase: 'Succeeded',
      attempts: 1,
      startedAt: new Date(at).toISOString(),
      finishedAt: new Date(at + 40).toISOString(),
    })
  const { verdict, history, blocked } = explain(
    started(
      { phase: 'Running', containerStatuses: [{ name: 'c', state: { running: {} } }] },
      { operations: [done('volume_mount', [onVolume, onPod], 2_000), done('provision', [onClaim], 1_000)] },
    ),
  )
  assert.equal(blocked, undefined)
  assert.equal(verdict, 'healthy')
  assert.deepEqual(
    history.map(({ operation, tookMs }) => [operation, tookMs]),
    [
      ['provision', 40],
      ['volume_mount', 40],
    ],
  )
})

test('a claim whose pod cannot be placed waits for what the pod waits for', () => {
  const { blocked } = explain(
    pending('podUnscheduled', {
      pods: [pod()],
      nodes: [node()],
      operations: [waits('binding', onClaim, 'podUnscheduled'), waits('placement', onPod, 'noNodeFits')],
    }),
  )
  assert.equal(blocked?.cause, 'noNodeFits')
})

test('commands about things outside the usual namespace name it', () => {
  const { blocked } = explain(
    facts(
      { ...ofClaim, namespace: 'shop' },
      { claims: [claim({ phase: 'Lost', namespace: 'shop' })], classes: [storageClass()] },
    ),
  )
  assert.deepEqual(
    blocked?.hints.map(({ command }) => command),
    ['hawser get -n shop pvc data -o yaml', 'hawser events -n shop --for pvc/data'],
  )
})

test('a volume that nobody wants is in order', () => {
  const { verdict, steps } = explain(facts(ofVolume, { volumes: [offered] }))
  assert.deepEqual([verdict, steps.at(-1)?.name], ['healthy', 'it is available'])
})

test('commands about things in no namespace name none, and what is not known is left out', () => {
  const commands = (cause: Cause, names: object) => speak(cause, names).hints.map(({ command }) => command)
  const shop = { namespace: 'shop', volume: 'pv', node: 'a', claim: 'data' }
  assert.deepEqual(commands('retained', shop), ['hawser describe pv/pv', 'hawser delete pv pv'])
  assert.deepEqual(commands('reclaimFailed', shop), ['hawser events --for pv/pv', 'hawser get volumeattachment'])
  assert.deepEqual(commands('attachFailed', shop), ['hawser get volumeattachment -o yaml'])
  assert.deepEqual(commands('volumesUnresolved', { ...shop, pod: 'web' }), [
    'hawser events -n shop --for pod/web',
    'hawser get -n shop pvc,pv',
  ])
})

test('a node does not wait for what nobody wants mounted any more', () => {
  const failing = (more: Partial<Facts>) =>
    explain(
      facts(ofNode, {
        nodes: [node()],
        operations: [failed('node a', 'volume_mount', [onVolume], 'EIO', { node: 'a' })],
        ...more,
      }),
    )
  const used = { claims: [claim({ phase: 'Bound' })], volumes: [volume({ phase: 'Bound' })] }
  assert.equal(failing({ ...used, pods: [pod({ node: 'a' })] }).blocked?.cause, 'ioError')
  assert.equal(failing({ ...used, pods: [pod({ node: 'a', deleting: true })] }).verdict, 'healthy')
  assert.equal(failing({ ...used, pods: [pod({ node: 'b' })] }).verdict, 'healthy')
  assert.equal(failing({}).verdict, 'healthy')
})

test('an object that does not exist is said to be missing', () => {
  assert.equal(explain(facts(ofPod, {})).verdict, 'missing')
})
