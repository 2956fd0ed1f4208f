// How far has each pod of this node got? One loop over pods: read the record, plan, perform. A change of a
// record wakes its pod, unless planning again could change nothing; nothing polls. The decisions are in pod-plan.ts, what is known in pod-record.ts.
import type { PodUid } from '../../api/names.ts'
import { podUid } from '../../api/names.ts'
import type { Pod } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import type { Recorder } from '../../client/recorder.ts'
import type { KeyLoop, Looked } from '../../loop/key-loop.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { ContainerLifeDeps } from '../containers/container-life.ts'
import { killContainer } from '../containers/container-life.ts'
import { probeOf } from '../containers/probe-plan.ts'
import type { ProbesDeps } from '../containers/probes.ts'
import { createProbes } from '../containers/probes.ts'
import type { ContainerRecord } from '../runtime/port.ts'
import type { ContainerView, HeldContainer } from './container-plan.ts'
import { isSidecar } from './container-plan.ts'
import { conflictingPod, unnamedOfSameName } from './name-conflicts.ts'
import { graceOf, isEvictable, isTaken, isTerminating } from './pod-lifetime.ts'
import type { PodPerformer } from './pod-performer.ts'
import { createPodPerformer } from './pod-performer.ts'
import { planPod } from './pod-plan.ts'
import type { PodEvent, PodRecord } from './pod-record.ts'
import type { SourceName } from './sources.ts'
import type { StatusWriter } from './status-writer.ts'
import { createStatusWriter } from './status-writer.ts'

export interface Pods extends AsyncDisposable {
  put(pod: Pod, source: SourceName): void
  remove(uid: PodUid): void
  /** A pod that only disk and runtime remember: it is cleaned away. */
  clean(uid: PodUid): void
  /** Containers of an earlier life, told before any pod. */
  adopt(records: readonly ContainerRecord[]): void
  /**
   * Resolves when the volumes of every pod named so far are wanted. Before that nothing may be undone: a volume on disk
   * would look like nobody's while its pod runs.
   */
  taken(): Promise<void>
  /** Ends a pod that takes more of the node than it said; what the node itself needs stays. */
  evict(uid: PodUid, message: string): void
  /** Every pod and what its containers do, for whoever looks into them. */
  views(): readonly PodView[]
}

export interface PodView {
  readonly pod: Pod
  readonly uid: PodUid
  readonly containers: ReadonlyMap<string, ContainerView>
  /** As containers were started; of those that an earlier life of the agent started nothing is known. */
  readonly settings: PodRecord['settings']
}

/** What keeps the node from making room for a pod, or from cleaning up after it. */
export interface PodTrouble {
  readonly during: 'prepare' | 'release'
  /** When it was first met. */
  readonly since: number
  readonly error: unknown
}

export interface PodsDeps extends Omit<ContainerLifeDeps, 'stopping' | 'tell'> {
  readonly client: Client
  readonly recorder: Recorder
  /** Hears what keeps the node from making room for a pod or from cleaning up after it; nothing means that it is over. */
  onTrouble?(pod: Pod, trouble: PodTrouble | undefined): void
  /** Hears, at each look, which containers of a pod are tried again only later. */
  onHeld?(pod: Pod, held: readonly HeldContainer[]): void
}

interface PodLoop {
  readonly deps: PodsDeps
  readonly loop: KeyLoop<PodUid>
  readonly status: StatusWriter
  readonly performer: PodPerformer
  /** Since when the last looks at a pod failed. */
  readonly troubled: Map<PodUid, number>
}

export function createPods(deps: PodsDeps): Pods {
  const { clock, pods, runtime } = deps
  const stopping = new AbortController()
  const tell = createPodEvents(deps)
  const status = createStatusWriter({ ...deps, records: pods.items })
  const lifeDeps = { ...deps, tell, stopping: stopping.signal }
  const performer = createPodPerformer({ ...lifeDeps, status })
  const loop = createKeyLoop<PodUid>({
    name: 'pods',
    clock,
    workers: 64,
    backoff: { firstMs: 200, capMs: 30_000 },
    look: (uid, signal) => look(podLoop, uid, signal),
    onError: (uid, error) => noteTrouble(podLoop, uid, error),
  })
  const podLoop: PodLoop = { deps, loop, status, performer, troubled: new Map() }
  const probes = createProbes({ ...deps, tell, onFailed: killUnhealthy(lifeDeps) })
  const subscriptions = [
    pods.subscribe((uid, event) => followRecord(podLoop, uid, event)),
    runtime.subscribe((record) => pods.apply({ kind: 'containerSeen', uid: record.pod, record })),
  ]
  return {
    ...createPodEntries(deps, tell),
    async taken() {
      const isOpen = (record: PodRecord | undefined) => record !== undefined && !isTaken(record, clock.now())
      for (const uid of [...pods.items.keys()]) {
        while (!stopping.signal.aborted && isOpen(pods.items.get(uid))) await nextChange(deps, stopping.signal)
      }
    },
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('the agent is stopping; containers run on'))
      for (const subscription of subscriptions) subscription[Symbol.dispose]()
      await loop[Symbol.asyncDispose]()
      await probes[Symbol.asyncDispose]()
      await performer.idle()
      await status[Symbol.asyncDispose]()
    },
  }
}

/** How others tell of pods, and what they may ask. */
function createPodEntries({ clock, pods }: PodsDeps, tell: ProbesDeps['tell']) {
  const put: Pods['put'] = (pod, source) => {
    const uid = podUid(pod.metadata.uid ?? '')
    const isFirst = pods.items.get(uid)?.source === undefined
    pods.apply({ kind: 'named', uid, pod, source, at: clock.now() })
    const record = pods.items.get(uid)
    if (isFirst && record) for (const other of unnamedOfSameName(pods.items, record)) clean(other)
  }
  const clean = (uid: PodUid) => pods.apply({ kind: 'leftBehind', uid, at: clock.now() })
  return {
    put,
    clean,
    remove: (uid: PodUid) => pods.apply({ kind: 'removed', uid }),
    adopt(found: readonly ContainerRecord[]) {
      for (const record of found) pods.apply({ kind: 'containerSeen', uid: record.pod, record })
    },
    evict(uid: PodUid, message: string) {
      const record = pods.items.get(uid)
      if (!record || !isEvictable(record) || isTerminating(record, clock.now())) return
      tell(uid, 'Warning', 'Evicted', message)
      pods.apply({ kind: 'failed', uid, reason: 'Evicted', message })
    },
    views: () =>
      [...pods.items.values()].flatMap(({ pod, uid, containers, settings }) =>
        pod ? [{ pod, uid, containers, settings }] : [],
      ),
  }
}

async function look(podLoop: PodLoop, uid: PodUid, signal: AbortSignal): Promise<Looked | void> {
  const { deps, performer, troubled } = podLoop
  const record = deps.pods.items.get(uid)
  if (!record) return
  const plan = planPod(record, {
    now: deps.clock.now(),
    awaitingVolumes: performer.isAwaitingVolumes(uid),
    conflict: conflictingPod(deps.pods.items, record),
  })
  // Read now: the last action may forget the pod.
  const wasTroubled = troubled.has(uid)
  for (const action of plan.actions) {
    const work = performer.perform(record, action, signal)
    if (work) await work
  }
  if (plan.waiting.length > 0) deps.log.debug('pod waits', { pod: uid, reasons: plan.waiting })
  if (record.pod && record.source === 'api') deps.onHeld?.(record.pod, plan.held)
  troubled.delete(uid)
  if (wasTroubled && record.pod) deps.onTrouble?.(record.pod, undefined)
  return { again: plan.again }
}

function noteTrouble({ deps, troubled }: PodLoop, uid: PodUid, error: unknown): void {
  const { clock, log, pods } = deps
  log.warn('pod needs another try', { pod: uid, error })
  const record = pods.items.get(uid)
  if (!record?.pod || record.source !== 'api') return
  const since = troubled.get(uid) ?? clock.now()
  troubled.set(uid, since)
  deps.onTrouble?.(record.pod, { during: isTerminating(record, clock.now()) ? 'release' : 'prepare', since, error })
}

/** The performer caused these itself; planning again would change nothing. */
const eventsThatNeedNoLook: ReadonlySet<PodEvent['kind']> = new Set<PodEvent['kind']>([
  'volumesWanted',
  'volumeHealthSeen',
  'startsBegan',
  'stopBegan',
  'preStopCalled',
  'pauseTold',
  'removalAsked',
])

/** What happened to a pod wakes its loop, its status, and pods of manifests that wait for its end. */
function followRecord({ deps, loop, status, performer, troubled }: PodLoop, uid: PodUid, event: PodEvent): void {
  const { clock, pods } = deps
  const record = pods.items.get(uid)
  if (event.kind === 'forgotten' || (event.kind === 'containerSeen' && event.record.exit)) {
    for (const other of pods.items.values()) if (other.source !== 'api') loop.wake(other.uid)
  }
  if (!record) {
    troubled.delete(uid)
    loop.forget(uid)
    return status.forget(uid)
  }
  if (isTerminating(record, clock.now())) performer.abandonStarts(uid)
  if (!eventsThatNeedNoLook.has(event.kind)) loop.wake(uid)
  if (changesStatus(record, event)) status.wake(uid)
}

/** Our own writes come back as a changed pod: that alone is no reason to write again. */
function changesStatus({ pod, volumes }: PodRecord, event: PodEvent): boolean {
  switch (event.kind) {
    case 'named':
      // A new pod; or one with readiness gates, of which others say in its status whether it is ready.
      return volumes === 'none' || (pod?.spec?.readinessGates ?? []).length > 0
    case 'ended':
    case 'failed':
    case 'volumesReleased':
    case 'volumeHealthSeen':
    case 'containerSeen':
    case 'containerStarted':
    case 'startFailed':
    case 'healthSeen':
    case 'startsEnded':
    case 'stopEnded':
      return true
    default:
      return false
  }
}

function killUnhealthy(deps: ContainerLifeDeps): ProbesDeps['onFailed'] {
  return (record, container, kind) => {
    const again = record.pod?.spec?.restartPolicy === 'Never' && !isSidecar(container) ? '' : ', will be restarted'
    const grace = probeOf(container, kind)?.terminationGracePeriodSeconds
    const graceMs = grace === undefined ? graceOf(record) : grace * 1000
    killContainer(deps, record.uid, container, `Container ${container.name} failed ${kind} probe${again}`, graceMs)
  }
}

function createPodEvents({ pods, recorder }: PodsDeps): ProbesDeps['tell'] {
  return (uid, type, reason, message) => {
    const { pod, source } = pods.items.get(uid) ?? {}
    if (pod && source === 'api') recorder.event({ kind: 'Pod', object: pod }, type, reason, message)
  }
}

function nextChange({ pods }: PodsDeps, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      subscription[Symbol.dispose]()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const subscription = pods.subscribe(end)
    signal.addEventListener('abort', end, { once: true })
  })
}
