// What does a node know after each outcome of each operation? Rules TA-36 … TA-61 as stories.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodUid } from '../../src/api/names.ts'
import type { PersistentVolumeClaim, PersistentVolumeClaimStatus } from '../../src/api/generated/types.ts'
import type { Answer, Call } from '../kit/device-plugin.ts'
import { createDiskWorld, disk, removeNow } from '../kit/node-with-disk.ts'
import { nodeName, pod, root } from '../kit/node.ts'
import { assertWhy } from '../kit/assert-why.ts'

test('reported in use, then attached, then mounted; and all the way back (TA-36, NSP-2, NSP-3, DES-5, WA-3)', async () => {
  const world = await createDiskWorld()
  const { agent } = await world.start()
  await world.clock.advance(100)
  const uid = await world.create(pod('p', world.volumes))
  await world.clock.advance(1_000)
  const inUse = async () => (await world.client.get('Node', { name: nodeName })).status?.volumesInUse ?? []
  assert.deepEqual(await inUse(), [disk])
  assert.deepEqual(agent.waiting.get(disk), [{ reason: 'notAttached', pod: uid }])
  await assertWhy(world, 'pod/p', 'notAttached')
  assert.deepEqual(world.plugin.calls, [])

  await world.attach()
  await world.clock.advance(1_000)
  assert.deepEqual(world.plugin.calls, ['waitForAttach', 'mountDevice', 'mount'])
  assert.deepEqual(world.plugin.waited, ['/dev/disk'])
  assert.equal(await world.phase('p'), 'Running')

  await world.client.remove('Pod', { namespace: 'default', name: 'p' })
  await world.clock.advance(3_000)
  assert.deepEqual(world.plugin.calls.slice(3), ['unmount', 'unmountDevice'])
  assert.deepEqual(await inUse(), [])
  assert.equal(agent.actual.size, 0)
  await agent.stop()
})

const deviceTable: readonly [string, Answer[], 'absent' | 'uncertain' | 'present', number][] = [
  [
    'a timeout leaves doubt, and doubt is undone',
    ['unknown', 'unknown', 'unknown', 'unknown', 'unknown', 'unknown'],
    'uncertain',
    1,
  ],
  ['a final error leaves nothing', ['none', 'none', 'none', 'none', 'none', 'none'], 'absent', 0],
  ['a timeout, then a final error: nothing', ['unknown', 'none', 'none', 'none', 'none', 'none'], 'absent', 0],
  [
    'what was not tried changes nothing',
    ['untried', 'untried', 'untried', 'untried', 'untried', 'untried'],
    'absent',
    0,
  ],
  ['success', ['ok'], 'present', 1],
]
for (const [name, mountDevice, presence, unmounts] of deviceTable) {
  test(`MountDevice: ${name} (TA-38)`, async () => {
    const world = await createDiskWorld({ attachable: false })
    const { agent } = await world.start()
    world.plugin.answers.set('mountDevice', [...mountDevice])
    await world.create(pod('p', world.volumes))
    await world.clock.advance(5_000)
    assert.equal(agent.actual.get(disk)?.device.presence, presence)
    if (presence !== 'present') await assertWhy(world, 'pod/p', 'mountFailed')
    const records = await world.host.quiet.files.readDir(`${root}/hawser-devices`, world.signal)
    assert.equal(records.length, presence === 'absent' ? 0 : 1)
    await world.client.remove('Pod', { namespace: 'default', name: 'p' }, removeNow)
    await world.clock.advance(10_000)
    assert.deepEqual(
      [world.plugin.count('unmountDevice'), world.plugin.devices.size, agent.actual.size],
      [unmounts, 0, 0],
    )
    await agent.stop()
  })
}

const setUpTable: readonly [string, Call, Answer[], 'absent' | 'uncertain' | 'present', number][] = [
  [
    'a timeout leaves doubt',
    'mount',
    ['unknown', 'unknown', 'unknown', 'unknown', 'unknown', 'unknown'],
    'uncertain',
    1,
  ],
  ['a final error leaves nothing', 'mount', ['none', 'none', 'none', 'none', 'none', 'none'], 'absent', 0],
  ['a timeout, then a final error: nothing', 'mount', ['unknown', 'none', 'none', 'none', 'none', 'none'], 'absent', 0],
  ['success', 'mount', ['ok'], 'present', 1],
]
for (const [name, call, list, presence, unmounts] of setUpTable) {
  test(`SetUp: ${name}; the device goes in any case (TA-39)`, async () => {
    const world = await createDiskWorld({ attachable: false })
    const { agent } = await world.start()
    world.plugin.answers.set(call, [...list])
    const uid = await world.create(pod('p', world.volumes))
    await world.clock.advance(5_000)
    assert.equal(agent.actual.get(disk)?.pods.get(uid)?.presence ?? 'absent', presence)
    if (presence !== 'present') await assertWhy(world, 'pod/p', 'mountFailed')
    await world.client.remove('Pod', { namespace: 'default', name: 'p' }, removeNow)
    await world.clock.advance(10_000)
    assert.deepEqual(
      [world.plugin.count('unmount'), world.plugin.count('unmountDevice'), agent.actual.size],
      [unmounts, 1, 0],
    )
    await agent.stop()
  })
}

test('SetUp succeeds, expansion fails, the next SetUp is refused: no pod starts, and it is undone (TA-39, INV-5, MNT-13)', async () => {
  const world = await createDiskWorld({ attachable: false, volume: { capacity: { storage: '15Gi' } } })
  const { agent } = await world.start()
  world.plugin.answers.set(
    'expand',
    Array.from({ length: 8 }, () => 'none' as const),
  )
  const uid = await world.create(pod('p', world.volumes))
  await world.clock.advance(5_000)
  assert.equal(agent.actual.get(disk)?.pods.get(uid)?.presence, 'unready')
  assert.equal(await world.phase('p'), 'Pending')
  await assertWhy(world, 'pod/p', 'mountFailed')
  assert.ok(
    (await world.events()).some((text) =>
      text.startsWith('Warning FailedMount: MountVolume.Setup failed while expanding volume for volume "pv" : '),
    ),
  )
  // A call that changes nothing does not take away what an earlier one has mounted.
  world.plugin.answers.set(
    'mount',
    Array.from({ length: 8 }, () => 'failedPrecondition' as const),
  )
  await world.clock.advance(10_000)
  assert.deepEqual([world.plugin.mounts.size, await world.phase('p')], [1, 'Pending'])
  await world.client.remove('Pod', { namespace: 'default', name: 'p' }, removeNow)
  await world.clock.advance(10_000)
  assert.deepEqual([world.plugin.count('unmount'), world.plugin.mounts.size, agent.actual.size], [1, 0, 0])
  await agent.stop()
})

test('a ReadWriteOncePod volume is refused to a second pod until the first has left (MNT-5)', async () => {
  const world = await createDiskWorld({ attachable: false, volume: { accessModes: ['ReadWriteOncePod'] } })
  const { agent } = await world.start()
  await world.create(pod('one', world.volumes))
  await world.clock.advance(1_000)
  await world.create(pod('two', world.volumes))
  await world.clock.advance(5_000)
  assert.deepEqual([await world.phase('one'), await world.phase('two')], ['Running', 'Pending'])
  await assertWhy(world, 'pod/two', 'singlePodWriter')
  const text =
    'MountVolume.SetUp failed for volume "pv" : volume uses the ReadWriteOncePod access mode and is already in use by another pod'
  assert.ok((await world.events()).includes(`Warning FailedMount: ${text}`))
  await world.client.remove('Pod', { namespace: 'default', name: 'one' }, removeNow)
  await world.clock.advance(200_000)
  assert.equal(await world.phase('two'), 'Running')
  await agent.stop()
})

test('a volume of another node is refused with the promised words (MNT-2)', async () => {
  const required = {
    nodeSelectorTerms: [
      { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In' as const, values: ['other'] }] },
    ],
  }
  const world = await createDiskWorld({ attachable: false, volume: { nodeAffinity: { required } } })
  const { agent } = await world.start()
  await world.clock.advance(100)
  await world.create(pod('p', world.volumes))
  await world.clock.advance(2_000)
  const text = 'MountVolume.NodeAffinity check failed for volume "pv" : no matching NodeSelectorTerms'
  assert.ok((await world.events()).includes(`Warning FailedMount: ${text}`))
  assert.deepEqual(world.plugin.calls, [])
  await assertWhy(world, 'pod/p', 'nodeAffinityConflict')
  await agent.stop()
})

test('a volume grown while mounted is expanded once; a driver that refuses in use is not asked again (TA-41)', async () => {
  for (const [told, size, calls] of [
    ['ok', 15n, 1],
    ['failedPrecondition', 10n, 1],
  ] as const) {
    const world = await createDiskWorld({ attachable: false })
    const { agent } = await world.start()
    await world.create(pod('p', world.volumes))
    await world.clock.advance(1_000)
    world.plugin.answers.set('expand', [told])
    await world.client.patch(
      'PersistentVolume',
      { name: 'pv' },
      { type: 'merge', body: { spec: { capacity: { storage: '15Gi' } } } },
    )
    await world.setClaim({
      allocatedResources: { storage: '15Gi' },
      allocatedResourceStatuses: { storage: 'NodeResizePending' },
    })
    await world.clock.advance(60_000)
    assert.deepEqual([world.plugin.count('expand'), agent.actual.get(disk)?.sizeBytes], [calls, size << 30n], told)
    assert.equal(await world.phase('p'), 'Running')
    await agent.stop()
  }
})

const statusOf = (found: PersistentVolumeClaim) => [
  found.status?.capacity?.['storage'],
  found.status?.allocatedResourceStatuses?.['storage'],
]
type ResizeStatus = NonNullable<PersistentVolumeClaimStatus['allocatedResourceStatuses']>[string]
const expanderTable: readonly [string, ResizeStatus, Answer, number, (string | undefined)[]][] = [
  ['infeasible: the driver is not asked', 'NodeResizeInfeasible', 'ok', 0, ['10Gi', 'NodeResizeInfeasible']],
  ['pending: asked, finished, status cleared', 'NodeResizePending', 'ok', 1, ['15Gi', undefined]],
  ['pending, infeasible error: said so', 'NodeResizePending', 'infeasible', 1, ['10Gi', 'NodeResizeInfeasible']],
  [
    'pending, other final error: in progress, tried again',
    'NodeResizePending',
    'none',
    1,
    ['10Gi', 'NodeResizeInProgress'],
  ],
]
for (const [name, status, told, calls, expected] of expanderTable) {
  test(`node expansion, ${name} (TA-43)`, async () => {
    const world = await createDiskWorld({ attachable: false })
    const { agent } = await world.start()
    await world.create(pod('p', world.volumes))
    await world.clock.advance(1_000)
    world.plugin.answers.set(
      'expand',
      Array.from({ length: 9 }, () => told),
    )
    await world.client.patch(
      'PersistentVolume',
      { name: 'pv' },
      { type: 'merge', body: { spec: { capacity: { storage: '15Gi' } } } },
    )
    await world.setClaim({ allocatedResources: { storage: '15Gi' }, allocatedResourceStatuses: { storage: status } })
    await world.clock.advance(300)
    const found = await world.client.get('PersistentVolumeClaim', { namespace: 'default', name: 'c' })
    assert.deepEqual([world.plugin.count('expand'), statusOf(found)], [calls, expected])
    await agent.stop()
  })
}

test('found on disk and SetUp fails for good: still in doubt, never dropped, undone when the pod goes (TA-56)', async () => {
  const world = await createDiskWorld({ attachable: false })
  const first = await world.start()
  const uid = await world.create(pod('p', world.volumes))
  await world.clock.advance(1_000)
  // The directory is the only trace that this plugin leaves on disk.
  await world.host.quiet.files.mkdirAll(`${root}/pods/${uid}/volumes/example.com~device/pv`, 0o750, world.signal)
  first.crash()
  world.plugin.answers.set(
    'mount',
    Array.from({ length: 30 }, () => 'none' as const),
  )
  const second = await world.start()
  await world.clock.advance(30_000)
  const item = second.agent.actual.get(disk)
  assert.deepEqual(
    [item?.pods.get(uid as PodUid)?.presence, item?.pods.get(uid as PodUid)?.foundOnDisk],
    ['uncertain', true],
  )
  assert.equal(world.plugin.count('unmount'), 0)
  await world.client.remove('Pod', { namespace: 'default', name: 'p' }, removeNow)
  await world.clock.advance(10_000)
  assert.deepEqual(
    [world.plugin.count('unmount'), world.plugin.mounts.size, world.plugin.devices.size, second.agent.actual.size],
    [1, 0, 0, 0],
  )
  await second.agent.stop()
})

test('a pod that comes back while the device is unmounted waits for the device with its path (TA-40)', async () => {
  const world = await createDiskWorld()
  const { agent } = await world.start()
  await world.clock.advance(100)
  await world.create(pod('p', world.volumes))
  await world.clock.advance(100)
  await world.attach()
  await world.clock.advance(1_000)
  world.plugin.answers.set('unmountDevice', ['none'])
  await world.client.remove('Pod', { namespace: 'default', name: 'p' }, removeNow)
  await world.clock.advance(50)
  await world.create(pod('q', world.volumes))
  await world.clock.advance(5_000)
  assert.equal(await world.phase('q'), 'Running')
  assert.deepEqual(world.plugin.waited, ['/dev/disk', '/dev/disk'])
  await agent.stop()
})

test('the volume’s group is given to the pod, unless it has it or it is no number of 64 bits (TA-61, VM-10, C-16)', async () => {
  for (const [annotation, groups, expected] of [
    ['777', [], [777]],
    ['777', [777], []],
    ['a', [], []],
    ['', [], []],
    ['+7', [], [7]],
    ['9223372036854775808', [], []],
    ['-9223372036854775809', [], []],
  ] as const) {
    const world = await createDiskWorld({ attachable: false })
    await world.client.patch(
      'PersistentVolume',
      { name: 'pv' },
      { type: 'merge', body: { metadata: { annotations: { 'pv.beta.kubernetes.io/gid': annotation } } } },
    )
    const { agent } = await world.start()
    const wanted = pod('p', world.volumes, { securityContext: { supplementalGroups: [...groups] } })
    const uid = await world.create(wanted)
    await world.clock.advance(1_000)
    assert.deepEqual(agent.volumes.extraGroups({ ...wanted, metadata: { ...wanted.metadata, uid } }), expected)
    await agent.stop()
  }
})

test('one claim under two names is one mount; an unbound claim is waited for (TA-47, TA-58)', async () => {
  const world = await createDiskWorld({ attachable: false })
  await world.setClaim({ phase: 'Pending' })
  const { agent } = await world.start()
  await world.create(pod('p', [...world.volumes, { name: 'w', persistentVolumeClaim: { claimName: 'c' } }]))
  await world.clock.advance(20_000)
  assert.ok((await world.events()).some((text) => text.endsWith('error processing PVC default/c: PVC is not bound')))
  await world.setClaim({ phase: 'Bound' })
  await world.clock.advance(500)
  assert.equal(await world.phase('p'), 'Running')
  assert.equal(world.plugin.count('mount'), 1)
  assert.deepEqual(
    [...world.machine.requests.values()][0]?.mounts.map(({ target }) => target),
    ['/mnt/v', '/mnt/w'],
  )
  await agent.stop()
})

test('a device whose pod was undone before a crash is found again and unmounted (WA-9)', async () => {
  const world = await createDiskWorld({ attachable: false })
  const first = await world.start()
  await world.create(pod('p', world.volumes))
  await world.clock.advance(1_000)
  world.plugin.answers.set('unmountDevice', ['none', 'none', 'none'])
  await world.client.remove('Pod', { namespace: 'default', name: 'p' }, removeNow)
  await world.clock.advance(300)
  assert.deepEqual([world.plugin.mounts.size, world.plugin.devices.size], [0, 1])
  first.crash()
  world.plugin.answers.clear()

  const second = await world.start()
  await world.clock.advance(5_000)
  assert.deepEqual([world.plugin.devices.size, second.agent.actual.size], [0, 0])
  assert.deepEqual(await world.host.quiet.files.readDir(`${root}/hawser-devices`, world.signal), [])
  await second.agent.stop()
})

test('until such a device is undone, a restarted node goes on reporting its volume in use (NSP-8, WA-9)', async () => {
  const world = await createDiskWorld()
  const first = await world.start()
  await world.clock.advance(100)
  await world.create(pod('p', world.volumes))
  await world.clock.advance(100)
  await world.attach()
  await world.clock.advance(1_000)
  const stuck = () =>
    world.plugin.answers.set(
      'unmountDevice',
      Array.from({ length: 20 }, () => 'none' as const),
    )
  stuck()
  await world.client.remove('Pod', { namespace: 'default', name: 'p' }, removeNow)
  await world.clock.advance(300)
  first.crash()
  const second = await world.start()
  await world.clock.advance(10_000)
  const inUse = async () => (await world.client.get('Node', { name: nodeName })).status?.volumesInUse ?? []
  assert.deepEqual(await inUse(), [disk])
  world.plugin.answers.clear()
  await world.clock.advance(300_000)
  assert.deepEqual([await inUse(), world.plugin.devices.size], [[], 0])
  await second.agent.stop()
})
