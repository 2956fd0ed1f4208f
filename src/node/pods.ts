// How far has each pod of this node got? One loop over pods: directories, volumes, containers, status; and back again:
// containers stop, volumes go, directories go, then the object (grace 0). The decisions are in pod-plan.ts.
import { join } from 'node:path/posix'
import type { PodUid } from '../api/names.ts'
import { podUid } from '../api/names.ts'
import type { Pod } from '../api/types.ts'
import type { Client } from '../client/client.ts'
import type { Recorder } from '../client/recorder.ts'
import { timestamp } from '../clock/clock.ts'
import type { Clock } from '../clock/clock.ts'
import type { Host } from '../host/host.ts'
import { createKeyLoop } from '../loop/key-loop.ts'
import type { Log } from '../telemetry/log.ts'
import { eventReasons } from '../volume/messages.ts'
import { podDirectory } from '../volume/paths.ts'
import type { ContainerRequestDeps } from './container-request.ts'
import { containerRequest } from './container-request.ts'
import type { ContainerView, PodPlan } from './pod-plan.ts'
import { planPod } from './pod-plan.ts'
import type { StatusFacts } from './pod-status.ts'
import type { ContainerRecord, Runtime } from './runtime/port.ts'
import type { SourceName } from './sources.ts'
import { createStatusWriter } from './status-writer.ts'
import { VolumesNotReady } from './volumes/manager.ts'
import type { VolumeManager } from './volumes/manager.ts'
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
  readonly known: ReadonlySet<PodUid>
  idle(): Promise<void>
}

export interface PodsDeps extends ContainerRequestDeps {
  readonly client: Client
  readonly clock: Clock
  readonly log: Log
  readonly recorder: Recorder
  readonly host: Host
  readonly root: string
  readonly runtime: Runtime
  readonly manager: VolumeManager
  readonly populator: Populator
  readonly hostAddress: string
  /** Resolves when no volume is being worked on, or soon: mounting goes before starting, which costs far more. */
  calm(signal: AbortSignal): Promise<void>
}

export interface PodWork {
  readonly uid: PodUid
  readonly source: SourceName
  readonly seenAt: number
  pod: Pod | undefined
  /** The source no longer names it. */
  gone: boolean
  directories: boolean
  /** Its volumes are wanted, or it wants none any more. */
  taken: boolean
  volumesReady: boolean
  volumeWait: AbortController | undefined
  readonly containers: Map<string, ContainerView>
  readonly earlier: Map<string, ContainerRecord>
  stopping: { graceMs: number } | undefined
  released: 'no' | 'unmounting' | 'clean'
  failure: { readonly reason: string; readonly message: string } | undefined
  ended: 'Succeeded' | 'Failed' | undefined
}

const startRetry = { firstMs: 1_000, capMs: 30_000 }
/** The same words about waiting volumes are said again only after this long. */
const repeatMs = 60_000
const goodNewsMs = 250
const quietMs = 1_500

export function createPods(deps: PodsDeps): Pods {
  const { clock, log, runtime, manager, populator, recorder } = deps
  const works = new Map<PodUid, PodWork>()
  const records = new Map<PodUid, Map<string, ContainerRecord>>()
  const stopping = new AbortController()
  const takers: (() => void)[] = []
  const status = createStatusWriter({ ...deps, works, factsOf: (work, now) => statusFacts(deps, work, now) })
  const loop = createKeyLoop<PodUid>({
    name: 'pods',
    clock,
    workers: 64,
    backoff: { firstMs: 200, capMs: 30_000 },
    look: (uid, signal) => look(uid, signal),
    onError: (uid, error) => log.warn('pod needs another try', { pod: uid, error }),
  })
  const remember = (record: ContainerRecord) => {
    const ofPod = records.get(record.pod) ?? new Map<string, ContainerRecord>()
    records.set(record.pod, ofPod.set(record.name, record))
  }
  const subscription = runtime.subscribe((record) => {
    const work = works.get(record.pod)
    if (work) noteRecord(work, record)
    else remember(record)
    loop.wake(record.pod)
    status.wake(record.pod)
  })

  const look = async (uid: PodUid, signal: AbortSignal) => {
    const work = works.get(uid)
    if (!work) return
    const terminating = isTerminating(work, clock.now())
    if (!terminating && work.pod) await prepare(work, work.pod, signal)
    work.taken = true
    for (const resolve of takers.splice(0)) resolve()
    const plan = planPod(viewOf(work, terminating))
    if (plan.ended && !work.ended) {
      work.ended = plan.ended
      status.wake(uid)
    }
    for (const { container, attempt } of plan.start) await start(work, work.pod!, container.name, attempt, signal)
    if (plan.stop.length > 0) stop(work, plan.stop)
    if (plan.released) await release(work, signal)
    return { again: nextLook(work, plan) }
  }
  const viewOf = (work: PodWork, terminating: boolean) => ({
    pod: work.pod ?? noPod,
    containers: work.containers,
    volumesReady: work.volumesReady,
    terminating,
    now: clock.now(),
  })
  const nextLook = (work: PodWork, plan: PodPlan): number | undefined => {
    const limit = work.pod?.spec?.activeDeadlineSeconds
    const started = work.pod?.status?.startTime
    if (limit === undefined || started === undefined || work.failure) return plan.again
    const end = Date.parse(started) + limit * 1000
    return plan.again === undefined ? end : Math.min(plan.again, end)
  }

  /** Directories first, then the volumes are wanted; whoever waits for them waits beside the loop. */
  const prepare = async (work: PodWork, pod: Pod, signal: AbortSignal) => {
    if (!work.directories) {
      const base = podDirectory(deps.root, work.uid)
      await deps.host.files.mkdirAll(join(base, 'volumes'), 0o750, signal)
      await deps.host.files.mkdirAll(join(base, 'plugins'), 0o750, signal)
      work.directories = true
    }
    populator.put(pod)
    if (work.volumesReady || work.volumeWait) return
    work.volumeWait = new AbortController()
    void waitForVolumes(work, AbortSignal.any([work.volumeWait.signal, stopping.signal]))
  }
  const waitForVolumes = async (work: PodWork, signal: AbortSignal) => {
    let said = { text: '', at: 0 }
    while (!signal.aborted && work.pod) {
      try {
        await manager.mounted(work.pod, signal)
        work.volumesReady = true
        loop.wake(work.uid)
        return
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof VolumesNotReady)) {
          log.error('waiting for volumes failed', { pod: work.uid, error })
          await clock.sleep(1_000, signal).catch(() => {})
          continue
        }
        // A claim made together with its pod is often bound a moment later: that is no news for anybody.
        if (!error.timedOut && clock.now() - work.seenAt < quietMs) continue
        const text = `Unable to attach or mount volumes: ${error.message}`
        if (text === said.text && clock.now() - said.at < repeatMs) continue
        said = { text, at: clock.now() }
        tell(work, 'Warning', eventReasons.mountFailed, text)
      }
    }
  }

  const start = async (work: PodWork, pod: Pod, name: string, attempt: number, signal: AbortSignal) => {
    const all = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])]
    const container = all.find((each) => each.name === name)!
    let stage: 'CreateContainerConfigError' | 'RunContainerError' = 'CreateContainerConfigError'
    try {
      const request = await containerRequest(deps, { pod, uid: work.uid, container, attempt }, signal)
      stage = 'RunContainerError'
      await deps.calm(signal)
      noteRecord(work, await runtime.start(request, signal))
      tellLater(work, 'Started', `Started container ${name}`)
    } catch (error) {
      if (signal.aborted) throw error
      const view = work.containers.get(name)
      const failures = (view?.startError?.failures ?? 0) + 1
      const message = error instanceof Error ? error.message : String(error)
      const retryAt = clock.now() + Math.min(startRetry.capMs, startRetry.firstMs * 2 ** Math.min(failures - 1, 10))
      work.containers.set(name, { record: view?.record, startError: { reason: stage, message, retryAt, failures } })
      tell(work, 'Warning', 'Failed', `Error: ${message}`)
    }
    status.wake(work.uid)
    loop.wake(work.uid)
  }
  /** Stops beside the loop, so that a shorter grace can overtake a longer one. */
  const stop = (work: PodWork, names: readonly string[]) => {
    const graceMs = graceOf(work)
    if (work.stopping && work.stopping.graceMs <= graceMs) return
    if (!work.stopping) for (const name of names) tellLater(work, 'Killing', `Stopping container ${name}`)
    const task = { graceMs }
    work.stopping = task
    work.volumeWait?.abort()
    const stops = names.map((name) => runtime.stop({ pod: work.uid, name, graceMs }, stopping.signal))
    void Promise.allSettled(stops).then((results) => {
      const failed = results.find((result) => result.status === 'rejected')
      if (failed && !stopping.signal.aborted)
        log.warn('containers could not be stopped', { pod: work.uid, error: failed.reason })
      if (work.stopping === task) work.stopping = undefined
      loop.wake(work.uid)
    })
  }

  const release = async (work: PodWork, signal: AbortSignal) => {
    work.volumeWait?.abort()
    work.volumeWait = undefined
    if (work.released === 'no') {
      work.released = 'unmounting'
      populator.drop(work.uid)
      status.wake(work.uid)
      void untilUnmounted(work)
    }
    if (work.released !== 'clean') return
    if (!work.gone && !isDeleted(work)) return // an ended pod keeps its directories until its object goes
    await removeDirectories(deps, work.uid, signal)
    await runtime.removePod(work.uid, signal)
    if (work.gone || work.source !== 'api') {
      works.delete(work.uid)
      records.delete(work.uid)
      loop.forget(work.uid)
      return
    }
    await status.removeObject(work, signal)
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
  const admit = (uid: PodUid, source: SourceName): PodWork => {
    const containers = new Map<string, ContainerView>()
    for (const [name, record] of records.get(uid) ?? []) containers.set(name, { record })
    const work: PodWork = {
      uid,
      source,
      seenAt: clock.now(),
      pod: undefined,
      gone: false,
      directories: false,
      taken: false,
      volumesReady: false,
      volumeWait: undefined,
      containers,
      earlier: new Map(),
      stopping: undefined,
      released: 'no',
      failure: undefined,
      ended: undefined,
    }
    works.set(uid, work)
    return work
  }

  return {
    get known() {
      return new Set(works.keys())
    },
    put(object, source) {
      const uid = podUid(object.metadata.uid ?? '')
      const work = works.get(uid) ?? admit(uid, source)
      const first = work.pod === undefined
      work.pod = source === 'api' ? withSource(object, work) : object
      // Volumes of a pod whose containers may still run are protected, even if the pod is on its way out (KP-2).
      if (first && isTerminating(work, clock.now()) && runs(work)) populator.put(work.pod)
      loop.wake(uid)
      if (first) status.wake(uid)
    },
    remove(uid) {
      const work = works.get(uid)
      if (!work) return
      work.gone = true
      loop.wake(uid)
    },
    clean(uid) {
      if (works.has(uid)) return
      admit(uid, 'api').gone = true
      loop.wake(uid)
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
      await status.idle()
    },
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('the agent is stopping; containers run on'))
      subscription[Symbol.dispose]()
      for (const resolve of takers.splice(0)) resolve()
      await loop[Symbol.asyncDispose]()
      await status[Symbol.asyncDispose]()
    },
  }
}

const noPod: Pod = { metadata: { name: '' }, spec: { containers: [] } }

const isDeleted = ({ pod }: PodWork) => pod?.metadata.deletionTimestamp !== undefined
const runs = ({ containers }: PodWork) => [...containers.values()].some(({ record }) => record && !record.exit)

/** Nothing starts any more: deleted, gone, ended according to the API, or over its time. */
function isTerminating(work: PodWork, now: number): boolean {
  const { pod } = work
  if (work.gone || !pod || isDeleted(work) || work.failure) return true
  if (pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') return true
  const limit = pod.spec?.activeDeadlineSeconds
  const started = pod.status?.startTime
  if (limit === undefined || started === undefined || now < Date.parse(started) + limit * 1000) return false
  work.failure = {
    reason: 'DeadlineExceeded',
    message: 'Pod was active on the node longer than the specified deadline',
  }
  return true
}

/** A pod whose object is gone gets a second; one without a word gets what its spec says. */
function graceOf({ pod, gone }: PodWork): number {
  const told = pod?.metadata.deletionGracePeriodSeconds
  if (gone) return Math.min(told ?? 1, 1) * 1000
  return (told ?? pod?.spec?.terminationGracePeriodSeconds ?? 30) * 1000
}

/** The latest start counts; what came before it is the container's last state. */
function noteRecord(work: PodWork, record: ContainerRecord): void {
  const known = work.containers.get(record.name)?.record
  if (known && known.attempt > record.attempt) return
  if (known && known.attempt < record.attempt) work.earlier.set(record.name, known)
  if (known?.attempt === record.attempt && known.exit && !record.exit) return
  work.containers.set(record.name, { record })
}

/** What a kubelet adds for its own use, and the downward API shows. */
function withSource(pod: Pod, work: PodWork): Pod {
  const annotations = {
    ...pod.metadata.annotations,
    'kubernetes.io/config.seen': timestamp(work.seenAt),
    'kubernetes.io/config.source': 'api',
  }
  return { ...pod, metadata: { ...pod.metadata, annotations } }
}

function statusFacts({ hostAddress }: PodsDeps, work: PodWork, now: number): StatusFacts {
  const { containers, earlier, ended, failure, volumesReady, seenAt } = work
  return {
    pod: work.pod ?? noPod,
    containers,
    earlier,
    ended,
    failure,
    volumesReady,
    now,
    seenAt,
    address: hostAddress,
  }
}

/** LAYOUT-11: only empty directories go from where volumes were; nothing crosses a mount; a file there stops us. */
async function removeDirectories({ host, root }: PodsDeps, uid: PodUid, signal: AbortSignal): Promise<void> {
  const base = podDirectory(root, uid)
  if (!(await host.files.exists(base, signal))) return
  for (const part of ['volumes', 'volumeDevices', 'volume-subpaths']) {
    const directory = join(base, part)
    if (await host.files.exists(directory, signal)) await host.files.removeEmptyTree(directory, signal)
  }
  await host.files.removeTree(base, signal)
}
