// How soon does everything go on when a driver that was away answers again? At once, however long it was away.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CsiWorld } from '../kit/csi-cluster.ts'
import { createCsiWorld, eventually, furnish, modelClaim } from '../kit/csi-cluster.ts'

const phaseOf = async ({ client }: CsiWorld, name: string) =>
  (await client.get('PersistentVolumeClaim', { namespace: 'default', name })).status?.phase

async function runningWorld() {
  const world = await createCsiWorld()
  await furnish(world)
  const life = world.start()
  await world.client.create('PersistentVolumeClaim', modelClaim('before'))
  await eventually(world, 'bound', async () => (await phaseOf(world, 'before')) === 'Bound')
  return { world, life }
}

const attachment = (volumeName: string) => ({
  apiVersion: 'storage.k8s.io/v1' as const,
  kind: 'VolumeAttachment' as const,
  metadata: { name: 'va' },
  spec: { attacher: 'model.hawser.dev', nodeName: 'n1', source: { persistentVolumeName: volumeName } },
})

test('a second after an outage of 70 s, what waited for the driver is provisioned, attached and deleted', async () => {
  const { world, life } = await runningWorld()
  const { client, clock } = world
  await client.create('PersistentVolumeClaim', modelClaim('doomed'))
  await eventually(world, 'bound', async () => (await phaseOf(world, 'doomed')) === 'Bound')
  world.driverDown()
  await client.create('PersistentVolumeClaim', modelClaim('during'))
  const { spec } = await client.get('PersistentVolumeClaim', { namespace: 'default', name: 'before' })
  await client.create('VolumeAttachment', attachment(spec?.volumeName ?? ''))
  await client.remove('PersistentVolumeClaim', { namespace: 'default', name: 'doomed' })
  await clock.advance(70_000)
  assert.equal(await phaseOf(world, 'during'), 'Pending')
  world.driverUp()
  await clock.advance(1_000)
  assert.equal(await phaseOf(world, 'during'), 'Bound')
  assert.equal((await client.get('VolumeAttachment', { name: 'va' })).status?.attached, true)
  assert.equal(world.storage.allocated.size, 2, 'the volume of the deleted claim is gone')
  await life.stop()
})

test('a second after eight quick restarts, the driver is asked again', async () => {
  const { world, life } = await runningWorld()
  const { client, clock } = world
  await client.create('PersistentVolumeClaim', modelClaim('during'))
  for (let restart = 0; restart < 8; restart++) {
    world.driverDown()
    await clock.advance(20_000)
    // It listens, and ends again before it has answered the first call.
    if (restart === 7) await client.create('PersistentVolumeClaim', modelClaim('last'))
    world.driverUp()
    if (restart < 7) world.driverDown()
  }
  await clock.advance(1_000)
  assert.equal(await phaseOf(world, 'last'), 'Bound')
  await life.stop()
})
