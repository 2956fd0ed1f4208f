// How far has each pod of this node got? One loop over pods: directories, volumes, containers, status; and back again:
// containers stop, volumes go, directories go, then the object (grace 0). The decisions are in pod-plan.ts.
import type { PodUid } from '../api/names.ts'
import { podUid } from '../api/names.ts'
import type { Pod } from '../api/types.ts'
import type { Client } from '../client/client.ts'
import type { Recorder } from '../client/recorder.ts'
import { createKeyLoop } from '../loop/key-loop.ts'
import type { HealthCondition } from '../volume/plugin.ts'
import { createContainerLife } from './container-life.ts'
import type { ContainerLifeDeps } from './container-life.ts'
import type { Lull } from './lull.ts'
import type { PodDirectories } from './pod-directories.ts'
import type { ContainerView, HeldContainer, PodPlan } from './pod-plan.ts'
import { isSidecar, planPod } from './pod-plan.ts'
import type { PodTrouble, PodWork } from './pod-work.ts'
import {
  graceOf,
  isDeleted,
  isEvictable,
  isGated,
  isHeldBack,
  isOverdue,
  isTerminating,
  newWork,
  nextLook,
  noPod,
  noteRecord,
  removeDirectories,
  runs,
  statusFacts,
  withSource,
} from './pod-work.ts'
import { probeOf } from './probe-plan.ts'
import { createProbes } from './probes.ts'
import { leftBehind, rivalOf } from './rivals.ts'
import type { ContainerRecord } from './runtime/port.ts'
import type { SourceName } from './sources.ts'
import { createStatusWriter } from './status-writer.ts'
import { withHealth } from './volume-health.ts'
import { waitForVolumes } from './volume-wait.ts'
import { usesMore } from './volumes/claims.ts'
import type { Populator } from './volumes/populate.ts'

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
  /** Do containers of this pod run or begin? Its volumes are in use then, whoever names it or not. */
  runs(uid: PodUid): boolean
  /** CSI-71: what the storage says of a volume of this pod. */
  tellHealth(uid: PodUid, volume: string, conditions: readonly HealthCondition[]): void
  /** Ends a pod that takes more of the node than it said; what the node itself needs stays. */
  evict(uid: PodUid, message: string): void
  readonly known: ReadonlySet<PodUid>
  /** Every pod and what its containers do, for whoever looks into them. */
  views(): readonly PodView[]
  idle(): Promise<void>
}

export interface PodView {
  readonly pod: Pod
  readonly uid: PodUid
  readonly containers: ReadonlyMap<string, ContainerView>
  /** As containers were started; of those that an earlier life of the agent started nothing is known. */
  readonly settings: PodWork['settings']
}

export interface PodsDeps extends Omit<ContainerLifeDeps, 'stopping' | 'tell' | 'tellLater' | 'wake'> {
  readonly lull: Lull
  readonly directories: Pick<PodDirectories, 'make'>
  readonly client: Client
  readonly recorder: Recorder
  readonly populator: Populator
  /** No container of this pod runs any more, nor will. */
  onStopped(pod: PodUid): void
  /** Hears what keeps the node from making room for a pod or from cleaning up after it; nothing means that it is over. */
  onTrouble?(pod: Pod, trouble: PodTrouble | undefined): void
  /** Hears, at each look, which containers of a pod are tried again only later. */
  onHeld?(pod: Pod, held: readonly HeldContainer[]): void
}

const goodNewsMs = 250

export function createPods(deps: PodsDeps): Pods {
  const { clock, log, runtime, manager, populator, recorder } = deps
  const works = new Map<PodUid, PodWork>()
  /** Pod → container id → what an earlier life left, in the order of its starts. */
  const records = new Map<PodUid, Map<string, ContainerRecord>>()
  const stopping = new AbortController()
  const takers: (() => void)[] = []
  const status = createStatusWriter({
    ...deps,
    works,
    factsOf: (work, now) => statusFacts(deps.hostAddress, work, now),
  })
  const loop = createKeyLoop<PodUid>({
    name: 'pods',
    clock,
    workers: 64,
    backoff: { firstMs: 200, capMs: 30_000 },
    look: (uid, signal) => look(uid, signal),
    onError(uid, error) {
      log.warn('pod needs another try', { pod: uid, error })
      const work = works.get(uid)
      if (!work?.pod || work.source !== 'api') return
      const since = troubled.get(uid) ?? clock.now()
      troubled.set(uid, since)
      deps.onTrouble?.(work.pod, { during: isTerminating(work, clock.now()) ? 'release' : 'prepare', since, error })
    },
  })
  const troubled = new Map<PodUid, number>()
  const remember = (record: ContainerRecord) => {
    const ofPod = records.get(record.pod) ?? new Map<string, ContainerRecord>()
    records.set(record.pod, ofPod.set(record.id, record))
  }
  const subscription = runtime.subscribe((record) => {
    const work = works.get(record.pod)
    if (work) noteRecord(work, record)
    else remember(record)
    loop.wake(record.pod)
    status.wake(record.pod)
    if (record.exit) wakeRivals()
  })
  const wakeRivals = () => {
    for (const { uid, source } of works.values()) if (source !== 'api') loop.wake(uid)
  }

  const look = async (uid: PodUid, signal: AbortSignal) => {
    const work = works.get(uid)
    if (!work) return
    if (isOverdue(work, clock.now())) expire(work)
    const terminating = isTerminating(work, clock.now())
    // What has ended wants nothing again, even before the API has heard of its end.
    if (!terminating && work.pod && !work.ended) await prepare(work, work.pod, signal)
    probes.watch(work, terminating)
    take(work)
    const plan = planPod(viewOf(work, terminating))
    if (plan.ended && !work.ended) {
      work.ended = plan.ended
      status.wake(uid)
    }
    if (plan.start.length > 0 && !rivalOf(works, work)) startAll(work, plan.start)
    life.tellPauses(work, plan.held)
    if (work.pod && work.source === 'api') deps.onHeld?.(work.pod, plan.held)
    if (plan.stop.length > 0) life.stop(work, plan.stop)
    if (plan.released && !work.starting) await release(work, signal)
    if (troubled.delete(uid) && work.pod) deps.onTrouble?.(work.pod, undefined)
    return { again: nextLook(work, plan.again) }
  }
  const viewOf = (work: PodWork, terminating: boolean) => ({
    pod: work.pod ?? noPod,
    containers: work.containers,
    volumesReady: work.volumesReady,
    terminating,
    now: clock.now(),
  })

  const take = (work: PodWork) => {
    work.taken = true
    for (const resolve of takers.splice(0)) resolve()
  }
  /** Directories first, then the volumes are wanted; whoever waits for them waits beside the loop. */
  const prepare = async (work: PodWork, pod: Pod, signal: AbortSignal) => {
    try {
      if (!work.directories) await deps.directories.make(work.uid, signal)
      work.directories = true
    } catch (error) {
      // A full disk must not keep others from making room: this pod's volumes are safe once they are wanted.
      populator.put(pod)
      take(work)
      const text = error instanceof Error ? error.message : String(error)
      if (!signal.aborted) tell(work, 'Warning', 'Failed', `error making pod data directories: ${text}`)
      throw error
    }
    populator.put(pod)
    if (work.volumesReady || work.volumeWait) return
    work.volumeWait = new AbortController()
    const wait = { ...deps, tell, reject, ready: () => loop.wake(work.uid) }
    void waitForVolumes(wait, work, AbortSignal.any([work.volumeWait.signal, stopping.signal]))
  }
  /** Over before its time; whoever made the pod may make another one. */
  const fail = (work: PodWork, reason: string, message: string) => {
    work.failure = { reason, message }
    loop.wake(work.uid)
    status.wake(work.uid)
  }
  /** Its status says so when its containers have ended: until then they use its volumes. */
  const expire = (work: PodWork) => {
    const message = 'Pod was active on the node longer than the specified deadline'
    work.failure = { reason: 'DeadlineExceeded', message }
    tell(work, 'Normal', 'DeadlineExceeded', message)
  }
  /** The pod can never start on this node (VM-5). */
  const reject = (work: PodWork, reason: string, message: string) => {
    tell(work, 'Warning', reason, message)
    fail(work, reason, `Pod was rejected: ${message}`)
  }

  /** One after the other, beside the loop: a start that hangs on a dead volume is only its own pod's trouble. */
  const startAll = (work: PodWork, wanted: PodPlan['start']) => {
    work.starting ??= (async () => {
      const signal = AbortSignal.any([stopping.signal, work.starts.signal])
      for (const { container, attempt } of wanted) {
        if (!signal.aborted) await life.start(work, container, attempt, signal)
        probes.watch(work, signal.aborted)
        status.wake(work.uid)
      }
      work.starting = undefined
      loop.wake(work.uid)
    })()
  }
  const release = async (work: PodWork, signal: AbortSignal) => {
    work.volumeWait?.abort()
    work.volumeWait = undefined
    if (work.released === 'no') {
      work.released = 'unmounting'
      populator.drop(work.uid)
      deps.onStopped(work.uid)
      status.wake(work.uid)
      void untilUnmounted(work)
    }
    if (work.released !== 'clean') return
    if (!work.gone && !isDeleted(work)) return // an ended pod keeps its directories until its object goes
    if (isHeldBack(work)) return status.removeObject(work, signal) // so does one that others do not let go yet
    await removeDirectories(deps, work.uid, signal)
    await runtime.removePod(work.uid, signal)
    if (work.gone || work.source !== 'api') {
      forget(work)
      return
    }
    await status.removeObject(work, signal)
  }
  const forget = ({ uid, returned }: PodWork) => {
    works.delete(uid)
    records.delete(uid)
    loop.forget(uid)
    status.forget(uid)
    wakeRivals()
    // Whoever named it again says where it comes from: a pod that was only found on disk came from nowhere.
    if (returned) put(returned.object, returned.source)
  }
  const untilUnmounted = async (work: PodWork) => {
    try {
      await manager.unmounted(work.uid, stopping.signal)
    } catch {
      return // only a stop ends this wait early
    }
    work.released = 'clean'
    loop.wake(work.uid)
  }
  const tell = (work: PodWork, type: 'Normal' | 'Warning', reason: string, message: string) => {
    if (work.pod && work.source === 'api') recorder.event({ kind: 'Pod', object: work.pod }, type, reason, message)
  }
  /** Good news has time: while a hundred pods start or stop, the work itself comes first. */
  const tellLater = (work: PodWork, reason: string, message: string) => {
    clock.at(clock.now() + goodNewsMs, () => stopping.signal.aborted || tell(work, 'Normal', reason, message))
  }
  const life = createContainerLife({
    ...deps,
    stopping: stopping.signal,
    tell,
    tellLater,
    wake(work) {
      probes.watch(work, isTerminating(work, clock.now()))
      loop.wake(work.uid)
      status.wake(work.uid)
    },
  })
  const probes = createProbes({
    ...deps,
    tell,
    onChange(uid) {
      loop.wake(uid)
      status.wake(uid)
    },
    onFailed(work, container, kind) {
      const again = work.pod?.spec?.restartPolicy === 'Never' && !isSidecar(container) ? '' : ', will be restarted'
      const grace = probeOf(container, kind)?.terminationGracePeriodSeconds
      const graceMs = grace === undefined ? graceOf(work) : grace * 1000
      life.kill(work, container, `Container ${container.name} failed ${kind} probe${again}`, graceMs)
    },
  })
  const admit = (uid: PodUid, source: SourceName): PodWork => {
    const work = newWork(uid, source, clock.now())
    for (const record of records.get(uid)?.values() ?? []) noteRecord(work, record)
    works.set(uid, work)
    return work
  }
  const put: Pods['put'] = (object, source) => {
    const uid = podUid(object.metadata.uid ?? '')
    const work = works.get(uid) ?? admit(uid, source)
    // Its source changed its mind: it ends as it was told, and begins again.
    if (work.gone) return void (work.returned = { object, source })
    const before = work.pod
    const first = before === undefined
    work.pod = source === 'api' ? withSource(object, work) : object
    if (first) work.volumeHealth = object.status?.volumeHealth ?? []
    if (before && work.volumesReady && usesMore(work.pod, before)) {
      // An ephemeral container may mount what nobody mounted so far; it waits for its volumes as the first ones did.
      work.volumesReady = false
      work.volumeWait = undefined
    }
    // Volumes of a pod whose containers may still run are protected, even if the pod is on its way out (KP-2).
    const terminating = isTerminating(work, clock.now())
    if (first && terminating && runs(work)) populator.put(work.pod)
    if (terminating) work.starts.abort(new Error('the pod is to end'))
    loop.wake(uid)
    if (first || isGated(object)) status.wake(uid)
    if (!first) return
    for (const other of leftBehind(records, works, work)) clean(other)
    deps.lull.came(uid)
  }
  const clean = (uid: PodUid) => {
    if (works.has(uid)) return
    admit(uid, 'api').gone = true
    loop.wake(uid)
  }

  return {
    get known() {
      return new Set(works.keys())
    },
    views: () =>
      [...works.values()].flatMap(({ pod, uid, containers, settings }) =>
        pod ? [{ pod, uid, containers, settings }] : [],
      ),
    put,
    clean,
    runs(uid) {
      const work = works.get(uid)
      return work !== undefined && (runs(work) || work.starting !== undefined)
    },
    remove(uid) {
      const work = works.get(uid)
      if (!work) return
      work.returned = undefined
      work.gone = true
      work.starts.abort(new Error('the pod is gone'))
      loop.wake(uid)
    },
    tellHealth(uid, volume, conditions) {
      const work = works.get(uid)
      if (!work) return
      const next = withHealth(work.volumeHealth, volume, conditions, clock.now())
      if (next === work.volumeHealth) return
      work.volumeHealth = next
      status.wake(uid)
    },
    evict(uid, message) {
      const work = works.get(uid)
      if (!work || !isEvictable(work) || isTerminating(work, clock.now())) return
      tell(work, 'Warning', 'Evicted', message)
      fail(work, 'Evicted', message)
    },
    adopt(found) {
      for (const record of found) remember(record)
    },
    async taken() {
      const open = () => !stopping.signal.aborted && [...works.values()].some(({ taken }) => !taken)
      while (open()) await new Promise<void>((resolve) => void takers.push(resolve))
    },
    async idle() {
      await loop.idle()
      for (const { starting } of works.values()) await starting
      await loop.idle()
      await status.idle()
    },
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('the agent is stopping; containers run on'))
      subscription[Symbol.dispose]()
      for (const resolve of takers.splice(0)) resolve()
      await loop[Symbol.asyncDispose]()
      await probes[Symbol.asyncDispose]()
      await Promise.all([...works.values()].map(({ starting }) => starting))
      await status[Symbol.asyncDispose]()
    },
  }
}
