// In which order does an agent start? Directories → containers of an earlier life → volumes on disk → our Node → pod sources; only
// when every source has spoken and every pod was looked at may anything be undone (REC-1, story "A node restarts").
import { join } from 'node:path/posix'
import type { PodUid } from '../../api/names.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Host } from '../../host/host.ts'
import { containerFileLabel, labelForContainers } from '../../host/selinux.ts'
import type { Log } from '../../telemetry/log.ts'
import { watchSizeLimits } from '../pods/size-limits.ts'
import type { PodSink, SourceName } from '../pods/sources.ts'
import { runSources, sourceNames } from '../pods/sources.ts'
import { restoreVolumes } from '../volumes/restore.ts'
import type { AgentDeps, AgentParts } from './parts.ts'

/** What whoever started the agent waits for. */
export interface Milestones {
  /** The API has this node's Node, or will never have it. */
  registered(by: Promise<void>): void
  /** The first pods of all sources are worked in. */
  ready(): void
}

const claimStatsMs = 60_000

/**
 * Resolves when the agent takes pods. `signal` ends the start, `stopping` the tasks that go on after it; these are `tasks`, which
 * end when they have been told to stop.
 */
export async function startAgent(
  deps: AgentDeps,
  parts: AgentParts,
  milestones: Milestones,
  signal: AbortSignal,
  stopping: AbortSignal,
): Promise<{ readonly tasks: Promise<unknown> }> {
  const { clock, log, host } = deps
  const { pods, reports, volumes, shared } = parts
  const leftOver = await takeStock(deps, parts, signal)
  // Beside the sources: pods of manifests must come up while the API server is away.
  const register = async () => {
    await deps.beforeRegistering
    await reports.status.register(signal)
  }
  const registering = retrying(clock, log, 'node could not be registered', register, stopping)
  milestones.registered(registering)
  const sourceDeps = { ...deps, informers: shared.informers }
  const sink = sinkOf(parts, sourceNames(sourceDeps), () => {
    void completeList(deps, parts, registering, leftOver, stopping).then(milestones.ready, (error: unknown) => {
      if (!stopping.aborted) log.error('first pod list could not be worked in', { error })
    })
  })
  const { filesystems } = host
  const limits = { clock, log, filesystems, manager: volumes.manager, pods: pods.views, evict: pods.evict }
  const tasks = Promise.all([
    registering,
    runSources(sourceDeps, sink, stopping),
    every(clock, claimStatsMs, () => reports.stats.refreshClaims(stopping), stopping),
    every(clock, claimStatsMs, () => volumes.health.probe(stopping), stopping),
    watchSizeLimits(limits, stopping),
  ])
  return { tasks }
}

/** What is on this machine from an earlier life. Answers with the pods of which anything is left. */
async function takeStock(deps: AgentDeps, parts: AgentParts, signal: AbortSignal): Promise<ReadonlySet<PodUid>> {
  const { host, root, log, runtime } = deps
  const { state, worlds, shared, pods } = parts
  await makeDirectories(host, root, signal)
  state.policyLabel = await containerFileLabel(host.files, signal)
  if (state.policyLabel !== undefined) await labelDirectories(host, root, log, signal)
  const records = await runtime.restore(signal)
  pods.adopt(records)
  const restored = await restoreVolumes({ ...deps, actual: worlds.actual, devices: shared.devices }, signal)
  for (const orphan of restored.orphans) worlds.orphans.apply({ kind: 'found', orphan })
  return new Set([...restored.pods, ...records.map(({ pod }) => pod)])
}

/** `complete` is called once, when every source has named its first pods. */
function sinkOf({ pods }: AgentParts, sources: readonly SourceName[], complete: () => void): PodSink {
  const open = new Set(sources)
  return {
    put: pods.put,
    remove: (uid) => pods.remove(uid as PodUid), // it came in as a pod's uid
    ready(source) {
      if (open.delete(source) && open.size === 0) complete()
    },
  }
}

/** Pods first, then the fact that lets unmounts go ahead; then whatever nobody named is cleaned. */
async function completeList(
  { clock, log }: AgentDeps,
  { state, volumes, reports, pods }: AgentParts,
  registered: Promise<void>,
  leftOver: ReadonlySet<PodUid>,
  signal: AbortSignal,
): Promise<void> {
  const { populator, reconciler, orphanCleaner } = volumes
  const { status } = reports
  await Promise.all([pods.taken(), registered])
  await populator.processed()
  await retrying(clock, log, 'node status could not be read', () => status.readAttached(signal), signal)
  signal.throwIfAborted()
  state.podListComplete = true
  for (const uid of leftOver) pods.clean(uid)
  reconciler.wakeAll()
  status.begin()
  orphanCleaner.begin()
}

/** The directories, private to us, and shared with what containers mount (LAYOUT-8, MOUNT-24). */
async function makeDirectories(host: Host, root: string, signal: AbortSignal): Promise<void> {
  await host.files.mkdirAll(root, 0o750, signal)
  for (const name of ['pods', 'plugins', 'plugins_registry', 'pod-resources']) {
    await host.files.mkdirAll(join(root, name), 0o750, signal)
  }
  await host.mounts.makeShared(root, signal)
}

/** A policy that refuses is logged, and the node goes on (LAYOUT-9). */
async function labelDirectories(host: Host, root: string, log: Log, signal: AbortSignal): Promise<void> {
  const paths = ['plugins', 'plugins_registry'].map((name) => join(root, name))
  await labelForContainers(host, paths, signal).catch((error: unknown) => {
    signal.throwIfAborted()
    log.warn('directories could not be labelled', { error })
  })
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
