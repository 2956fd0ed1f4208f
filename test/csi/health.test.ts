// Do users hear of ill volumes? A driver that tells the condition of its volumes in its list, or of each alone (SIDE-51).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ControllerServiceCapability_RPC_Type as ControllerRpc,
  VolumeHealthErrorType,
} from '../../src/csi/generated/csi_pb.ts'
import type { DriverHandlers } from '../../src/csi/service.ts'
import { assertHealthy, assertWhy } from '../kit/assert-why.ts'
import { createCsiWorld, eventually, furnish, modelClaim } from '../kit/csi-cluster.ts'
import type { WorldOptions } from '../kit/csi-cluster.ts'

const ref = { namespace: 'default', name: 'c' }

async function worldWithVolume(options: WorldOptions) {
  const world = await createCsiWorld({ model: { tellsConditions: true }, ...options })
  await furnish(world)
  const life = world.start()
  await world.client.create('PersistentVolumeClaim', modelClaim('c'))
  await eventually(
    world,
    'bound',
    async () => (await world.client.get('PersistentVolumeClaim', ref)).status?.phase === 'Bound',
  )
  const handle = [...world.storage.records.volumeMap.keys()][0] ?? ''
  const told = async () => (await world.events()).filter((text) => text.includes('VolumeCondition'))
  return { world, life, handle, told }
}

test('every five minutes the list tells; ill is a warning on the claim, well again is told once (SIDE-51)', async () => {
  const { world, life, handle, told } = await worldWithVolume({})
  await world.clock.advance(310_000)
  assert.deepEqual(await told(), [], 'a volume that was never ill is not worth a word')
  world.storage.ill.set(handle, 'the disk makes strange noises')
  await world.clock.advance(310_000)
  assert.deepEqual(await told(), ['Warning VolumeConditionAbnormal: the disk makes strange noises'])
  const { blocked } = await assertWhy(world, 'pvc/c', 'volumeIll')
  assert.match(blocked?.sentence ?? '', /is unhealthy: the disk makes strange noises$/)
  world.storage.ill.delete(handle)
  await world.clock.advance(900_000)
  await assertHealthy(world, 'pvc/c')
  assert.deepEqual((await told()).toSorted(), [
    'Normal VolumeConditionNormal: The Volume returns to the healthy state',
    'Warning VolumeConditionAbnormal: the disk makes strange noises',
  ])
  assert.ok(!world.calls.includes('ControllerGetVolume'))
  await life.stop()
})

test('a driver without a list is asked for each volume, every minute (SIDE-51)', async () => {
  const { world, life, handle, told } = await worldWithVolume({
    without: ['LIST_VOLUMES', 'LIST_VOLUMES_PUBLISHED_NODES'],
  })
  world.storage.ill.set(handle, 'on fire')
  await world.clock.advance(65_000)
  assert.deepEqual(await told(), ['Warning VolumeConditionAbnormal: on fire'])
  assert.ok(!world.calls.includes('ListVolumes'))
  await life.stop()
})

test('a driver that fails to answer is asked again, and one volume’s failure does not hide another’s illness (SIDE-51)', async () => {
  const { world, life, told } = await worldWithVolume({ without: ['LIST_VOLUMES', 'LIST_VOLUMES_PUBLISHED_NODES'] })
  await world.client.create('PersistentVolumeClaim', modelClaim('d'))
  await eventually(world, 'two volumes', async () => world.storage.records.volumeMap.size === 2)
  await world.clock.advance(5_000)
  for (const id of world.storage.records.volumeMap.keys()) world.storage.ill.set(id, 'ill')
  const before = world.calls.filter((rpc) => rpc === 'ControllerGetVolume').length
  world.setFaults((rpc, earlier) =>
    rpc === 'ControllerGetVolume' && earlier === before ? { kind: 'refused', status: 'INTERNAL' } : undefined,
  )
  await world.clock.advance(65_000)
  assert.deepEqual(await told(), ['Warning VolumeConditionAbnormal: ill'], 'one of the two')
  await world.clock.advance(65_000)
  const illClaims = (await world.client.list('Event')).items.filter(
    ({ reason }) => reason === 'VolumeConditionAbnormal',
  )
  assert.deepEqual(illClaims.map(({ involvedObject }) => involvedObject?.name).toSorted(), ['c', 'd'])
  await life.stop()
})

test('a driver that tells no conditions is not asked for them', async () => {
  const { world, life, told } = await worldWithVolume({ model: {} })
  const before = world.calls.filter((rpc) => rpc === 'ListVolumes').length
  await world.clock.advance(30_000)
  assert.equal(world.calls.filter((rpc) => rpc === 'ListVolumes').length, before)
  assert.deepEqual(await told(), [])
  await life.stop()
})

/** A driver of the newer protocol: it has lists of what is wrong, and nothing of the older conditions. */
function tellsHealth(ill: ReadonlyMap<string, string>, types: readonly ControllerRpc[]) {
  const healthOf = (volumeId: string) => ({
    volumeId,
    healthStatuses: ill.has(volumeId)
      ? [{ status: VolumeHealthErrorType.INACCESSIBLE, reason: 'Cable', message: ill.get(volumeId) ?? '' }]
      : [],
  })
  return ({ controller, ...others }: DriverHandlers): DriverHandlers => ({
    ...others,
    controller: {
      ...controller,
      controllerListVolumeHealth: async () => ({ entries: [...ill.keys()].map(healthOf) }),
      controllerGetVolumeHealth: async ({ volumeId }) => ({ volumeHealth: healthOf(volumeId) }),
      async controllerGetCapabilities(request, signal) {
        const { capabilities = [] } = (await controller?.controllerGetCapabilities?.(request, signal)) ?? {}
        const more = types.map((type) => ({ type: { case: 'rpc' as const, value: { type } } }))
        return { capabilities: [...capabilities, ...more] }
      },
    },
  })
}

for (const [type, rpc] of [
  [ControllerRpc.LIST_VOLUME_HEALTH, 'ControllerListVolumeHealth'],
  [ControllerRpc.GET_VOLUME_HEALTH, 'ControllerGetVolumeHealth'],
] as const) {
  test(`the newer protocol, ${rpc}: what is wrong is told on the claim, and that it is no longer (SIDE-51)`, async () => {
    const ill = new Map<string, string>()
    const { world, life, handle, told } = await worldWithVolume({ model: {}, change: tellsHealth(ill, [type]) })
    ill.set(handle, 'unplugged')
    await world.clock.advance(310_000)
    assert.deepEqual(await told(), ['Warning VolumeConditionAbnormal: Inaccessible (Cable): unplugged'])
    ill.delete(handle)
    await world.clock.advance(310_000)
    assert.ok((await told()).includes('Normal VolumeConditionNormal: The Volume returns to the healthy state'))
    assert.ok(world.calls.includes(rpc))
    await life.stop()
  })
}
