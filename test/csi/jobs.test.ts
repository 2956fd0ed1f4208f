// What do the jobs write, and when do they leave a driver to others? The model driver on virtual time: the volume's
// object to the letter, secrets, snapshots, leases, static volumes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isNotFound } from '../../src/api/status-error.ts'
import { microTimestamp } from '../../src/clock/clock.ts'
import { assertWhy } from '../kit/assert-why.ts'
import { createCsiWorld, eventually, furnish, modelClaim } from '../kit/csi-cluster.ts'
import type { CsiWorld } from '../kit/csi-cluster.ts'

const claimRef = { namespace: 'default', name: 'c' }
const phase = async ({ client }: CsiWorld) => (await client.get('PersistentVolumeClaim', claimRef)).status?.phase

const absent = (get: Promise<unknown>) =>
  get.then(
    () => false,
    (error: unknown) => isNotFound(error) || Promise.reject(error as Error),
  )

test('the PersistentVolume to the letter, and the events around it (SIDE-19, XPR-6, WART-22, XPR-5)', async () => {
  const world = await createCsiWorld({ topologyKey: 'zone' })
  const { client } = world
  await furnish(world, { waits: true })
  await client.update('Node', {
    ...(await client.get('Node', { name: 'n1' })),
    metadata: { ...(await client.get('Node', { name: 'n1' })).metadata, labels: { zone: 'node-id' } },
  })
  const life = world.start()
  await client.create('PersistentVolumeClaim', modelClaim('c', { 'volume.kubernetes.io/selected-node': 'n1' }))
  await eventually(world, 'bound', async () => (await phase(world)) === 'Bound')
  const claim = await client.get('PersistentVolumeClaim', claimRef)
  const volume = await client.get('PersistentVolume', { name: `pvc-${claim.metadata.uid}` })
  const handle = [...world.storage.records.volumeMap.keys()][0]
  const { claimRef: reference, ...spec } = volume.spec ?? {}
  assert.deepEqual(spec, {
    accessModes: ['ReadWriteOnce'],
    capacity: { storage: '1Gi' },
    csi: {
      driver: 'model.hawser.dev',
      volumeHandle: handle,
      volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': 'hawser-model.hawser.dev' },
    },
    nodeAffinity: {
      required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['node-id'] }] }] },
    },
    persistentVolumeReclaimPolicy: 'Delete',
    storageClassName: 'model',
    volumeMode: 'Filesystem',
  })
  assert.equal(reference?.uid, claim.metadata.uid)
  assert.deepEqual(volume.metadata.annotations, {
    'pv.kubernetes.io/provisioned-by': 'model.hawser.dev',
    'volume.kubernetes.io/provisioner-deletion-secret-name': '',
    'volume.kubernetes.io/provisioner-deletion-secret-namespace': '',
  })
  assert.ok(volume.metadata.finalizers?.includes('external-provisioner.volume.kubernetes.io/finalizer'))
  await eventually(
    world,
    'our finalizer gone',
    async () =>
      !(await client.get('PersistentVolumeClaim', claimRef)).metadata.finalizers?.includes('hawser.dev/provisioning'),
  )
  const events = await world.events()
  assert.ok(events.includes('Normal Provisioning: External provisioner is provisioning volume for claim "default/c"'))
  assert.ok(events.includes(`Normal ProvisioningSucceeded: Successfully provisioned volume ${volume.metadata.name}`))
  await life.stop()
})

test('a fresh lease of upstream’s provisioner stands us down; once it runs out the job is ours', async () => {
  const world = await createCsiWorld()
  const { client, clock } = world
  await furnish(world)
  const renewTime = microTimestamp(clock.now())
  await client.create('Lease', {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'model-hawser-dev', namespace: 'default' },
    spec: { holderIdentity: 'sidecar', leaseDurationSeconds: 75, renewTime },
  })
  const life = world.start()
  await client.create('PersistentVolumeClaim', modelClaim('c'))
  await clock.advance(30_000)
  assert.ok(!world.calls.includes('CreateVolume'))
  await assertWhy(world, 'pvc/c', 'askedProvisioner')
  await eventually(world, 'bound', async () => (await phase(world)) === 'Bound')
  await life.stop()
})

test('a driver left to its sidecars by configuration is never called for that job', async () => {
  const world = await createCsiWorld({ jobs: { leaveTo: { 'model.hawser.dev': ['provisioner'] } } })
  await furnish(world)
  const life = world.start()
  await world.client.create('PersistentVolumeClaim', modelClaim('c'))
  await world.clock.advance(60_000)
  assert.ok(!world.calls.includes('CreateVolume'))
  assert.equal(await phase(world), 'Pending')
  await assertWhy(world, 'pvc/c', 'askedProvisioner')
  await life.stop()
})

test('secrets named by templates reach the driver; a missing one is told and retried (SIDE-10)', async () => {
  const world = await createCsiWorld()
  const { client } = world
  await furnish(world)
  const parameters = {
    'csi.storage.k8s.io/provisioner-secret-name': '${pvc.name}-key',
    'csi.storage.k8s.io/provisioner-secret-namespace': '${pvc.namespace}',
    tier: 'fast',
  }
  await client.create('StorageClass', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'secret' },
    provisioner: 'model.hawser.dev',
    parameters,
  })
  const life = world.start()
  const claim = modelClaim('c')
  await client.create('PersistentVolumeClaim', { ...claim, spec: { ...claim.spec, storageClassName: 'secret' } })
  await eventually(world, 'failure told', async () =>
    (await world.events()).some((text) => text.startsWith('Warning ProvisioningFailed') && text.includes('c-key')),
  )
  await world.clock.advance(400)
  await assertWhy(world, 'pvc/c', 'secretMissing')
  await client.create('Secret', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'c-key', namespace: 'default' },
    data: { password: Buffer.from('hunter2').toString('base64') },
  })
  await eventually(world, 'bound', async () => (await phase(world)) === 'Bound')
  const volume = await client.get('PersistentVolume', {
    name: (await client.get('PersistentVolumeClaim', claimRef)).spec?.volumeName ?? '',
  })
  assert.equal(volume.metadata.annotations?.['volume.kubernetes.io/provisioner-deletion-secret-name'], 'c-key')
  assert.equal(volume.spec?.csi?.volumeAttributes?.['tier'], 'fast')
  assert.ok(!JSON.stringify([await world.events(), volume]).includes('hunter2'))
  await life.stop()
})

test('a snapshot is made, ready, restored from, and deleted with its content (SIDE-45 … SIDE-48)', async () => {
  const world = await createCsiWorld()
  const { client } = world
  await furnish(world)
  await client.create('VolumeSnapshotClass', {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    metadata: { name: 's' },
    driver: 'model.hawser.dev',
    deletionPolicy: 'Delete',
  })
  // The first answer is lost: the mark on the content keeps it from being forgotten.
  world.setFaults((rpc, earlier) =>
    rpc === 'CreateSnapshot' && earlier === 0 ? { kind: 'answerLost', status: 'DEADLINE_EXCEEDED' } : undefined,
  )
  const life = world.start()
  await client.create('PersistentVolumeClaim', modelClaim('c'))
  await eventually(world, 'bound', async () => (await phase(world)) === 'Bound')
  const ref = { namespace: 'default', name: 'snap' }
  await client.create('VolumeSnapshot', {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: ref,
    spec: { source: { persistentVolumeClaimName: 'c' }, volumeSnapshotClassName: 's' },
  })
  await eventually(world, 'ready', async () => (await client.get('VolumeSnapshot', ref)).status?.readyToUse === true)
  const snapshot = await client.get('VolumeSnapshot', ref)
  assert.equal(snapshot.status?.boundVolumeSnapshotContentName, `snapcontent-${snapshot.metadata.uid}`)
  assert.equal(snapshot.status?.restoreSize, '1Gi')
  const restored = modelClaim('r')
  await client.create('PersistentVolumeClaim', {
    ...restored,
    spec: {
      ...restored.spec,
      dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'snap' },
    },
  })
  await eventually(
    world,
    'restored',
    async () =>
      (await client.get('PersistentVolumeClaim', { namespace: 'default', name: 'r' })).status?.phase === 'Bound',
  )
  const made = [...world.storage.records.volumeMap.values()].find(({ source }) => source?.kind === 'snapshot')
  assert.equal(made?.source?.id, [...world.storage.records.snapshotMap.keys()][0])
  await client.remove('VolumeSnapshot', ref)
  await eventually(world, 'snapshot gone', () => absent(client.get('VolumeSnapshot', ref)))
  assert.equal(world.storage.records.snapshotMap.size, 0)
  assert.deepEqual((await client.list('VolumeSnapshotContent')).items, [])
  for (const name of ['c', 'r']) await client.remove('PersistentVolumeClaim', { namespace: 'default', name })
  await eventually(world, 'all gone', async () => (await client.list('PersistentVolume')).items.length === 0)
  await life.stop()
  assert.deepEqual([...world.storage.allocated], [])
})

test('policy Retain takes the finalizer away and keeps the storage (XPR-11, SIDE-20)', async () => {
  const world = await createCsiWorld()
  const { client } = world
  await furnish(world)
  const life = world.start()
  await client.create('PersistentVolumeClaim', modelClaim('c'))
  await eventually(world, 'bound', async () => (await phase(world)) === 'Bound')
  const name = (await client.get('PersistentVolumeClaim', claimRef)).spec?.volumeName ?? ''
  await client.patch(
    'PersistentVolume',
    { name },
    { type: 'merge', body: { spec: { persistentVolumeReclaimPolicy: 'Retain' } } },
  )
  await eventually(
    world,
    'finalizer gone',
    async () =>
      !(await client.get('PersistentVolume', { name })).metadata.finalizers?.includes(
        'external-provisioner.volume.kubernetes.io/finalizer',
      ),
  )
  await client.remove('PersistentVolumeClaim', claimRef)
  await eventually(
    world,
    'released',
    async () => (await client.get('PersistentVolume', { name })).status?.phase === 'Released',
  )
  await world.clock.advance(60_000)
  assert.equal(world.storage.allocated.size, 1)
  await life.stop()
})

test('what the storage has detached by itself is attached again (SIDE-29)', async () => {
  const world = await createCsiWorld()
  const { client, storage } = world
  await furnish(world)
  const life = world.start()
  await client.create('PersistentVolumeClaim', modelClaim('c'))
  await eventually(world, 'bound', async () => (await phase(world)) === 'Bound')
  const persistentVolumeName = (await client.get('PersistentVolumeClaim', claimRef)).spec?.volumeName ?? ''
  await client.create('VolumeAttachment', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: { name: 'va' },
    spec: { attacher: 'model.hawser.dev', nodeName: 'n1', source: { persistentVolumeName } },
  })
  await eventually(
    world,
    'attached',
    async () => (await client.get('VolumeAttachment', { name: 'va' })).status?.attached === true,
  )
  const [id, record] = [...storage.records.volumeMap][0]!
  storage.records.volumeMap.set(id, { ...record, attachments: {} })
  await world.clock.advance(130_000)
  assert.deepEqual(Object.keys(storage.records.volumeMap.get(id)?.attachments ?? {}), ['node-id'])
  await life.stop()
})
