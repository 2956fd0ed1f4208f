// Too little room: on the node that was chosen, and for a volume that is to grow.
import assert from 'node:assert/strict'
import type { WholeCluster } from '../../kit/whole-cluster.ts'
import { claimOf } from '../../kit/whole-cluster.ts'
import type { Case } from './case.ts'
import { runCommand } from './play.ts'
import { bound, grow, pass, running, steps } from './steps.ts'

const typed =
  (command: string) =>
  async (cluster: WholeCluster): Promise<void> => {
    const { text, exitCode } = await runCommand(cluster, command.split(' ').slice(1))
    assert.equal(exitCode, 0, `${command}: ${text}`)
  }
/** A node-local driver with room for one volume of 1Gi. */
const smallPool = { nodes: ['n1', 'n2'], model: { topologyKey: 'zone', capacityBytes: 1n << 30n } }
const createOn = (name: string, size: string) =>
  typed(`hawser volume create ${name} --size ${size} --class later --node n1 --no-wait`)

export const spaceCases: readonly Case[] = [
  {
    id: 'claim/node-full/too-large',
    cluster: smallPool,
    make: createOn('data', '2Gi'),
    ask: 'pvc/data',
    cause: 'nodeFull',
    says: /node n1 has no room for the volume of claim data: .*requested.*left/,
    saysNot: /first pod|may have had an effect/,
    mend: { run: ['hawser delete pvc data --yes --no-wait'] },
    mendsWithinMs: 400_000,
  },
  {
    id: 'claim/node-full/room-comes-back',
    cluster: smallPool,
    before: steps(createOn('old', '1Gi'), pass(3_000)),
    make: createOn('data', '1Gi'),
    ask: 'pvc/data',
    cause: 'nodeFull',
    mend: { run: ['hawser delete pvc old --yes --no-wait'], unhinted: true },
    mendsWithinMs: 400_000,
  },
  {
    id: 'claim/node-full/node-given-back',
    cluster: smallPool,
    make: ({ client }) => {
      const data = claimOf('data', { storageClassName: 'later', resources: { requests: { storage: '2Gi' } } })
      const selected = { 'volume.kubernetes.io/selected-node': 'n1' }
      return client.create('PersistentVolumeClaim', { ...data, metadata: { ...data.metadata, annotations: selected } })
    },
    ask: 'pvc/data',
    cause: 'outOfCapacity',
    says: /no capacity for the volume of claim data: .*requested.*left/,
    mend: { run: ['hawser delete pvc data --yes --no-wait'] },
    mendsWithinMs: 400_000,
  },
  {
    id: 'growth/no-room',
    cluster: { model: { capacityBytes: 3n << 30n } },
    before: bound,
    make: grow('4Gi'),
    ask: 'pvc/data',
    cause: 'outOfRange',
    says: /cannot provide the requested size 4Gi: 3Gi .*more requested, 2Gi .*left/,
    mend: { run: ['hawser volume resize data 2Gi --no-wait'] },
    // The driver has expanded it; the filesystem grows with the next pod.
    afterwards: 'nodeMustExpand',
    mendsWithinMs: 400_000,
  },
  {
    id: 'growth/no-room/of-a-driver-that-leaves-it-open',
    before: bound,
    async make(cluster) {
      cluster.setFaults((rpc) =>
        rpc === 'ControllerExpandVolume' ? { kind: 'refused', status: 'RESOURCE_EXHAUSTED' } : undefined,
      )
      await grow('4Gi')(cluster)
    },
    ask: 'pvc/data',
    cause: 'noRoomToGrow',
    says: /no room to expand the volume of claim data to 4Gi/,
    mend: { outside: 'space is freed', act: ({ setFaults }) => setFaults(() => undefined) },
    afterwards: 'nodeMustExpand',
    mendsWithinMs: 400_000,
  },
  {
    // As with a mounted ext4 where the kernel gives nobody CAP_SYS_RESOURCE.
    id: 'growth/not-while-mounted',
    before: running,
    async make(cluster) {
      cluster.setFaults((rpc) =>
        rpc === 'NodeExpandVolume' ? { kind: 'refused', status: 'FAILED_PRECONDITION' } : undefined,
      )
      await grow('2Gi')(cluster)
    },
    ask: 'pvc/data',
    cause: 'growsAtNextMount',
    says: /node n1 cannot expand the filesystem of claim data while pod web uses it: .*injected/,
    saysNot: /hawser run --claim|tried again/,
    mend: { run: ['hawser delete pod web --yes --no-wait'] },
    // Once it is unmounted, the next pod grows it.
    afterwards: 'nodeMustExpand',
    mendsWithinMs: 400_000,
  },
]
