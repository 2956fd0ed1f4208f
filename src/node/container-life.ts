// How does a container begin and end? Start, then its postStart hook; preStop hook, then the signals, all within one grace.
// Ends run beside the pod loop, so that a shorter grace can overtake a longer one. Sidecars go last, in reverse order.
import type { Container, LifecycleHandler } from '../api/types.ts'
import type { Clock } from '../clock/clock.ts'
import type { Log } from '../telemetry/log.ts'
import type { ContainerRequestDeps } from './container-request.ts'
import { containerRequest } from './container-request.ts'
import type { HandlerDeps } from './handlers.ts'
import { callHandler } from './handlers.ts'
import type { HeldContainer } from './pod-plan.ts'
import { fullNameOf, isRunning, isSidecar } from './pod-plan.ts'
import type { Lull } from './lull.ts'
import type { PodWork } from './pod-work.ts'
import { graceOf, noteRecord } from './pod-work.ts'

export interface ContainerLife {
  /** Starts one container of the pod; what fails is written into the pod's work and told. */
  start(work: PodWork, container: Container, attempt: number, signal: AbortSignal): Promise<void>
  /** Ends these containers with the pod's grace; nothing happens while that is under way with no longer a grace. */
  stop(work: PodWork, names: readonly string[]): void
  /** Ends one container that has to begin again. */
  kill(work: PodWork, container: Container, message: string, graceMs: number): void
  /** Says of which containers the restart is held back; a kubelet says it at each look, here each pause is said once. */
  tellPauses(work: PodWork, held: readonly HeldContainer[]): void
}

export interface ContainerLifeDeps extends ContainerRequestDeps, HandlerDeps {
  readonly clock: Clock
  readonly log: Log
  /** Aborts when the agent stops: containers run on. */
  readonly stopping: AbortSignal
  readonly lull: Pick<Lull, 'wait'>
  tell(work: PodWork, type: 'Normal' | 'Warning', reason: string, message: string): void
  /** Good news has time. */
  tellLater(work: PodWork, reason: string, message: string): void
  /** The pod should be looked at again. */
  wake(work: PodWork): void
}

const startRetry = { firstMs: 1_000, capMs: 30_000 }
/** A container gets this much after its hook, even if the hook used up the grace. */
const leastGraceMs = 2_000
/** Containers that could not be stopped are tried again after this long. */
const stopAgainMs = 5_000
/** A postStart hook has no limit of its own; the container waits for it. */
const longestHookMs = 3_600_000

export function createContainerLife(deps: ContainerLifeDeps): ContainerLife {
  const { clock, log, runtime, stopping, tell } = deps

  const start: ContainerLife['start'] = async (work, container, attempt, signal) => {
    const { name } = container
    const pod = work.pod!
    let stage: 'CreateContainerConfigError' | 'RunContainerError' = 'CreateContainerConfigError'
    try {
      await deps.lull.wait(work.uid)
      const request = await containerRequest(deps, { pod, uid: work.uid, container, attempt }, signal)
      stage = 'RunContainerError'
      noteRecord(work, await runtime.start(request, signal))
      const { env, workingDirectory, user, group, groups } = request
      const ids = { ...(user === undefined ? {} : { user }), ...(group === undefined ? {} : { group }) }
      work.settings.set(name, { env, workingDirectory, groups, ...ids })
      deps.tellLater(work, 'Started', `Started container ${name}`)
    } catch (error) {
      if (signal.aborted) return
      const view = work.containers.get(name)
      const failures = (view?.startError?.failures ?? 0) + 1
      const message = error instanceof Error ? error.message : String(error)
      const retryAt = clock.now() + Math.min(startRetry.capMs, startRetry.firstMs * 2 ** Math.min(failures - 1, 10))
      work.containers.set(name, { record: view?.record, startError: { reason: stage, message, retryAt, failures } })
      tell(work, 'Warning', 'Failed', `Error: ${message}`)
      return
    }
    const hook = container.lifecycle?.postStart
    if (!hook) return
    deps.wake(work)
    const problem = await runHook(work, container, hook, longestHookMs, signal)
    if (problem === undefined || signal.aborted) return
    tell(work, 'Warning', 'FailedPostStartHook', `PostStartHook failed: ${problem}`)
    kill(work, container, `FailedPostStartHook`, graceOf(work))
  }

  /** What went wrong, if anything did. */
  const runHook = async (
    work: PodWork,
    container: Container,
    hook: LifecycleHandler,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<string | undefined> => {
    const target = { pod: work.pod!, uid: work.uid, container, settings: work.settings.get(container.name) }
    try {
      const { ok, output } = await callHandler(deps, target, hook, timeoutMs, signal)
      return ok ? undefined : output
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  /** The hook first, in the container's own time; then the signals with what is left of it. */
  const end = async (work: PodWork, name: string, graceMs: number): Promise<void> => {
    const container = containersOf(work).find((each) => each.name === name)
    const { record } = work.containers.get(name) ?? {}
    if (!record || record.exit) return
    const hook = container?.lifecycle?.preStop
    let left = graceMs
    if (container && hook && graceMs > 0 && !work.hooked.has(record.id)) {
      work.hooked.add(record.id)
      const begin = clock.now()
      using deadline = clock.deadline(graceMs, stopping)
      const problem = await runHook(work, container, hook, graceMs, deadline.signal)
      if (stopping.aborted) return
      if (problem !== undefined) tell(work, 'Warning', 'FailedPreStopHook', `PreStopHook failed: ${problem}`)
      left = Math.max(leastGraceMs, graceMs - (clock.now() - begin))
    }
    await runtime.stop({ pod: work.uid, name, graceMs: left }, stopping)
  }
  const endAll = async (work: PodWork, names: readonly string[], graceMs: number) => {
    const begin = clock.now()
    const sidecars = (work.pod?.spec?.initContainers ?? []).filter(isSidecar).map(({ name }) => name)
    const first = names.filter((name) => !sidecars.includes(name))
    await Promise.all(first.map((name) => end(work, name, graceMs)))
    for (const name of sidecars.toReversed()) {
      if (!names.includes(name)) continue
      const least = Math.min(graceMs, leastGraceMs)
      await end(work, name, Math.max(least, graceMs - (clock.now() - begin)))
    }
  }

  const stop: ContainerLife['stop'] = (work, names) => {
    const graceMs = graceOf(work)
    if (work.stopping && work.stopping.graceMs <= graceMs) return
    if (!work.stopping) for (const name of names) deps.tellLater(work, 'Killing', `Stopping container ${name}`)
    const task = { graceMs }
    work.stopping = task
    work.volumeWait?.abort()
    void beside(work, endAll(work, names, graceMs)).then(async (problem) => {
      if (problem !== undefined) tell(work, 'Warning', 'FailedKillPod', `error killing pod: ${problem}`)
      // A runtime that calls it done and tells of no end is asked again, too, but not at once.
      const goesOn = names.some((name) => isRunning(work.containers.get(name)))
      if (problem !== undefined || goesOn) await clock.sleep(stopAgainMs, stopping).catch(() => {})
      if (work.stopping === task) work.stopping = undefined
      deps.wake(work)
    })
  }
  const kill: ContainerLife['kill'] = (work, container, message, graceMs) => {
    tell(work, 'Normal', 'Killing', message)
    void beside(work, end(work, container.name, graceMs)).then(() => deps.wake(work))
  }
  /** What went wrong, if anything did and it was not our own end. */
  const beside = async (work: PodWork, task: Promise<void>): Promise<string | undefined> => {
    try {
      return void (await task)
    } catch (error) {
      if (stopping.aborted) return undefined
      log.warn('containers could not be stopped', { pod: work.uid, error })
      return error instanceof Error ? error.message : String(error)
    }
  }
  const tellPauses: ContainerLife['tellPauses'] = (work, held) => {
    for (const { container, kind, until } of held) {
      if (kind !== 'restart' || until <= clock.now() || work.pauses.get(container) === until) continue
      work.pauses.set(container, until)
      const message = `Back-off restarting failed container ${container} in pod ${fullNameOf(work.pod!)}`
      tell(work, 'Warning', 'BackOff', message)
    }
  }
  return { start, stop, kill, tellPauses }
}

const containersOf = ({ pod }: PodWork) => [...(pod?.spec?.initContainers ?? []), ...(pod?.spec?.containers ?? [])]
