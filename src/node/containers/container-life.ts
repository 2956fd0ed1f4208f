// How does a container begin and end? Start, then its postStart hook; preStop hook, then the signals, all within one grace.
// Ends run beside the pod loop, so that a shorter grace can overtake a longer one. Sidecars go last, in reverse order.
import type { PodUid } from '../../api/names.ts'
import type { Container, LifecycleHandler, Pod } from '../../api/generated/types.ts'
import type { Clock } from '../../clock/clock.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { Log } from '../../telemetry/log.ts'
import { VolumeError } from '../../volume/effect.ts'
import { isRunning, isSidecar } from '../pods/container-plan.ts'
import { graceOf } from '../pods/pod-lifetime.ts'
import type { PodRecord, PodWorld } from '../pods/pod-record.ts'
import { NoCommandError } from '../runtime/entrypoints.ts'
import type { ContainerRequest, ProcessSettings } from '../runtime/port.ts'
import type { ContainerRequestDeps } from './container-request.ts'
import { containerRequest } from './container-request.ts'
import type { HandlerDeps } from './handlers.ts'
import { callHandler } from './handlers.ts'

export interface ContainerLifeDeps extends ContainerRequestDeps, HandlerDeps {
  readonly clock: Clock
  readonly log: Log
  readonly pods: PodWorld
  /** Aborts when the agent stops: containers run on. */
  readonly stopping: AbortSignal
  tell(pod: PodUid, type: 'Normal' | 'Warning', reason: string, message: string): void
}

const startRetry = { firstMs: 1_000, capMs: 30_000 }
/** A container gets this much after its hook, even if the hook used up the grace. */
const leastGraceMs = 2_000
/** Containers that could not be stopped are tried again after this long. */
const stopAgainMs = 5_000
/** A postStart hook has no limit of its own; the container waits for it. */
const longestHookMs = 3_600_000

/** Starts one container and calls its postStart hook; what fails is told and written into the pod's record. */
export async function startContainer(
  deps: ContainerLifeDeps,
  uid: PodUid,
  container: Container,
  attempt: number,
  signal: AbortSignal,
): Promise<void> {
  if (!(await tryStart(deps, uid, container, attempt, signal))) return
  const hook = container.lifecycle?.postStart
  if (!hook) return
  const problem = await runHook(deps, uid, container, hook, longestHookMs, signal)
  const record = deps.pods.items.get(uid)
  if (problem === undefined || signal.aborted || !record) return
  deps.tell(uid, 'Warning', 'FailedPostStartHook', `PostStartHook failed: ${problem}`)
  killContainer(deps, uid, container, `FailedPostStartHook`, graceOf(record))
}

/** Ends these containers with the given grace; the pod's record says that they are being stopped until that is over. */
export function stopContainers(deps: ContainerLifeDeps, uid: PodUid, names: readonly string[], graceMs: number): void {
  const { clock, pods, stopping, tell } = deps
  const record = pods.items.get(uid)
  if (!record) return
  if (!record.stopping) for (const name of names) tell(uid, 'Normal', 'Killing', `Stopping container ${name}`)
  pods.apply({ kind: 'stopBegan', uid, graceMs })
  void problemOf(deps, uid, endAll(deps, uid, names, graceMs)).then(async (problem) => {
    if (problem !== undefined) tell(uid, 'Warning', 'FailedKillPod', `error killing pod: ${problem}`)
    // A runtime that calls it done and tells of no end is asked again, too, but not at once.
    const goesOn = names.some((name) => isRunning(pods.items.get(uid)?.containers.get(name)))
    if (problem !== undefined || goesOn) await clock.sleep(stopAgainMs, stopping).catch(() => {})
    pods.apply({ kind: 'stopEnded', uid, graceMs })
  })
}

/** Ends one container that has to begin again. */
export function killContainer(
  deps: ContainerLifeDeps,
  uid: PodUid,
  { name }: Container,
  message: string,
  graceMs: number,
): void {
  deps.tell(uid, 'Normal', 'Killing', message)
  void problemOf(deps, uid, end(deps, uid, name, graceMs))
}

/** As a kubelet names them: its settings, the container itself, its program. */
type StartFailure = 'CreateContainerConfigError' | 'CreateContainerError' | 'RunContainerError'

/** Answers whether it runs; a failed start is told and tried again later. */
async function tryStart(
  deps: ContainerLifeDeps,
  uid: PodUid,
  container: Container,
  attempt: number,
  signal: AbortSignal,
): Promise<boolean> {
  const { clock, pods, tell } = deps
  const { name } = container
  const pod = pods.items.get(uid)?.pod
  if (!pod) return false
  let reason: StartFailure = 'CreateContainerConfigError'
  try {
    const request = await containerRequest(deps, { pod, uid, container, attempt }, signal)
    reason = 'RunContainerError'
    const record = await deps.runtime.start(request, signal)
    pods.apply({ kind: 'containerStarted', uid, record, settings: settingsOf(request) })
    tell(uid, 'Normal', 'Started', `Started container ${name}`)
    if (attempt === 0 && isFirst(pod, container)) tellUnheldWishes(deps, uid, pod)
    return true
  } catch (error) {
    if (signal.aborted) return false
    if (error instanceof NoCommandError) reason = 'CreateContainerError'
    const failures = (pods.items.get(uid)?.containers.get(name)?.startError?.failures ?? 0) + 1
    const message = errorText(error)
    const code = error instanceof VolumeError ? { code: error.code } : {}
    const retryAt = clock.now() + Math.min(startRetry.capMs, startRetry.firstMs * 2 ** Math.min(failures - 1, 10))
    pods.apply({ kind: 'startFailed', uid, container: name, error: { reason, message, ...code, retryAt, failures } })
    tell(uid, 'Warning', 'Failed', `Error: ${message}`)
    return false
  }
}

/** Once per pod: whoever wrote the field may not have seen the warning at its creation. */
function tellUnheldWishes({ runtime, tell }: ContainerLifeDeps, uid: PodUid, pod: Pod): void {
  const wishes = runtime.unheldWishes?.(pod) ?? []
  if (wishes.length > 0) tell(uid, 'Warning', 'NotHonoured', wishes.join('; '))
}

const isFirst = ({ spec }: Pod, { name }: Container) =>
  (spec?.initContainers?.[0] ?? spec?.containers?.[0])?.name === name

/** What a command beside the container's own needs of its request. */
function settingsOf(request: ContainerRequest): ProcessSettings {
  const { env, workingDirectory, user, group, groups, capabilities, noNewPrivileges } = request
  return {
    env,
    workingDirectory,
    groups,
    ...(user === undefined ? {} : { user }),
    ...(group === undefined ? {} : { group }),
    ...(capabilities === undefined ? {} : { capabilities }),
    ...(noNewPrivileges === undefined ? {} : { noNewPrivileges }),
  }
}

/** What went wrong, if anything did. */
async function runHook(
  deps: ContainerLifeDeps,
  uid: PodUid,
  container: Container,
  hook: LifecycleHandler,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { pod, settings } = deps.pods.items.get(uid) ?? {}
  if (!pod) return undefined
  const target = { pod, uid, container, settings: settings?.get(container.name) }
  try {
    const { ok, output } = await callHandler(deps, target, hook, timeoutMs, signal)
    return ok ? undefined : output
  } catch (error) {
    return errorText(error)
  }
}

/** The hook first, in the container's own time; then the signals with what is left of it. */
async function end(deps: ContainerLifeDeps, uid: PodUid, name: string, graceMs: number): Promise<void> {
  const { clock, pods, stopping } = deps
  const pod = pods.items.get(uid)
  const { record } = pod?.containers.get(name) ?? {}
  if (!pod || !record || record.exit) return
  const container = containersOf(pod).find((each) => each.name === name)
  const hook = container?.lifecycle?.preStop
  let left = graceMs
  if (container && hook && graceMs > 0 && !pod.preStopCalled.has(record.id)) {
    pods.apply({ kind: 'preStopCalled', uid, id: record.id })
    const begin = clock.now()
    using deadline = clock.deadline(graceMs, stopping)
    const problem = await runHook(deps, uid, container, hook, graceMs, deadline.signal)
    if (stopping.aborted) return
    if (problem !== undefined) deps.tell(uid, 'Warning', 'FailedPreStopHook', `PreStopHook failed: ${problem}`)
    left = Math.max(leastGraceMs, graceMs - (clock.now() - begin))
  }
  await deps.runtime.stop({ pod: uid, name, graceMs: left }, stopping)
}

async function endAll(deps: ContainerLifeDeps, uid: PodUid, names: readonly string[], graceMs: number): Promise<void> {
  const { clock, pods } = deps
  const begin = clock.now()
  const { initContainers = [] } = pods.items.get(uid)?.pod?.spec ?? {}
  const sidecars = initContainers.filter(isSidecar).map(({ name }) => name)
  const first = names.filter((name) => !sidecars.includes(name))
  await Promise.all(first.map((name) => end(deps, uid, name, graceMs)))
  for (const name of sidecars.toReversed()) {
    if (!names.includes(name)) continue
    const least = Math.min(graceMs, leastGraceMs)
    await end(deps, uid, name, Math.max(least, graceMs - (clock.now() - begin)))
  }
}

/** What went wrong, if anything did and it was not our own end. */
async function problemOf(
  { log, stopping }: ContainerLifeDeps,
  uid: PodUid,
  task: Promise<void>,
): Promise<string | undefined> {
  try {
    return void (await task)
  } catch (error) {
    if (stopping.aborted) return undefined
    log.warn('containers could not be stopped', { pod: uid, error })
    return errorText(error)
  }
}

const containersOf = ({ pod }: PodRecord) => [...(pod?.spec?.initContainers ?? []), ...(pod?.spec?.containers ?? [])]
