// How soon does everything go on when a driver that was away answers again? At once, however long it was away.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CsiWorld } from '../kit/csi-cluster.ts'
import { createCsiWorld, eventually, furnish, modelClaim } from '../kit/csi-cluster.ts'
import type { WholeCluster } from '../kit/whole-cluster.ts'
import { createWholeCluster, nodeRoot, podOfClaim } from '../kit/whole-cluster.ts'
import { addPod, bound, grow, inDefault, removeClaim, removePod, running } from '../why/corpus/steps.ts'

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

interface Scene {
  /** In order before the driver dies. */
  readonly before: (cluster: WholeCluster) => Promise<unknown>
  /** Asked of the driver while it is away. */
  readonly act: (cluster: WholeCluster) => Promise<unknown>
  /** What must be true a second after its return. */
  readonly done: (cluster: WholeCluster) => Promise<boolean>
}

const mounts = async ({ host }: WholeCluster) =>
  (await host().mounts.list(new AbortController().signal)).filter(({ mountPoint }) =>
    mountPoint.startsWith(`${nodeRoot}/`),
  )
const isRunning = async ({ client }: WholeCluster) =>
  (await client.get('Pod', inDefault('web'))).status?.phase === 'Running'
const nothingAttached = async (cluster: WholeCluster) =>
  (await mounts(cluster)).length === 0 && (await cluster.client.list('VolumeAttachment')).items.length === 0

const scenes: Readonly<Record<string, Scene>> = {
  'a claim is provisioned': {
    before: async () => {},
    act: bound,
    done: async ({ client }) =>
      (await client.get('PersistentVolumeClaim', inDefault('data'))).status?.phase === 'Bound',
  },
  'a volume is deleted': {
    before: bound,
    act: removeClaim(),
    done: async ({ client }) => (await client.list('PersistentVolume')).items.length === 0,
  },
  'a volume grows': {
    before: running,
    act: grow(),
    done: async ({ client }) =>
      (await client.get('PersistentVolumeClaim', inDefault('data'))).status?.capacity?.['storage'] === '2Gi',
  },
  'a volume is attached, staged and published': {
    before: bound,
    act: addPod(podOfClaim('web', 'data')),
    done: isRunning,
  },
  'a volume is unpublished, unstaged and detached': { before: running, act: removePod(), done: nothingAttached },
}

/** From "just gone" to "every back-off is at its cap"; not multiples of each other, to meet different moments of the back-off. */
const awayMs = [700, 5_000, 45_000, 121_500, 127_000, 400_000, 1_003_000]

for (const [name, { before, act, done }] of Object.entries(scenes))
  test(`${name} within a second of the driver's return`, async () => {
    for (const ms of awayMs) {
      const cluster = await createWholeCluster()
      try {
        await before(cluster)
        cluster.driverDown()
        await act(cluster)
        await cluster.clock.advance(ms)
        assert.equal(await done(cluster), false, 'not while the driver is away')
        cluster.driverUp()
        await cluster.clock.advance(1_000)
        assert.equal(await done(cluster), true, `after ${ms} ms without the driver`)
      } finally {
        await cluster.stop()
      }
    }
  })
