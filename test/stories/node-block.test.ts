// What happens to raw block volumes on a node? MAP-1 … MAP-11, UMP, UPD: a device is set up once, bound, linked and held
// for each pod, and every failure leaves either nothing or doubt that is undone.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodUid } from '../../src/api/names.ts'
import type { Answer, Call } from '../kit/device-plugin.ts'
import { globalMap } from '../kit/device-plugin.ts'
import { blockPod, createDiskWorld, disk } from '../kit/node-with-disk.ts'
import type { DiskWorldOptions } from '../kit/node-with-disk.ts'
import { pod, root } from '../kit/node.ts'

const many = (answer: Answer) => Array.from({ length: 12 }, () => answer)

async function createBlockWorld(options: DiskWorldOptions = {}) {
  const { volume, ...rest } = options
  const world = await createDiskWorld({ block: 'custom', ...rest, volume: { volumeMode: 'Block', ...volume } })
  world.host.addDisk('/dev/disk')
  const pick = async (folder: string) => {
    const found = await world.host.quiet.files.readDir(folder, world.signal).catch(() => [])
    return found.sort()
  }
  const traces = async () => ({
    mounts: (await world.host.quiet.mounts.list(world.signal))
      .map(({ mountPoint }) => mountPoint)
      .filter((at) => at.startsWith('/global-map')),
    loops: world.host.loops().length,
    map: await pick(globalMap('pv')),
    records: await pick(`${root}/hawser-devices`),
    devices: [...world.plugin.devices],
  })
  const settle = async () => {
    await world.clock.advance(100)
    await world.attach()
    await world.clock.advance(2_000)
  }
  return { ...world, traces, settle }
}

/** A pod with the raw disk runs. */
async function createMappedWorld() {
  const world = await createBlockWorld()
  const { agent } = await world.start()
  await world.clock.advance(100)
  const uid = await world.create(blockPod('p', world.volumes))
  await world.settle()
  return { world, agent, uid }
}
const nothing = { mounts: [], loops: 0, map: [], records: [], devices: [] }
const link = (uid: PodUid) => `${root}/pods/${uid}/volumeDevices/example.com~device/pv`

test('set up, bound, linked, held, told; and undone in this order (EXEC-14, MAP-3, MAP-5, MAP-8, MAP-9, UMP-2, UPD-3, EVT-5)', async () => {
  const { world, agent, uid } = await createMappedWorld()
  assert.deepEqual(world.plugin.calls, ['waitForAttach', 'setUpDevice', 'mapPodDevice'])
  assert.equal(await world.phase('p'), 'Running')
  const { records, ...seen } = await world.traces()
  const bound = `${globalMap('pv')}/${uid}`
  assert.deepEqual(seen, { mounts: [bound], loops: 1, map: [uid], devices: ['pv'] })
  assert.equal(records.length, 1)
  assert.equal(await world.host.quiet.files.readlink(link(uid), world.signal), '/dev/disk')
  const told = (await world.events()).filter((text) => text.includes('SuccessfulMountVolume'))
  const said = 'Normal SuccessfulMountVolume: MapVolume.MapPodDevice succeeded for volume "pv"'
  assert.deepEqual(told.sort(), [
    `${said} globalMapPath "${globalMap('pv')}"`,
    `${said} volumeMapPath "${root}/pods/${uid}/volumeDevices/example.com~device"`,
  ])
  await world.remove('p')
  await world.clock.advance(3_000)
  assert.deepEqual(world.plugin.calls.slice(3), ['unmapPodDevice', 'tearDownDevice'])
  assert.deepEqual(await world.traces(), nothing)
  assert.deepEqual([agent.actual.size, await world.podDirectories()], [0, []])
  await agent.stop()
})

test('the second pod finds the device set up; it is torn down only behind the last one (MAP-4, MAP-5, UPD-2)', async () => {
  const { world, agent } = await createMappedWorld()
  await world.create(blockPod('q', world.volumes))
  await world.clock.advance(2_000)
  assert.deepEqual([world.plugin.count('setUpDevice'), world.plugin.count('mapPodDevice')], [1, 2])
  await world.remove('p')
  await world.clock.advance(3_000)
  assert.deepEqual([world.plugin.count('unmapPodDevice'), world.plugin.count('tearDownDevice')], [1, 0])
  await world.remove('q')
  await world.clock.advance(3_000)
  assert.deepEqual([world.plugin.count('tearDownDevice'), await world.traces()], [1, nothing])
  await agent.stop()
})

test('the volume belongs to another node: told as FailedMount, nothing is touched (MAP-1)', async () => {
  const required = {
    nodeSelectorTerms: [
      { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In' as const, values: ['other'] }] },
    ],
  }
  const world = await createBlockWorld({ attachable: false, volume: { nodeAffinity: { required } } })
  const { agent } = await world.start()
  await world.clock.advance(100)
  await world.create(blockPod('p', world.volumes))
  await world.clock.advance(2_000)
  const text = 'MapVolume.NodeAffinity check failed for volume "pv" : no matching NodeSelectorTerms'
  const failures = (await world.events()).filter((each) => each.startsWith('Warning'))
  assert.deepEqual([...new Set(failures)], [`Warning FailedMount: ${text}`])
  assert.deepEqual(world.plugin.calls, [])
  await agent.stop()
})

test('a plugin without block devices is named in the promised words (MAP-1, TA-42, EVT-4)', async () => {
  const world = await createBlockWorld({ block: 'none', attachable: false })
  const { agent } = await world.start()
  await world.create(blockPod('p', world.volumes))
  await world.clock.advance(2_000)
  const prefix =
    'MapVolume.FindMapperPluginBySpec failed to find BlockVolumeMapper plugin. Volume plugin is nil. for volume "pv"'
  const events = await world.events()
  assert.ok(
    events.some((text) => text.startsWith(`Warning FailedMapVolume: ${prefix}`)),
    events.join('\n'),
  )
  await agent.stop()
})

test('a ReadWriteOncePod device is refused to a second pod (MAP-2)', async () => {
  const world = await createBlockWorld({
    attachable: false,
    block: 'plain',
    volume: { accessModes: ['ReadWriteOncePod'] },
  })
  const { agent } = await world.start()
  await world.create(blockPod('one', world.volumes))
  await world.clock.advance(1_000)
  await world.create(blockPod('two', world.volumes))
  await world.clock.advance(2_000)
  const text =
    'MapVolume.SetUpDevice failed for volume "pv" : volume uses the ReadWriteOncePod access mode and is already in use by another pod'
  assert.ok((await world.events()).includes(`Warning FailedMapVolume: ${text}`))
  assert.deepEqual([await world.phase('one'), await world.phase('two')], ['Running', 'Pending'])
  await agent.stop()
})

test('a device that needs no setting up is mapped and leaves nothing either (MAP-5, UPD-3)', async () => {
  const world = await createBlockWorld({ attachable: false, block: 'plain' })
  const { agent } = await world.start()
  const uid = await world.create(blockPod('p', world.volumes))
  await world.clock.advance(2_000)
  assert.equal(await world.phase('p'), 'Running')
  assert.deepEqual((await world.traces()).map, [uid])
  await world.remove('p')
  await world.clock.advance(3_000)
  assert.deepEqual([await world.traces(), agent.actual.size], [nothing, 0])
  await agent.stop()
})

const outcomes: readonly [string, Call, Answer[], string, 'absent' | 'uncertain' | 'present', Call | undefined][] = [
  [
    'SetUpDevice times out (MAP-4, DEV-3)',
    'setUpDevice',
    many('unknown'),
    'uncertain device',
    'absent',
    'tearDownDevice',
  ],
  ['SetUpDevice fails for good (MAP-4)', 'setUpDevice', many('none'), 'absent device', 'absent', undefined],
  ['SetUpDevice was not tried (MAP-4)', 'setUpDevice', many('untried'), 'absent device', 'absent', undefined],
  ['MapPodDevice times out (MAP-6)', 'mapPodDevice', many('unknown'), 'present device', 'uncertain', 'unmapPodDevice'],
  ['MapPodDevice fails for good (MAP-6)', 'mapPodDevice', many('none'), 'present device', 'absent', undefined],
]
for (const [name, call, list, device, presence, undoing] of outcomes) {
  test(`${name}: what is left is undone when the pod goes (MAP-11)`, async () => {
    const world = await createBlockWorld({ attachable: true })
    const { agent } = await world.start()
    await world.clock.advance(100)
    world.plugin.answers.set(call, [...list])
    const uid = await world.create(blockPod('p', world.volumes))
    await world.settle()
    const item = agent.actual.get(disk)
    assert.deepEqual([`${item?.device.presence} device`, item?.pods.get(uid)?.presence ?? 'absent'], [device, presence])
    const prefix = call === 'setUpDevice' ? 'MapVolume.SetUpDevice' : 'MapVolume.MapPodDevice'
    const text = `Warning FailedMapVolume: ${prefix} failed for volume "pv" : ${call} was told to fail`
    assert.ok((await world.events()).includes(text), (await world.events()).join('\n'))
    await world.remove('p')
    await world.clock.advance(10_000)
    const undone = (['unmapPodDevice', 'tearDownDevice'] as const).filter((each) => world.plugin.count(each) > 0)
    assert.equal(undone[0], undoing ?? (device === 'present device' ? 'tearDownDevice' : undefined))
    assert.deepEqual([await world.traces(), agent.actual.size], [nothing, 0])
    await agent.stop()
  })
}

test('no device at all is said so, leaves doubt, and is undone (MAP-6)', async () => {
  const world = await createBlockWorld({ attachable: false })
  const { agent } = await world.start()
  const uid = await world.create(blockPod('p', world.volumes))
  await world.clock.advance(2_000)
  const text = 'Warning FailedMapVolume: MapVolume failed for volume "pv" : device path of the volume is empty'
  assert.ok((await world.events()).includes(text), (await world.events()).join('\n'))
  assert.equal(agent.actual.get(disk)?.pods.get(uid)?.presence, 'unready')
  await world.remove('p')
  await world.clock.advance(5_000)
  assert.deepEqual([await world.traces(), agent.actual.size], [nothing, 0])
  await agent.stop()
})

test('a link to the device is resolved once, and the record holds the device itself (MAP-7)', async () => {
  const world = await createBlockWorld()
  await world.host.quiet.files.mkdirAll('/dev/by-id', 0o755, world.signal)
  await world.host.quiet.files.symlink('/dev/disk', '/dev/by-id/x', world.signal)
  const { agent } = await world.start()
  await world.clock.advance(100)
  const uid = await world.create(blockPod('p', world.volumes))
  await world.clock.advance(100)
  await world.nodeStatus({ volumesAttached: [{ name: disk, devicePath: '/dev/by-id/x' }] })
  await world.clock.advance(2_000)
  assert.deepEqual(world.plugin.waited, ['/dev/by-id/x'])
  assert.equal(agent.actual.get(disk)?.devicePath, '/dev/disk')
  assert.equal(await world.host.quiet.files.readlink(link(uid), world.signal), '/dev/disk')
  await agent.stop()
})

test('mapped, but not grown: doubt, the pod does not start, and it is undone (MAP-10)', async () => {
  const world = await createBlockWorld({ volume: { capacity: { storage: '15Gi' } } })
  const { agent } = await world.start()
  await world.clock.advance(100)
  world.plugin.answers.set('expand', many('none'))
  const uid = await world.create(blockPod('p', world.volumes))
  await world.settle()
  const text =
    'Warning FailedMapVolume: MapVolume.MarkVolumeAsMounted failed while expanding volume for volume "pv" : expand was told to fail'
  assert.ok((await world.events()).includes(text), (await world.events()).join('\n'))
  assert.deepEqual([agent.actual.get(disk)?.pods.get(uid)?.presence, await world.phase('p')], ['unready', 'Pending'])
  await world.remove('p')
  await world.clock.advance(10_000)
  assert.deepEqual([await world.traces(), agent.actual.size], [nothing, 0])
  await agent.stop()
})

test('an unmap that fails half-way is doubt from its first step on, says nothing to users, and is tried again (UMP-2)', async () => {
  const { world, agent, uid } = await createMappedWorld()
  world.plugin.answers.set('unmapPodDevice', ['none', 'none'])
  await world.remove('p')
  await world.clock.advance(300)
  assert.deepEqual(
    [agent.actual.get(disk)?.pods.get(uid)?.presence, (await world.traces()).loops, world.plugin.devices.size],
    ['uncertain', 0, 1],
  )
  assert.deepEqual(await world.inUse(), [disk], 'not free before it is undone (NSP-3)')
  await world.clock.advance(10_000)
  assert.deepEqual([await world.traces(), agent.actual.size, await world.inUse()], [nothing, 0, []])
  assert.ok(!(await world.events()).some((text) => text.startsWith('Warning')))
  await agent.stop()
})

test('a device node in the global map that nobody knows of keeps the device (UPD-2)', async () => {
  const { world, agent } = await createMappedWorld()
  const stranger = `${globalMap('pv')}/stranger`
  await world.host.quiet.files.writeFile(stranger, '', { mode: 0o600 }, world.signal)
  await world.host.quiet.mounts.bind({ source: '/dev/disk', target: stranger }, world.signal)
  await world.remove('p')
  await world.clock.advance(10_000)
  assert.deepEqual([world.plugin.count('tearDownDevice'), await world.inUse()], [0, [disk]])
  await world.host.quiet.mounts.unmount(stranger, {}, world.signal)
  await world.host.quiet.files.unlink(stranger, world.signal)
  await world.clock.advance(60_000)
  assert.deepEqual([await world.traces(), await world.inUse()], [nothing, []])
  await agent.stop()
})

test('a tear-down that fails leaves doubt, and a new pod sets the device up again (UPD-3)', async () => {
  const { world, agent } = await createMappedWorld()
  world.plugin.answers.set('tearDownDevice', many('none'))
  await world.remove('p')
  await world.clock.advance(300)
  assert.equal(agent.actual.get(disk)?.device.presence, 'uncertain')
  await world.create(blockPod('q', world.volumes))
  await world.clock.advance(5_000)
  assert.deepEqual([world.plugin.count('setUpDevice'), await world.phase('q')], [2, 'Running'])
  await agent.stop()
})

test('one plugin serves a file system by mounting and never by mapping (EXEC-14)', async () => {
  const world = await createDiskWorld({ attachable: false, block: 'custom' })
  const { agent } = await world.start()
  await world.create(pod('p', world.volumes))
  await world.clock.advance(1_000)
  await world.remove('p')
  await world.clock.advance(3_000)
  assert.deepEqual(world.plugin.calls, ['waitForAttach', 'mountDevice', 'mount', 'unmount', 'unmountDevice'])
  await agent.stop()
})

test('in use, a block volume is grown at the device of a pod that still has it (EXN-3)', async () => {
  const world = await createBlockWorld({ publishes: true })
  const device = world.host.addDisk('/dev/published-p')
  world.host.addDisk('/dev/published-q', device)
  const { agent } = await world.start()
  await world.clock.advance(100)
  await world.create(blockPod('p', world.volumes))
  await world.settle()
  await world.create(blockPod('q', world.volumes))
  await world.clock.advance(2_000)
  await world.remove('q')
  await world.clock.advance(2_000)
  await world.grow()
  await world.setClaim({
    allocatedResources: { storage: '15Gi' },
    allocatedResourceStatuses: { storage: 'NodeResizePending' },
  })
  await world.clock.advance(2_000)
  assert.deepEqual([world.plugin.asked, world.plugin.grownAt], [[15n << 30n], ['/dev/published-p']])
  await agent.stop()
})

for (const readOnly of [false, true]) {
  test(`a disk that comes back under another number is bound and held anew, ${readOnly ? 'read-only' : 'for writing'}`, async () => {
    const world = await createBlockWorld({ volume: { accessModes: [readOnly ? 'ReadOnlyMany' : 'ReadWriteOnce'] } })
    const first = await world.start()
    await world.clock.advance(100)
    const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'c', readOnly } }]
    const uid = await world.create(blockPod('p', volumes))
    await world.settle()
    const before = await world.traces()
    // While no agent is there, its session ends and begins again: another device, and the old one is of no use.
    first.crash()
    world.host.addDisk('/dev/other')
    await world.nodeStatus({ volumesAttached: [{ name: disk, devicePath: '/dev/other' }] })
    const { agent } = await world.start()
    await world.clock.advance(10_000)
    const { files } = world.host.quiet
    const numberOf = async (path: string) => (await files.stat(path, world.signal)).deviceNode
    const bound = `${globalMap('pv')}/${uid}`
    assert.equal(await numberOf(bound), await numberOf('/dev/other'))
    assert.equal(await files.readlink(link(uid), world.signal), '/dev/other')
    assert.deepEqual(await world.traces(), before, 'one bind, the same number of holders')
    await world.remove('p')
    await world.clock.advance(3_000)
    assert.deepEqual(await world.traces(), nothing)
    await agent.stop()
  })
}
