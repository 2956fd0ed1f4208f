// Breakages that need more than one hand: storage that is ill, limits, static volumes, machines that hang, two steps at once.
import type { PersistentVolume } from '../../../src/api/generated/types.ts'
import type { WholeCluster } from '../../kit/whole-cluster.ts'
import { driver, modelPool, nodeRoot, podOfClaim, podWith } from '../../kit/whole-cluster.ts'
import type { Case } from './case.ts'
import { addClaim, addPod, bound, inDefault, pass, running, steps } from './steps.ts'

const { signal } = new AbortController()
const fullFile = `${modelPool}/full`

const driverWell = {
  outside: 'the driver answers again',
  act: ({ setFaults }: WholeCluster) => setFaults(() => undefined),
}
const hostWorks = { outside: 'the machine is repaired', act: (cluster: WholeCluster) => cluster.host().faults.clear() }
const deleteWeb = { run: ['hawser delete pod web --yes --no-wait'], unhinted: true } as const

/** A volume made by hand and a claim that names it, bound. */
const staticPair = (spec: Partial<PersistentVolume['spec']>) =>
  steps(
    ({ client }) =>
      client.create('PersistentVolume', {
        metadata: { name: 'v' },
        spec: {
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          persistentVolumeReclaimPolicy: 'Retain',
          storageClassName: '',
          ...spec,
        },
      }),
    addClaim('data', { storageClassName: '', volumeName: 'v' }),
    pass(3_000),
  )
const onNode = (name: string) => ({
  required: {
    nodeSelectorTerms: [
      { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In' as const, values: [name] }] },
    ],
  },
})
const hostFault = (code: string, cause: Case['cause']): Case => ({
  id: `node/mount/${code}`,
  async make(cluster) {
    cluster.host().faults.plant({ call: '*', below: `${nodeRoot}/pods`, kind: 'fails', code })
    await cluster.client.create('Pod', podWith('web', [{ name: 'v', emptyDir: {} }]))
  },
  ask: 'pod/web',
  cause,
  mend: hostWorks,
  mendsWithinMs: 400_000,
})

/** Two machines, and the driver on one of them only. */
const oneOfTwo = { nodes: ['n1', 'worker'], driverOn: ['n1'], model: { topologyKey: 'zone' } }
const lackingDriver = /didn't have the CSI driver of the volume/
const onWorker = [
  { id: 'selector', spec: { nodeSelector: { zone: 'worker' } } },
  { id: 'node-name', spec: { nodeName: 'worker' } },
]
const nodesWithoutDriver: readonly Case[] = [
  ...onWorker.flatMap(({ id, spec }) =>
    ['pod/web', 'pvc/data'].map((ask): Case => ({
      id: `machines/driver-only-on-the-other/${id}/${ask}`,
      cluster: oneOfTwo,
      before: addClaim('data', { storageClassName: 'later' }),
      make: addPod(podOfClaim('web', 'data', spec)),
      ask,
      cause: 'noNodeFits',
      says: lackingDriver,
      saysNot: /first pod/,
      mend: deleteWeb,
      ...(ask === 'pvc/data' ? { afterwards: 'firstConsumer' as const } : {}),
    })),
  ),
  {
    id: 'machines/driver-only-on-the-other/bound-claim',
    cluster: oneOfTwo,
    before: bound,
    make: addPod(podOfClaim('web', 'data', { nodeName: 'worker' })),
    ask: 'pod/web',
    cause: 'nodeUnknownToDriver',
    says: /has no node id for node worker: it is not registered there/,
    mend: deleteWeb,
  },
]

export const moreCases: readonly Case[] = [
  {
    id: 'driver/hung/CreateVolume/asked-of-the-pod',
    async make(cluster) {
      cluster.setFaults((rpc) => (rpc === 'CreateVolume' ? { kind: 'silent' } : undefined))
      await addClaim('data', { storageClassName: 'later' })(cluster)
      await addPod(podOfClaim('web', 'data'))(cluster)
    },
    ask: 'pod/web',
    cause: 'driverTimeout',
    says: /CreateVolume/,
    saysNot: /not fit/,
    mend: driverWell,
    mendsWithinMs: 400_000,
  },
  {
    id: 'driver/dead/CreateVolume/asked-of-the-pod',
    async make(cluster) {
      cluster.driverDown()
      await addClaim('data', { storageClassName: 'later' })(cluster)
      await addPod(podOfClaim('web', 'data'))(cluster)
    },
    ask: 'pod/web',
    cause: 'driverUnavailable',
    mend: { outside: 'the driver is started again', act: ({ driverUp }) => driverUp() },
    mendsWithinMs: 10_000,
  },
  {
    id: 'driver/hung/NodeStageVolume/seen-from-the-node',
    before: bound,
    async make(cluster) {
      cluster.setFaults((rpc) => (rpc === 'NodeStageVolume' ? { kind: 'silent' } : undefined))
      await addPod(podOfClaim('web', 'data'))(cluster)
    },
    ask: 'node/n1',
    cause: 'callHangs',
    says: /NodeStageVolume/,
    mend: driverWell,
    mendsWithinMs: 400_000,
  },
  {
    id: 'driver/attach-limit',
    before: bound,
    async make(cluster) {
      cluster.setFaults((rpc) =>
        rpc === 'ControllerPublishVolume' ? { kind: 'refused', status: 'RESOURCE_EXHAUSTED' } : undefined,
      )
      await addPod(podOfClaim('web', 'data'))(cluster)
    },
    ask: 'pod/web',
    cause: 'attachLimit',
    mend: driverWell,
    mendsWithinMs: 400_000,
  },
  {
    id: 'driver/volume-ill',
    cluster: { model: { tellsConditions: true } },
    before: running,
    make: async ({ storage }) => {
      for (const id of storage.records.volumeMap.keys()) storage.ill.set(id, 'strange noises')
    },
    afterMs: 330_000,
    since: false, // since the next look at the volume's health
    ask: 'pvc/data',
    cause: 'volumeIll',
    says: /strange noises/,
    mend: { outside: 'the storage is repaired', act: ({ storage }) => storage.ill.clear() },
    mendsWithinMs: 400_000,
  },
  {
    id: 'claim/pod-fits-nowhere',
    before: addClaim('data', { storageClassName: 'later' }),
    make: addPod(podOfClaim('web', 'data', { nodeSelector: { disk: 'fast' } })),
    ask: 'pvc/data',
    cause: 'noNodeFits',
    mend: {
      outside: 'the node is labelled',
      act: ({ client }) =>
        client.patch('Node', { name: 'n1' }, { type: 'merge', body: { metadata: { labels: { disk: 'fast' } } } }),
    },
  },
  ...nodesWithoutDriver,
  {
    id: 'pod/volume-of-another-node',
    cluster: { nodes: ['n1', 'n2'] },
    before: staticPair({ local: { path: '/srv' }, nodeAffinity: onNode('n2') }),
    make: addPod(podOfClaim('web', 'data', { nodeName: 'n1' })),
    ask: 'pod/web',
    cause: 'nodeAffinityConflict',
    mend: deleteWeb,
  },
  {
    id: 'pod/mount-options-of-a-host-path',
    before: staticPair({ hostPath: { path: '/srv' }, mountOptions: ['noatime'] }),
    make: addPod(podOfClaim('web', 'data')),
    ask: 'pod/web',
    cause: 'mountOptionsRefused',
    mend: deleteWeb,
  },
  {
    id: 'pod/huge-pages-not-requested',
    make: addPod(podWith('web', [{ name: 'v', emptyDir: { medium: 'HugePages' } }])),
    ask: 'pod/web',
    cause: 'volumeSpecInvalid',
    mend: { run: ['hawser delete pod web --yes --no-wait'] },
  },
  {
    id: 'pod/attacher-of-nobody',
    before: staticPair({ csi: { driver: 'other.example.com', volumeHandle: 'h' } }),
    make: ({ client }) =>
      client.create('VolumeAttachment', {
        metadata: { name: 'va' },
        spec: { attacher: 'other.example.com', nodeName: 'n1', source: { persistentVolumeName: 'v' } },
      }),
    ask: 'va/va',
    cause: 'attacherSilent',
    mend: { run: ['hawser delete volumeattachment va --yes --no-wait'], unhinted: true },
  },
  {
    id: 'node/agent-just-stopped',
    async make(cluster) {
      cluster.killNode('n1')
      await cluster.client.create('Pod', podWith('web', [{ name: 'v', emptyDir: {} }], { nodeName: 'n1' }))
    },
    ask: 'pod/web',
    cause: 'nodeSilent',
    mend: { outside: 'the agent is started again', act: ({ startNode }) => startNode('n1') },
  },
  {
    id: 'node/disk-low',
    async make(cluster) {
      const { files, mounts } = cluster.host()
      await files.mkdirAll(modelPool, 0o755, signal)
      await mounts.mount({ source: 'tmpfs', target: modelPool, type: 'tmpfs', options: ['size=1m'] }, signal)
      await files.writeFile(fullFile, new Uint8Array(900 << 10), { mode: 0o600 }, signal)
    },
    afterMs: 25_000,
    since: false, // a disk tells nobody when it became low; the node looks every ten seconds
    ask: 'node/n1',
    cause: 'diskPressure',
    says: /the disk of \/var\/pool has 0 MiB of 1 MiB left/,
    mend: { outside: 'a file is removed', act: (cluster) => cluster.host().files.removeTree(fullFile, signal) },
  },
  {
    id: 'node/mount/hangs',
    async make(cluster) {
      cluster.host().faults.plant({ call: 'mounts.mount', below: nodeRoot, kind: 'hangs' })
      const v = { name: 'v', emptyDir: { medium: 'Memory' as const } }
      await cluster.client.create('Pod', podWith('web', [v]))
    },
    ask: 'pod/web',
    cause: 'workHangs',
    saysNot: /right now/,
    mend: 'nothing',
  },
  hostFault('ESTALE', 'mountIsStale'),
  hostFault('EBUSY', 'deviceBusy'),
  {
    id: 'pod/claim-of-a-driver-that-is-not-here',
    before: staticPair({ csi: { driver: 'other.example.com', volumeHandle: 'h' } }),
    make: steps(
      ({ client }) =>
        client.create('CSIDriver', { metadata: { name: 'other.example.com' }, spec: { attachRequired: false } }),
      addPod(podOfClaim('web', 'data')),
    ),
    ask: 'pod/web',
    cause: 'driverNotOnNode',
    says: /other\.example\.com is not registered on node n1/,
    saysNot: new RegExp(driver),
    mend: deleteWeb,
  },
  {
    id: 'pod/two-things-wrong',
    before: bound,
    async make(cluster) {
      cluster.driverDown()
      const volumes = [
        { name: 'v', persistentVolumeClaim: { claimName: 'data' } },
        { name: 'w', configMap: { name: 'settings' } },
      ]
      await cluster.client.create('Pod', podWith('web', volumes))
    },
    ask: 'pod/web',
    cause: 'driverUnavailable',
    says: /Also waiting:\n  pod web needs an object that does not exist: ConfigMap settings/,
    mend: {
      outside: 'the driver is started again, and the ConfigMap is made',
      async act({ driverUp, client }) {
        driverUp()
        await client.create('ConfigMap', { metadata: inDefault('settings') })
      },
    },
    mendsWithinMs: 400_000,
  },
]
