// One node's agent: it takes the pods of this node, gives them their volumes, runs them, and leaves nothing behind when they go.
// Whoever calls chooses host and runtime.
import type { UniqueVolumeName } from '../api/names.ts'
import type { AgentDeps, AgentParts } from './agent/parts.ts'
import { createAgentParts } from './agent/parts.ts'
import { startAgent } from './agent/start.ts'
import { wireAgent } from './agent/wiring.ts'
import { processSettings } from './containers/container-request.ts'
import type { PodView } from './pods/pods.ts'
import type { VolumeStats } from './report/volume-stats.ts'
import type { ProcessSettings } from './runtime/port.ts'
import type { ActualVolume } from './volumes/actual.ts'
import type { DesiredVolume } from './volumes/desired.ts'
import type { VolumeManager } from './volumes/manager.ts'
import type { Waiting } from './volumes/plan.ts'

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

export function createAgent(deps: AgentDeps): Agent {
  const stopping = new AbortController()
  const parts = createAgentParts(deps)
  const { worlds, volumes, reports, pods } = parts
  const subscriptions = wireAgent(deps, parts)
  const { promise: ready, resolve: becomeReady } = Promise.withResolvers<void>()
  const { promise: registered, resolve: becomeRegistered } = Promise.withResolvers<void>()
  let tasks: Promise<unknown> = Promise.resolve()
  const stop = async () => {
    if (stopping.signal.aborted) return
    stopping.abort(new Error('the agent is stopping'))
    for (const subscription of subscriptions) subscription[Symbol.dispose]()
    await stopParts(parts)
    await tasks
  }
  return {
    registered,
    ready,
    volumes: volumes.manager,
    stats: reports.stats,
    pods: pods.views,
    settings: (view, container, signal) => settingsOf(deps, parts, view, container, signal),
    desired: worlds.desired.items,
    actual: worlds.actual.items,
    waiting: volumes.reconciler.waiting,
    async start(outer) {
      const signal = AbortSignal.any([outer, stopping.signal])
      const milestones = { registered: becomeRegistered, ready: becomeReady }
      ;({ tasks } = await startAgent(deps, parts, milestones, signal, stopping.signal))
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/** In reverse order of what they need of each other. */
async function stopParts({ pods, volumes, reports, shared }: AgentParts): Promise<void> {
  const { populator, orphanCleaner, reconciler } = volumes
  const { watches, recorder, informers } = shared
  const inOrder = [pods, populator, orphanCleaner, reconciler, reports.status, watches, recorder, informers]
  for (const part of inOrder) await part[Symbol.asyncDispose]()
}

async function settingsOf(
  { client, hostAddress, host }: AgentDeps,
  { volumes, shared }: AgentParts,
  { pod, settings }: PodView,
  name: string,
  signal: AbortSignal,
): Promise<ProcessSettings> {
  const known = settings.get(name)
  if (known) return known
  const { initContainers = [], containers = [], ephemeralContainers = [] } = pod.spec ?? {}
  const container = [...initContainers, ...containers, ...ephemeralContainers].find((each) => each.name === name)
  if (!container) throw new Error(`container ${name} is not valid for pod ${pod.metadata.name}`)
  const parts = { client, hostAddress, host, manager: volumes.manager, ownNode: shared.ownNode }
  return (await processSettings(parts, pod, container, signal)).settings
}
