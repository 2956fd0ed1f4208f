// Claims, volumes and snapshots that wait: classes, sources, sizes, modes, owners, policies.
import type { PersistentVolume, PersistentVolumeClaim } from '../../../src/api/generated/types.ts'
import type { WholeCluster } from '../../kit/whole-cluster.ts'
import { claimOf, classRequest, driver, podOfClaim, podWith } from '../../kit/whole-cluster.ts'
import type { Case } from './case.ts'
import {
  addClaim,
  addPod,
  anyVolume,
  attributesClass,
  bound,
  grow,
  inDefault,
  pass,
  patchClaim,
  removeClaim,
  removePod,
  running,
  snapshotClass,
  steps,
  takeSnapshot,
} from './steps.ts'

const file = (object: object) => ({ run: ['hawser apply -f new.yaml'], files: { 'new.yaml': object } })
const named = (kind: string, apiVersion: string, object: object) => ({ apiVersion, kind, ...object })
const storageClass = (name: string, more: object = {}) =>
  named('StorageClass', 'storage.k8s.io/v1', classRequest(name, more))
const claimFile = (claim: PersistentVolumeClaim) => named('PersistentVolumeClaim', 'v1', claim)

function volumeRequest(name: string, more: Partial<PersistentVolume['spec']> = {}): PersistentVolume {
  return {
    metadata: { name },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: '',
      persistentVolumeReclaimPolicy: 'Retain',
      hostPath: { path: `/srv/${name}` },
      ...more,
    },
  }
}
const volumeFile = (name: string, more: Partial<PersistentVolume['spec']> = {}) =>
  named('PersistentVolume', 'v1', volumeRequest(name, more))
const addVolume =
  (name: string, more: Partial<PersistentVolume['spec']> = {}) =>
  ({ client }: WholeCluster) =>
    client.create('PersistentVolume', volumeRequest(name, more))
const addClass =
  (name: string, more: object = {}) =>
  ({ client }: WholeCluster) =>
    client.create('StorageClass', classRequest(name, more))
const patchVolume =
  (name: string, body: object) =>
  ({ client }: WholeCluster) =>
    client.patch('PersistentVolume', { name }, { type: 'merge', body })
// Not among the commands that `why` names: a claim that grew would lose its data.
const deleteClaim = { run: ['hawser delete pvc data --yes --no-wait'], unhinted: true } as const
const snapshotTaken = steps(bound, snapshotClass, takeSnapshot(), pass(6_000))
const fromSnapshot = (name: string) => ({
  dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name },
})
const fromClaim = (name: string) => ({ dataSource: { kind: 'PersistentVolumeClaim', name } })
const size = (storage: string) => ({ resources: { requests: { storage } } })

const binding: readonly Case[] = [
  {
    id: 'claim/class-missing',
    make: addClaim('data', { storageClassName: 'nowhere' }),
    ask: 'pvc/data',
    cause: 'classMissing',
    says: /class nowhere, which does not exist/,
    mend: file(storageClass('nowhere')),
  },
  {
    id: 'claim/no-default-class',
    make: ({ client }) => {
      const { storageClassName: _none, ...spec } = claimOf('data').spec
      return client.create('PersistentVolumeClaim', { ...claimOf('data'), spec })
    },
    ask: 'pvc/data',
    cause: 'noDefaultClass',
    mend: {
      ...file({
        ...storageClass('usual'),
        metadata: { name: 'usual', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      }),
      unhinted: true,
    },
  },
  {
    id: 'claim/static/no-volume',
    make: addClaim('data', { storageClassName: '' }),
    ask: 'pvc/data',
    cause: 'noVolumeFits',
    mend: { ...file(volumeFile('v')), unhinted: true },
  },
  {
    id: 'claim/static/class-without-object',
    before: addVolume('v', { storageClassName: 'manual', accessModes: ['ReadOnlyMany'] }),
    make: addClaim('data', { storageClassName: 'manual' }),
    ask: 'pvc/data',
    cause: 'noVolumeFits',
    says: /offers ReadOnlyMany/,
    saysNot: /not found/,
    mend: { ...file(volumeFile('w', { storageClassName: 'manual' })), unhinted: true },
  },
  {
    id: 'claim/static/too-small',
    before: addVolume('v', { capacity: { storage: '1Mi' } }),
    make: addClaim('data', { storageClassName: '' }),
    ask: 'pvc/data',
    cause: 'noVolumeFits',
    says: /v has 1Mi, the claim requests 1Gi/,
    mend: { ...file(volumeFile('w')), unhinted: true },
  },
  {
    id: 'claim/static/labels',
    before: addVolume('v'),
    make: addClaim('data', { storageClassName: '', selector: { matchLabels: { disk: 'fast' } } }),
    ask: 'pvc/data',
    cause: 'noVolumeFits',
    says: /labels/,
    mend: {
      run: ['hawser apply -f new.yaml'],
      files: { 'new.yaml': { ...volumeFile('w'), metadata: { name: 'w', labels: { disk: 'fast' } } } },
      unhinted: true,
    },
  },
  {
    id: 'claim/no-provisioner',
    before: addClass('static', { provisioner: 'kubernetes.io/no-provisioner' }),
    make: addClaim('data', { storageClassName: 'static' }),
    ask: 'pvc/data',
    cause: 'noProvisioner',
    mend: { ...file(volumeFile('w', { storageClassName: 'static' })), unhinted: true },
  },
  {
    id: 'claim/driver-of-class-unknown',
    before: addClass('other', { provisioner: 'nobody.example.com' }),
    make: addClaim('data', { storageClassName: 'other' }),
    ask: 'pvc/data',
    cause: 'provisionerAbsent',
    says: /nobody\.example\.com, which is not registered/,
    mend: 'nothing',
  },
  {
    id: 'claim/first-consumer',
    make: addClaim('data', { storageClassName: 'later' }),
    ask: 'pvc/data',
    cause: 'firstConsumer',
    mend: file(named('Pod', 'v1', podOfClaim('web', 'data'))),
  },
  {
    id: 'claim/node-without-driver',
    cluster: { nodes: ['n1', 'worker'], driverOn: ['n1'], model: { topologyKey: 'zone' } },
    make: ({ client }) =>
      client.create('PersistentVolumeClaim', {
        ...claimOf('data', { storageClassName: 'later' }),
        metadata: { ...inDefault('data'), annotations: { 'volume.kubernetes.io/selected-node': 'worker' } },
      }),
    ask: 'pvc/data',
    // The driver's job takes the chosen node away again, as upstream's does; then no pod has chosen another one.
    cause: 'firstConsumer',
    saysNot: /✓ its volume/,
    mend: 'nothing',
  },
  {
    id: 'claim/pod-chose-its-node-without-scheduler',
    cluster: { withoutScheduler: true },
    make: steps(addClaim('data', { storageClassName: 'later' }), addPod(podOfClaim('web', 'data', { nodeName: 'n1' }))),
    ask: 'pvc/data',
    cause: 'placedByHand',
    mend: 'nothing',
  },
  {
    id: 'claim/named-volume-missing',
    make: addClaim('data', { storageClassName: '', volumeName: 'v' }),
    ask: 'pvc/data',
    cause: 'namedVolumeMissing',
    mend: { ...file(volumeFile('v')), unhinted: true },
  },
  {
    id: 'claim/named-volume-too-small',
    before: addVolume('v', { capacity: { storage: '1Mi' } }),
    make: addClaim('data', { storageClassName: '', volumeName: 'v' }),
    ask: 'pvc/data',
    cause: 'namedVolumeUnfit',
    says: /has 1Mi/,
    mend: 'nothing',
  },
  {
    id: 'claim/named-volume-taken',
    before: steps(addVolume('v'), addClaim('first', { storageClassName: '', volumeName: 'v' }), pass(3_000)),
    make: addClaim('data', { storageClassName: '', volumeName: 'v' }),
    ask: 'pvc/data',
    cause: 'namedVolumeTaken',
    says: /bound to claim default\/first/,
    mend: 'nothing',
  },
  {
    id: 'claim/lost',
    before: bound,
    async make({ client }) {
      const { items } = await client.list('PersistentVolume')
      const name = items[0]?.metadata.name ?? ''
      await client.patch('PersistentVolume', { name }, { type: 'merge', body: { metadata: { finalizers: null } } })
      await client.remove('PersistentVolume', { name })
    },
    ask: 'pvc/data',
    cause: 'volumeLost',
    mend: 'nothing',
  },
  {
    id: 'claim/reserved-but-unfit',
    before: addVolume('v', { capacity: { storage: '1Mi' }, claimRef: { namespace: 'default', name: 'data' } }),
    make: addClaim('data', { storageClassName: '' }),
    ask: 'pvc/data',
    cause: 'reservedUnfit',
    mend: 'nothing',
  },
  {
    id: 'claim/selector-cannot-be-provisioned',
    make: addClaim('data', { selector: { matchLabels: { disk: 'fast' } } }),
    ask: 'pvc/data',
    cause: 'selectorUnsupported',
    mend: 'nothing',
  },
  {
    id: 'claim/secret-of-class-missing',
    before: addClass('secret', {
      parameters: {
        'csi.storage.k8s.io/provisioner-secret-name': 'key',
        'csi.storage.k8s.io/provisioner-secret-namespace': 'default',
      },
    }),
    make: addClaim('data', { storageClassName: 'secret' }),
    ask: 'pvc/data',
    cause: 'secretMissing',
    saysNot: /may have had an effect/,
    mend: { ...file(named('Secret', 'v1', { metadata: inDefault('key') })), unhinted: true },
    mendsWithinMs: 400_000,
  },
  {
    id: 'claim/too-large-for-driver',
    cluster: { model: { maximumVolumeBytes: 1n << 30n } },
    make: addClaim('data', size('10Ti')),
    ask: 'pvc/data',
    cause: 'outOfRange',
    mend: deleteClaim,
    mendsWithinMs: 400_000,
  },
  {
    id: 'claim/pool-full',
    cluster: { model: { capacityBytes: 1n << 30n } },
    make: addClaim('data', size('2Gi')),
    ask: 'pvc/data',
    cause: 'outOfCapacity',
    mend: deleteClaim,
    mendsWithinMs: 400_000,
  },
]

const sources: readonly Case[] = [
  {
    id: 'clone/source-missing',
    make: addClaim('copy', fromClaim('nobody')),
    ask: 'pvc/copy',
    cause: 'sourceMissing',
    says: /claim nobody, which does not exist; nothing was tried/,
    saysNot: /may have had/,
    mend: { ...file(claimFile(claimOf('nobody'))), unhinted: true },
    mendsWithinMs: 400_000,
  },
  {
    id: 'clone/smaller-than-source',
    before: steps(addClaim('data', size('2Gi')), pass(3_000)),
    make: addClaim('copy', { ...fromClaim('data'), ...size('1Gi') }),
    ask: 'pvc/copy',
    cause: 'sourceTooLarge',
    says: /requests 1Gi, and claim data has 2Gi/,
    saysNot: /another driver/,
    mend: { run: ['hawser delete pvc copy --yes --no-wait'] },
    mendsWithinMs: 400_000,
  },
  {
    id: 'clone/source-unbound',
    before: addClaim('data', { storageClassName: 'nowhere' }),
    make: addClaim('copy', fromClaim('data')),
    ask: 'pvc/copy',
    cause: 'sourceNotReady',
    mend: { ...file(storageClass('nowhere')), unhinted: true },
    mendsWithinMs: 400_000,
  },
  {
    id: 'clone/other-mode',
    before: bound,
    make: addClaim('copy', { ...fromClaim('data'), volumeMode: 'Block' }),
    ask: 'pvc/copy',
    cause: 'sourceUnusable',
    mend: 'nothing',
  },
  {
    id: 'restore/snapshot-missing',
    make: addClaim('copy', fromSnapshot('nobody')),
    ask: 'pvc/copy',
    cause: 'sourceMissing',
    says: /snapshot nobody, which does not exist; nothing was tried/,
    saysNot: /parameters of the class|may have had/,
    mend: { run: ['hawser delete pvc copy --yes --no-wait'] },
  },
  {
    id: 'restore/snapshot-not-ready',
    before: steps(snapshotClass, takeSnapshot('snap', 'data')),
    make: addClaim('copy', fromSnapshot('snap')),
    ask: 'pvc/copy',
    cause: 'sourceNotReady',
    mend: { ...file(claimFile(claimOf('data'))), unhinted: true },
    mendsWithinMs: 400_000,
  },
  {
    id: 'restore/smaller-than-snapshot',
    before: steps(addClaim('data', size('2Gi')), pass(3_000), snapshotClass, takeSnapshot(), pass(6_000)),
    make: addClaim('copy', { ...fromSnapshot('snap'), ...size('1Gi') }),
    ask: 'pvc/copy',
    cause: 'sourceTooLarge',
    says: /snapshot snap has 2Gi/,
    mend: { run: ['hawser delete pvc copy --yes --no-wait'] },
    mendsWithinMs: 400_000,
  },
  {
    id: 'snapshot/source-missing',
    before: snapshotClass,
    make: takeSnapshot('snap', 'nobody'),
    ask: 'vs/snap',
    cause: 'snapshotSourceMissing',
    mend: { ...file(claimFile(claimOf('nobody'))), unhinted: true },
    mendsWithinMs: 400_000,
  },
  {
    id: 'snapshot/source-unbound',
    before: steps(snapshotClass, addClaim('data', { storageClassName: 'nowhere' })),
    make: takeSnapshot(),
    ask: 'vs/snap',
    cause: 'snapshotSourceUnbound',
    mend: { ...file(storageClass('nowhere')), unhinted: true },
    mendsWithinMs: 400_000,
  },
  {
    id: 'snapshot/class-missing',
    before: bound,
    make: takeSnapshot(),
    ask: 'vs/snap',
    cause: 'snapshotClassMissing',
    mend: {
      ...file(
        named('VolumeSnapshotClass', 'snapshot.storage.k8s.io/v1', {
          metadata: { name: 'snaps' },
          driver,
          deletionPolicy: 'Delete',
        }),
      ),
      unhinted: true,
    },
    mendsWithinMs: 400_000,
  },
]

const changes: readonly Case[] = [
  {
    id: 'growth/no-pod-uses-it',
    before: bound,
    make: grow(),
    ask: 'pvc/data',
    cause: 'nodeMustExpand',
    says: /the volume has 2Gi, the filesystem 1Gi/,
    mend: { ...file(named('Pod', 'v1', podOfClaim('web', 'data'))), unhinted: true },
  },
  {
    id: 'growth/too-much',
    cluster: { model: { maximumVolumeBytes: 1n << 30n } },
    before: bound,
    make: grow('999Ti'),
    ask: 'pvc/data',
    cause: 'outOfRange',
    saysNot: /has grown|was expanded/,
    mend: 'nothing', // the volume has as much as the driver can give
  },
  {
    id: 'growth/online-fails-on-the-node',
    before: running,
    async make(cluster) {
      cluster.setFaults((rpc) => (rpc === 'NodeExpandVolume' ? { kind: 'refused', status: 'INTERNAL' } : undefined))
      await grow()(cluster)
    },
    ask: 'pvc/data',
    cause: 'driverError',
    says: /injected/,
    mend: { outside: 'the driver answers again', act: ({ setFaults }) => setFaults(() => undefined) },
    mendsWithinMs: 400_000,
  },
  {
    id: 'growth/driver-hangs-on-the-node',
    before: running,
    async make(cluster) {
      cluster.setFaults((rpc) => (rpc === 'NodeExpandVolume' ? { kind: 'silent' } : undefined))
      await grow()(cluster)
    },
    ask: 'pvc/data',
    cause: 'callHangs',
    says: /NodeExpandVolume/,
    mend: { outside: 'the driver answers again', act: ({ setFaults }) => setFaults(() => undefined) },
    mendsWithinMs: 400_000,
  },
  {
    id: 'attributes/class-missing',
    before: bound,
    make: patchClaim({ volumeAttributesClassName: 'gold' }),
    ask: 'pvc/data',
    cause: 'attributesClassMissing',
    since: false, // nobody writes down when a claim was changed
    cluster: { model: { modifies: ['iops'] } },
    mend: {
      ...file(
        named('VolumeAttributesClass', 'storage.k8s.io/v1', {
          metadata: { name: 'gold' },
          driverName: driver,
          parameters: { iops: '9' },
        }),
      ),
      unhinted: true,
    },
    mendsWithinMs: 400_000,
  },
  {
    id: 'attributes/class-of-another-driver',
    before: steps(bound, ({ client }) =>
      client.create('VolumeAttributesClass', {
        metadata: { name: 'gold' },
        driverName: 'other',
        parameters: { iops: '9' },
      }),
    ),
    make: patchClaim({ volumeAttributesClassName: 'gold' }),
    ask: 'pvc/data',
    cause: 'attributesClassForeign',
    since: false, // nobody writes down when a claim was changed
    mend: 'nothing',
  },
  {
    id: 'attributes/parameter-unknown',
    cluster: { model: { modifies: ['other'] } },
    before: steps(attributesClass, bound),
    make: patchClaim({ volumeAttributesClassName: 'gold' }),
    ask: 'pvc/data',
    cause: 'badParameters',
    says: /unknown attributes iops/,
    mend: 'nothing',
  },
]

const ends: readonly Case[] = [
  {
    id: 'claim/protected-by-pod',
    before: running,
    make: removeClaim(),
    ask: 'pvc/data',
    cause: 'claimProtected',
    says: /pods still use it: web/,
    mend: { run: ['hawser delete pod web --yes --no-wait'] },
  },
  {
    id: 'claim/foreign-finalizer',
    before: bound,
    async make({ client }) {
      const body = { metadata: { finalizers: ['example.com/hold'] } }
      await client.patch('PersistentVolumeClaim', inDefault('data'), { type: 'merge', body })
      await client.remove('PersistentVolumeClaim', inDefault('data'))
    },
    ask: 'pvc/data',
    cause: 'finalizersHold',
    says: /example\.com\/hold/,
    mend: 'nothing',
  },
  {
    id: 'volume/retained',
    before: steps(addVolume('v'), addClaim('data', { storageClassName: '' }), pass(3_000)),
    make: removeClaim(),
    ask: 'pv/v',
    cause: 'retained',
    mend: { run: ['hawser delete pv v --yes --no-wait'] },
  },
  {
    id: 'volume/reserved',
    make: addVolume('v', { claimRef: { namespace: 'default', name: 'data' } }),
    ask: 'pv/v',
    cause: 'reserved',
    mend: { ...file(claimFile(claimOf('data', { storageClassName: '' }))), unhinted: true },
  },
  {
    id: 'volume/deleted-while-bound',
    before: bound,
    async make({ client }) {
      const { items } = await client.list('PersistentVolume')
      await client.remove('PersistentVolume', { name: items[0]?.metadata.name ?? '' })
    },
    ask: anyVolume,
    cause: 'volumeProtected',
    mend: { run: ['hawser delete pvc data --yes --no-wait'] },
  },
  {
    id: 'volume/cannot-be-deleted-by-its-policy',
    before: steps(
      addVolume('v', {
        persistentVolumeReclaimPolicy: 'Delete',
        nfs: { server: 's', path: '/e' },
        hostPath: undefined as never,
      }),
      addClaim('data', { storageClassName: '' }),
      pass(3_000),
    ),
    make: removeClaim(),
    ask: 'pv/v',
    cause: 'reclaimFailed',
    mend: { run: ['hawser delete pv v --yes --no-wait'], unhinted: true },
  },
  {
    id: 'claim/made-anew-while-the-old-volume-is-kept',
    before: steps(
      addVolume('v'),
      addClaim('data', { storageClassName: '', volumeName: 'v' }),
      pass(3_000),
      removeClaim(),
      pass(3_000),
    ),
    make: addClaim('data', { storageClassName: '', volumeName: 'v' }),
    ask: 'pvc/data',
    cause: 'namedVolumeTaken',
    says: /kept for a deleted claim of the same name/,
    mend: { outside: 'somebody removes claimRef', act: patchVolume('v', { spec: { claimRef: null } }) },
  },
  {
    id: 'class/attributes-in-use',
    cluster: { model: { modifies: ['iops'] } },
    before: steps(attributesClass, addClaim('data', { volumeAttributesClassName: 'gold' }), pass(4_000)),
    make: ({ client }) => client.remove('VolumeAttributesClass', { name: 'gold' }),
    ask: 'vac/gold',
    cause: 'classProtected',
    mend: { run: ['hawser delete pvc data --yes --no-wait'], unhinted: true },
  },
  {
    id: 'snapshot/in-use-by-a-restore',
    before: snapshotTaken,
    async make(cluster) {
      cluster.setFaults((rpc) => (rpc === 'CreateVolume' ? { kind: 'silent' } : undefined))
      await addClaim('copy', fromSnapshot('snap'))(cluster)
      await cluster.clock.advance(1_000)
      await cluster.client.remove('VolumeSnapshot', inDefault('snap'))
    },
    ask: 'vs/snap',
    cause: 'snapshotInUse',
    mend: { outside: 'the driver answers again', act: ({ setFaults }) => setFaults(() => undefined) },
    mendsWithinMs: 400_000,
  },
  {
    id: 'claim/source-of-a-clone-that-is-made',
    before: bound,
    async make(cluster) {
      cluster.setFaults((rpc) => (rpc === 'CreateVolume' ? { kind: 'silent' } : undefined))
      await addClaim('copy', fromClaim('data'))(cluster)
      await cluster.clock.advance(1_000)
      await cluster.client.remove('PersistentVolumeClaim', inDefault('data'))
    },
    ask: 'pvc/data',
    cause: 'claimIsSource',
    mend: { outside: 'the driver answers again', act: ({ setFaults }) => setFaults(() => undefined) },
    mendsWithinMs: 400_000,
  },
]

const removed: readonly Case[] = [
  {
    id: 'pod/claim-being-deleted',
    before: steps(running, removeClaim(), pass(2_000)),
    make: addPod(podWith('late', [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }])),
    ask: 'pod/late',
    cause: 'claimDeleting',
    since: false, // since the claim's deletion, before the pod was made
    mend: {
      run: ['hawser delete pod web --yes --no-wait', 'hawser delete pod late --yes --no-wait'],
      unhinted: true,
    },
  },
  {
    id: 'volume/deleting-and-attached',
    before: steps(running),
    async make(cluster) {
      cluster.setFaults((rpc) =>
        rpc === 'ControllerUnpublishVolume' ? { kind: 'refused', status: 'INTERNAL' } : undefined,
      )
      await removePod()(cluster)
      await cluster.clock.advance(2_000)
      await removeClaim()(cluster)
    },
    ask: anyVolume,
    cause: 'stillAttached',
    mend: { outside: 'the driver answers again', act: ({ setFaults }) => setFaults(() => undefined) },
    mendsWithinMs: 400_000,
  },
]

export const claimCases: readonly Case[] = [...binding, ...sources, ...changes, ...ends, ...removed]
