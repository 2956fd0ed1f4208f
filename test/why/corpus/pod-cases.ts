// Pods and nodes that wait: placement, mounts, containers, machines that fail.
import type { Pod } from '../../../src/api/generated/types.ts'
import type { Cause } from '../../../src/why/causes.ts'
import type { WholeCluster } from '../../kit/whole-cluster.ts'
import { claimOf, driver, nodeRoot, podOfClaim, podWith } from '../../kit/whole-cluster.ts'
import type { Case } from './case.ts'
import { addClaim, addPod, anyAttachment, bound, inDefault, pass, removePod, running, steps } from './steps.ts'

const file = (object: object) => ({ run: ['hawser apply -f new.yaml'], files: { 'new.yaml': object } })
const core = (kind: string, object: object) => ({ apiVersion: 'v1', kind, ...object })
const twoNodes = { nodes: ['n1', 'n2'] }
const deleteWeb = { run: ['hawser delete pod web --yes --no-wait'] }
const plain = (more: Partial<NonNullable<Pod['spec']>> = {}) => podWith('web', [], more)
const scratch = [{ name: 'v', emptyDir: {} }]
const setNode =
  (name: string, body: object) =>
  ({ client }: WholeCluster) =>
    client.patch('Node', { name }, { type: 'merge', body })

const placement: readonly Case[] = [
  {
    id: 'pod/no-nodes',
    cluster: { nodes: [] },
    make: addPod(plain()),
    ask: 'pod/web',
    cause: 'noNodes',
    mend: 'nothing',
  },
  {
    id: 'pod/selector-fits-no-node',
    make: addPod(plain({ nodeSelector: { disk: 'fast' } })),
    ask: 'pod/web',
    cause: 'noNodeFits',
    mend: { outside: 'the node is labelled', act: setNode('n1', { metadata: { labels: { disk: 'fast' } } }) },
  },
  {
    id: 'pod/node-tainted',
    before: setNode('n1', { spec: { taints: [{ key: 'mine', effect: 'NoSchedule' }] } }),
    make: addPod(plain()),
    ask: 'pod/web',
    cause: 'noNodeFits',
    says: /taint/,
    mend: { outside: 'the taint is removed', act: setNode('n1', { spec: { taints: [] } }) },
  },
  {
    id: 'pod/too-much-memory',
    make: addPod(
      plain({ containers: [{ name: 'c', image: 'i', command: ['run'], resources: { requests: { memory: '8Gi' } } }] }),
    ),
    ask: 'pod/web',
    cause: 'noNodeFits',
    says: /memory/,
    mend: { ...deleteWeb, unhinted: true },
  },
  {
    id: 'pod/other-scheduler',
    make: addPod(plain({ schedulerName: 'other' })),
    ask: 'pod/web',
    cause: 'noScheduler',
    mend: 'nothing',
  },
  {
    id: 'pod/gated',
    make: addPod(plain({ schedulingGates: [{ name: 'example.com/wait' }] })),
    ask: 'pod/web',
    cause: 'schedulingGated',
    says: /example\.com\/wait/,
    mend: {
      outside: 'whoever set the gate removes it',
      act: ({ client }) =>
        client.patch('Pod', inDefault('web'), { type: 'merge', body: { spec: { schedulingGates: [] } } }),
    },
  },
  {
    id: 'pod/claim-missing',
    make: addPod(podOfClaim('web', 'data')),
    ask: 'pod/web',
    cause: 'claimMissing',
    mend: { ...file(core('PersistentVolumeClaim', claimOf('data'))), unhinted: true },
  },
  {
    id: 'pod/claim-of-missing-class',
    before: addClaim('data', { storageClassName: 'nowhere' }),
    make: addPod(podOfClaim('web', 'data')),
    ask: 'pod/web',
    cause: 'classMissing',
    mend: 'nothing',
  },
  {
    id: 'pod/read-write-once-pod-in-use',
    before: steps(
      addClaim('data', { accessModes: ['ReadWriteOncePod'] }),
      pass(3_000),
      addPod(podOfClaim('first', 'data')),
      pass(4_000),
    ),
    make: addPod(podOfClaim('web', 'data')),
    ask: 'pod/web',
    cause: 'singlePodWriter',
    says: /ReadWriteOncePod, and another pod uses it: first/,
    mend: { run: ['hawser delete pod first --yes --no-wait'] },
  },
  {
    id: 'pod/ephemeral-claim-of-somebody-else',
    before: addClaim('web-v'),
    make: addPod(podWith('web', [{ name: 'v', ephemeral: { volumeClaimTemplate: { spec: claimOf('x').spec } } }])),
    ask: 'pod/web',
    cause: 'foreignClaim',
    mend: { run: ['hawser delete pvc web-v --yes --no-wait'], unhinted: true },
  },
  {
    id: 'pod/made-anew-under-the-same-name',
    cluster: twoNodes,
    before: steps(
      addPod(plain({ nodeSelector: { 'kubernetes.io/hostname': 'n1' } })),
      pass(4_000),
      ({ client }) => client.remove('Pod', inDefault('web'), { gracePeriodSeconds: 0 }),
      pass(4_000),
    ),
    make: addPod(plain({ nodeSelector: { disk: 'fast' } })),
    ask: 'pod/web',
    cause: 'noNodeFits',
    saysNot: /on n1/,
    mend: { ...deleteWeb, unhinted: true },
  },
]

const configMap = { name: 'v', configMap: { name: 'settings' } }
const secretKey: Partial<NonNullable<Pod['spec']>> = {
  containers: [
    {
      name: 'c',
      image: 'i',
      command: ['run'],
      env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'keys', key: 'missing' } } }],
    },
  ],
}
const addSecret = ({ client }: WholeCluster) =>
  client.create('Secret', { metadata: inDefault('keys'), stringData: { there: 'x' } })
const secretFile = core('Secret', { metadata: inDefault('keys'), stringData: { missing: 'x' } })

/** A call of the node's host that fails with a code. */
const hostFails =
  (code: string, volumes = scratch) =>
  async (cluster: WholeCluster) => {
    cluster.host().faults.plant({ call: '*', below: `${nodeRoot}/pods`, kind: 'fails', code })
    await cluster.client.create('Pod', podWith('web', volumes))
  }
const hostWorks = { outside: 'the machine is repaired', act: (cluster: WholeCluster) => cluster.host().faults.clear() }
const hostCase = (code: string, cause: Cause): Case => ({
  id: `node/${code}`,
  make: hostFails(code),
  ask: 'pod/web',
  cause,
  says: new RegExp(code),
  mend: hostWorks,
  mendsWithinMs: 400_000,
})

const mounting: readonly Case[] = [
  {
    id: 'pod/config-map-missing',
    make: addPod(podWith('web', [configMap])),
    ask: 'pod/web',
    cause: 'configMissing',
    says: /ConfigMap settings/,
    mend: { ...file(core('ConfigMap', { metadata: inDefault('settings'), data: { a: 'b' } })), unhinted: true },
    mendsWithinMs: 200_000,
  },
  {
    id: 'pod/config-map-key-missing',
    before: ({ client }) => client.create('ConfigMap', { metadata: inDefault('settings'), data: { a: 'b' } }),
    make: addPod(podWith('web', [{ name: 'v', configMap: { name: 'settings', items: [{ key: 'z', path: 'z' }] } }])),
    ask: 'pod/web',
    cause: 'keyMissing',
    mend: { ...file(core('ConfigMap', { metadata: inDefault('settings'), data: { a: 'b', z: 'y' } })), unhinted: true },
    mendsWithinMs: 200_000,
  },
  {
    id: 'pod/secret-key-missing-in-the-environment',
    before: addSecret,
    make: addPod(plain(secretKey)),
    ask: 'pod/web',
    cause: 'containerNotStarted',
    says: /missing/,
    mend: { ...file(secretFile), unhinted: true },
    mendsWithinMs: 400_000,
  },
  {
    id: 'node/pod-with-secret-key-missing',
    before: addSecret,
    make: addPod(plain(secretKey)),
    ask: 'node/n1',
    cause: 'containerNotStarted',
    says: /container c of pod web starts/,
    saysNot: /unmount|volume \?/,
    mend: { ...file(secretFile), unhinted: true },
    mendsWithinMs: 400_000,
  },
  {
    id: 'pod/sub-path-leads-out',
    before: steps(bound, async (cluster) => {
      const [id] = cluster.storage.records.volumeMap.keys()
      const { files } = cluster.host()
      const { signal } = new AbortController()
      await files.mkdirAll(`/var/lib/model-driver/${id}`, 0o755, signal)
      await files.mkdirAll('/etc', 0o755, signal)
      await files.symlink('/etc', `/var/lib/model-driver/${id}/out`, signal)
    }),
    make: addPod(
      podOfClaim('web', 'data', {
        containers: [
          {
            name: 'c',
            image: 'i',
            command: ['run'],
            volumeMounts: [{ name: 'v', mountPath: '/data', subPath: 'out' }],
          },
        ],
      }),
    ),
    ask: 'pod/web',
    cause: 'subPathLeaves',
    says: /container c of pod web asks for a subPath that leads out of its volume/,
    saysNot: /\/etc|\/var\/lib/,
    mend: { run: ['hawser delete pod web --yes --no-wait'] },
  },
  {
    id: 'pod/block-volume-as-filesystem',
    before: steps(addClaim('data', { volumeMode: 'Block' }), pass(3_000)),
    make: addPod(podOfClaim('web', 'data')),
    ask: 'pod/web',
    cause: 'modeMismatch',
    mend: { ...deleteWeb, unhinted: true },
  },
  {
    id: 'pod/driver-not-on-its-node',
    cluster: { ...twoNodes, driverOn: ['n1'] },
    before: bound,
    make: addPod(podOfClaim('web', 'data', { nodeName: 'n2' })),
    ask: 'pod/web',
    cause: 'nodeUnknownToDriver',
    says: /no node id for node n2: it is not registered there/,
    mend: 'nothing',
  },
  {
    id: 'pod/inline-driver-unknown',
    make: addPod(podWith('web', [{ name: 'v', csi: { driver: 'nobody.example.com' } }])),
    ask: 'pod/web',
    cause: 'driverNotOnNode',
    says: /nobody\.example\.com/,
    mend: 'nothing',
  },
  {
    id: 'pod/host-path-missing',
    make: addPod(podWith('web', [{ name: 'v', hostPath: { path: '/nowhere', type: 'Directory' } }])),
    ask: 'pod/web',
    cause: 'pathUnfit',
    mend: {
      outside: 'somebody makes the directory',
      act: (cluster) => cluster.host().quiet.files.mkdirAll('/nowhere', 0o755, new AbortController().signal),
    },
    mendsWithinMs: 200_000,
  },
  {
    id: 'pod/nfs-without-its-program',
    make: addPod(podWith('web', [{ name: 'v', nfs: { server: 's', path: '/e' } }])),
    ask: 'pod/web',
    cause: 'mountFailed',
    mend: 'nothing',
  },
  {
    id: 'pod/volume-of-no-plugin',
    make: addPod(podWith('web', [{ name: 'v', cephfs: { monitors: ['a'] } }])),
    ask: 'pod/web',
    cause: 'pluginMissing',
    mend: 'nothing',
  },
  hostCase('ENOSPC', 'noSpaceOnNode'),
  hostCase('EROFS', 'readOnlyStorage'),
  hostCase('EIO', 'ioError'),
  hostCase('EACCES', 'permissionDenied'),
  hostCase('EDQUOT', 'noSpaceOnNode'),
]

const gone = { outside: 'the machine is switched on again', act: ({ startNode }: WholeCluster) => startNode('n1') }
const exits = (exitCode: number) => ({ containers: () => ({ endsAfterMs: 2_000, exitCode }) })

const containers: readonly Case[] = [
  {
    id: 'pod/failed',
    cluster: exits(3),
    make: async (cluster) => {
      await cluster.client.create('Pod', plain({ restartPolicy: 'Never' }))
      return cluster.clock.now() + 2_000
    },
    afterMs: 60_000,
    ask: 'pod/web',
    cause: 'podFailed',
    says: /exited with code 3/,
    mend: deleteWeb,
  },
  {
    id: 'pod/crash-loop',
    cluster: exits(1),
    make: addPod(plain({ restartPolicy: 'Always' })),
    afterMs: 30_000,
    since: false, // since the first back-off, which is later than the first crash
    ask: 'pod/web',
    cause: 'crashLoop',
    mend: { ...deleteWeb, unhinted: true },
  },
  {
    id: 'pod/init-container-runs-long',
    make: addPod(plain({ initContainers: [{ name: 'first', image: 'i', command: ['run'] }] })),
    ask: 'pod/web',
    cause: 'initRunning',
    verdict: 'working',
    mend: 'nothing',
  },
  {
    id: 'pod/program-missing',
    cluster: { containers: () => ({ startError: 'exec: "nothing": no such file' }) },
    make: addPod(plain()),
    ask: 'pod/web',
    cause: 'containerNotStarted',
    says: /no such file/,
    mend: { outside: 'the program is installed', act: ({ setContainers }) => setContainers(() => ({})) },
    mendsWithinMs: 400_000,
  },
  {
    id: 'pod/never-ready',
    cluster: { containers: () => ({ exec: () => 1 }) },
    make: addPod(
      plain({
        containers: [
          { name: 'c', image: 'i', command: ['run'], readinessProbe: { exec: { command: ['ask'] }, periodSeconds: 1 } },
        ],
      }),
    ),
    afterMs: 20_000,
    ask: 'pod/web',
    cause: 'notReady',
    mend: { outside: 'the program answers', act: ({ setContainers }) => setContainers(() => ({})) },
  },
  {
    id: 'pod/no-command',
    cluster: { runtime: 'names' },
    make: addPod(plain({ containers: [{ name: 'c', image: 'nginx:1' }] })),
    ask: 'pod/web',
    cause: 'noCommand',
    says: /container c .*nginx:1.*--image-entrypoint nginx:1=PATH/s,
    mend: { run: ['hawser delete pod web --yes --no-wait'] },
  },
  {
    id: 'pod/init-container-without-command',
    cluster: { runtime: 'names' },
    make: addPod(plain({ initContainers: [{ name: 'first', image: 'nginx', args: ['--help'] }] })),
    ask: 'pod/web',
    cause: 'noCommand',
    says: /container first/,
    mend: { run: ['hawser delete pod web --yes --no-wait'] },
  },
  {
    id: 'pod/node-without-runtime',
    cluster: { runtime: 'none' },
    make: addPod(plain()),
    ask: 'pod/web',
    cause: 'noRuntime',
    verdict: 'working',
    since: false, // the node was started so
    mend: 'nothing',
  },
  {
    id: 'pod/stops-slowly',
    cluster: { containers: () => ({ stopsAfterMs: 25_000 }) },
    before: steps(addPod(plain({ terminationGracePeriodSeconds: 30 })), pass(4_000)),
    make: removePod(),
    ask: 'pod/web',
    cause: 'podStopping',
    verdict: 'working',
    since: false, // deletionTimestamp is the end of the grace period
    mend: { outside: 'nothing: it ends by itself', act: () => {} },
  },
  {
    id: 'pod/foreign-finalizer',
    before: steps(
      addPod({ ...plain(), metadata: { ...inDefault('web'), finalizers: ['example.com/hold'] } }),
      pass(4_000),
    ),
    make: removePod(),
    ask: 'pod/web',
    cause: 'finalizersHold',
    since: false, // deletionTimestamp is the end of the grace period
    mend: 'nothing',
  },
]

const machines: readonly Case[] = [
  {
    id: 'node/switched-off',
    before: steps(addPod(plain()), pass(3_000)),
    make: async ({ killNode }) => killNode('n1'),
    afterMs: 120_000,
    since: false, // since its last heartbeat, up to ten seconds before
    ask: 'pod/web',
    cause: 'nodeNotReady',
    says: /stopped reporting/,
    mend: gone,
  },
  {
    id: 'node/switched-off/asked-itself',
    make: async ({ killNode }) => killNode('n1'),
    afterMs: 120_000,
    since: false,
    ask: 'node/n1',
    cause: 'nodeNotReady',
    mend: gone,
  },
  {
    id: 'node/deleted',
    before: steps(addPod(plain()), pass(3_000)),
    async make(cluster) {
      cluster.killNode('n1')
      await cluster.client.remove('Node', { name: 'n1' })
    },
    since: false,
    ask: 'pod/web',
    cause: 'nodeGone',
    mend: { run: ['hawser delete pod web --yes --no-wait --force'] },
  },
  {
    id: 'node/off-while-a-pod-is-deleted',
    before: running,
    async make(cluster) {
      cluster.killNode('n1')
      await cluster.clock.advance(90_000)
      await removePod()(cluster)
    },
    since: false,
    ask: 'pod/web',
    cause: 'nodeNotReady',
    mend: { run: ['hawser delete pod web --yes --no-wait --force'] },
  },
  {
    id: 'volume/attached-to-another-node',
    cluster: twoNodes,
    before: steps(addClaim(), pass(3_000), addPod(podOfClaim('first', 'data', { nodeName: 'n1' })), pass(4_000)),
    make: addPod(podOfClaim('web', 'data', { nodeName: 'n2' })),
    ask: 'pod/web',
    cause: 'attachedElsewhere',
    says: /attached to node n1/,
    mend: { run: ['hawser delete pod first --yes --no-wait'], unhinted: true },
  },
  {
    id: 'volume/on-a-dead-node',
    cluster: twoNodes,
    before: steps(addClaim(), pass(3_000), addPod(podOfClaim('first', 'data', { nodeName: 'n1' })), pass(4_000)),
    async make(cluster) {
      cluster.killNode('n1')
      await cluster.clock.advance(60_000)
      await cluster.client.remove('Pod', inDefault('first'), { gracePeriodSeconds: 0 })
      return cluster.clock.now()
    },
    ask: anyAttachment,
    cause: 'inUseOnUnhealthyNode',
    since: false,
    mend: { outside: 'six minutes pass', act: ({ clock }) => clock.advance(400_000) },
  },
  {
    id: 'volume/on-a-dead-node-without-force',
    cluster: { ...twoNodes, attachment: { forceDetachOnTimeout: false } },
    before: steps(addClaim(), pass(3_000), addPod(podOfClaim('first', 'data', { nodeName: 'n1' })), pass(4_000)),
    async make(cluster) {
      cluster.killNode('n1')
      await cluster.clock.advance(60_000)
      await cluster.client.remove('Pod', inDefault('first'), { gracePeriodSeconds: 0 })
      return cluster.clock.now()
    },
    ask: anyAttachment,
    cause: 'forceDetachDisabled',
    since: false,
    mend: 'nothing',
  },
  {
    id: 'volume/attachment-of-nothing',
    make: ({ client }) =>
      client.create('VolumeAttachment', {
        metadata: { name: 'va' },
        spec: { attacher: driver, nodeName: 'n1', source: { persistentVolumeName: 'nobody' } },
      }),
    ask: 'va/va',
    cause: 'attachmentOrphaned',
    mend: { run: ['hawser delete volumeattachment va --yes --no-wait'], unhinted: true },
  },
  {
    id: 'controllers/none',
    cluster: { withoutControllers: true },
    make: addClaim(),
    ask: 'pvc/data',
    cause: 'askedProvisioner',
    mend: 'nothing',
  },
]

export const podCases: readonly Case[] = [...placement, ...mounting, ...containers, ...machines]
