// What do the jobs ask of a driver, and what do they refuse to ask? The rules of the sidecars' chapter on virtual time, each
// with a driver that answers as the rule needs it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isNotFound } from '../../src/api/status-error.ts'
import type { PersistentVolumeClaim } from '../../src/api/generated/types.ts'
import type { DriverHandlers } from '../../src/csi/service.ts'
import type { Cause } from '../../src/why/causes.ts'
import { assertWhy } from '../kit/assert-why.ts'
import { createCsiWorld, eventually, furnish, modelClaim } from '../kit/csi-cluster.ts'
import type { CsiWorld, WorldOptions } from '../kit/csi-cluster.ts'

const driver = 'model.hawser.dev'
const inDefault = (name: string) => ({ namespace: 'default', name })
const claimOf = ({ client }: CsiWorld, name = 'c') => client.get('PersistentVolumeClaim', inDefault(name))
const isBound = async (world: CsiWorld, name = 'c') => (await claimOf(world, name)).status?.phase === 'Bound'
const count = ({ calls }: CsiWorld, rpc: string) => calls.filter((each) => each === rpc).length

async function started(options: WorldOptions & { waits?: boolean } = {}) {
  const world = await createCsiWorld(options)
  await furnish(world, { waits: options.waits ?? false })
  return { world, life: world.start() }
}

async function make(
  { client }: CsiWorld,
  name = 'c',
  spec: Partial<PersistentVolumeClaim['spec'] & object> = {},
  annotations: Record<string, string> = {},
) {
  const claim = modelClaim(name, annotations)
  return client.create('PersistentVolumeClaim', { ...claim, spec: { ...claim.spec, ...spec } })
}

const bound = async (world: CsiWorld, name = 'c') => {
  await eventually(world, `${name} bound`, () => isBound(world, name))
  const volumeName = (await claimOf(world, name)).spec?.volumeName ?? ''
  return world.client.get('PersistentVolume', { name: volumeName })
}

const told = (world: CsiWorld, text: string) =>
  eventually(world, text, async () => (await world.events()).some((each) => each.includes(text)))

const gone = (world: CsiWorld, name: string) =>
  eventually(world, `${name} gone`, () =>
    claimOf(world, name).then(
      () => false,
      (error: unknown) => isNotFound(error) || Promise.reject(error as Error),
    ),
  )

/** The history is written a moment behind the work. */
async function waitsFor(world: CsiWorld, words: string, cause: Cause): Promise<void> {
  await world.clock.advance(500)
  await assertWhy(world, words, cause)
}

test('a driver that never answers is given up after ten seconds, an attachment after fifteen, and asked again (SIDE-3)', async () => {
  const { world, life } = await started()
  world.setFaults((rpc) => (rpc === 'CreateVolume' ? { kind: 'silent' } : undefined))
  await make(world)
  await eventually(world, 'asked', async () => count(world, 'CreateVolume') === 1)
  await world.clock.advance(8_000)
  assert.ok(!(await world.events()).some((text) => text.includes('DeadlineExceeded')))
  await world.clock.advance(4_000)
  await told(world, 'code = DeadlineExceeded')
  await waitsFor(world, 'pvc/c', 'driverTimeout')
  world.setFaults((rpc) => (rpc === 'ControllerPublishVolume' ? { kind: 'silent' } : undefined))
  const volume = await bound(world)
  await world.client.create('VolumeAttachment', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: { name: 'va' },
    spec: { attacher: driver, nodeName: 'n1', source: { persistentVolumeName: volume.metadata.name } },
  })
  const failure = async () => (await world.client.get('VolumeAttachment', { name: 'va' })).status?.attachError
  await eventually(world, 'asked', async () => count(world, 'ControllerPublishVolume') === 1)
  await world.clock.advance(12_500)
  assert.equal(await failure(), undefined)
  await world.clock.advance(3_000)
  assert.equal((await failure())?.errorCode, 4)
  await waitsFor(world, 'va/va', 'driverTimeout')
  await life.stop()
})

test('a class that waits needs a selected node; then the event stands before the call (SIDE-6)', async () => {
  const { world, life } = await started({ waits: true })
  const claim = await make(world)
  await world.clock.advance(30_000)
  assert.equal(count(world, 'CreateVolume'), 0)
  await waitsFor(world, 'pvc/c', 'firstConsumer')
  world.setFaults((rpc) => (rpc === 'CreateVolume' ? { kind: 'refused', status: 'INTERNAL' } : undefined))
  const body = { metadata: { annotations: { 'volume.kubernetes.io/selected-node': 'n1' } } }
  await world.client.patch('PersistentVolumeClaim', inDefault('c'), { type: 'merge', body })
  await told(
    world,
    `Normal Provisioning: External provisioner is provisioning volume for claim "default/${claim.metadata.name}"`,
  )
  await life.stop()
})

test('a volume that exists already is not made again; what the driver cannot do is not asked (SIDE-7)', async () => {
  const { world, life } = await started({ without: ['CLONE_VOLUME', 'CREATE_DELETE_SNAPSHOT'] })
  const refusals: readonly [string, Partial<PersistentVolumeClaim['spec'] & object>, string, Cause][] = [
    ['selected', { selector: { matchLabels: { a: 'b' } } }, 'claim Selector is not supported', 'selectorUnsupported'],
    [
      'cloned',
      { dataSource: { kind: 'PersistentVolumeClaim', name: 'x' } },
      `driver ${driver} cannot clone volumes`,
      'notSupported',
    ],
    [
      'restored',
      { dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'x' } },
      `driver ${driver} has no snapshots`,
      'notSupported',
    ],
    [
      'attributed',
      { volumeAttributesClassName: 'gold' },
      `driver ${driver} has no volume attributes classes`,
      'notSupported',
    ],
  ]
  for (const [name, spec, text, cause] of refusals) {
    await make(world, name, spec)
    await told(world, text)
    await waitsFor(world, `pvc/${name}`, cause)
  }
  assert.equal(count(world, 'CreateVolume'), 0)
  const claim = await make(world, 'c', { storageClassName: 'later' })
  const { uid = '' } = claim.metadata
  await world.client.create('PersistentVolume', {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `pvc-${uid}` },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'later',
      csi: { driver, volumeHandle: 'given' },
      claimRef: { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'c', uid },
    },
  })
  await world.client.create('StorageClass', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'later' },
    provisioner: driver,
  })
  await bound(world)
  assert.equal(count(world, 'CreateVolume'), 0)
  await life.stop()
})

test('names of claim and volume go to the driver only when asked for (SIDE-11)', async () => {
  for (const extraMetadata of [false, true]) {
    const { world, life } = await started({ jobs: { extraMetadata } })
    const volume = await bound(world, (await make(world)).metadata.name)
    const [record] = world.storage.records.volumeMap.values()
    assert.deepEqual(
      { ...record?.parameters },
      extraMetadata
        ? {
            'csi.storage.k8s.io/pvc/name': 'c',
            'csi.storage.k8s.io/pvc/namespace': 'default',
            'csi.storage.k8s.io/pv/name': volume.metadata.name,
          }
        : {},
    )
    await life.stop()
  }
})

const clone = { dataSource: { kind: 'PersistentVolumeClaim', name: 'c' } }
const cloning = 'provisioner.storage.kubernetes.io/cloning-protection'
const isProtected = async (world: CsiWorld) => (await claimOf(world)).metadata.finalizers?.includes(cloning) === true

test('a source is protected while it is cloned, and free again afterwards (SIDE-13, XPR-12)', async () => {
  const { world, life } = await started()
  await make(world)
  await bound(world)
  world.setFaults((rpc) => (rpc === 'CreateVolume' ? { kind: 'refused', status: 'UNAVAILABLE' } : undefined))
  await make(world, 'copy', clone)
  await eventually(world, 'protected', () => isProtected(world))
  await world.client.remove('PersistentVolumeClaim', inDefault('c'))
  await world.clock.advance(10_000)
  assert.ok(await isProtected(world), 'it stays while the copy is under way')
  await waitsFor(world, 'pvc/c', 'claimIsSource')
  await waitsFor(world, 'pvc/copy', 'driverSaysUnavailable')
  world.setFaults(() => undefined)
  await bound(world, 'copy')
  await gone(world, 'c')
  await life.stop()
})

test('a copy that is given up before it was ordered does not keep its source for ever (XPR-12)', async () => {
  const { world, life } = await started()
  await make(world)
  await bound(world)
  const parameters = {
    'csi.storage.k8s.io/provisioner-secret-name': 'nope',
    'csi.storage.k8s.io/provisioner-secret-namespace': 'default',
  }
  await world.client.create('StorageClass', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'secret' },
    provisioner: driver,
    parameters,
  })
  await make(world, 'copy', { ...clone, storageClassName: 'secret' })
  await eventually(world, 'protected', () => isProtected(world))
  await waitsFor(world, 'pvc/copy', 'secretMissing')
  await world.client.remove('PersistentVolumeClaim', inDefault('copy'))
  await gone(world, 'copy')
  await eventually(world, 'free again', async () => !(await isProtected(world)))
  await life.stop()
})

test('a protection left by an earlier process goes when its source does (XPR-12)', async () => {
  const { world, life } = await started()
  await make(world)
  await bound(world)
  const body = { metadata: { finalizers: [...((await claimOf(world)).metadata.finalizers ?? []), cloning] } }
  await world.client.patch('PersistentVolumeClaim', inDefault('c'), { type: 'merge', body })
  await world.client.remove('PersistentVolumeClaim', inDefault('c'))
  await gone(world, 'c')
  await life.stop()
})

const snapshotClass = {
  apiVersion: 'snapshot.storage.k8s.io/v1',
  kind: 'VolumeSnapshotClass',
  metadata: { name: 's' },
  driver,
  deletionPolicy: 'Delete' as const,
}

test('a snapshot that is not ready, too large, or of another mode is not restored from (SIDE-14)', async () => {
  const { world, life } = await started()
  const { client } = world
  await client.create('VolumeSnapshotClass', snapshotClass)
  await make(world)
  await bound(world)
  const restore = (name: string, spec: object) =>
    make(world, name, {
      dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'snap' },
      ...spec,
    })
  world.setFaults((rpc) => (rpc === 'CreateSnapshot' ? { kind: 'refused', status: 'UNAVAILABLE' } : undefined))
  await client.create('VolumeSnapshot', {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { name: 'snap', namespace: 'default' },
    spec: { source: { persistentVolumeClaimName: 'c' }, volumeSnapshotClassName: 's' },
  })
  await restore('early', {})
  await told(world, 'snapshot snap')
  await waitsFor(world, 'pvc/early', 'sourceNotReady')
  await waitsFor(world, 'vs/snap', 'driverSaysUnavailable')
  world.setFaults(() => undefined)
  await eventually(
    world,
    'ready',
    async () => (await client.get('VolumeSnapshot', inDefault('snap'))).status?.readyToUse === true,
  )
  await restore('small', { resources: { requests: { storage: '512Mi' } } })
  await told(world, 'is less than the size 1073741824 for the source snapshot snap')
  await waitsFor(world, 'pvc/small', 'sourceTooLarge')
  await restore('raw', { volumeMode: 'Block' })
  await told(world, 'modifies the mode of the source volume')
  await waitsFor(world, 'pvc/raw', 'sourceUnusable')
  const content = (await client.list('VolumeSnapshotContent')).items[0]
  const allow = { 'snapshot.storage.kubernetes.io/allow-volume-mode-change': 'true' }
  await client.patch(
    'VolumeSnapshotContent',
    { name: content?.metadata.name ?? '' },
    { type: 'merge', body: { metadata: { annotations: allow } } },
  )
  await bound(world, 'raw')
  await bound(world, 'early')
  await life.stop()
})

const answering = (change: (volume: Record<string, unknown>) => Record<string, unknown>) => {
  let wrong = true
  return {
    heal: () => void (wrong = false),
    change: (handlers: DriverHandlers): DriverHandlers => {
      const create = handlers.controller!.createVolume!
      const createVolume: typeof create = async (request, signal) => {
        const answer = await create(request, signal)
        return wrong ? { volume: change(answer.volume as Record<string, unknown>) } : answer
      }
      return { ...handlers, controller: { ...handlers.controller, createVolume } }
    },
  }
}

test('a volume smaller than asked for, or not filled from its source, is deleted again; size 0 means as asked (SIDE-18)', async () => {
  const small = answering((volume) => ({ ...volume, capacityBytes: 1n << 20n }))
  const { world, life } = await started({ change: small.change })
  await make(world)
  await told(world, 'created volume capacity 1048576 less than requested capacity 1073741824')
  await eventually(world, 'deleted again', async () => count(world, 'DeleteVolume') > 0)
  assert.equal((await world.client.list('PersistentVolume')).items.length, 0)
  await waitsFor(world, 'pvc/c', 'answerRefused')
  small.heal()
  await bound(world)
  await life.stop()
  const empty = answering(({ contentSource: _source, ...volume }) => ({ ...volume, capacityBytes: 0n }))
  const other = await started({ change: empty.change })
  await make(other.world)
  assert.equal((await bound(other.world)).spec?.capacity?.['storage'], '1Gi')
  await make(other.world, 'copy', clone)
  await told(other.world, 'volume content source missing')
  empty.heal()
  await bound(other.world, 'copy')
  await other.life.stop()
  assert.equal(other.world.storage.allocated.size, 2, 'what was refused is not kept')
})

test('a deletion that fails is told and tried again; a missing secret does not keep a volume (SIDE-21)', async () => {
  const { world, life } = await started()
  const volume = await bound(world, (await make(world)).metadata.name)
  const annotations = {
    'volume.kubernetes.io/provisioner-deletion-secret-name': 'gone',
    'volume.kubernetes.io/provisioner-deletion-secret-namespace': 'default',
  }
  const { name } = volume.metadata
  await world.client.patch('PersistentVolume', { name }, { type: 'merge', body: { metadata: { annotations } } })
  world.setFaults((rpc, earlier) =>
    rpc === 'DeleteVolume' && earlier === 0 ? { kind: 'refused', status: 'INTERNAL' } : undefined,
  )
  await world.client.remove('PersistentVolumeClaim', inDefault('c'))
  await told(world, 'Warning VolumeFailedDelete: rpc error: code = Internal desc = injected')
  await eventually(world, 'gone', async () => (await world.client.list('PersistentVolume')).items.length === 0)
  assert.equal(world.storage.allocated.size, 0)
  await life.stop()
})

test('without ControllerPublish everything is attached at once and nothing is held; with it the volume is held until the last attachment went (SIDE-25, SIDE-30, WART-20)', async () => {
  for (const attach of [false, true]) {
    const { world, life } = await started({ attach })
    const { client } = world
    const volume = await bound(world, (await make(world)).metadata.name)
    const { name } = volume.metadata
    await client.create('VolumeAttachment', {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name: 'va' },
      spec: { attacher: driver, nodeName: 'n1', source: { persistentVolumeName: name } },
    })
    const attachment = () => client.get('VolumeAttachment', { name: 'va' })
    await eventually(world, 'attached', async () => (await attachment()).status?.attached === true)
    const finalizer = 'external-attacher/model-hawser-dev'
    const held = async () => (await client.get('PersistentVolume', { name })).metadata.finalizers?.includes(finalizer)
    assert.deepEqual(
      [
        (await attachment()).metadata.finalizers?.includes(finalizer) ?? false,
        await held(),
        count(world, 'ControllerPublishVolume'),
      ],
      attach ? [true, true, 1] : [false, false, 0],
    )
    await client.remove('PersistentVolumeClaim', inDefault('c'))
    await world.clock.advance(15_000)
    assert.equal(world.storage.allocated.size, attach ? 1 : 0, 'attached volumes are not deleted (SIDE-20)')
    await client.remove('VolumeAttachment', { name: 'va' })
    await eventually(world, 'volume gone', async () => (await client.list('PersistentVolume')).items.length === 0)
    await life.stop()
  }
})

const growTo = ({ client }: CsiWorld, storage: string) =>
  client.patch('PersistentVolumeClaim', inDefault('c'), {
    type: 'merge',
    body: { spec: { resources: { requests: { storage } } } },
  })

test('the target stands before the call, the volume grows first, the rest is the node’s (SIDE-36, SIDE-37)', async () => {
  const { world, life } = await started()
  const volume = await bound(world, (await make(world)).metadata.name)
  world.setFaults((rpc) => (rpc === 'ControllerExpandVolume' ? { kind: 'refused', status: 'UNAVAILABLE' } : undefined))
  await growTo(world, '2Gi')
  const status = async () => (await claimOf(world)).status
  await eventually(world, 'begun', async () => (await status())?.allocatedResources !== undefined)
  assert.partialDeepStrictEqual(await status(), {
    allocatedResources: { storage: '2Gi' },
    allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
    capacity: { storage: '1Gi' },
  })
  assert.deepEqual(
    (await status())?.conditions?.map(({ type }) => type),
    ['Resizing'],
  )
  await told(world, `Normal Resizing: External resizer is resizing volume ${volume.metadata.name}`)
  await waitsFor(world, 'pvc/c', 'driverSaysUnavailable')
  await growTo(world, '3Gi') // the unfinished target is kept until its answer is known
  world.setFaults(() => undefined)
  const record = () => [...world.storage.records.volumeMap.values()][0]
  await eventually(world, 'first target', async () => record()?.capacityBytes === 2n << 30n)
  await eventually(
    world,
    'handed over',
    async () => (await status())?.allocatedResourceStatuses?.['storage'] === 'NodeResizePending',
  )
  assert.equal((await status())?.allocatedResources?.['storage'], '2Gi')
  const grown = await world.client.get('PersistentVolume', { name: volume.metadata.name })
  assert.equal(grown.spec?.capacity?.['storage'], '2Gi')
  assert.equal(grown.metadata.annotations?.['volume.alpha.kubernetes.io/pre-resize-capacity'], '1Gi')
  await told(world, 'Normal FileSystemResizeRequired: Require file system resize of volume on node')
  await waitsFor(world, 'pvc/c', 'nodeMustExpand')
  await life.stop()
})

test('a driver that grows volumes on nodes only is not asked at the controller (SIDE-35, XRS-8)', async () => {
  const { world, life } = await started({ without: ['EXPAND_VOLUME'] })
  await bound(world, (await make(world)).metadata.name)
  await growTo(world, '2Gi')
  await eventually(
    world,
    'handed over',
    async () => (await claimOf(world)).status?.allocatedResourceStatuses?.['storage'] === 'NodeResizePending',
  )
  assert.equal(count(world, 'ControllerExpandVolume'), 0)
  await life.stop()
})

test('a snapshot made elsewhere is looked up where the driver can, believed where it cannot (SIDE-47)', async () => {
  for (const lists of [true, false]) {
    const { world, life } = await started(lists ? {} : { without: ['LIST_SNAPSHOTS'] })
    const { client } = world
    await client.create('VolumeSnapshotClass', snapshotClass)
    const adopt = async (name: string, snapshotHandle: string) => {
      await client.create('VolumeSnapshotContent', {
        apiVersion: 'snapshot.storage.k8s.io/v1',
        kind: 'VolumeSnapshotContent',
        metadata: { name },
        spec: {
          driver,
          deletionPolicy: 'Retain',
          source: { snapshotHandle },
          volumeSnapshotRef: { name, namespace: 'default' },
        },
      })
      await client.create('VolumeSnapshot', {
        apiVersion: 'snapshot.storage.k8s.io/v1',
        kind: 'VolumeSnapshot',
        metadata: { name, namespace: 'default' },
        spec: { source: { volumeSnapshotContentName: name } },
      })
    }
    const stored = { id: 'old', name: 'old', sourceVolumeId: 'v', sizeBytes: 3n << 20n, createdMs: 1_000 }
    world.storage.records.snapshotMap.set('old', stored)
    await adopt('known', 'old')
    await adopt('unknown', 'never-seen')
    const status = async (name: string) => (await client.get('VolumeSnapshotContent', { name })).status
    await eventually(world, 'ready', async () => (await status('known'))?.readyToUse === true)
    assert.deepEqual((await status('known'))?.restoreSize, lists ? 3 << 20 : undefined)
    await eventually(world, 'judged', async () => (await status('unknown'))?.readyToUse !== undefined)
    assert.equal((await status('unknown'))?.readyToUse, !lists)
    if (lists) await waitsFor(world, 'vs/unknown', 'snapshotUnknown')
    assert.equal(count(world, 'ListSnapshots') > 0, lists)
    await life.stop()
  }
})

test('a size that no double can hold reaches the driver and comes back exactly (WIRE-1)', async () => {
  const bytes = (1n << 53n) + 1n
  let seen: unknown
  const { world, life } = await started({
    change: (handlers) => ({
      ...handlers,
      controller: {
        ...handlers.controller,
        createVolume: async (request) => {
          seen = request.capacityRange?.requiredBytes
          return { volume: { volumeId: 'huge', capacityBytes: bytes } }
        },
      },
    }),
  })
  await make(world, 'c', { resources: { requests: { storage: String(bytes) } } })
  assert.equal((await bound(world)).spec?.capacity?.['storage'], String(bytes))
  assert.equal(seen, bytes)
  await life.stop()
})

test('a volume is deleted with the secret of its class, also of one that only the beta annotation names (SIDE-5)', async () => {
  const seen: unknown[] = []
  const { world, life } = await started({
    change: (handlers) => ({
      ...handlers,
      controller: {
        ...handlers.controller,
        deleteVolume: async (request) => {
          seen.push({ ...request.secrets })
          return {}
        },
      },
    }),
  })
  const { client } = world
  await client.create('StorageClass', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'keyed' },
    provisioner: driver,
    parameters: {
      'csi.storage.k8s.io/provisioner-secret-name': 'key',
      'csi.storage.k8s.io/provisioner-secret-namespace': 'default',
    },
  })
  await client.create('Secret', { metadata: inDefault('key'), data: { k: Buffer.from('v').toString('base64') } })
  await client.create('PersistentVolume', {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name: 'pv',
      annotations: { 'pv.kubernetes.io/provisioned-by': driver, 'volume.beta.kubernetes.io/storage-class': 'keyed' },
    },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Delete',
      claimRef: { ...inDefault('gone'), uid: 'gone' },
      csi: { driver, volumeHandle: 'h' },
    },
  })
  await eventually(world, 'deleted', async () => seen.length > 0)
  assert.deepEqual(seen[0], { k: 'v' })
  await life.stop()
})

test('the driver is asked for room with its own parameters only (WART-21, SIDE-50)', async () => {
  let seen: unknown
  const { world, life } = await started({
    change: (handlers) => ({
      ...handlers,
      controller: {
        ...handlers.controller,
        getCapacity: async (request) => {
          seen = { ...request.parameters }
          return { availableCapacity: 5n << 30n }
        },
      },
    }),
  })
  await world.client.create('StorageClass', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'tiered' },
    provisioner: driver,
    volumeBindingMode: 'WaitForFirstConsumer',
    parameters: { tier: 'fast', 'csi.storage.k8s.io/fstype': 'ext4' },
  })
  const objects = async () => (await world.client.list('CSIStorageCapacity')).items
  await eventually(world, 'told', async () => (await objects()).length > 0)
  assert.deepEqual(seen, { tier: 'fast' })
  assert.deepEqual((await objects())[0]?.capacity, '5Gi')
  await life.stop()
})

test('a claim made again under the same name does not make us forget what was ordered for the old one (SIDE-16)', async () => {
  const { world, life } = await started()
  let silent = true
  world.setFaults((rpc) => (rpc === 'CreateVolume' && silent ? { kind: 'silent' } : undefined))
  const first = await make(world)
  await eventually(world, 'the driver was asked', () => Promise.resolve(count(world, 'CreateVolume') > 0))
  await world.clock.advance(11_000)
  await world.client.remove('PersistentVolumeClaim', inDefault('c'))
  const free = { type: 'merge', body: { metadata: { finalizers: null } } } as const
  await world.client.patch('PersistentVolumeClaim', inDefault('c'), free)
  await gone(world, 'c')
  const second = await make(world)
  silent = false
  await bound(world)
  await eventually(world, 'the first volume is deleted', () => Promise.resolve(count(world, 'DeleteVolume') > 0))
  await world.clock.advance(60_000)
  assert.notEqual(second.metadata.uid, first.metadata.uid)
  assert.equal((await world.storage.records.volumes(new AbortController().signal)).length, 1)
  await life.stop()
})
