// A driver that is dead, hangs, is slow or answers with the wrong status, at each of its calls.
import type { StatusName } from '../../../src/csi/codes.ts'
import type { Cause } from '../../../src/why/causes.ts'
import { claimOf, podOfClaim, socket } from '../../kit/whole-cluster.ts'
import type { WholeCluster, WholeClusterOptions } from '../../kit/whole-cluster.ts'
import type { Case } from './case.ts'
import {
  addClaim,
  addPod,
  anyAttachment,
  anyVolume,
  attributesClass,
  bound,
  grow,
  pass,
  patchClaim,
  removeClaim,
  removePod,
  removeSnapshot,
  running,
  snapshotClass,
  steps,
  takeSnapshot,
} from './steps.ts'

interface Scene {
  readonly cluster?: WholeClusterOptions
  readonly before?: Case['before']
  readonly act: Case['make']
  readonly ask: Case['ask']
  /** While the call is young. */
  readonly usual: Cause
  readonly afterwards?: Cause
  /** 13 seconds later: the call still runs, or its deadline has passed. */
  readonly hung: 'callHangs' | 'driverTimeout'
}

const snapshotTaken = steps(bound, snapshotClass, takeSnapshot(), pass(6_000))
const addWeb = addPod(podOfClaim('web', 'data'))
const modifies = { model: { modifies: ['iops'] } }

/** What makes the call happen, by its name. */
const scenes: Readonly<Record<string, Scene>> = {
  CreateVolume: { act: addClaim(), ask: 'pvc/data', usual: 'provisioning', hung: 'driverTimeout' },
  DeleteVolume: { before: bound, act: removeClaim(), ask: anyVolume, usual: 'reclaiming', hung: 'driverTimeout' },
  ControllerPublishVolume: { before: bound, act: addWeb, ask: 'pod/web', usual: 'attachRunning', hung: 'callHangs' },
  ControllerUnpublishVolume: {
    before: running,
    act: removePod(),
    ask: anyAttachment,
    usual: 'detaching',
    hung: 'callHangs',
  },
  NodeStageVolume: { before: bound, act: addWeb, ask: 'pod/web', usual: 'mountRunning', hung: 'callHangs' },
  NodePublishVolume: { before: bound, act: addWeb, ask: 'pod/web', usual: 'mountRunning', hung: 'callHangs' },
  NodeUnpublishVolume: { before: running, act: removePod(), ask: 'pod/web', usual: 'unmounting', hung: 'callHangs' },
  ControllerExpandVolume: {
    before: bound,
    act: grow(),
    ask: 'pvc/data',
    usual: 'askedResizer',
    afterwards: 'nodeMustExpand',
    hung: 'driverTimeout',
  },
  CreateSnapshot: {
    before: steps(bound, snapshotClass),
    act: takeSnapshot(),
    ask: 'vs/snap',
    usual: 'snapshotRunning',
    hung: 'callHangs',
  },
  ControllerModifyVolume: {
    cluster: modifies,
    before: steps(attributesClass, bound),
    act: patchClaim({ volumeAttributesClassName: 'gold' }),
    ask: 'pvc/data',
    usual: 'modifying',
    hung: 'driverTimeout',
  },
}

/** Calls whose young work nobody asks about; only what goes wrong is told. */
const quietScenes: Readonly<Record<string, Omit<Scene, 'usual'>>> = {
  NodeUnstageVolume: { before: running, act: removePod(), ask: 'node/n1', hung: 'callHangs' },
  DeleteSnapshot: { before: snapshotTaken, act: removeSnapshot, ask: 'vs/snap', hung: 'callHangs' },
}

const all = { ...scenes, ...quietScenes }
const common = ({ cluster, before, ask, afterwards }: Omit<Scene, 'usual'>) => ({
  ...(afterwards ? { afterwards } : {}),
  ...(cluster ? { cluster } : {}),
  ...(before ? { before } : {}),
  ask,
})
const wellAgain = {
  outside: 'the driver answers again',
  act: ({ setFaults }: WholeCluster) => setFaults(() => undefined),
}

const startedAgain = {
  outside: 'the driver is started again',
  act: ({ driverUp }: WholeCluster) => driverUp(),
}

const dead = Object.entries(all).flatMap(([rpc, scene]) =>
  // After six minutes every back-off has grown to more than a minute.
  [45_000, 400_000].map((afterMs): Case => ({
    id: `driver/dead/${rpc}/${afterMs / 1_000}-s`,
    ...common(scene),
    async make(cluster) {
      cluster.driverDown()
      await scene.act(cluster)
    },
    afterMs,
    cause: 'driverUnavailable',
    says: new RegExp(`does not answer at ${socket}`),
    saysNot: /had no effect|right now/,
    mend: startedAgain,
    // What ends well is written up to two seconds later; a node has nothing else that shows it (test/csi/outage.test.ts).
    mendsWithinMs: rpc === 'NodeUnstageVolume' ? 3_000 : 1_000,
  })),
)

/** The driver dies between attaching and the call, so that the node's own back-off is what grows. */
const deadOnNode = ['NodeStageVolume', 'NodePublishVolume'].map((rpc): Case => ({
  id: `driver/dead-once-attached/${rpc}`,
  before: bound,
  async make(cluster) {
    cluster.setFaults((name) => {
      if (name !== rpc) return undefined
      cluster.driverDown()
      return { kind: 'refused', status: 'UNAVAILABLE' }
    })
    await addWeb(cluster)
  },
  afterMs: 400_000,
  ask: 'pod/web',
  cause: 'driverUnavailable',
  mend: {
    ...startedAgain,
    act(cluster) {
      cluster.setFaults(() => undefined)
      cluster.driverUp()
    },
  },
  mendsWithinMs: 1_000,
}))

const hung = Object.entries(all).map(([rpc, scene]): Case => ({
  id: `driver/hung/${rpc}`,
  ...common(scene),
  async make(cluster) {
    cluster.setFaults((name) => (name === rpc ? { kind: 'silent' } : undefined))
    await scene.act(cluster)
  },
  cause: scene.hung,
  says: new RegExp(rpc),
  saysNot: /right now|had no effect/,
  mend: wellAgain,
  mendsWithinMs: 400_000,
}))

const slow = Object.entries(scenes).map(([rpc, scene]): Case => ({
  id: `driver/slow/${rpc}`,
  ...common(scene),
  async make(cluster) {
    cluster.setFaults((name) => (name === rpc ? { kind: 'late', ms: 8_000 } : undefined))
    await scene.act(cluster)
  },
  afterMs: 5_000,
  cause: scene.usual,
  verdict: 'working',
  mend: { outside: 'nothing: it ends by itself', act: () => {} },
}))

const internal = Object.entries(all).map(([rpc, scene]): Case => ({
  id: `driver/INTERNAL/${rpc}`,
  ...common(scene),
  async make(cluster) {
    cluster.setFaults((name) => (name === rpc ? { kind: 'refused', status: 'INTERNAL' } : undefined))
    await scene.act(cluster)
  },
  cause: 'driverError',
  says: /injected: the call was refused.*INTERNAL; it may have had an effect/s,
  mend: wellAgain,
  mendsWithinMs: 400_000,
}))

const codes: Readonly<Partial<Record<StatusName, Cause>>> = {
  UNAVAILABLE: 'driverSaysUnavailable',
  DEADLINE_EXCEEDED: 'driverTimeout',
  ABORTED: 'driverBusy',
  RESOURCE_EXHAUSTED: 'outOfCapacity',
  INVALID_ARGUMENT: 'badParameters',
  OUT_OF_RANGE: 'outOfRange',
  ALREADY_EXISTS: 'alreadyExists',
  PERMISSION_DENIED: 'driverForbids',
  UNAUTHENTICATED: 'driverForbids',
  FAILED_PRECONDITION: 'preconditionFailed',
  UNIMPLEMENTED: 'notSupported',
  UNKNOWN: 'driverError',
  DATA_LOSS: 'driverError',
  NOT_FOUND: 'storageGone',
}

const answers = ['CreateVolume', 'NodeStageVolume'].flatMap((rpc) =>
  (Object.entries(codes) as [StatusName, Cause][]).map(([status, cause]): Case => ({
    id: `driver/${status}/${rpc}`,
    ...common(all[rpc]!),
    async make(cluster) {
      cluster.setFaults((name) => (name === rpc ? { kind: 'refused', status } : undefined))
      await all[rpc]!.act(cluster)
    },
    cause,
    says: new RegExp(status),
    mend: wellAgain,
    mendsWithinMs: 400_000,
  })),
)

/** OK without effect: noticed where an answer, the mount table or the size of the filesystem shows it. */
const ignored: Readonly<Record<string, Cause>> = {
  CreateVolume: 'answerInvalid',
  ControllerPublishVolume: 'preconditionFailed', // the node's own call finds nothing attached
  NodeStageVolume: 'preconditionFailed', // so does this driver at NodePublishVolume
  NodePublishVolume: 'callWithoutEffect',
  NodeUnpublishVolume: 'callWithoutEffect',
  NodeUnstageVolume: 'callWithoutEffect',
  CreateSnapshot: 'answerInvalid',
}

const withoutEffect = Object.entries(ignored).map(([rpc, cause]): Case => ({
  id: `driver/OK-without-effect/${rpc}`,
  ...common(all[rpc]!),
  async make(cluster) {
    cluster.setFaults((name) => (name === rpc ? { kind: 'ignored' } : undefined))
    await all[rpc]!.act(cluster)
  },
  cause,
  ...(cause === 'callWithoutEffect'
    ? { says: new RegExp(`answered OK to ${rpc}`), saysNot: /✓[^\n]* is mounted/ }
    : {}),
  mend: wellAgain,
  mendsWithinMs: 400_000,
}))

const strange: readonly Case[] = [
  {
    id: 'driver/missing-id/CreateVolume',
    cluster: {
      change: (handlers) => ({
        ...handlers,
        controller: {
          ...handlers.controller,
          createVolume: async () => ({ volume: { volumeId: '', capacityBytes: 1n << 30n } }) as never,
        },
      }),
    },
    make: addClaim(),
    ask: 'pvc/data',
    cause: 'answerInvalid',
    says: /no volume id/,
    saysNot: /internal error/,
    mend: 'nothing',
  },
  {
    id: 'driver/too-small/CreateVolume',
    cluster: {
      change: (handlers) => ({
        ...handlers,
        controller: {
          ...handlers.controller,
          createVolume: async (request, signal) => {
            const answer = await handlers.controller!.createVolume!(request, signal)
            return { ...answer, volume: { ...answer.volume, capacityBytes: 1n } } as never
          },
        },
      }),
    },
    make: addClaim('data', { resources: { requests: { storage: '2Gi' } } }),
    ask: 'pvc/data',
    cause: 'answerRefused',
    mend: 'nothing',
  },
  {
    id: 'driver/dead/pod-with-two-claims',
    before: steps(bound, addClaim('more'), pass(3_000)),
    async make(cluster) {
      cluster.driverDown()
      await cluster.client.create(
        'Pod',
        podOfClaim('web', 'data', {
          volumes: ['data', 'more'].map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
          containers: [{ name: 'c', image: 'i', command: ['run'] }],
        }),
      )
    },
    ask: 'pod/web',
    cause: 'driverUnavailable',
    mend: { outside: 'the driver is started again', act: ({ driverUp }) => driverUp() },
    mendsWithinMs: 10_000,
  },
  {
    id: 'driver/dead/seen-from-the-node',
    make: async ({ driverDown }) => driverDown(),
    ask: 'node/n1',
    cause: 'driverUnavailable',
    says: new RegExp(socket),
    mend: { outside: 'the driver is started again', act: ({ driverUp }) => driverUp() },
    mendsWithinMs: 5_000,
  },
  {
    id: 'driver/probe-hangs',
    async make(cluster) {
      cluster.driverDown()
      cluster.setFaults((name) => (name === 'Probe' ? { kind: 'silent' } : undefined))
      cluster.driverUp()
      await cluster.client.create('PersistentVolumeClaim', claimOf('data'))
    },
    afterMs: 14_000,
    ask: 'pvc/data',
    since: false, // the probe's silence is known after its deadline
    cause: 'driverSilent',
    says: /does not answer Probe/,
    saysNot: /not ready/,
    mend: wellAgain,
    mendsWithinMs: 30_000,
  },
  {
    id: 'driver/not-ready',
    cluster: { change: (handlers) => ({ ...handlers, identity: { ...handlers.identity, probe: notReadyYet() } }) },
    make: addClaim(),
    ask: 'pvc/data',
    since: false, // it was never ready
    cause: 'driverUnready',
    afterMs: 5_000,
    mend: { outside: 'nothing: it becomes ready', act: () => {} },
  },
]

/** Ready after so many questions. */
function notReadyYet() {
  let left = 20
  return async () => ({ ready: left-- <= 0 })
}

export const driverCases: readonly Case[] = [
  ...dead,
  ...deadOnNode,
  ...hung,
  ...slow,
  ...internal,
  ...answers,
  ...withoutEffect,
  ...strange,
]
