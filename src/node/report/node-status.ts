// What does this node say of itself? Its Node object, a lease as heartbeat, and volumesInUse the moment it changes.
//
// 1. volumesInUse is not written before what was found on disk is understood (RCS-9, NSP-8).
// 2. A volume counts as reported only when the server's answer lists it (NSP-2); then it may be verified and mounted.
// 3. Writes follow one another; what changes during one goes with the next.
// 4. That the node is ready and what it uses are told in one write: a Node object that was made anew must not look ready and
//    idle while this machine still has volumes mounted, or they would be detached under it (found by simulation).
import type { NodeName, UniqueVolumeName } from '../../api/names.ts'
import { conditionIsTrue } from '../../api/meta.ts'
import { isAlreadyExists, isNotFound } from '../../api/status-error.ts'
import { annotations as wellKnown, labels as labelNames } from '../../api/annotations.ts'
import type { Node, NodeAddress, NodeCondition, NodeSystemInfo } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import type { Informer } from '../../client/informer.ts'
import type { Recorder } from '../../client/recorder.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Clock } from '../../clock/clock.ts'
import type { KeyLoop, Looked } from '../../loop/key-loop.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ActualWorld } from '../volumes/actual.ts'
import type { DesiredWorld } from '../volumes/desired.ts'
import type { DiskPressure } from './disk-pressure.ts'
import type { NodeLease } from './node-lease.ts'
import { createNodeLease } from './node-lease.ts'
import type { VolumeManager } from '../volumes/manager.ts'

/** What the operating system tells about the machine; gathered by whoever starts the agent. */
export interface NodeDescription {
  readonly labels: Readonly<Record<string, string>>
  readonly addresses: readonly NodeAddress[]
  readonly capacity: Readonly<Record<string, string>>
  readonly allocatable: Readonly<Record<string, string>>
  readonly info: Omit<NodeSystemInfo, 'containerRuntimeVersion'>
}

/** Where the node's own server listens, and by which certificate it is known. */
export interface NodeServerAddress {
  readonly host: string
  readonly port: number
  /** SHA-256 of the certificate, as `AB:CD:…`. */
  readonly fingerprint: string
  /** The server is to make the controller calls of the drivers here. */
  readonly takesDriverCalls?: boolean
}

export interface NodeStatusDeps {
  readonly client: Client
  readonly clock: Clock
  readonly log: Log
  readonly node: NodeName
  readonly description: NodeDescription
  readonly nodeServer?: NodeServerAddress | undefined
  /** Where this agent runs; on its lease it tells others of the same name that the node is taken. */
  readonly place?: string | undefined
  readonly runtimeVersion: string
  readonly ownNode: Informer<Node>
  readonly manager: VolumeManager
  readonly desired: DesiredWorld
  readonly actual: ActualWorld
  readonly recorder: Recorder
  readonly diskPressure: DiskPressure
  /** True once nothing found on disk waits to be understood. */
  synced(): boolean
}

export interface NodeStatusReporter extends AsyncDisposable {
  /** Makes or mends the Node object; must have succeeded once before pods are taken. */
  register(signal: AbortSignal): Promise<void>
  /** Tells the actual world what node.status says of volumes found on disk (RCS-7). */
  readAttached(signal: AbortSignal): Promise<void>
  /** Begins to report and to renew the lease. */
  begin(): void
}

const renewMs = 10_000
const spaceMs = 10_000
/** The whole status is written at least this often (C-12). */
const fullStatusMs = 300_000

type Job = 'volumesInUse' | 'status' | 'lease' | 'space'

/** What the functions of this file share. */
interface Reporting {
  readonly deps: NodeStatusDeps
  readonly loop: KeyLoop<Job>
  readonly inTurn: SerialQueue
  readonly lease: NodeLease
  begun: boolean
  /** What the server was last told to be in use, if it confirmed that. */
  reported: string | undefined
  /** The Node object that was told what we use; another one knows nothing. */
  toldUid: string | undefined
  /** The list as it was sent last, confirmed or not. */
  sent: ReadonlySet<UniqueVolumeName>
}

export function createNodeStatus(deps: NodeStatusDeps): NodeStatusReporter {
  const { clock, log, desired, actual } = deps
  const loop = createKeyLoop<Job>({
    name: 'node-status',
    clock,
    workers: 4,
    backoff: { firstMs: 100, capMs: 10_000 },
    look: (job, signal) => jobs[job](reporting, signal),
    onError: (job, error) => log.warn('node status not written', { job, error }),
  })
  const reporting: Reporting = {
    deps,
    loop,
    inTurn: createSerialQueue(),
    lease: createNodeLease(deps),
    begun: false,
    reported: undefined,
    toldUid: undefined,
    sent: new Set(),
  }
  const subscriptions = [
    desired.subscribe((volume) => onVolume(reporting, volume)),
    actual.subscribe((volume) => onVolume(reporting, volume)),
    deps.ownNode.subscribe(({ object }) => onNode(reporting, object)),
  ]
  return {
    register: (signal) => register(deps, signal),
    readAttached: (signal) => readAttached(deps, signal),
    begin() {
      reporting.begun = true
      for (const job of ['volumesInUse', 'lease', 'space'] as const) loop.wake(job)
      loop.wakeAt('status', clock.now() + fullStatusMs)
    },
    async [Symbol.asyncDispose]() {
      for (const subscription of subscriptions) subscription[Symbol.dispose]()
      await loop[Symbol.asyncDispose]()
    },
  }
}

const jobs: Readonly<Record<Job, (reporting: Reporting, signal: AbortSignal) => Promise<Looked | void>>> = {
  volumesInUse: (reporting, signal) => reporting.inTurn(() => reportIfChanged(reporting, signal)),
  status: reportStatus,
  async lease({ deps, lease }, signal) {
    await lease.renew(signal)
    return { again: deps.clock.now() + renewMs }
  },
  space: lookAtSpace,
}

/** A disk that hangs holds up this job and no other. */
async function lookAtSpace({ deps, loop }: Reporting, signal: AbortSignal): Promise<Looked> {
  const { clock, diskPressure, recorder, ownNode, node } = deps
  if (await diskPressure.look(signal)) {
    loop.wake('status')
    const problem = diskPressure.problem()
    const object = ownNode.get(node)
    const [type, reason] = problem
      ? (['Warning', 'NodeHasDiskPressure'] as const)
      : (['Normal', 'NodeHasNoDiskPressure'] as const)
    if (object) recorder.event({ kind: 'Node', object }, type, reason, problem ?? enoughSpace)
  }
  return { again: clock.now() + spaceMs }
}

const enoughSpace = 'the disks of the node have enough space again'

function wake({ begun, loop }: Reporting): void {
  if (begun) loop.wake('volumesInUse')
}

function onNode(reporting: Reporting, object: Node | undefined): void {
  const { deps, loop, begun, toldUid } = reporting
  if (!object || toldUid === undefined) return
  if (object.metadata.uid !== toldUid) {
    reporting.reported = undefined
    wake(reporting)
    // The control plane took us for silent, after a sleep of the machine or a lost connection: we answer at once.
  } else if (begun && deps.synced() && !conditionIsTrue(object.status?.conditions, 'Ready')) loop.wake('status')
}

/** Most volumes are attached to nothing: only what is on the list, or belongs there, is worth a look at it. */
function onVolume(reporting: Reporting, volume: UniqueVolumeName): void {
  const { actual, desired } = reporting.deps
  const held = actual.items.get(volume)
  const mayBelong = held?.attachable === 'yes' || held?.restored || desired.items.get(volume)?.attachable
  if (mayBelong || reporting.sent.has(volume)) wake(reporting)
}

async function reportIfChanged(reporting: Reporting, signal: AbortSignal): Promise<void> {
  const { deps, reported, lease } = reporting
  if (!deps.synced() || lease.isLost()) return
  const volumes = deps.manager.volumesInUse()
  const confirmed = volumes.every((volume) => deps.desired.items.get(volume)?.reportedInUse !== false)
  if (volumes.join('\n') === reported && confirmed) return
  await report(reporting, reported === undefined ? fullStatus(deps) : {}, signal)
}

async function reportStatus(reporting: Reporting, signal: AbortSignal): Promise<Looked> {
  const { deps, inTurn, lease } = reporting
  // The lease goes first: whoever judges by it would take our word back at once. It fails where another agent runs the node.
  await lease.renew(signal)
  try {
    await inTurn(async () => {
      if (deps.synced()) await report(reporting, fullStatus(deps), signal)
      else await patchStatus(deps, fullStatus(deps), signal)
    })
  } catch (error) {
    // Somebody deleted our Node: it is made again, and everything is said again.
    if (!isNotFound(error)) throw error
    await register(deps, signal)
    reporting.reported = undefined
    wake(reporting)
  }
  return { again: deps.clock.now() + fullStatusMs }
}

/** What we use is read when its turn has come: an older list must not arrive behind a newer one. */
async function report(reporting: Reporting, rest: StatusPart, signal: AbortSignal): Promise<void> {
  const { desired, manager } = reporting.deps
  const volumes = manager.volumesInUse()
  reporting.sent = new Set(volumes)
  const answer = await patchStatus(reporting.deps, { ...rest, volumesInUse: volumes }, signal)
  reporting.reported = volumes.join('\n')
  reporting.toldUid = answer.metadata.uid
  const listed = new Set(answer.status?.volumesInUse ?? [])
  for (const { volume, attachable } of [...desired.items.values()]) {
    if (attachable) desired.apply({ kind: 'reported', volume, inUse: listed.has(volume) })
  }
}

async function register(deps: NodeStatusDeps, signal: AbortSignal): Promise<void> {
  const { client, node, description, nodeServer } = deps
  const labels = { ...description.labels, [labelNames.hostname]: description.labels[labelNames.hostname] ?? node }
  const annotations = { [wellKnown.controllerManagedAttach]: 'true', ...nodeServerAnnotations(nodeServer) }
  const object: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: node, labels, annotations }, spec: {} }
  let present: readonly NodeCondition[] = []
  try {
    await client.create('Node', object, {}, signal)
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    // What an earlier life said of a server that is no longer there must go.
    const all = {
      [wellKnown.nodeServer]: null,
      [wellKnown.nodeServerCertificate]: null,
      [wellKnown.csiJobs]: null,
      ...annotations,
    }
    const patch = { type: 'merge' as const, body: { metadata: { labels, annotations: all } } }
    const known = await client.patch('Node', { name: node }, patch, {}, signal)
    // Read from the answer, not from a cache that may be empty yet: a Ready that vanished for a moment would let the
    // controller take volumes by force.
    present = known.status?.conditions ?? []
  }
  await patchStatus(deps, fullStatus(deps, present), signal)
}

async function readAttached({ client, node, actual }: NodeStatusDeps, signal: AbortSignal): Promise<void> {
  const unread = [...actual.items.values()].filter(({ devicePathUnread }) => devicePathUnread)
  if (unread.length === 0) return
  const live = await client.get('Node', { name: node }, signal)
  const attached = new Map((live.status?.volumesAttached ?? []).map(({ name, devicePath }) => [name, devicePath]))
  for (const { volume } of unread) {
    const devicePath = attached.get(volume)
    const isAttached = devicePath !== undefined
    actual.apply({ kind: 'nodeStatusRead', volume, attached: isAttached, devicePath: devicePath ?? '' })
  }
}

async function patchStatus({ client, node }: NodeStatusDeps, status: StatusPart, signal: AbortSignal): Promise<Node> {
  const patch = { type: 'merge' as const, body: { status } }
  return await client.patch('Node', { name: node }, patch, { subresource: 'status' }, signal)
}

type StatusPart = Partial<NonNullable<Node['status']>>
type SerialQueue = ReturnType<typeof createSerialQueue>

/** One after the other, in the order of asking; a failure is its own. */
function createSerialQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const next = last.then(work)
    last = next.catch(() => {})
    return next
  }
}

export function isListedAttached(node: Node | undefined, volume: UniqueVolumeName): boolean | undefined {
  if (!node) return undefined
  return node.status?.volumesAttached?.some(({ name }) => name === volume) ?? false
}

function fullStatus(
  deps: NodeStatusDeps,
  present: readonly NodeCondition[] = deps.ownNode.get(deps.node)?.status?.conditions ?? [],
): StatusPart {
  const { description, clock, runtimeVersion } = deps
  const now = timestamp(clock.now())
  // Not ready before we know what we use; what an earlier life said of its readiness stands until then.
  const known = conditionsOf(deps).filter(({ type }) => type !== 'Ready' || deps.synced())
  const ours = known.map(({ type, status, reason, message }): NodeCondition => {
    const before = present.find((each) => each.type === type)
    const since = before?.status === status ? before.lastTransitionTime : undefined
    return { type, status, reason, message, lastHeartbeatTime: now, lastTransitionTime: since ?? now }
  })
  const types = new Set<string>(known.map(({ type }) => type))
  return {
    capacity: description.capacity,
    allocatable: description.allocatable,
    addresses: description.addresses,
    conditions: [...present.filter(({ type }) => !types.has(type)), ...ours],
    nodeInfo: { ...description.info, containerRuntimeVersion: runtimeVersion },
    ...(deps.nodeServer ? { daemonEndpoints: { kubeletEndpoint: { Port: deps.nodeServer.port } } } : {}),
  }
}

function nodeServerAnnotations(nodeServer: NodeServerAddress | undefined): Readonly<Record<string, string>> {
  if (!nodeServer) return {}
  const host = nodeServer.host.includes(':') ? `[${nodeServer.host}]` : nodeServer.host
  return {
    [wellKnown.nodeServer]: `${host}:${nodeServer.port}`,
    [wellKnown.nodeServerCertificate]: nodeServer.fingerprint,
    ...(nodeServer.takesDriverCalls ? { [wellKnown.csiJobs]: 'server' } : {}),
  }
}

/** As a kubelet says it; of what is low, which disk and how much is left. */
function conditionsOf({ diskPressure }: NodeStatusDeps): readonly StatedCondition[] {
  const message = diskPressure.problem()
  if (message === undefined) return nodeConditions
  const pressure = { status: 'True', reason: 'KubeletHasDiskPressure', message } as const
  return nodeConditions.map((each) => (each.type === 'DiskPressure' ? { ...each, ...pressure } : each))
}

type StatedCondition = Required<Pick<NodeCondition, 'type' | 'status' | 'reason' | 'message'>>

const nodeConditions: readonly StatedCondition[] = [
  {
    type: 'MemoryPressure',
    status: 'False',
    reason: 'KubeletHasSufficientMemory',
    message: 'kubelet has sufficient memory available',
  },
  {
    type: 'DiskPressure',
    status: 'False',
    reason: 'KubeletHasNoDiskPressure',
    message: 'kubelet has no disk pressure',
  },
  {
    type: 'PIDPressure',
    status: 'False',
    reason: 'KubeletHasSufficientPID',
    message: 'kubelet has sufficient PID available',
  },
  { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'the node agent is ready' },
]
