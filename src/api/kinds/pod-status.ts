// What does a pod's STATUS column say, and how many of its containers are ready?
// The order of the overrides is upstream's; scripts compare these words.
import { hasEnded } from '../pod-claims.ts'
import type { ContainerStatus, Pod } from '../generated/types.ts'

export interface PodSummary {
  readonly status: string
  readonly ready: number
  readonly total: number
  readonly restarts: number
  /** RFC 3339 time of the newest termination that led to a restart. */
  readonly lastRestart: string | undefined
}

interface Tally {
  restarts: number
  lastRestart: string | undefined
}

export function summarizePod(pod: Pod): PodSummary {
  const status = pod.status ?? {}
  const init = summarizeInitContainers(pod)
  let reason = baseReason(pod)
  let ready = init.ready
  let tally = init.all
  if (init.reason !== undefined) reason = init.reason
  if (init.reason === undefined || hasTrueCondition(pod, 'Initialized')) {
    tally = init.restartable
    const main = summarizeContainers(status.containerStatuses ?? [], tally)
    ready += main.ready
    if (main.reason !== undefined) reason = main.reason
    if (reason === 'Completed' && main.running) reason = hasTrueCondition(pod, 'Ready') ? 'Running' : 'NotReady'
  }
  if (pod.metadata.deletionTimestamp !== undefined) {
    if (status.reason === 'NodeLost') reason = 'Unknown'
    else if (!hasEnded(pod)) reason = 'Terminating'
  }
  return { status: reason, ready, total: init.total, restarts: tally.restarts, lastRestart: tally.lastRestart }
}

function baseReason(pod: Pod): string {
  const gated = pod.status?.conditions?.some(
    (condition) => condition.type === 'PodScheduled' && condition.reason === 'SchedulingGated',
  )
  if (gated === true) return 'SchedulingGated'
  const reason = pod.status?.reason ?? ''
  return reason !== '' ? reason : (pod.status?.phase ?? '')
}

/** `reason` is defined while an init container still holds the pod back. */
function summarizeInitContainers(pod: Pod) {
  const containers = pod.spec?.initContainers ?? []
  const restartableNames = new Set(
    containers.filter((container) => container.restartPolicy === 'Always').map((container) => container.name),
  )
  const all: Tally = { restarts: 0, lastRestart: undefined }
  const restartable: Tally = { restarts: 0, lastRestart: undefined }
  let ready = 0
  let reason: string | undefined
  for (const [index, status] of (pod.status?.initContainerStatuses ?? []).entries()) {
    count(all, status)
    const isRestartable = restartableNames.has(status.name)
    if (isRestartable) count(restartable, status)
    if (status.state?.terminated !== undefined && (status.state.terminated.exitCode ?? 0) === 0) continue
    if (isRestartable && status.started === true) {
      if (status.ready === true) ready += 1
      continue
    }
    reason = initReason(status, index, containers.length)
    break
  }
  const total = (pod.spec?.containers ?? []).length + restartableNames.size
  return { all, restartable, ready, reason, total }
}

function initReason(status: ContainerStatus, index: number, total: number): string {
  const terminated = status.state?.terminated
  if (terminated !== undefined) return `Init:${terminated.reason || exitReason(terminated)}`
  const waiting = status.state?.waiting?.reason ?? ''
  if (waiting !== '' && waiting !== 'PodInitializing') return `Init:${waiting}`
  return `Init:${index}/${total}`
}

function summarizeContainers(statuses: readonly ContainerStatus[], tally: Tally) {
  let reason: string | undefined
  let ready = 0
  let running = false
  // From the last to the first: the first container's reason wins.
  for (const status of statuses.toReversed()) {
    count(tally, status)
    const waiting = status.state?.waiting?.reason ?? ''
    const terminated = status.state?.terminated
    if (waiting !== '') reason = waiting
    else if (terminated !== undefined) reason = terminated.reason || exitReason(terminated)
    else if (status.ready === true && status.state?.running !== undefined) {
      running = true
      ready += 1
    }
  }
  return { reason, ready, running }
}

function count(tally: Tally, status: ContainerStatus): void {
  tally.restarts += status.restartCount ?? 0
  const finished = status.lastState?.terminated?.finishedAt
  if (finished === undefined) return
  if (tally.lastRestart === undefined || Date.parse(tally.lastRestart) < Date.parse(finished))
    tally.lastRestart = finished
}

function exitReason(terminated: { readonly signal?: number; readonly exitCode?: number }): string {
  const signal = terminated.signal ?? 0
  return signal !== 0 ? `Signal:${signal}` : `ExitCode:${terminated.exitCode ?? 0}`
}

function hasTrueCondition(pod: Pod, type: string): boolean {
  return pod.status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') === true
}
