// What does a volume with a file system go through on a node, step by step? MNT, UMT and UMD as users, plugins and the node's
// status see them; the device plugin answers as told.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Answer, Call } from '../kit/device-plugin.ts'
import { createDiskWorld, disk } from '../kit/node-with-disk.ts'
import { createNodeWorld, memory, pod, root } from '../kit/node.ts'

const many = (answer: Answer) => Array.from({ length: 12 }, () => answer)

const failures: readonly [string, Call, Answer, string][] = [
  ['MNT-3', 'prepare', 'untried', 'MountVolume.NewMounter initialization failed'],
  ['MNT-6', 'waitForAttach', 'untried', 'MountVolume.WaitForAttach failed'],
  ['MNT-8', 'mountDevice', 'none', 'MountVolume.MountDevice failed'],
  ['MNT-12', 'mount', 'none', 'MountVolume.SetUp failed'],
]
for (const [rule, call, told, prefix] of failures) {
  test(`${call} fails: the pod hears it in the promised words, and nothing is left of it (${rule})`, async () => {
    const world = await createDiskWorld({ attachable: false })
    const { agent } = await world.start()
    world.plugin.answers.set(call, many(told))
    await world.create(pod('p', world.volumes))
    await world.clock.advance(1_000)
    const text = `Warning FailedMount: ${prefix} for volume "pv" : ${call} was told to fail`
    assert.deepEqual([...new Set(await world.events())], [text])
    const item = agent.actual.get(disk)
    assert.deepEqual([item?.pods.size, item?.device.presence], [0, call === 'mount' ? 'present' : 'absent'])
    // .5 s of back-off after the first try, 1 s after the second (INV-11).
    assert.equal(world.plugin.count(call), 2)
    world.plugin.answers.delete(call)
    await world.clock.advance(2_000)
    assert.equal(await world.phase('p'), 'Running')
    await agent.stop()
  })
}

test('mount options for a plugin that has none are refused before anything is asked of it (MNT-4, PLUG-11)', async () => {
  const world = await createDiskWorld({ attachable: false, mountOptions: false, volume: { mountOptions: ['noatime'] } })
  const { agent } = await world.start()
  await world.create(pod('p', world.volumes))
  await world.clock.advance(1_000)
  const text =
    'Warning FailedMount: MountVolume.MountOptionSupport check failed for volume "pv" : mount options are not supported for this volume type'
  assert.deepEqual([[...new Set(await world.events())], world.plugin.calls], [[text], []])
  await agent.stop()
})

test('the device is mounted once for two pods, before both, and goes behind the last (MNT-7, MNT-9, UMT-1, UMD-1)', async () => {
  const world = await createDiskWorld({ attachable: false })
  const { agent } = await world.start()
  await world.create(pod('p', world.volumes))
  await world.clock.advance(1_000)
  await world.create(pod('q', world.volumes))
  await world.clock.advance(1_000)
  const mounting: Call[] = ['waitForAttach', 'mountDevice', 'mount', 'waitForAttach', 'mount']
  assert.deepEqual(world.plugin.calls, mounting)
  await world.remove('p')
  await world.clock.advance(2_000)
  assert.deepEqual(world.plugin.calls.slice(5), ['unmount'])
  await world.remove('q')
  await world.clock.advance(2_000)
  assert.deepEqual(world.plugin.calls.slice(6), ['unmount', 'unmountDevice'])
  await agent.stop()
})

for (const call of ['mountDevice', 'mount'] as const) {
  test(`a file system that does not match is told on the volume, too (${call}; MNT-8, MNT-12, EVT-6)`, async () => {
    const world = await createDiskWorld({ attachable: false })
    const { agent } = await world.start()
    world.plugin.answers.set(call, many('filesystemMismatch'))
    await world.create(pod('p', world.volumes))
    await world.clock.advance(300)
    const about = (await world.client.list('Event', {})).items.find(
      ({ reason }) => reason === 'FailedMountOnFilesystemMismatch',
    )
    assert.deepEqual(
      [about?.type, about?.involvedObject?.kind, about?.involvedObject?.name, about?.message],
      ['Warning', 'PersistentVolume', 'pv', `MountVolume failed for volume "pv" ${call} was told to fail`],
    )
    await agent.stop()
  })
}

test('SetUp hears who owns the files, and whether a pod may already be using what is there (MNT-11)', async () => {
  const world = await createDiskWorld({ attachable: false, remount: true })
  const first = await world.start()
  const securityContext = { fsGroup: 77, fsGroupChangePolicy: 'OnRootMismatch' as const, runAsUser: 5 }
  const uid = await world.create(pod('p', world.volumes, { securityContext }))
  await world.clock.advance(1_000)
  const told = () =>
    world.plugin.requests.map(({ ownership, foundOnDisk, remount }) => ({ ...ownership, foundOnDisk, remount })).at(-1)
  const owner = { fsGroup: 77, changePolicy: 'OnRootMismatch', fsUser: 5 }
  assert.deepEqual(told(), { ...owner, foundOnDisk: false, remount: false })
  await world.clock.advance(700_000)
  assert.deepEqual(told(), { ...owner, foundOnDisk: false, remount: true })
  await world.host.quiet.files.mkdirAll(`${root}/pods/${uid}/volumes/example.com~device/pv`, 0o750, world.signal)
  first.crash()
  const second = await world.start()
  await world.clock.advance(2_000)
  assert.deepEqual(told(), { ...owner, foundOnDisk: true, remount: false })
  await second.agent.stop()
})

test('set up but not grown, what a restart found is still told to be in use at the next SetUp (MNT-11, MNT-13)', async () => {
  const world = await createDiskWorld({ attachable: false, request: '15Gi' })
  const first = await world.start()
  const uid = await world.create(pod('p', world.volumes))
  await world.clock.advance(1_000)
  await world.host.quiet.files.mkdirAll(`${root}/pods/${uid}/volumes/example.com~device/pv`, 0o750, world.signal)
  first.crash()
  await world.grow()
  const allocatedResourceStatuses = { storage: 'NodeResizePending' as const }
  const allocatedResources = { storage: '15Gi' }
  await world.setClaim({ phase: 'Bound', capacity: { storage: '10Gi' }, allocatedResources, allocatedResourceStatuses })
  world.plugin.answers.set('expand', ['none', 'none'])
  const before = world.plugin.requests.length
  const second = await world.start()
  await world.clock.advance(5_000)
  assert.deepEqual(
    world.plugin.requests.slice(before).map(({ foundOnDisk }) => foundOnDisk),
    [true, true, true],
  )
  assert.equal(second.agent.actual.get(disk)?.pods.get(uid)?.foundOnDisk, false)
  await second.agent.stop()
})

test('the whole way of a mount is measured from the moment it was wanted (MNT-14, MEA-2)', async () => {
  const world = await createDiskWorld()
  const { agent, metrics } = await world.start()
  await world.clock.advance(100)
  await world.create(pod('p', world.volumes))
  await world.clock.advance(20_000)
  await world.attach()
  await world.clock.advance(1_000)
  const line = (await metrics.text())
    .split('\n')
    .find((each) => each.startsWith('volume_operation_total_seconds_sum{') && each.includes('overall_volume_mount'))
  assert.ok(Number(line?.split(' ').at(-1)) >= 20, line ?? 'not measured')
  assert.match(line ?? '', /plugin_name="example.com\/device"/)
  await agent.stop()
})

test('sub-path mounts go first; while they cannot, the volume stays mounted and is tried again (UMT-2)', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  const containers = [
    { name: 'c', image: 'i', command: ['run'], volumeMounts: [{ name: 'm', mountPath: '/m', subPath: 'part' }] },
  ]
  const uid = await world.create(pod('p', [memory('m')], { containers }))
  await world.clock.advance(1_000)
  const whole = `${root}/pods/${uid}/volumes/kubernetes.io~empty-dir/m`
  const part = `${root}/pods/${uid}/volume-subpaths/m/c/0`
  assert.deepEqual(await world.mounts(), [part, whole])
  const fault = world.host.faults.plant({ call: 'mounts.unmount', below: part, kind: 'fails', code: 'EBUSY' })
  await world.client.remove('Pod', { namespace: 'default', name: 'p' }, { gracePeriodSeconds: 0 })
  await world.clock.advance(5_000)
  assert.deepEqual(await world.mounts(), [part, whole])
  assert.deepEqual([...agent.actual.values()][0]?.pods.get(uid)?.presence, 'present')
  fault[Symbol.dispose]()
  await world.clock.advance(60_000)
  assert.deepEqual([await world.mounts(), await world.podDirectories()], [[], []])
  await agent.stop()
})

test('undoing says nothing to users, however often it fails (UMT-4, VCA-7)', async () => {
  const world = await createDiskWorld()
  const { agent } = await world.start()
  await world.clock.advance(100)
  await world.create(pod('p', world.volumes))
  await world.clock.advance(1_000)
  await world.attach()
  await world.clock.advance(1_000)
  world.plugin.answers.set('unmount', ['none', 'unknown', 'untried'])
  world.plugin.answers.set('unmountDevice', ['none', 'unknown', 'untried'])
  await world.remove('p')
  await world.clock.advance(30_000)
  assert.deepEqual([world.plugin.count('unmount'), world.plugin.count('unmountDevice')], [4, 4])
  assert.deepEqual([agent.actual.size, await world.inUse()], [0, []])
  assert.deepEqual(
    (await world.events()).filter((text) => text.startsWith('Warning')),
    [],
  )
  await agent.stop()
})

test('what is in the way of a device that should go names the node it is on (MSG-2)', async () => {
  const world = await createDiskWorld({ attachable: false })
  const { agent } = await world.start()
  await world.create(pod('p', world.volumes))
  await world.clock.advance(1_000)
  world.plugin.answers.set('unmountDevice', many('none'))
  await world.remove('p')
  await world.clock.advance(20_000)
  assert.deepEqual(
    agent.waiting.get(disk)?.map(({ error }) => error),
    [`UnmountDevice failed for volume "pv" (UniqueName: "${disk}") on node "n1" : unmountDevice was told to fail`],
  )
  await agent.stop()
})

test('a device that is still open is not free: in use until it is closed, and unmounted again (UMD-5)', async () => {
  const world = await createDiskWorld()
  world.host.addDisk('/dev/disk')
  const { agent } = await world.start()
  await world.clock.advance(100)
  await world.create(pod('p', world.volumes))
  await world.clock.advance(100)
  await world.attach()
  await world.clock.advance(1_000)
  const { files, mounts, filesystems } = world.host.quiet
  await filesystems.make({ device: '/dev/disk', type: 'ext4' }, world.signal)
  await files.mkdirAll('/elsewhere', 0o755, world.signal)
  const request = { source: '/dev/disk', target: '/elsewhere', type: 'ext4', options: [] }
  await mounts.mount(request, world.signal)
  await world.remove('p')
  await world.clock.advance(5_000)
  assert.deepEqual([agent.actual.get(disk)?.device.presence, await world.inUse()], ['uncertain', [disk]])
  await mounts.unmount('/elsewhere', {}, world.signal)
  await world.clock.advance(60_000)
  assert.deepEqual([agent.actual.size, await world.inUse()], [0, []])
  await agent.stop()
})
