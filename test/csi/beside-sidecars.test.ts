// Beside upstream's sidecars: does every job step aside by flag and by lease, and does nothing of ours stay behind?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { microTimestamp } from '../../src/clock/clock.ts'
import type { CsiWorld, WorldOptions } from '../kit/csi-cluster.ts'
import { createCsiWorld, eventually, furnish, modelClaim } from '../kit/csi-cluster.ts'

const driver = 'model.hawser.dev'
const snapshotRef = { namespace: 'default', name: 'snap' }

async function withSnapshotClass(options: WorldOptions = {}) {
  const world = await createCsiWorld(options)
  await furnish(world)
  await world.client.create('VolumeSnapshotClass', {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    metadata: { name: 's' },
    driver,
    deletionPolicy: 'Delete',
  })
  return world
}

async function snapshotOfBoundClaim({ client }: CsiWorld, className?: string): Promise<void> {
  const source = { persistentVolumeClaimName: 'c' }
  await client.create('PersistentVolumeClaim', modelClaim('c'))
  await client.create('VolumeSnapshot', {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: snapshotRef,
    spec: { source, ...(className !== undefined && { volumeSnapshotClassName: className }) },
  })
}

/** Renewed now, and good for so many seconds. */
const lease = (name: string, { clock }: CsiWorld, seconds: number, holderIdentity = 'sidecar') => ({
  apiVersion: 'coordination.k8s.io/v1' as const,
  kind: 'Lease' as const,
  metadata: { name, namespace: 'default' },
  spec: { holderIdentity, leaseDurationSeconds: seconds, renewTime: microTimestamp(clock.now()) },
})

const contents = async ({ client }: CsiWorld) => (await client.list('VolumeSnapshotContent')).items.length
const finalizersOf = async ({ client }: CsiWorld) =>
  (await client.get('VolumeSnapshot', snapshotRef)).metadata.finalizers
const capacities = async ({ client }: CsiWorld) => (await client.list('CSIStorageCapacity')).items.length

test('a fresh lease of upstream’s snapshot-controller stands us down; once it runs out the job is ours', async () => {
  const world = await withSnapshotClass()
  await world.client.create('Lease', lease('snapshot-controller-leader', world, 75))
  const life = world.start()
  await snapshotOfBoundClaim(world, 's')
  await world.clock.advance(30_000)
  assert.deepEqual([await contents(world), await finalizersOf(world)], [0, undefined])
  const isReady = async () => (await world.client.get('VolumeSnapshot', snapshotRef)).status?.readyToUse === true
  await eventually(world, 'ready', isReady)
  await life.stop()
})

test('snapshots of a driver that is left to its sidecars are not touched, whether they name a class or not', async () => {
  for (const className of ['s', undefined]) {
    const world = await withSnapshotClass({ jobs: { leaveTo: { [driver]: ['snapshotter', 'snapshot-controller'] } } })
    const life = world.start()
    await snapshotOfBoundClaim(world, className)
    await world.clock.advance(60_000)
    assert.deepEqual([await contents(world), await finalizersOf(world)], [0, undefined])
    assert.ok(!(await world.events()).some((text) => text.includes('Snapshot')), 'nor is anything said of them')
    await life.stop()
  }
})

test('our CSIStorageCapacity objects go when another provisioner takes the lease, and come back with the job', async () => {
  const world = await createCsiWorld()
  await furnish(world, { waits: true })
  const life = world.start()
  await eventually(world, 'published', async () => (await capacities(world)) === 1)
  await world.client.create('Lease', lease('model-hawser-dev', world, 135))
  await world.clock.advance(61_000)
  assert.equal(await capacities(world), 0)
  await eventually(world, 'published again', async () => (await capacities(world)) === 1)
  await life.stop()
})

test('our CSIStorageCapacity objects go when the driver is left to its sidecars', async () => {
  const options: { leaveTo?: Record<string, 'all'> } = {}
  const world = await createCsiWorld({ jobs: options })
  await furnish(world, { waits: true })
  const before = world.start()
  await eventually(world, 'published', async () => (await capacities(world)) === 1)
  await before.stop()
  options.leaveTo = { [driver]: 'all' }
  const after = world.start()
  await world.clock.advance(5_000)
  assert.equal(await capacities(world), 0)
  await after.stop()
})

test('two provisioners at work without a lease: the claim is told, and which flag ends it (D9)', async () => {
  const late = (rpc: string) => (rpc === 'CreateVolume' ? ({ kind: 'late', ms: 5_000 } as const) : undefined)
  const world = await createCsiWorld({ faults: late })
  await furnish(world)
  const life = world.start()
  const told = async () => (await world.events()).filter((text) => text.includes('AnotherProvisioner'))
  await world.client.create('PersistentVolumeClaim', modelClaim('alone'))
  await world.clock.advance(10_000)
  assert.deepEqual(await told(), [])
  const made = await world.client.create('PersistentVolumeClaim', modelClaim('c'))
  await world.clock.advance(2_000)
  // The sidecar is quicker than our call.
  const name = `pvc-${made.metadata.uid}`
  const like = (await world.client.list('PersistentVolume')).items[0]
  assert.ok(like)
  const claimRef = { ...like.spec.claimRef, name: 'c', uid: made.metadata.uid ?? '' }
  await world.client.create('PersistentVolume', {
    ...{ apiVersion: 'v1', kind: 'PersistentVolume' },
    metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': driver } },
    spec: { ...like.spec, claimRef },
  })
  await world.clock.advance(10_000)
  assert.deepEqual(await told(), [
    `Warning AnotherProvisioner: volume ${name} was made by somebody else at the same time. If the sidecars of driver ${driver} run, start the server with --leave-to-sidecars ${driver}, or start them with --leader-election`,
  ])
  await life.stop()
})
