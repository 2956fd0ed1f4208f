// How far are a pod's containers? The last step of its start, and the steps of its end.
import type { ContainerStatus, OperationRecord, Pod } from '../api/generated/types.ts'
import type { CauseNames } from './causes.ts'
import { driverTrouble, runningLink as workLink } from './driver-links.ts'
import type { Facts } from './facts.ts'
import { failureOf, nodeOf, parse, readinessOf, runningOf } from './facts.ts'
import type { Link } from './link.ts'
import { blocked, done, failureFacts, later, sinceFacts } from './link.ts'
import { containerOperations, podOperations, unmountOperations } from './operation-names.ts'
import { causeOfCode } from './reasons.ts'
import { podNames, podTarget, withWords } from './pod-names.ts'

export function startLink(facts: Facts, pod: Pod): Link {
  const node = pod.spec?.nodeName ?? ''
  const actor = `node ${node}`
  const names = podNames(pod)
  const { phase, containerStatuses = [], initContainerStatuses = [], reason, message } = pod.status ?? {}
  const started = [...containerStatuses, ...initContainerStatuses].flatMap(
    ({ state }) => parse(state?.running?.startedAt ?? state?.terminated?.startedAt) ?? [],
  )
  const at = started.length > 0 ? Math.max(...started) : undefined
  if (phase === 'Succeeded') return { ...done('it runs', actor, undefined, at), name: 'it has completed' }
  if (phase === 'Failed') {
    const ended = containerStatuses.find(({ state }) => (state?.terminated?.exitCode ?? 0) !== 0)
    const exit = ended && `container ${ended.name} exited with code ${ended.state?.terminated?.exitCode}`
    const detail = message ?? exit ?? reason ?? 'no reason given'
    return blocked('it runs', actor, 'podFailed', { ...names, detail }, sinceFacts(endOf(pod)))
  }
  const waiting = [...initContainerStatuses, ...containerStatuses].find(
    ({ state }) => state?.waiting?.reason !== undefined && !startingReasons.has(state.waiting.reason),
  )
  if (waiting) return heldLink(facts, pod, waiting, actor)
  const runs = containerStatuses.length > 0 && containerStatuses.every(({ state }) => state?.running !== undefined)
  const runtime = nodeOf(facts, node)?.status?.nodeInfo?.containerRuntimeVersion ?? ''
  // Such a node says of every container that it runs; there is no process.
  if (isNoRuntime.test(runtime))
    return blocked('it runs', actor, 'noRuntime', names, { ...sinceFacts(at), transient: true })
  if (phase === 'Running' && runs) return runningLink(containerStatuses, actor, at)
  return startingLink(facts, pod, actor) ?? later('it runs', actor)
}

/** `hawser-none://1` */
const isNoRuntime = /^(\w+-)?none:/

/** When the last container ended; a pod that was refused has none, and its condition says when. */
function endOf({ status, metadata }: Pod): number | undefined {
  const ended = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].flatMap(
    ({ state }) => parse(state?.terminated?.finishedAt) ?? [],
  )
  if (ended.length > 0) return Math.max(...ended)
  const changed = (status?.conditions ?? []).flatMap(({ lastTransitionTime }) => parse(lastTransitionTime) ?? [])
  return changed.length > 0 ? Math.max(...changed) : parse(metadata.creationTimestamp)
}

/** Its volumes are there, and its containers are on their way: one after the other, those that prepare first. */
function startingLink(facts: Facts, pod: Pod, actor: string): Link | undefined {
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {}
  // One that is always restarted runs beside the others and is waited for only until it has started.
  const beside = new Set((pod.spec?.initContainers ?? []).flatMap((each) => (each.restartPolicy ? [each.name] : [])))
  const preparing = initContainerStatuses.find(
    ({ name, state, started }) => state?.running && (!beside.has(name) || !started),
  )
  if (preparing) {
    const names = { ...podNames(pod), container: preparing.name }
    const since = sinceFacts(parse(preparing.state?.running?.startedAt))
    return blocked('it runs', actor, 'initRunning', names, { ...since, transient: true })
  }
  const ready = readyToStart(pod)
  const next = [...initContainerStatuses, ...containerStatuses].find(({ state }) => state?.waiting)
  if (!ready || !next) return undefined
  const since = parse(ready.lastTransitionTime)
  const transient = facts.now - (since ?? 0) < quietMs
  const names = { ...podNames(pod), container: next.name }
  return blocked('it runs', actor, 'containerStarting', names, { ...sinceFacts(since), transient })
}

const readyToStart = ({ status }: Pod) =>
  (status?.conditions ?? []).find((each) => each.type === 'PodReadyToStartContainers' && each.status === 'True')

/** The node says so, or a container that has run proves it. */
export const hasVolumes = (pod: Pod): boolean => readyToStart(pod) !== undefined || hasStarted(pod)

/** The containers need their volumes first: one that has run proves them. */
export function hasStarted(pod: Pod): boolean {
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {}
  return [...containerStatuses, ...initContainerStatuses].some(
    ({ state, lastState }) => state?.running ?? state?.terminated ?? lastState?.terminated,
  )
}

/** The runtime says why it does not start a container, or starts it again only after a pause. */
function heldLink(facts: Facts, pod: Pod, status: ContainerStatus, actor: string): Link {
  const { name, state, lastState, restartCount } = status
  const { reason, message } = state?.waiting ?? {}
  const last = lastState?.terminated
  const names = { ...podNames(pod), container: name }
  const held = heldFacts(facts, pod, name)
  if (reason === 'CreateContainerError' && lacksCommand(facts, pod, name))
    return blocked('it runs', actor, 'noCommand', { ...names, image: status.image }, held)
  if (reason !== 'CrashLoopBackOff') {
    const detail = `${name}: ${message ?? reason ?? ''}`
    return blocked('it runs', actor, causeOfCode(held.error?.code, 'containerNotStarted'), { ...names, detail }, held)
  }
  const words = { ...held, ...(message === undefined ? {} : { error: { message }, attempts: restartCount + 1 }) }
  const ended = `${name} exited with code ${last?.exitCode ?? '?'}`
  return last?.reason === 'ContainerCannotRun'
    ? blocked(
        'it runs',
        actor,
        'containerNotStarted',
        { ...names, detail: `${ended} before its program started` },
        words,
      )
    : blocked('it runs', actor, 'crashLoop', { ...names, detail: ended }, words)
}

/** On a node of ours; another runtime knows what an image runs. */
function lacksCommand(facts: Facts, { spec }: Pod, name: string): boolean {
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]
  const runtime = nodeOf(facts, spec?.nodeName ?? '')?.status?.nodeInfo?.containerRuntimeVersion ?? ''
  const { command = [] } = containers.find((each) => each.name === name) ?? {}
  return command.length === 0 && runtime.startsWith('hawser-')
}

/** When the node will try again, as it has told the history; another kubelet does not tell. */
function heldFacts(facts: Facts, pod: Pod, container: string): ReturnType<typeof failureFacts> {
  const record = failureOf(
    facts,
    podTarget(pod),
    containerOperations,
    ({ spec, status }) => spec.pod === pod.metadata.uid && status?.step === container,
  )
  if (!record) return {}
  const { since, nextTry, error } = failureFacts(record)
  const coded = error?.code === undefined ? {} : { error: { code: error.code, message: error.message } }
  return { ...sinceFacts(since), ...(nextTry === undefined ? {} : { nextTry }), ...coded }
}

function runningLink(containers: readonly ContainerStatus[], actor: string, at: number | undefined): Link {
  const restarts = containers.reduce((sum, { restartCount }) => sum + restartCount, 0)
  const link = done('it runs', actor, undefined, at)
  return restarts === 0 ? link : { ...link, detail: `after ${restarts} restart${restarts === 1 ? '' : 's'}` }
}

/** It runs, and a probe or a gate says that nobody should rely on it. A pod that is ready needs no step for that. */
export function readyLinks(facts: Facts, pod: Pod): readonly Link[] {
  const ready = (pod.status?.conditions ?? []).find(({ type }) => type === 'Ready')
  const statuses = pod.status?.containerStatuses ?? []
  const runs = pod.status?.phase === 'Running' && statuses.every(({ state }) => state?.running)
  if (!runs || ready?.status !== 'False') return []
  const [unready] = statuses.filter((status) => !status.ready)
  const since = parse(ready.lastTransitionTime)
  const names = {
    ...podNames(pod),
    ...(unready ? { container: unready.name } : {}),
    detail: unready
      ? `the probes of container ${unready.name} have not succeeded`
      : (ready.message ?? 'a readiness gate is not open'),
  }
  const transient = facts.now - (since ?? 0) < quietMs
  return [blocked('it is ready', `node ${pod.spec?.nodeName}`, 'notReady', names, { ...sinceFacts(since), transient })]
}

/** Whoever is next has this long before it counts as silent. */
export const quietMs = 10_000

const startingReasons: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing'])

/** The node of the pod is gone, or does not report that it is ready. */
export function deafLink(facts: Facts, pod: Pod, node: string): Link | undefined {
  const title = 'its node is ready'
  const known = nodeOf(facts, node)
  if (!known) return blocked(title, `node ${node}`, 'nodeGone', podNames(pod))
  const { ready, since, detail } = readinessOf(facts, known)
  const names = { ...podNames(pod), detail }
  return ready ? undefined : blocked(title, `node ${node}`, 'nodeNotReady', names, sinceFacts(since))
}

export function stopLinks(facts: Facts, pod: Pod): readonly Link[] {
  const names = podNames(pod)
  const since = sinceFacts(parse(pod.metadata.deletionTimestamp))
  const node = pod.spec?.nodeName
  if (!node) return [goneLink(pod)]
  const actor = `node ${node}`
  const deaf = deafLink(facts, pod, node)
  const gone = 'it is removed'
  if (deaf)
    return [deaf, later('its containers stop', actor), later('its volumes are unmounted', actor), later(gone, actor)]
  const runs = (pod.status?.containerStatuses ?? []).some(({ state }) => state?.running !== undefined)
  const stop = 'its containers stop'
  if (runs)
    return [
      blocked(stop, actor, 'podStopping', names, { ...since, transient: true }),
      later('its volumes are unmounted', actor),
      later(gone, actor),
    ]
  const unmount = unmountLink(facts, pod, actor)
  const hasFailed = unmount.state === 'blocked' && unmount.block?.cause !== 'nodeSilent'
  const left = hasFailed ? undefined : troubleLink(facts, pod, 'its directories are removed')
  return [done(stop, actor), ...(left ? [done(unmount.name, actor), left] : [unmount]), goneLink(pod)]
}

/** The node cannot make room for the pod, or clean up after it. */
export function troubleLink(facts: Facts, pod: Pod, title: string): Link | undefined {
  const failure = failureOf(facts, podTarget(pod), podOperations)
  if (!failure) return undefined
  const cause = causeOfCode(failure.status?.error?.code, 'retrying')
  const names = withWords(podNames(pod), failure.status?.error?.message)
  return blocked(title, failure.spec.actor, cause, names, failureFacts(failure))
}

function unmountLink(facts: Facts, pod: Pod, actor: string): Link {
  const title = 'its volumes are unmounted'
  const names = podNames(pod)
  const failure =
    failureOf(facts, podTarget(pod), unmountOperations) ??
    facts.operations.find(
      ({ spec, status }) =>
        spec.pod === pod.metadata.uid && unmountOperations.includes(spec.operation) && status?.error !== undefined,
    )
  const away = failure && driverTrouble(facts, title, driverOfRecord(facts, failure).driver, names, pod.spec?.nodeName)
  if (away) return away
  if (failure?.status?.phase === 'Failed' || failure?.status?.error) {
    const cause = causeOfCode(failure.status.error?.code, 'unmountFailed')
    const volume = failure.spec.volume === undefined ? {} : { volume: failure.spec.volume }
    return blocked(title, actor, cause, { ...names, ...volume }, failureFacts(failure))
  }
  const running = runningOf(facts, podTarget(pod), unmountOperations) ?? runningByUid(facts, pod)
  const asked = parse(pod.metadata.deletionTimestamp) ?? facts.now
  // The node takes the last of its time away when it is through with the pod; a finalizer may hold the object longer.
  const { finalizers = [], deletionGracePeriodSeconds } = pod.metadata
  if (!running && finalizers.length > 0 && deletionGracePeriodSeconds === 0) return done(title, actor)
  if (!running && facts.now - asked > quietMs) return blocked(title, actor, 'nodeSilent', names, sinceFacts(asked))
  if (running) return workLink(facts, title, running, 'unmounting', { ...names, ...driverOfRecord(facts, running) })
  return blocked(title, actor, 'unmounting', names, { ...sinceFacts(asked), transient: true })
}

const runningByUid = ({ operations }: Facts, { metadata }: Pod): OperationRecord | undefined =>
  operations.find(
    ({ spec, status }) =>
      spec.pod === metadata.uid && unmountOperations.includes(spec.operation) && status?.phase === 'Running',
  )

/** The volume that a record is about, and its driver. */
function driverOfRecord({ volumes }: Facts, { spec }: OperationRecord): CauseNames {
  const name = (spec.objects ?? []).find(({ kind }) => kind === 'PersistentVolume')?.name
  const csi = volumes.find(({ metadata }) => metadata.name === name)?.spec?.csi
  return { ...(name === undefined ? {} : { volume: name }), ...(csi ? { driver: csi.driver } : {}) }
}

function goneLink(pod: Pod): Link {
  const finalizers = pod.metadata.finalizers ?? []
  if (finalizers.length === 0)
    return later('it is removed', pod.spec?.nodeName ? `node ${pod.spec.nodeName}` : 'the server')
  const names = { ...podNames(pod), detail: finalizers.join(', ') }
  return blocked('it is removed', 'the owner of the finalizer', 'finalizersHold', names)
}
