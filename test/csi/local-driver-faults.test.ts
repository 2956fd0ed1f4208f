// Does the built-in driver leave anything behind when a step fails? Each call that it makes to the host fails once, before or
// after its effect, hangs, or is the driver's last; then the caller does what the answer tells it to do, and deletes.
import assert from 'node:assert/strict'
import { dirname } from 'node:path/posix'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import type { CreateVolumeRequest } from '../../src/csi/controller.ts'
import type { Capability } from '../../src/csi/values.ts'
import { asVolumeError } from '../../src/volume/effect.ts'
import type { Effect } from '../../src/volume/effect.ts'
import { driverData as data, startDriverMachine as startMachine } from '../kit/local-driver.ts'
import type { DriverMachine as Machine } from '../kit/local-driver.ts'

const staging = '/var/node/plugins/pv/globalmount'
const target = '/var/node/pods/u/mount'
const never = new AbortController().signal

interface Trouble {
  readonly kind: 'fails' | 'failsAfter' | 'hangs' | 'crash'
  /** So many calls to the host go well first. */
  readonly after: number
  /** So many fail then: with two, the first call that undoes fails too. */
  readonly times: number
}

/** What a call's answer tells its caller: that it is done, or what the failure left behind. */
async function answer(
  machine: Machine,
  { kind }: Trouble,
  call: (signal: AbortSignal) => Promise<unknown>,
): Promise<'done' | Effect> {
  const { faults } = machine.host
  const before = faults.struck
  const deadline = new AbortController()
  let settled = false
  const called = call(deadline.signal).finally(() => (settled = true))
  called.catch(() => {})
  while (kind === 'hangs' && !settled) {
    await turn()
    if (faults.struck > before) deadline.abort(new Error('no answer in time'))
  }
  try {
    await called
    return 'done'
  } catch (error) {
    if (kind !== 'crash') return asVolumeError(error).effect
    // Who calls a driver that dies hears nothing from it.
    await machine.restart()
    return 'unknown'
  }
}

/** Calls that take something away are repeated until they succeed. */
async function insist(
  machine: Machine,
  trouble: Trouble,
  call: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  for (let tries = 1; (await answer(machine, trouble, call)) !== 'done'; tries++)
    assert.ok(tries < 16, 'never succeeds')
}

const filesystem: Capability = {
  access: { kind: 'mount', fsType: 'ext4', mountFlags: [] },
  mode: 'SINGLE_NODE_WRITER',
}
const block: Capability = { access: { kind: 'block' }, mode: 'SINGLE_NODE_WRITER' }

/** The volume's id; undefined when the driver says that nothing was made. */
async function provision(
  machine: Machine,
  trouble: Trouble,
  capability: Capability,
  about: Partial<CreateVolumeRequest> = {},
): Promise<string | undefined> {
  const request = { name: 'pvc-1', requiredBytes: 1n << 24n, capabilities: [capability], ...about }
  for (let tries = 1; ; tries++) {
    let id = ''
    const made = await answer(machine, trouble, async (signal) => {
      id = (await machine.controller.createVolume(request, signal)).volumeId
    })
    if (made === 'done') return id
    if (made === 'none') return undefined
    assert.ok(tries < 16, 'never succeeds')
  }
}

async function volumeLife(machine: Machine, trouble: Trouble, capability: Capability): Promise<void> {
  const volumeId = await provision(machine, trouble, capability)
  if (volumeId === undefined) return
  const { files } = machine.host.quiet
  await files.mkdirAll(staging, 0o750, never)
  const stage = { volumeId, stagingPath: staging, capability }
  const staged = await answer(machine, trouble, (signal) => machine.node.stage(stage, signal))
  if (staged === 'done') {
    await files.mkdirAll(dirname(target), 0o750, never)
    const publish = { ...stage, targetPath: target, readOnly: false }
    const published = await answer(machine, trouble, (signal) => machine.node.publish(publish, signal))
    if (published !== 'none')
      await insist(machine, trouble, (signal) => machine.node.unpublish(volumeId, target, signal))
    await files.removeEmptyTree(target, never)
  }
  if (staged !== 'none') await insist(machine, trouble, (signal) => machine.node.unstage(volumeId, staging, signal))
  await files.removeEmptyTree(staging, never)
  await insist(machine, trouble, (signal) => machine.controller.deleteVolume(volumeId, {}, signal))
}

/** Grown twice while it is staged, thick or thin; an expansion is repeated until it succeeds or is refused for good. */
async function grownLife(machine: Machine, trouble: Trouble, parameters: Record<string, string>): Promise<void> {
  const volumeId = await provision(machine, trouble, filesystem, { parameters })
  if (volumeId === undefined) return
  const { files } = machine.host.quiet
  await files.mkdirAll(staging, 0o750, never)
  const stage = { volumeId, stagingPath: staging, capability: filesystem }
  const staged = await answer(machine, trouble, (signal) => machine.node.stage(stage, signal))
  const sizeBytes = 1n << 25n
  await answer(machine, trouble, (signal) =>
    machine.controller.expand({ volumeId, sizeBytes, capability: filesystem }, signal),
  )
  const onNode = { volumeId, volumePath: staging, stagingPath: staging, sizeBytes, capability: filesystem }
  if (staged === 'done') await answer(machine, trouble, (signal) => machine.node.expand(onNode, signal))
  if (staged !== 'none') await insist(machine, trouble, (signal) => machine.node.unstage(volumeId, staging, signal))
  await files.removeEmptyTree(staging, never)
  await insist(machine, trouble, (signal) => machine.controller.deleteVolume(volumeId, {}, signal))
}

/** A clone of a staged volume; both go. */
async function cloneLife(machine: Machine, trouble: Trouble): Promise<void> {
  const volumeId = await provision(machine, trouble, filesystem)
  if (volumeId === undefined) return
  const source = { kind: 'volume' as const, volumeId }
  const clone = await provision(machine, trouble, filesystem, { name: 'pvc-2', source })
  if (clone !== undefined)
    await insist(machine, trouble, (signal) => machine.controller.deleteVolume(clone, {}, signal))
  await insist(machine, trouble, (signal) => machine.controller.deleteVolume(volumeId, {}, signal))
}

async function inlineLife(machine: Machine, trouble: Trouble): Promise<void> {
  const volumeId = 'csi-inline'
  await machine.host.quiet.files.mkdirAll(dirname(target), 0o750, never)
  const volumeContext = { 'csi.storage.k8s.io/ephemeral': 'true', size: '16Mi' }
  const publish = {
    volumeId,
    stagingPath: '',
    targetPath: target,
    capability: filesystem,
    readOnly: false,
    volumeContext,
  }
  const published = await answer(machine, trouble, (signal) => machine.node.publish(publish, signal))
  if (published !== 'none') await insist(machine, trouble, (signal) => machine.node.unpublish(volumeId, target, signal))
  await machine.host.quiet.files.removeEmptyTree(target, never)
}

async function snapshotLife(machine: Machine, trouble: Trouble): Promise<void> {
  const sourceVolumeId = await provision(machine, trouble, filesystem)
  if (sourceVolumeId === undefined) return
  for (let tries = 1; ; tries++) {
    let id = ''
    const made = await answer(machine, trouble, async (signal) => {
      id = (await machine.controller.createSnapshot({ sourceVolumeId, name: 's' }, signal)).snapshotId
    })
    if (made === 'done') await insist(machine, trouble, (signal) => machine.controller.deleteSnapshot(id, {}, signal))
    if (made === 'done' || made === 'none') break
    assert.ok(tries < 16, 'never succeeds')
  }
  await insist(machine, trouble, (signal) => machine.controller.deleteVolume(sourceVolumeId, {}, signal))
}

/** Everything that the driver could have left on the machine. */
async function left({ host }: Machine): Promise<readonly string[]> {
  const { files, mounts } = host.quiet
  const found = [
    ...host.loops().map(({ path, backing }) => `${path} of ${backing}`),
    ...(await mounts.list(never)).map(({ mountPoint }) => mountPoint).filter((path) => path !== '/'),
  ]
  for (const parent of ['volumes', 'snapshots', 'inline']) {
    if (!(await files.exists(`${data}/${parent}`, never))) continue
    found.push(...(await files.readDir(`${data}/${parent}`, never)).map((name) => `${parent}/${name}`))
  }
  for (const path of [staging, target]) if (await files.exists(path, never)) found.push(path)
  return found
}

const lives: Readonly<Record<string, (machine: Machine, trouble: Trouble) => Promise<void>>> = {
  'a filesystem': (machine, trouble) => volumeLife(machine, trouble, filesystem),
  'a block device': (machine, trouble) => volumeLife(machine, trouble, block),
  'a volume that grows': (machine, trouble) => grownLife(machine, trouble, {}),
  'a thick volume that grows': (machine, trouble) => grownLife(machine, trouble, { provisioning: 'thick' }),
  'a clone': cloneLife,
  'an inline volume': inlineLife,
  'a snapshot': snapshotLife,
}

const troubles: readonly (readonly [string, Pick<Trouble, 'kind' | 'times'>])[] = [
  ['fails before its effect', { kind: 'fails', times: 1 }],
  ['fails after its effect', { kind: 'failsAfter', times: 1 }],
  ['fails, and the first call that undoes fails too', { kind: 'fails', times: 2 }],
  ['fails, and everything that undoes fails too', { kind: 'fails', times: 12 }],
  ['hangs until the caller gives up', { kind: 'hangs', times: 1 }],
  ['is the last of a driver that dies', { kind: 'crash', times: Infinity }],
]

for (const [what, live] of Object.entries(lives)) {
  for (const [how, { kind, times }] of troubles) {
    test(`${what} leaves nothing behind when any step ${how}`, async () => {
      const leaks: string[] = []
      for (let after = 0; ; after++) {
        const machine = await startMachine()
        const trouble = { kind, after, times }
        machine.host.faults.plant({ call: '*', kind: kind === 'crash' ? 'fails' : kind, after, times })
        try {
          await live(machine, trouble)
        } catch (error) {
          leaks.push(`after ${after} calls: ${asVolumeError(error).message}`)
        }
        const { struck } = machine.host.faults
        machine.host.faults.clear()
        const found = await left(machine)
        if (found.length > 0) leaks.push(`after ${after} calls: ${found.join(', ')}`)
        if (struck === 0) break
      }
      assert.deepEqual(leaks, [])
    })
  }
}

test('a caller who gives up in the middle of a snapshot leaves no filesystem frozen', async () => {
  for (const at of ['--freeze', 'cp', '--unfreeze']) {
    const machine = await startMachine()
    const { host, controller } = machine
    const volumeId = (await provision(machine, { kind: 'fails', after: 1_000, times: 0 }, filesystem))!
    await host.quiet.files.mkdirAll(staging, 0o750, never)
    await machine.node.stage({ volumeId, stagingPath: staging, capability: filesystem }, never)
    const frozen = new Set<string>()
    const giveUp = new AbortController()
    const { programs } = host
    const copy = programs.get('cp')!
    // What a program has begun it ends, also when nobody waits for it any longer.
    const ended = (what: string, signal: AbortSignal) => {
      if (what === at) giveUp.abort(new Error('given up'))
      signal.throwIfAborted()
    }
    programs.set('fsfreeze', ({ argv: [, way = '', path = ''] }, signal) => {
      if (way === '--freeze') frozen.add(path)
      else frozen.delete(path)
      ended(way, signal)
      return { exitCode: 0, stdout: '', stderr: '' }
    })
    programs.set('cp', async (command, signal) => {
      const done = await copy(command, signal)
      ended('cp', signal)
      return done
    })
    const snapshot = (signal: AbortSignal) => controller.createSnapshot({ sourceVolumeId: volumeId, name: 's' }, signal)
    await snapshot(giveUp.signal).catch(() => {})
    await turn()
    assert.ok(giveUp.signal.aborted, at)
    assert.deepEqual([...frozen], [], `given up at ${at}`)
    await snapshot(never)
    assert.deepEqual([...frozen], [])
  }
})
