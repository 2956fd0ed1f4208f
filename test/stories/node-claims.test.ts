// Which storage does a pod's claim lead to, and what do users read when it leads nowhere? KP-4 … KP-8, VM-3, VM-6.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimStatus,
  Pod,
} from '../../src/api/generated/types.ts'
import type { Client } from '../../src/client/client.ts'
import { claim, createDevicePlugin, volume } from '../kit/device-plugin.ts'
import { blockPod, createDiskWorld, disk } from '../kit/node-with-disk.ts'
import { createNodeWorld, memory, pod } from '../kit/node.ts'

const uses = [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }]
const failed = (names: string, cause: string) =>
  `Warning FailedMount: Unable to attach or mount volumes: unmounted volumes=[${names}], unattached volumes=[], failed to process volumes=[${names}]: ${cause}`

interface Chain {
  readonly claim?: PersistentVolumeClaim
  readonly status?: PersistentVolumeClaimStatus
  readonly volume?: (uid: string) => Partial<NonNullable<PersistentVolume['spec']>>
  readonly unbound?: boolean
  readonly pod?: Pod
  readonly plugins?: []
}
const bound: PersistentVolumeClaimStatus = { phase: 'Bound', capacity: { storage: '10Gi' } }
const { volumeName: _none, ...unnamed } = claim().spec!
const ref = (uid: string) => ({ kind: 'PersistentVolumeClaim', namespace: 'default', name: 'c', uid })
const broken: readonly [string, Chain, string][] = [
  [
    'no claim',
    {},
    'error processing PVC default/c: failed to fetch PVC from API server: persistentvolumeclaims "c" not found',
  ],
  ['a pending claim', { claim: claim() }, 'error processing PVC default/c: PVC is not bound'],
  [
    'a claim that names no volume',
    { claim: { ...claim(), spec: unnamed }, status: bound },
    'error processing PVC default/c: PVC has empty pvc.Spec.VolumeName',
  ],
  [
    'a claim whose volume is missing',
    { claim: claim(), status: bound },
    'error processing PVC default/c: failed to fetch PV pv from API server: persistentvolumes "pv" not found',
  ],
  [
    'a volume that names no claim',
    { claim: claim(), status: bound, volume: () => ({}), unbound: true },
    'error processing PVC default/c: found PV object pv but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim',
  ],
  [
    'a volume of an earlier claim of that name',
    { claim: claim(), status: bound, volume: () => ({ claimRef: ref('earlier') }) },
    'error processing PVC default/c: found PV object pv but its pv.Spec.ClaimRef.UID earlier does not point to claim.UID <uid>',
  ],
  [
    'a volume that no plugin here serves, named as the volume',
    { claim: claim(), status: bound, volume: (uid) => ({ claimRef: ref(uid) }), plugins: [] },
    'failed to get Plugin from volumeSpec for volume "pv" err=no volume plugin matched',
  ],
  [
    'a block volume used as a directory (KP-7, TA-52)',
    { claim: claim(), status: bound, volume: (uid) => ({ volumeMode: 'Block', claimRef: ref(uid) }) },
    'volume v has volumeMode Block, but is specified in volumeMounts',
  ],
  [
    'a file system used as a device (KP-7, TA-52)',
    { claim: claim(), status: bound, volume: (uid) => ({ claimRef: ref(uid) }), pod: blockPod('p', uses) },
    'volume v has volumeMode Filesystem, but is specified in volumeDevices',
  ],
  [
    'a claim that was not made for this pod',
    {
      claim: { ...claim(), metadata: { name: 'p-v', namespace: 'default' } },
      status: bound,
      pod: pod('p', [{ name: 'v', ephemeral: { volumeClaimTemplate: { spec: unnamed } } }]),
    },
    'PVC default/p-v was not created for pod default/p (pod is not owner)',
  ],
]
for (const [name, chain, cause] of broken) {
  test(`${name}: told on the pod in these words (KP-6, VM-6)`, async () => {
    const plugins = chain.plugins ?? [createDevicePlugin({ attachable: false }).registered]
    const world = await createNodeWorld({ plugins })
    const made = chain.claim && (await world.client.create('PersistentVolumeClaim', chain.claim))
    const uid = made?.metadata.uid ?? ''
    if (chain.status) {
      const at = { namespace: 'default', name: made!.metadata.name }
      const body = { status: chain.status }
      await world.client.patch('PersistentVolumeClaim', at, { type: 'merge', body }, { subresource: 'status' })
    }
    if (chain.volume) {
      const { claimRef, ...rest } = volume('pv', chain.volume(uid)).spec!
      const spec = chain.unbound ? rest : { ...rest, ...(claimRef ? { claimRef } : {}) }
      await world.client.create('PersistentVolume', { metadata: { name: 'pv' }, spec })
    }
    const { agent } = await world.start()
    await world.create(chain.pod ?? pod('p', uses))
    await world.clock.advance(5_000)
    const events = await world.events()
    assert.deepEqual([...new Set(events)], [failed('v', cause.replace('<uid>', uid))])
    await agent.stop()
  })
}

test('one bad claim stops no other volume; all that is wrong is said in one sorted sentence (KP-4, KP-5, KD-9, VM-3)', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  const wanted = ['b', 'a'].map((name) => ({ name, persistentVolumeClaim: { claimName: name } }))
  const uid = await world.create(pod('p', [...wanted, memory('m')]))
  await world.clock.advance(5_000)
  const missing = (name: string) =>
    `error processing PVC default/${name}: failed to fetch PVC from API server: persistentvolumeclaims "${name}" not found`
  assert.deepEqual([...new Set(await world.events())], [failed('a b', `${missing('a')}; ${missing('b')}`)])
  assert.equal((await world.mounts()).length, 1)
  assert.equal(agent.desired.size, 1)
  assert.equal([...agent.desired.values()][0]?.pods.has(uid), true)
  await agent.stop()
})

test('a volume that no container uses is not wanted, not even looked for (KP-4, VM-2)', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  const containers = [{ name: 'c', image: 'i', command: ['run'], volumeMounts: [{ name: 'm', mountPath: '/m' }] }]
  await world.create(pod('p', [...uses, memory('m')], { containers }))
  await world.create(pod('q', uses, { containers: [{ name: 'c', image: 'i', command: ['run'] }] }))
  await world.clock.advance(2_000)
  assert.deepEqual([await world.phase('p'), await world.phase('q'), agent.desired.size], ['Running', 'Running', 1])
  assert.deepEqual(
    (await world.events()).filter((text) => text.startsWith('Warning')),
    [],
  )
  await agent.stop()
})

test('a volume of an init container alone is mounted, too (KP-4)', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  const initContainers = [{ name: 'i', image: 'i', command: ['run'], volumeMounts: [{ name: 'm', mountPath: '/m' }] }]
  const containers = [{ name: 'c', image: 'i', command: ['run'] }]
  await world.create(pod('p', [memory('m')], { initContainers, containers }))
  await world.clock.advance(1_000)
  assert.equal((await world.mounts()).length, 1)
  await agent.stop()
})

test('a reader does not make the volume grow; a writer’s size counts (KP-8)', async () => {
  const world = await createDiskWorld({ attachable: false, volume: { capacity: { storage: '15Gi' } } })
  const { agent } = await world.start()
  await world.create(pod('reader', [{ name: 'v', persistentVolumeClaim: { claimName: 'c', readOnly: true } }]))
  await world.clock.advance(1_000)
  assert.equal(agent.desired.get(disk)?.sizeBytes, 0n)
  await world.setClaim({ allocatedResources: { storage: '15Gi' } })
  await world.create(pod('writer', world.volumes))
  await world.clock.advance(1_000)
  assert.equal(agent.desired.get(disk)?.sizeBytes, 15n << 30n)
  await agent.stop()
})

test('a driver that turns out to want no attaching is not waited for, and its volume not reported (KP-9, VM-9, TA-52)', async () => {
  for (const told of [true, false]) {
    const world = await createDiskWorld()
    const { agent } = await world.start()
    await world.clock.advance(100)
    const uid = await world.create(pod('p', world.volumes))
    await world.clock.advance(1_000)
    assert.deepEqual([agent.waiting.get(disk), await world.inUse()], [[{ reason: 'notAttached', pod: uid }], [disk]])
    world.plugin.attachable = false
    if (told) world.plugin.changed()
    // Unheard of, it is found when the wait for volumes begins anew (VM-2, KP-3).
    await world.clock.advance(told ? 1_000 : 130_000)
    assert.deepEqual([await world.phase('p'), await world.inUse()], ['Running', []])
    await agent.stop()
  }
})

test('what passes by itself in a moment is no news: a claim made late is bound before anybody hears of it (VM-6)', async () => {
  const world = await createNodeWorld({ plugins: [createDevicePlugin({ attachable: false }).registered] })
  const { agent } = await world.start()
  await world.create(pod('p', uses))
  await world.clock.advance(40_000)
  const made = await world.client.create('PersistentVolumeClaim', claim())
  await world.client.create('PersistentVolume', volume('pv', { claimRef: ref(made.metadata.uid ?? '') }))
  await world.clock.advance(500)
  const at = { namespace: 'default', name: 'c' }
  const body = { status: bound }
  await world.client.patch('PersistentVolumeClaim', at, { type: 'merge', body }, { subresource: 'status' })
  await world.clock.advance(2_000)
  assert.equal(await world.phase('p'), 'Running')
  const missing =
    'error processing PVC default/c: failed to fetch PVC from API server: persistentvolumeclaims "c" not found'
  const warnings = (await world.events()).filter((text) => text.startsWith('Warning'))
  assert.deepEqual([...new Set(warnings)], [failed('v', missing)])
  await agent.stop()
})

test('a wait that fails sorts the volumes by how far each has got (TA-59, VM-4)', async () => {
  const world = await createNodeWorld({ plugins: [createDevicePlugin().registered] })
  const { agent } = await world.start()
  const waiting = ['vol2', 'vol02'].map((name) => ({ name, fc: { wwids: [name] } }))
  const foreign = ['vol3', 'vol03'].map((name) => ({ name, flexVolume: { driver: 'example.com/nobody' } }))
  await world.create(pod('p', [...foreign, ...waiting, memory('vol1')]))
  await world.clock.advance(5_000)
  const events = await world.events()
  const lists =
    'unmounted volumes=[vol02 vol03 vol2 vol3], unattached volumes=[vol02 vol2], failed to process volumes=[vol03 vol3]: '
  assert.ok(
    events.some((text) => text.includes(lists)),
    events.join('\n'),
  )
  await agent.stop()
})

test('a claim that the API server does not answer for holds up its own pod alone (WA-31)', async () => {
  const through = (client: Client): Client => ({
    ...client,
    get: ((kind: 'PersistentVolumeClaim', at: { name: string }, ...rest: []) =>
      at.name === 'silent' ? new Promise(() => {}) : client.get(kind, at, ...rest)) as Client['get'],
  })
  const world = await createNodeWorld({ through })
  const { agent } = await world.start()
  await world.create(pod('waits', [{ name: 'v', persistentVolumeClaim: { claimName: 'silent' } }]))
  await world.clock.advance(100)
  await world.create(pod('goes', [memory('m')]))
  await world.clock.advance(1_000)
  assert.deepEqual([await world.phase('waits'), await world.phase('goes')], ['Pending', 'Running'])
  assert.ok(agent.actual.size > 0)
})

const growth: readonly [string, Pod, boolean, boolean][] = [
  ['a writer', pod('p', uses), false, true],
  ['a reader', pod('p', [{ name: 'v', persistentVolumeClaim: { claimName: 'c', readOnly: true } }]), false, false],
  ['nobody mounts it', pod('p', uses, { containers: [{ name: 'c', image: 'i', command: ['run'] }] }), false, false],
  ['a device', blockPod('p', uses), true, true],
]
for (const [name, owner, block, grows] of growth) {
  test(`the volume grows: ${name}: ${grows ? 'expanded' : 'left alone'} (TA-53, KP-8)`, async () => {
    const mode = block ? { volume: { volumeMode: 'Block' as const }, block: 'plain' as const } : {}
    const world = await createDiskWorld({ attachable: false, ...mode })
    world.host.addDisk('/dev/disk')
    const { agent } = await world.start()
    await world.create(owner)
    await world.clock.advance(1_000)
    await world.grow()
    await world.setClaim({
      allocatedResources: { storage: '15Gi' },
      allocatedResourceStatuses: { storage: 'NodeResizePending' },
    })
    await world.clock.advance(2_000)
    assert.deepEqual(world.plugin.asked, grows ? [15n << 30n] : [])
    await agent.stop()
  })
}
