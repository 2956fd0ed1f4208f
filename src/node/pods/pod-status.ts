// What does a pod's status say? Phase, conditions and container statuses, computed from the pod and its containers;
// nothing here reads a clock or writes anything.
import { qosClass } from '../../api/kinds/pod-lifecycle.ts'
import type {
  Container,
  ContainerState,
  ContainerStatus,
  Pod,
  PodCondition,
  PodStatus,
} from '../../api/generated/types.ts'
import { timestamp } from '../../clock/clock.ts'
import type { ContainerView } from './container-plan.ts'
import { fullNameOf, isInitialized, isReady, isRunning, isSidecar, isStarted, restartDelay } from './container-plan.ts'
import type { ContainerRecord } from '../runtime/port.ts'

export interface StatusFacts {
  readonly pod: Pod
  readonly containers: ReadonlyMap<string, ContainerView>
  /** The end before the latest start, per container. */
  readonly earlier: ReadonlyMap<string, ContainerRecord>
  readonly ended: 'Succeeded' | 'Failed' | undefined
  readonly failure: { readonly reason: string; readonly message: string } | undefined
  readonly volumesReady: boolean
  readonly volumeHealth: NonNullable<PodStatus['volumeHealth']>
  readonly now: number
  readonly seenAt: number
  readonly address: string
}

export function podStatus(facts: StatusFacts): PodStatus {
  const { pod, containers, failure, now, address } = facts
  const initialized = isInitialized(facts)
  const mains = pod.spec?.containers ?? []
  const phase = phaseOf(facts, initialized)
  const over = phase === 'Succeeded' || phase === 'Failed'
  const sidecars = (pod.spec?.initContainers ?? []).filter(isSidecar)
  const notReady = [...sidecars, ...mains]
    .filter((each) => !isReady(each, containers.get(each.name)))
    .map(({ name }) => name)
  const ready = mains.length > 0 && notReady.length === 0
  const readyReason =
    phase === 'Succeeded'
      ? { reason: 'PodCompleted' }
      : phase === 'Failed'
        ? { reason: 'PodFailed' }
        : { reason: 'ContainersNotReady', message: `containers with unready status: [${notReady.join(' ')}]` }
  const running = ready && !over
  const conditions = [
    condition('PodReadyToStartContainers', facts.volumesReady && !over),
    condition('Initialized', initialized || phase === 'Succeeded', {
      reason: 'ContainersNotInitialized',
      message: `containers with incomplete status: [${uninitialized(facts).join(' ')}]`,
    }),
    running ? gatesCondition(pod) : condition('Ready', false, readyReason),
    condition('ContainersReady', running, readyReason),
    condition('PodScheduled', true),
  ]
  const statusOf = (container: Container, init: boolean) => containerStatus(facts, container, init, initialized)
  const inits = (pod.spec?.initContainers ?? []).map((container) => statusOf(container, true))
  const ephemerals = (pod.spec?.ephemeralContainers ?? []).map((container) => ephemeralStatus(facts, container))
  return {
    phase,
    conditions: mergeConditions(pod.status?.conditions ?? [], conditions, now),
    ...(address === ''
      ? {}
      : { hostIP: address, hostIPs: [{ ip: address }], podIP: address, podIPs: [{ ip: address }] }),
    startTime: pod.status?.startTime ?? timestamp(facts.seenAt),
    ...(failure ? { reason: failure.reason, message: failure.message } : {}),
    ...(inits.length > 0 ? { initContainerStatuses: inits } : {}),
    containerStatuses: mains.map((container) => statusOf(container, false)),
    ...(ephemerals.length > 0 ? { ephemeralContainerStatuses: ephemerals } : {}),
    ...(facts.volumeHealth.length > 0 ? { volumeHealth: facts.volumeHealth } : {}),
    qosClass: pod.status?.qosClass ?? qosClass(pod),
  }
}

function phaseOf(
  { pod, containers, ended, failure }: StatusFacts,
  initialized: boolean,
): NonNullable<PodStatus['phase']> {
  const said = pod.status?.phase
  if (said === 'Succeeded' || said === 'Failed') return said // an end is never taken back
  if (failure) return 'Failed'
  if (ended) return ended
  // As in Kubernetes: a pod with a container that has never started is not running, whatever the others do.
  const started = (pod.spec?.containers ?? []).every(({ name }) => containers.get(name)?.record !== undefined)
  return initialized && started ? 'Running' : 'Pending'
}

const uninitialized = ({ pod, containers }: StatusFacts) =>
  (pod.spec?.initContainers ?? [])
    .filter((each) => {
      const view = containers.get(each.name)
      return isSidecar(each) ? !isStarted(each, view) : view?.record?.exit?.code !== 0
    })
    .map(({ name }) => name)

function containerStatus(
  facts: StatusFacts,
  container: Container,
  init: boolean,
  initialized: boolean,
): ContainerStatus {
  const { pod, containers, earlier, ended, failure } = facts
  const view = containers.get(container.name)
  const { record } = view ?? {}
  const over = ended !== undefined || failure !== undefined || pod.metadata.deletionTimestamp !== undefined
  const state = stateOf(pod, view, over, init || initialized)
  const last = state.terminated ? undefined : record?.exit ? record : earlier.get(container.name)
  const done = init && !isSidecar(container) && record?.exit?.code === 0
  return {
    name: container.name,
    state,
    lastState: last?.exit ? { terminated: terminated(last) } : {},
    ready: isReady(container, view) || done,
    started: isStarted(container, view),
    restartCount: record?.attempt ?? 0,
    image: container.image ?? '',
    imageID: '',
    ...(record ? { containerID: record.id } : {}),
  }
}

/** It begins once and has no probes: whether it is ready or has started is nobody's question. */
function ephemeralStatus({ pod, containers }: StatusFacts, container: Container): ContainerStatus {
  const view = containers.get(container.name)
  return {
    name: container.name,
    state: stateOf(pod, view, true, true),
    lastState: {},
    ready: false,
    restartCount: 0,
    image: container.image ?? '',
    imageID: '',
    ...(view?.record ? { containerID: view.record.id } : {}),
  }
}

function stateOf(pod: Pod, view: ContainerView | undefined, over: boolean, initialized: boolean): ContainerState {
  const { record, startError } = view ?? {}
  if (startError && !isRunning(view)) return { waiting: { reason: startError.reason, message: startError.message } }
  if (!record) {
    const inits = (pod.spec?.initContainers ?? []).length > 0
    return { waiting: { reason: inits && !initialized ? 'PodInitializing' : 'ContainerCreating' } }
  }
  if (!record.exit) return { running: { startedAt: timestamp(record.startedAt) } }
  const policy = pod.spec?.restartPolicy ?? 'Always'
  const again = !over && (policy === 'Always' || (policy === 'OnFailure' && record.exit.code !== 0))
  const delay = restartDelay(record)
  if (!again || delay === 0) return { terminated: terminated(record) }
  const message = `back-off ${delay / 1000}s restarting failed container=${record.name} pod=${fullNameOf(pod)}`
  return { waiting: { reason: 'CrashLoopBackOff', message } }
}

function terminated(record: ContainerRecord) {
  const { exit } = record
  return {
    exitCode: exit!.code,
    reason: exit!.reason,
    ...(exit!.message === undefined ? {} : { message: exit!.message }),
    ...(exit!.code > 128 ? { signal: exit!.code - 128 } : {}),
    startedAt: timestamp(record.startedAt),
    finishedAt: timestamp(exit!.at),
    containerID: record.id,
  }
}

interface Wanted {
  readonly type: string
  readonly ok: boolean
  readonly otherwise?: { readonly reason: string; readonly message?: string }
}

const condition = (type: string, ok: boolean, otherwise?: Wanted['otherwise']): Wanted => ({
  type,
  ok,
  ...(otherwise ? { otherwise } : {}),
})

/** Containers that are ready make a pod ready only if whoever holds one of its gates agrees. */
function gatesCondition({ spec, status }: Pod): Wanted {
  const messages = (spec?.readinessGates ?? []).flatMap(({ conditionType: type }) => {
    const gate = (status?.conditions ?? []).find((each) => each.type === type)
    if (!gate) return [`corresponding condition of pod readiness gate "${type}" does not exist.`]
    return gate.status === 'True'
      ? []
      : [`the status of pod readiness gate "${type}" is not "True", but ${gate.status}`]
  })
  return condition('Ready', messages.length === 0, { reason: 'ReadinessGatesNotReady', message: messages.join(', ') })
}

/** What a node says of its pods; other conditions are others' to write. */
export const ownConditions: ReadonlySet<string> = new Set([
  'PodReadyToStartContainers',
  'Initialized',
  'Ready',
  'ContainersReady',
  'PodScheduled',
])

/** A condition's time changes only with its status; conditions of others stay (readiness gates, evictions). */
function mergeConditions(present: readonly PodCondition[], wanted: readonly Wanted[], now: number): PodCondition[] {
  const ours = wanted.map(({ type, ok, otherwise }): PodCondition => {
    const status = ok ? 'True' : 'False'
    const before = present.find((each) => each.type === type)
    const since = before?.status === status ? before.lastTransitionTime : undefined
    return { type, status, lastTransitionTime: since ?? timestamp(now), ...(ok ? {} : otherwise) }
  })
  return [...ours, ...present.filter(({ type }) => !ownConditions.has(type))]
}
