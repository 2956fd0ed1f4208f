// What is a node's agent made of? The parts of this folder, put together once; whoever calls chooses host and runtime.
//
// Starting (REC-1, story "A node restarts"): directories → containers of an earlier life → volumes on disk → our Node →
// pod sources; only when every source has spoken and every pod was looked at may anything be undone.
import { join } from 'node:path/posix'
import type { NodeName, PodUid, UniqueVolumeName } from '../api/names.ts'
import type { Client } from '../client/client.ts'
import type { History } from '../client/history.ts'
import { createInformers } from '../client/informer.ts'
import { createRecorder } from '../client/recorder.ts'
import type { Clock } from '../clock/clock.ts'
import type { Random } from '../clock/random.ts'
import type { Host } from '../host/host.ts'
import type { Network } from '../host/network.ts'
import { containerFileLabel, labelForContainers } from '../host/selinux.ts'
import { createPending } from '../loop/pending.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createRunner } from '../volume/operation.ts'
import type { OperationObserver } from '../volume/operation.ts'
import type { NodePlugin } from '../volume/plugin.ts'
import type { Registry } from '../volume/registry.ts'
import { createNodeHistory } from './history.ts'
import { createLull } from './lull.ts'
import type { LullDeps } from './lull.ts'
import { processSettings } from './container-request.ts'
import { createPodDirectories } from './pod-directories.ts'
import { createPods } from './pods.ts'
import type { PodView } from './pods.ts'
import type { ProcessSettings, Runtime } from './runtime/port.ts'
import { watchSizeLimits } from './size-limits.ts'
import { runSources, sourceNames } from './sources.ts'
import type { SourceDeps, SourceName } from './sources.ts'
import { countVolumes, createVolumeStats } from './stats.ts'
import type { VolumeStats } from './stats.ts'
import { createNodeStatus, isListedAttached } from './status.ts'
import type { DoorAddress, NodeDescription } from './status.ts'
import { createVolumeHealth } from './volume-health.ts'
import type { ActualVolume } from './volumes/actual.ts'
import { createActualWorld } from './volumes/actual.ts'
import { createDesiredWorld } from './volumes/desired.ts'
import { createDeviceRecords } from './volumes/device-records.ts'
import type { DesiredVolume } from './volumes/desired.ts'
import { createLabels } from './volumes/labels.ts'
import { createVolumeManager } from './volumes/manager.ts'
import type { VolumeManager } from './volumes/manager.ts'
import { createObjectWatches } from './volumes/object-watches.ts'
import { createOrphanCleaner } from './volumes/orphans.ts'
import { createPopulator } from './volumes/populate.ts'
import type { Waiting } from './volumes/plan.ts'
import { createReconciler } from './volumes/reconcile.ts'
import { restoreVolumes } from './volumes/restore.ts'

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
  /** The address pods are told; '' when there is none. */
  readonly hostAddress: string
  readonly manifestDirectory?: string
  readonly manifestUrl?: SourceDeps['manifestUrl']
  readonly observer?: OperationObserver
  /** Where the node's story is kept, for `hawser why`. */
  readonly history?: History
  readonly measureWork?: LullDeps['measureWork']
  readonly beforeApiPods?: Promise<unknown>
  /** Where this node's own server listens, if it does. */
  readonly door?: DoorAddress
}

export interface Agent extends AsyncDisposable {
  /** Resolves when the agent takes pods; it goes on until stopped. Fails when disk or API cannot be read at all. */
  start(signal: AbortSignal): Promise<void>
  /** Stops the agent, not its pods: containers run on and volumes stay. */
  stop(): Promise<void>
  /** Resolves once the API has this node's Node; that may take a while after the start. */
  readonly registered: Promise<void>
  /** Resolves once the first pictures of all pod sources are worked in. */
  readonly ready: Promise<void>
  readonly volumes: VolumeManager
  readonly stats: VolumeStats
  pods(): readonly PodView[]
  /** As whom and with which variables a container's processes run. */
  settings(view: PodView, container: string, signal: AbortSignal): Promise<ProcessSettings>
  readonly desired: ReadonlyMap<UniqueVolumeName, DesiredVolume>
  readonly actual: ReadonlyMap<UniqueVolumeName, ActualVolume>
  /** Why volumes stand still; the node's half of `hawser why`. */
  readonly waiting: ReadonlyMap<UniqueVolumeName, readonly Waiting[]>
}

const claimStatsMs = 60_000

export function createAgent(deps: AgentDeps): Agent {
  const { node, root, client, clock, random, log, metrics, host, network, runtime, registry } = deps
  const stopping = new AbortController()
  const desired = createDesiredWorld()
  const actual = createActualWorld()
  const informers = createInformers({ client, clock, random, log })
  const recorder = createRecorder({ client, clock, log, component: 'kubelet', host: node })
  const watches = createObjectWatches({ client, clock, random, log })
  const pending = createPending(clock)
  const told = deps.history && createNodeHistory({ history: deps.history, node, desired, actual, clock })
  const observer = deps.observer ?? told
  const runner = createRunner({ clock, pending, log, metrics, ...(observer ? { observer } : {}) })
  const ownNode = informers.of('Node', { fieldSelector: `metadata.name=${node}` })
  const { promise: ready, resolve: becomeReady } = Promise.withResolvers<void>()
  const { promise: registered, resolve: becomeRegistered } = Promise.withResolvers<void>()
  let podListComplete = false
  const devices = createDeviceRecords({ host, root, log })
  const labelOf = createLabels(metrics)
  let policyLabel: string | undefined

  const operations = {
    host,
    registry,
    client,
    clock,
    recorder,
    metrics,
    root,
    node,
    devices,
    attempted: (volume: UniqueVolumeName, pod: PodUid) => health.attempted(volume, pod),
    ownNode: () => ownNode.get(node),
  }
  const populator = createPopulator({
    client,
    clock,
    log,
    registry,
    desired,
    actual,
    watches,
    label: (request) => labelOf(request, policyLabel),
    retryNow: (volume) => reconciler.retryNow(volume),
    ...(told ? { onResolved: told.onResolved } : {}),
  })
  const reconciler = createReconciler({
    clock,
    log,
    pending,
    runner,
    desired,
    actual,
    operations,
    onWaiting(volume, waits) {
      told?.onWaiting(volume, waits)
      for (const { reason, pod, error = '' } of waits) if (reason === 'labelMismatch' && pod) populator.note(pod, error)
    },
    facts: (volume) => ({
      podListComplete,
      unresolvedPods: populator.unresolved,
      runningPods: { has: pods.runs },
      unexplained: [...orphans.left.values()].some(({ pod }) => populator.unresolved.has(pod)),
      expandable: isExpandable(registry, desired.items.get(volume)),
      listedAttached: isListedAttached(ownNode.get(node), volume),
    }),
  })
  const manager = createVolumeManager({ clock, root, registry, desired, actual, populator, reconciler })
  const status = createNodeStatus({
    client,
    clock,
    log,
    node,
    description: deps.description,
    door: deps.door,
    runtimeVersion: runtime.version,
    ownNode,
    manager,
    desired,
    actual,
    synced: () => podListComplete && ![...actual.items.values()].some(({ devicePathUnread }) => devicePathUnread),
  })
  countVolumes(metrics, desired, actual)
  const stats = createVolumeStats({ clock, log, metrics, registry, manager, desired })
  const orphans = createOrphanCleaner({
    host,
    registry,
    root,
    clock,
    log,
    desired,
    metrics,
    isFree: (pod) => !populator.unresolved.has(pod) && !pods.runs(pod),
  })
  const directories = createPodDirectories({ clock, log, files: host.files, root })
  const pods = createPods({
    client,
    clock,
    log,
    recorder,
    host,
    network,
    root,
    runtime,
    manager,
    populator,
    ...(told ? { onTrouble: told.onTrouble, onHeld: told.onHeld } : {}),
    onStopped: (pod) => free(pod, 'containersRunning'),
    hostAddress: deps.hostAddress,
    ownNode: () => ownNode.get(node),
    lull: createLull({ ...deps, pending }, stopping.signal),
    directories,
  })
  const health = createVolumeHealth({ log, root, registry, desired, actual, tell: pods.tellHealth })
  let tasks: Promise<unknown> = Promise.resolve()
  /** What kept volumes of this pod from being undone may be over. */
  const free = (pod: PodUid, waitedFor: Waiting['reason']) => {
    orphans.wake(pod)
    for (const [volume, waits] of reconciler.waiting)
      if (waits.some(({ reason }) => reason === waitedFor)) reconciler.wake(volume)
  }
  /** A plugin's answers may have changed: volumes that wait to be attached are looked at again (KP-9). */
  const askAgain = () => {
    for (const { attachable, volume, pods: users } of desired.items.values()) {
      if (attachable && !actual.items.has(volume)) for (const pod of users.keys()) populator.reprocess(pod)
    }
  }
  const subscriptions = [
    ...registry.all().flatMap(({ plugin }) => plugin.watch?.(askAgain) ?? []),
    // A driver that was missing may be there now.
    registry.subscribe(() => [...populator.unresolved].forEach(populator.reprocess)),
    // The control plane's word about one volume wakes only volumes that wait for it.
    ownNode.subscribe(() => {
      for (const [volume, waits] of reconciler.waiting) {
        if (waits.some(({ reason }) => reason === 'notAttached')) reconciler.wake(volume)
      }
    }),
    populator.onChange((pod) => free(pod, 'claimsUnresolved')),
  ]

  /** Pods first, then the fact that lets unmounts go ahead; then whatever nobody named is cleaned. */
  const completeList = async (leftOver: ReadonlySet<PodUid>, signal: AbortSignal) => {
    await Promise.all([pods.taken(), registered])
    await populator.processed()
    await retrying(clock, log, 'node status could not be read', () => status.readAttached(signal), signal)
    if (signal.aborted) return
    podListComplete = true
    for (const uid of leftOver) pods.clean(uid)
    reconciler.wakeAll()
    status.begin()
    orphans.begin()
    becomeReady()
  }
  const stop = async () => {
    if (stopping.signal.aborted) return
    stopping.abort(new Error('the agent is stopping'))
    for (const subscription of subscriptions) subscription[Symbol.dispose]()
    await pods[Symbol.asyncDispose]()
    await directories[Symbol.asyncDispose]()
    await populator[Symbol.asyncDispose]()
    await orphans[Symbol.asyncDispose]()
    await reconciler[Symbol.asyncDispose]()
    await status[Symbol.asyncDispose]()
    await watches[Symbol.asyncDispose]()
    await recorder[Symbol.asyncDispose]()
    await informers[Symbol.asyncDispose]()
    await tasks
  }
  return {
    registered,
    ready,
    volumes: manager,
    stats,
    pods: pods.views,
    async settings({ pod, settings }, name, signal) {
      const known = settings.get(name)
      if (known) return known
      const { initContainers = [], containers = [], ephemeralContainers = [] } = pod.spec ?? {}
      const container = [...initContainers, ...containers, ...ephemeralContainers].find((each) => each.name === name)
      if (!container) throw new Error(`container ${name} is not valid for pod ${pod.metadata.name}`)
      const parts = { client, manager, hostAddress: deps.hostAddress, ownNode: () => ownNode.get(node) }
      return (await processSettings(parts, pod, container, signal)).settings
    },
    desired: desired.items,
    actual: actual.items,
    waiting: reconciler.waiting,
    async start(outer) {
      const signal = AbortSignal.any([outer, stopping.signal])
      await makeDirectories(host, root, signal)
      policyLabel = await containerFileLabel(host.files, signal)
      if (policyLabel !== undefined) await labelDirectories(host, root, log, signal)
      const { filesystems } = host
      const records = await runtime.restore(signal)
      pods.adopt(records)
      const restored = await restoreVolumes({ host, registry, actual, root, log, metrics, devices }, signal)
      orphans.add(restored.orphans)
      directories.begin()
      // Beside the sources: pods of manifests must come up while the API server is away.
      const register = () => status.register(signal)
      const registering = retrying(clock, log, 'node could not be registered', register, stopping.signal)
      becomeRegistered(registering)
      const leftOver = new Set([...restored.pods, ...records.map(({ pod }) => pod)])
      const sourceDeps = { ...deps, informers }
      const open = new Set<SourceName>(sourceNames(sourceDeps))
      const sink = {
        put: pods.put,
        remove: (uid: string) => pods.remove(uid as PodUid), // it came in as a pod's uid
        ready(source: SourceName) {
          if (!open.delete(source) || open.size > 0) return
          void completeList(leftOver, stopping.signal).catch((error: unknown) => {
            if (!stopping.signal.aborted) log.error('first pod list could not be worked in', { error })
          })
        },
      }
      tasks = Promise.all([
        registering,
        runSources(sourceDeps, sink, stopping.signal),
        every(clock, claimStatsMs, () => stats.refreshClaims(stopping.signal), stopping.signal),
        every(clock, claimStatsMs, () => health.probe(stopping.signal), stopping.signal),
        watchSizeLimits({ clock, log, filesystems, manager, pods: pods.views, evict: pods.evict }, stopping.signal),
      ])
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/** LAYOUT-8: the directories, private to us, and shared with what containers mount (MOUNT-24). */
async function makeDirectories(host: Host, root: string, signal: AbortSignal): Promise<void> {
  await host.files.mkdirAll(root, 0o750, signal)
  for (const name of ['pods', 'plugins', 'plugins_registry', 'pod-resources']) {
    await host.files.mkdirAll(join(root, name), 0o750, signal)
  }
  await host.mounts.makeShared(root, signal)
}

/** LAYOUT-9: a policy that refuses is told, and the node goes on. */
async function labelDirectories(host: Host, root: string, log: Log, signal: AbortSignal): Promise<void> {
  const paths = ['plugins', 'plugins_registry'].map((name) => join(root, name))
  await labelForContainers(host, paths, signal).catch((error: unknown) => {
    signal.throwIfAborted()
    log.warn('directories could not be labelled', { error })
  })
}

function isExpandable(registry: Registry<NodePlugin>, item: DesiredVolume | undefined): boolean {
  const [mount] = item?.pods.values() ?? []
  if (!item || !mount) return false
  const plugin = registry.known(item.plugin)?.plugin
  return plugin?.expand !== undefined && (plugin.requiresResize?.(mount.spec) ?? true)
}

/** Until it works: the API server may come up after us. */
async function retrying(
  clock: Clock,
  log: Log,
  message: string,
  call: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  for (let waitMs = 200; !signal.aborted; waitMs = Math.min(waitMs * 2, 10_000)) {
    try {
      return await call()
    } catch (error) {
      if (signal.aborted) return
      log.warn(message, { error })
      await clock.sleep(waitMs, signal).catch(() => {})
    }
  }
}

async function every(clock: Clock, ms: number, call: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(ms, signal).catch(() => {})
    if (!signal.aborted) await call().catch(() => {})
  }
}
