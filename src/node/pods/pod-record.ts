// What do we know of each pod on this node? One record per pod; changes come only as events, and the reducer sees one of each.
//
// 1. An end is never taken back: what has failed, ended or is gone stays so.
// 2. A pod that its source names again while it goes begins anew after its end (`returned`).
// 3. The latest start of a container counts; what came before it is its last state.
import type { PodUid } from '../../api/names.ts'
import type { Pod, PodVolumeHealth } from '../../api/generated/types.ts'
import { timestamp } from '../../clock/clock.ts'
import type { World } from '../../loop/world.ts'
import { createWorld } from '../../loop/world.ts'
import type { HealthCondition } from '../../volume/plugin.ts'
import { withHealth } from '../report/volume-health.ts'
import type { ContainerRecord, ProcessSettings } from '../runtime/port.ts'
import { usesMore } from '../volumes/claims.ts'
import type { ContainerHealth, ContainerView } from './container-plan.ts'
import type { SourceName } from './sources.ts'

export interface PodRecord {
  readonly uid: PodUid
  /** Who named the pod; undefined while only the runtime knows of it, from an earlier life of the agent. */
  readonly source: SourceName | undefined
  readonly seenAt: number
  readonly pod: Pod | undefined
  /** The source no longer names it. */
  readonly gone: boolean
  /** The source names it again, before it has ended. */
  readonly returned: { readonly pod: Pod; readonly source: SourceName } | undefined
  readonly directories: 'missing' | 'made' | 'removed'
  /** `none`: not asked for yet. `releasing`: no longer wanted, but perhaps still mounted. */
  readonly volumes: 'none' | 'wanted' | 'releasing' | 'gone'
  /** All that the pod uses were mounted. */
  readonly volumesReady: boolean
  /** The pod as it was when its volumes were last asked for. */
  readonly volumesFor: Pod | undefined
  /** Containers are being started; volumes stay until that is over. */
  readonly starting: boolean
  /** Containers are being stopped, with this grace. */
  readonly stopping: { readonly graceMs: number } | undefined
  readonly containers: ReadonlyMap<string, ContainerView>
  /** Per container, the end before its latest start. */
  readonly earlier: ReadonlyMap<string, ContainerRecord>
  /** With what each container was started in this life of the agent: commands in it run with the same. */
  readonly settings: ReadonlyMap<string, ProcessSettings>
  /** Containers (by id) whose preStop hook has been called. */
  readonly preStopCalled: ReadonlySet<string>
  /** Per container, the end of the latest pause before a restart that was told. */
  readonly pausesTold: ReadonlyMap<string, number>
  readonly failure: { readonly reason: string; readonly message: string } | undefined
  readonly ended: 'Succeeded' | 'Failed' | undefined
  readonly volumeHealth: readonly PodVolumeHealth[]
  /** The pod as it was when the API server was last asked to remove its object. */
  readonly removalAskedFor: Pod | undefined
}

interface At {
  readonly uid: PodUid
}

export type PodEvent =
  | (At & { readonly kind: 'named'; readonly pod: Pod; readonly source: SourceName; readonly at: number })
  /** Only disk or runtime remember it: nobody will name it. */
  | (At & { readonly kind: 'leftBehind'; readonly at: number })
  | (At & { readonly kind: 'removed' })
  | (At & { readonly kind: 'directoriesMade' | 'directoriesRemoved' })
  | (At & { readonly kind: 'volumesWanted'; readonly pod: Pod })
  | (At & { readonly kind: 'volumesReady' | 'volumesReleased' | 'volumesGone' })
  | (At & { readonly kind: 'volumeHealthSeen'; readonly volume: string; readonly at: number } & Conditions)
  /** `expired`: its status says so only when its containers have ended, for until then they use its volumes. */
  | (At & { readonly kind: 'failed' | 'expired'; readonly reason: string; readonly message: string })
  | (At & { readonly kind: 'ended'; readonly phase: 'Succeeded' | 'Failed' })
  | (At & { readonly kind: 'startsBegan' | 'startsEnded' })
  | (At & { readonly kind: 'containerSeen'; readonly record: ContainerRecord })
  | (At & { readonly kind: 'containerStarted'; readonly record: ContainerRecord; readonly settings: ProcessSettings })
  | (At & {
      readonly kind: 'startFailed'
      readonly container: string
      readonly error: NonNullable<ContainerView['startError']>
    })
  | (At & { readonly kind: 'healthSeen'; readonly container: string; readonly health: ContainerHealth })
  | (At & { readonly kind: 'stopBegan' | 'stopEnded'; readonly graceMs: number })
  | (At & { readonly kind: 'preStopCalled'; readonly id: string })
  | (At & { readonly kind: 'pauseTold'; readonly container: string; readonly until: number })
  | (At & { readonly kind: 'removalAsked'; readonly pod: Pod })
  | (At & { readonly kind: 'forgotten' })

interface Conditions {
  readonly conditions: readonly HealthCondition[]
}

export type PodWorld = World<PodUid, PodRecord, PodEvent>

export function createPodWorld(): PodWorld {
  return createWorld<PodUid, PodRecord, PodEvent>((event) => event.uid, reducePod)
}

export function reducePod(item: PodRecord | undefined, event: PodEvent): PodRecord | undefined {
  if (event.kind === 'named') return named(item, event)
  if (event.kind === 'leftBehind') return leftBehind(item, event)
  if (event.kind === 'containerSeen') return withContainer(item ?? unnamed(event.uid), event.record)
  // Everything else is said of a pod we know; an answer that comes too late changes nothing.
  if (!item) return undefined
  switch (event.kind) {
    case 'removed':
      return item.source === undefined ? item : { ...item, gone: true, returned: undefined }
    case 'directoriesMade':
      return change(item, 'directories', 'made')
    case 'directoriesRemoved':
      return change(item, 'directories', 'removed')
    case 'volumesWanted':
      return { ...item, volumes: item.volumes === 'none' ? 'wanted' : item.volumes, volumesFor: event.pod }
    case 'volumesReady':
      return item.volumes === 'wanted' ? change(item, 'volumesReady', true) : item
    case 'volumesReleased':
      return item.volumes === 'gone' ? item : change(item, 'volumes', 'releasing')
    case 'volumesGone':
      return item.volumes === 'releasing' ? { ...item, volumes: 'gone' } : item
    case 'volumeHealthSeen':
      return change(item, 'volumeHealth', withHealth(item.volumeHealth, event.volume, event.conditions, event.at))
    case 'failed':
    case 'expired':
      return item.failure ? item : { ...item, failure: { reason: event.reason, message: event.message } }
    case 'ended':
      return item.ended ? item : { ...item, ended: event.phase }
    case 'removalAsked':
      return change(item, 'removalAskedFor', event.pod)
    case 'forgotten':
      return undefined
    default:
      return reduceContainers(item, event)
  }
}

type ContainerEvent = Extract<
  PodEvent,
  {
    kind:
      | 'startsBegan'
      | 'startsEnded'
      | 'containerStarted'
      | 'startFailed'
      | 'healthSeen'
      | 'stopBegan'
      | 'stopEnded'
      | 'preStopCalled'
      | 'pauseTold'
  }
>

function reduceContainers(item: PodRecord, event: ContainerEvent): PodRecord {
  switch (event.kind) {
    case 'startsBegan':
      return change(item, 'starting', true)
    case 'startsEnded':
      return change(item, 'starting', false)
    case 'containerStarted': {
      const settings = new Map(item.settings).set(event.record.name, event.settings)
      return { ...withContainer(item, event.record), settings }
    }
    case 'startFailed': {
      const { record } = item.containers.get(event.container) ?? {}
      return withView(item, event.container, { record, startError: event.error })
    }
    case 'healthSeen': {
      const view = item.containers.get(event.container)
      if (!view || view.health === event.health) return item
      return withView(item, event.container, { ...view, health: event.health })
    }
    case 'stopBegan':
      return { ...item, stopping: { graceMs: event.graceMs } }
    case 'stopEnded':
      // A stop with a shorter grace may have overtaken the one that ended.
      return item.stopping?.graceMs === event.graceMs ? { ...item, stopping: undefined } : item
    case 'preStopCalled':
      return { ...item, preStopCalled: new Set(item.preStopCalled).add(event.id) }
    case 'pauseTold':
      return { ...item, pausesTold: new Map(item.pausesTold).set(event.container, event.until) }
    default:
      return event satisfies never
  }
}

/** A pod of which nothing is known yet, not even who names it. */
function unnamed(uid: PodUid): PodRecord {
  return {
    uid,
    source: undefined,
    seenAt: 0,
    pod: undefined,
    gone: false,
    returned: undefined,
    directories: 'missing',
    volumes: 'none',
    volumesReady: false,
    volumesFor: undefined,
    starting: false,
    stopping: undefined,
    containers: new Map(),
    earlier: new Map(),
    settings: new Map(),
    preStopCalled: new Set(),
    pausesTold: new Map(),
    failure: undefined,
    ended: undefined,
    volumeHealth: [],
    removalAskedFor: undefined,
  }
}

function named(item: PodRecord | undefined, event: Extract<PodEvent, { kind: 'named' }>): PodRecord {
  const { uid, source, at } = event
  if (item?.gone) return { ...item, returned: { pod: event.pod, source } }
  const known = item?.source === undefined ? { ...(item ?? unnamed(uid)), source, seenAt: at } : item
  const pod = source === 'api' ? withSource(event.pod, known.seenAt) : event.pod
  if (!known.pod) return { ...known, pod, volumeHealth: pod.status?.volumeHealth ?? [] }
  // An ephemeral container may mount what nobody mounted so far; it waits for its volumes as the first ones did.
  return { ...known, pod, volumesReady: known.volumesReady && !usesMore(pod, known.pod) }
}

function leftBehind(
  item: PodRecord | undefined,
  { uid, at }: { readonly uid: PodUid; readonly at: number },
): PodRecord {
  if (item?.source !== undefined) return item
  return { ...(item ?? unnamed(uid)), source: 'api', seenAt: at, gone: true }
}

function withContainer(item: PodRecord, record: ContainerRecord): PodRecord {
  const { record: known, health } = item.containers.get(record.name) ?? {}
  if (known && known.attempt > record.attempt) return item
  if (known?.attempt === record.attempt && known.exit && !record.exit) return item
  const kept = health && known?.id === record.id && !record.exit ? { health } : {}
  const next = withView(item, record.name, { record, ...kept })
  const isRestart = known !== undefined && known.attempt < record.attempt
  return isRestart ? { ...next, earlier: new Map(item.earlier).set(record.name, known) } : next
}

function withView(item: PodRecord, container: string, view: ContainerView): PodRecord {
  return { ...item, containers: new Map(item.containers).set(container, view) }
}

/** What a kubelet adds for its own use, and the downward API shows. */
function withSource(pod: Pod, seenAt: number): Pod {
  const annotations = {
    ...pod.metadata.annotations,
    'kubernetes.io/config.seen': timestamp(seenAt),
    'kubernetes.io/config.source': 'api',
  }
  return { ...pod, metadata: { ...pod.metadata, annotations } }
}

function change<K extends keyof PodRecord>(item: PodRecord, name: K, value: PodRecord[K]): PodRecord {
  return item[name] === value ? item : { ...item, [name]: value }
}
