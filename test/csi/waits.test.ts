// Is everything that waits for an object woken when it comes? Each waits until every back-off has grown to its end; a second
// after the object is there, it is done.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually, createCsiWorld, furnish, modelClaim } from '../kit/csi-cluster.ts'
import type { CsiWorld } from '../kit/csi-cluster.ts'
import { podOfClaim, podWith } from '../kit/whole-cluster.ts'

interface Wait {
  /** What waits. */
  readonly asked: (world: CsiWorld) => Promise<unknown>
  /** What it waits for. */
  readonly comes: (world: CsiWorld) => Promise<unknown>
  readonly done: (world: CsiWorld) => Promise<boolean>
  /** A second, but where nobody can be told. */
  readonly withinMs?: number
}

const inDefault = (name: string) => ({ namespace: 'default', name })
const isBound =
  (name: string) =>
  async ({ client }: CsiWorld) =>
    (await client.get('PersistentVolumeClaim', inDefault(name))).status?.phase === 'Bound'
const isReady = async ({ client }: CsiWorld) =>
  (await client.get('VolumeSnapshot', inDefault('snap'))).status?.readyToUse === true
const isAttached = async ({ client }: CsiWorld) =>
  (await client.get('VolumeAttachment', { name: 'va' })).status?.attached === true
type ClaimSpec = NonNullable<ReturnType<typeof modelClaim>['spec']>
const claims =
  (name: string, spec: Partial<ClaimSpec> = {}) =>
  ({ client }: CsiWorld) => {
    const claim = modelClaim(name)
    return client.create('PersistentVolumeClaim', { ...claim, spec: { ...claim.spec, ...spec } })
  }
const fromSnapshot = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'snap' }
const snapshotClass =
  (annotations: Record<string, string> = {}) =>
  ({ client }: CsiWorld) =>
    client.create('VolumeSnapshotClass', {
      metadata: { name: 'snaps', annotations },
      driver: driver,
      deletionPolicy: 'Delete',
    })
const snapshotOf =
  (source: string, className?: string) =>
  ({ client }: CsiWorld) =>
    client.create('VolumeSnapshot', {
      metadata: inDefault('snap'),
      spec: {
        source: { persistentVolumeClaimName: source },
        ...(className === undefined ? {} : { volumeSnapshotClassName: className }),
      },
    })
const volumeOf = async ({ client }: Pick<CsiWorld, 'client'>, name: string) =>
  (await client.get('PersistentVolumeClaim', inDefault(name))).spec?.volumeName ?? ''
const grow =
  (name: string, storage: string) =>
  ({ client }: CsiWorld) =>
    client.patch('PersistentVolumeClaim', inDefault(name), {
      type: 'merge',
      body: { spec: { resources: { requests: { storage } } } },
    })
const attachmentTo = (nodeName: string, volumeName?: string) => async (world: CsiWorld) =>
  world.client.create('VolumeAttachment', {
    metadata: { name: 'va' },
    spec: {
      attacher: driver,
      nodeName,
      source: { persistentVolumeName: volumeName ?? (await volumeOf(world, 'before')) },
    },
  })
const csiNode =
  (name: string, drivers: { name: string; nodeID: string; topologyKeys: string[] }[]) =>
  ({ client }: CsiWorld) =>
    client.create('CSINode', { metadata: { name }, spec: { drivers } })
const driver = 'model.hawser.dev'
const registered = [{ name: driver, nodeID: 'node-id', topologyKeys: [] }]
const classWith =
  (name: string, parameters: Record<string, string>) =>
  ({ client }: CsiWorld) =>
    client.create('StorageClass', {
      metadata: { name },
      provisioner: driver,
      reclaimPolicy: 'Delete',
      volumeBindingMode: 'Immediate',
      parameters,
    })
const secret = ({ client }: CsiWorld) => client.create('Secret', { metadata: inDefault('key'), data: { key: 'eA==' } })
const inOrder =
  (...steps: readonly ((world: CsiWorld) => Promise<unknown>)[]) =>
  async (world: CsiWorld) => {
    for (const step of steps) await step(world)
  }

/** The jobs may not watch secrets. */
const secretMs = 5_000

const waits: Readonly<Record<string, Wait>> = {
  'a claim for its class': {
    asked: claims('c', { storageClassName: 'later' }),
    comes: classWith('later', {}),
    done: isBound('c'),
  },
  'a claim for the snapshot that it is made from': {
    asked: inOrder(snapshotClass(), claims('c', { dataSource: fromSnapshot })),
    comes: snapshotOf('before', 'snaps'),
    done: isBound('c'),
  },
  'a claim for a snapshot without a class': {
    asked: inOrder(claims('c', { dataSource: fromSnapshot }), snapshotOf('before')),
    comes: snapshotClass({ 'snapshot.storage.kubernetes.io/is-default-class': 'true' }),
    done: isBound('c'),
  },
  'a claim for the claim that it is a clone of': {
    asked: claims('c', { dataSource: { kind: 'PersistentVolumeClaim', name: 'source' } }),
    comes: claims('source'),
    done: isBound('c'),
  },
  'a claim for its attributes class': {
    asked: claims('c', { volumeAttributesClassName: 'fast' }),
    comes: ({ client }) =>
      client.create('VolumeAttributesClass', {
        metadata: { name: 'fast' },
        driverName: driver,
        parameters: { speed: 'high' },
      }),
    done: isBound('c'),
  },
  'a claim for the secret of its class': {
    asked: inOrder(
      classWith('secret', {
        'csi.storage.k8s.io/provisioner-secret-name': 'key',
        'csi.storage.k8s.io/provisioner-secret-namespace': 'default',
      }),
      claims('c', { storageClassName: 'secret' }),
    ),
    comes: secret,
    done: isBound('c'),
    withinMs: secretMs,
  },
  'a claim for the space of a volume that is deleted': {
    asked: claims('c', { resources: { requests: { storage: '10Gi' } } }),
    comes: ({ client }) => client.remove('PersistentVolumeClaim', inDefault('before')),
    done: isBound('c'),
  },
  'a volume that grows for the space of one that is deleted': {
    asked: async (world) => {
      await claims('c')(world)
      await eventually(world, 'bound', () => isBound('c')(world))
      await grow('c', '10Gi')(world)
    },
    comes: ({ client }) => client.remove('PersistentVolumeClaim', inDefault('before')),
    done: async ({ client }) =>
      (await client.get('PersistentVolume', { name: await volumeOf({ client }, 'c') })).spec.capacity?.['storage'] ===
      '10Gi',
  },
  'a snapshot for its class': {
    asked: snapshotOf('before', 'snaps'),
    comes: snapshotClass(),
    done: isReady,
  },
  'a snapshot for the default class': {
    asked: snapshotOf('before'),
    comes: snapshotClass({ 'snapshot.storage.kubernetes.io/is-default-class': 'true' }),
    done: isReady,
  },
  'a snapshot for its claim': {
    asked: inOrder(snapshotClass(), snapshotOf('source', 'snaps')),
    comes: claims('source'),
    done: isReady,
  },
  'an attachment for the CSINode of its node': {
    asked: attachmentTo('n2'),
    comes: csiNode('n2', registered),
    done: isAttached,
  },
  'an attachment for its driver on the node': {
    asked: inOrder(csiNode('n2', []), attachmentTo('n2')),
    async comes({ client }) {
      const known = await client.get('CSINode', { name: 'n2' })
      await client.update('CSINode', { ...known, spec: { drivers: registered } })
    },
    done: isAttached,
  },
  'an attachment for its volume': {
    asked: attachmentTo('n1', 'late'),
    async comes(world) {
      const { spec } = await world.client.get('PersistentVolume', { name: await volumeOf(world, 'before') })
      const { claimRef: _, ...free } = spec
      await world.client.create('PersistentVolume', {
        metadata: { name: 'late' },
        spec: { ...free, persistentVolumeReclaimPolicy: 'Retain' },
      })
    },
    done: isAttached,
  },
  'a claim for a volume that somebody makes by hand': {
    asked: claims('c', { storageClassName: 'by-hand' }),
    comes: ({ client }) =>
      client.create('PersistentVolume', {
        metadata: { name: 'made' },
        spec: {
          accessModes: ['ReadWriteOnce'],
          capacity: { storage: '1Gi' },
          storageClassName: 'by-hand',
          csi: { driver, volumeHandle: 'made' },
        },
      }),
    done: isBound('c'),
  },
  'a claim of a pod for the claim in its way': {
    asked: inOrder(claims('p-v', { storageClassName: 'nobody' }), ({ client }) =>
      client.create(
        'Pod',
        podWith('p', [{ name: 'v', ephemeral: { volumeClaimTemplate: { spec: modelClaim('p-v').spec! } } }]),
      ),
    ),
    comes: ({ client }) => client.remove('PersistentVolumeClaim', inDefault('p-v')),
    done: async ({ client }) => (await client.get('Pod', inDefault('p'))).spec?.nodeName === 'n1',
  },
  'a pod for its claim': {
    asked: ({ client }) => client.create('Pod', podOfClaim('p', 'c')),
    comes: claims('c'),
    done: async ({ client }) => (await client.get('Pod', inDefault('p'))).spec?.nodeName === 'n1',
  },
}

/** Longer than any back-off needs to reach its cap. */
const patientMs = 900_000

for (const [name, { asked, comes, done, withinMs = 1_000 }] of Object.entries(waits))
  test(`${name}: ${withinMs / 1_000} s are enough once it is there`, async () => {
    const world = await createCsiWorld({ placement: true, model: { modifies: ['speed'], capacityBytes: 10n << 30n } })
    await furnish(world)
    const life = world.start()
    await claims('before')(world)
    await eventually(world, 'bound', () => isBound('before')(world))
    await asked(world)
    await world.clock.advance(patientMs)
    assert.equal(await done(world), false, 'it waits')
    await comes(world)
    await world.clock.advance(withinMs)
    const soon = await done(world)
    await life.stop()
    assert.ok(soon, (await world.events()).slice(-5).join('\n'))
  })
