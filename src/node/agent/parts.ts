// What is a node's agent made of? Each part is given the worlds and the parts that were made before it; none knows a part that is
// made later. What connects them the other way round are events: wiring.ts.
import type { NodeName, PodUid, UniqueVolumeName } from '../../api/names.ts'
import type { Client } from '../../client/client.ts'
import type { History } from '../../client/history.ts'
import { createInformers } from '../../client/informer.ts'
import { createRecorder } from '../../client/recorder.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Random } from '../../clock/random.ts'
import type { Host } from '../../host/host.ts'
import type { Network } from '../../host/network.ts'
import { createPending } from '../../loop/pending.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { OperationObserver } from '../../volume/operation.ts'
import { createRunner } from '../../volume/operation.ts'
import type { NodePlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import { isActive } from '../pods/pod-lifetime.ts'
import { createPodWorld } from '../pods/pod-record.ts'
import { createPods } from '../pods/pods.ts'
import type { SourceDeps } from '../pods/sources.ts'
import { createDiskPressure } from '../report/disk-pressure.ts'
import { createNodeHistory } from '../report/history.ts'
import type { NodeServerAddress, NodeDescription } from '../report/node-status.ts'
import { createNodeStatus, isListedAttached } from '../report/node-status.ts'
import { createVolumeHealth } from '../report/volume-health.ts'
import { countVolumes, createVolumeStats } from '../report/volume-stats.ts'
import type { Runtime } from '../runtime/port.ts'
import { createActualWorld } from '../volumes/actual.ts'
import type { DesiredVolume } from '../volumes/desired.ts'
import { createDesiredWorld } from '../volumes/desired.ts'
import { createDeviceRecords } from '../volumes/device-records.ts'
import { createLabels } from '../volumes/labels.ts'
import { createVolumeManager } from '../volumes/manager.ts'
import { createObjectWatches } from '../volumes/object-watches.ts'
import { createOrphanCleaner, createOrphanWorld } from '../volumes/orphans.ts'
import type { NodeFacts } from '../volumes/plan.ts'
import { createPopulator } from '../volumes/populate.ts'
import { createReconciler } from '../volumes/reconcile.ts'

export interface AgentDeps {
  readonly node: NodeName
  /** Laid out as a kubelet's root directory. */
  readonly root: string
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics: Metrics
  readonly host: Host
  readonly network: Network
  readonly runtime: Runtime
  readonly registry: Registry<NodePlugin>
  readonly description: NodeDescription
  /** Whose disks must not run out of space. */
  readonly diskPaths?: readonly string[]
  /** Where this agent runs, for others of its name. */
  readonly place?: string
  /** The address pods are told; '' when there is none. */
  readonly hostAddress: string
  readonly manifestDirectory?: string
  readonly manifestUrl?: SourceDeps['manifestUrl']
  readonly observer?: OperationObserver
  /** Where the node's story is kept, for `hawser why`. */
  readonly history?: History
  readonly beforeApiPods?: Promise<unknown>
  readonly beforeManifests?: Promise<unknown>
  /** Fails when this node must not work for the server; then the server hears nothing from it. */
  readonly beforeRegistering?: Promise<unknown>
  /** Where this node's own server listens, if it does. */
  readonly nodeServer?: NodeServerAddress
}

/** What the agent finds out once while it starts, and its parts read from then on. */
export interface NodeState {
  /** Every source has named its pods and every pod was looked at once: what nobody wants may be undone. */
  podListComplete: boolean
  /** The label of the SELinux policy for containers' files; undefined where SELinux is off. */
  policyLabel: string | undefined
}

export type AgentParts = ReturnType<typeof createAgentParts>

export function createAgentParts(deps: AgentDeps) {
  const state: NodeState = { podListComplete: false, policyLabel: undefined }
  const worlds = createWorlds()
  const shared = createShared(deps, worlds)
  const volumes = createVolumeParts(deps, state, worlds, shared)
  const reports = createReports(deps, state, worlds, shared, volumes)
  const { recorder, ownNode, nodeHistory } = shared
  const pods = createPods({
    ...deps,
    recorder,
    manager: volumes.manager,
    pods: worlds.pods,
    ownNode,
    ...(nodeHistory ? { onTrouble: nodeHistory.onTrouble, onHeld: nodeHistory.onHeld } : {}),
  })
  return { state, worlds, shared, volumes, reports, pods }
}

type Worlds = ReturnType<typeof createWorlds>

function createWorlds() {
  return {
    desired: createDesiredWorld(),
    actual: createActualWorld(),
    pods: createPodWorld(),
    orphans: createOrphanWorld(),
  }
}

type Shared = ReturnType<typeof createShared>

function createShared(deps: AgentDeps, { desired, actual }: Worlds) {
  const { node, root, client, clock, random, log, metrics, host } = deps
  const informers = createInformers({ client, clock, random, log })
  const nodes = informers.of('Node', { fieldSelector: `metadata.name=${node}` })
  const pending = createPending(clock)
  const nodeHistory = deps.history && createNodeHistory({ history: deps.history, node, desired, actual, clock })
  const observer = deps.observer ?? nodeHistory
  return {
    informers,
    recorder: createRecorder({ client, clock, log, component: 'kubelet', host: node }),
    watches: createObjectWatches({ client, clock, random, log }),
    pending,
    runner: createRunner({ clock, pending, log, metrics, ...(observer ? { observer } : {}) }),
    nodeHistory,
    devices: createDeviceRecords({ host, root, log }),
    nodes,
    ownNode: () => nodes.get(node),
  }
}

function createVolumeParts(deps: AgentDeps, state: NodeState, worlds: Worlds, shared: Shared) {
  const { root, clock, log, metrics, registry } = deps
  const { desired, actual, pods } = worlds
  const { nodeHistory, pending, runner } = shared
  const labelOf = createLabels(metrics)
  const populator = createPopulator({
    ...deps,
    desired,
    watches: shared.watches,
    label: (request) => labelOf(request, state.policyLabel),
    ...(nodeHistory ? { onResolved: nodeHistory.onResolved } : {}),
  })
  const health = createVolumeHealth({
    log,
    root,
    registry,
    desired,
    actual,
    tell: (uid, volume, conditions) =>
      pods.apply({ kind: 'volumeHealthSeen', uid, volume, conditions, at: clock.now() }),
  })
  const reconciler = createReconciler({
    clock,
    log,
    pending,
    runner,
    desired,
    actual,
    operations: { ...deps, ...shared, attempted: health.attempted },
    onWaiting(volume, waits) {
      nodeHistory?.onWaiting(volume, waits)
      for (const { reason, pod, error = '' } of waits) if (reason === 'labelMismatch' && pod) populator.note(pod, error)
    },
    facts: (volume) => factsOf(deps, state, worlds, shared, populator.unresolved, volume),
  })
  const manager = createVolumeManager({ clock, root, registry, desired, actual, populator, reconciler })
  const isFree = (pod: PodUid) => !populator.unresolved.has(pod) && !isActive(pods.items.get(pod))
  const orphanCleaner = createOrphanCleaner({ ...deps, desired, orphans: worlds.orphans, isFree })
  return { populator, health, reconciler, manager, orphanCleaner }
}

function factsOf(
  { registry }: AgentDeps,
  { podListComplete }: NodeState,
  { desired, pods, orphans }: Worlds,
  { ownNode }: Shared,
  unresolvedPods: ReadonlySet<PodUid>,
  volume: UniqueVolumeName,
): Omit<NodeFacts, 'triedLast'> {
  return {
    podListComplete,
    unresolvedPods,
    runningPods: { has: (pod) => isActive(pods.items.get(pod)) },
    unexplained: [...orphans.items.values()].some(({ pod }) => unresolvedPods.has(pod)),
    expandable: isExpandable(registry, desired.items.get(volume)),
    listedAttached: isListedAttached(ownNode(), volume),
  }
}

function createReports(
  deps: AgentDeps,
  state: NodeState,
  { desired, actual }: Worlds,
  { nodes: ownNode, recorder }: Shared,
  { manager }: ReturnType<typeof createVolumeParts>,
) {
  const { client, clock, log, metrics, host, registry, node, description, nodeServer, place, runtime } = deps
  countVolumes(metrics, desired, actual)
  const stats = createVolumeStats({ clock, log, metrics, registry, manager, desired })
  const isSynced = () =>
    state.podListComplete && ![...actual.items.values()].some(({ devicePathUnread }) => devicePathUnread)
  const status = createNodeStatus({
    client,
    clock,
    log,
    node,
    description,
    nodeServer,
    place,
    runtimeVersion: runtime.version,
    ownNode,
    manager,
    desired,
    actual,
    recorder,
    diskPressure: createDiskPressure({ host, log, metrics, paths: deps.diskPaths ?? [] }),
    synced: isSynced,
  })
  return { stats, status }
}

function isExpandable(registry: Registry<NodePlugin>, item: DesiredVolume | undefined): boolean {
  const [mount] = item?.pods.values() ?? []
  if (!item || !mount) return false
  const plugin = registry.known(item.plugin)?.plugin
  return plugin?.expand !== undefined && (plugin.requiresResize?.(mount.spec) ?? true)
}
