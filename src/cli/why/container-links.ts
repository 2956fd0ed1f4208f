// How far are a pod's containers? The last step of its start, and the steps of its end.
import type { Pod } from '../../api/types.ts'
import type { Facts } from './facts.ts'
import { failureOf, nodeOf, parse, readinessOf, runningOf } from './facts.ts'
import type { Link } from './link.ts'
import { blocked, done, failureFacts, later, sinceFacts } from './link.ts'
import { unmountOperations } from './operation-names.ts'
import { causeOfCode } from './reasons.ts'
import { podNames, podTarget } from './pod-names.ts'

export function startLink(facts: Facts, pod: Pod): Link {
  const node = pod.spec?.nodeName ?? ''
  const actor = `node ${node}`
  const names = podNames(pod)
  const { phase, containerStatuses = [], initContainerStatuses = [], reason, message } = pod.status ?? {}
  const started = [...containerStatuses, ...initContainerStatuses].flatMap(
    ({ state }) => parse(state?.running?.startedAt ?? state?.terminated?.startedAt) ?? [],
  )
  const at = started.length > 0 ? Math.max(...started) : undefined
  if (phase === 'Succeeded') return { ...done('it runs', actor, undefined, at), name: 'it has run to its end' }
  if (phase === 'Failed') {
    const ended = containerStatuses.find(({ state }) => (state?.terminated?.exitCode ?? 0) !== 0)
    const exit = ended && `container ${ended.name} ended with code ${ended.state?.terminated?.exitCode}`
    const detail = message ?? exit ?? reason ?? 'no reason was given'
    return blocked('it runs', actor, 'podFailed', { ...names, detail }, sinceFacts(at))
  }
  const waiting = [...initContainerStatuses, ...containerStatuses].find(
    ({ state }) => state?.waiting?.reason !== undefined && !startingReasons.has(state.waiting.reason),
  )
  if (waiting) {
    const told = waiting.state!.waiting!
    const isLoop = told.reason === 'CrashLoopBackOff'
    const detail = `${waiting.name}: ${told.message ?? told.reason ?? ''}`
    return blocked('it runs', actor, isLoop ? 'crashLoop' : 'containerNotStarted', { ...names, detail })
  }
  const runs = containerStatuses.length > 0 && containerStatuses.every(({ state }) => state?.running !== undefined)
  if (phase === 'Running' && runs) return done('it runs', actor, undefined, at)
  const runtime = nodeOf(facts, node)?.status?.nodeInfo?.containerRuntimeVersion ?? ''
  return runtime.startsWith('none')
    ? blocked('it runs', actor, 'noRuntime', names, { transient: true })
    : later('it runs', actor)
}

/** Whoever is next has this long before it counts as silent. */
export const quietMs = 10_000

const startingReasons: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing'])

/** The node of the pod is gone, or does not report that it is ready. */
export function deafLink(facts: Facts, pod: Pod, node: string): Link | undefined {
  const title = 'its node answers'
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
  if (deaf) return [deaf]
  const runs = (pod.status?.containerStatuses ?? []).some(({ state }) => state?.running !== undefined)
  const stop = 'its containers end'
  if (runs)
    return [
      blocked(stop, actor, 'podStopping', names, { ...since, transient: true }),
      later('its volumes are unmounted', actor),
      later('it is gone', actor),
    ]
  return [done(stop, actor), unmountLink(facts, pod, actor), goneLink(pod)]
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
  if (failure?.status?.phase === 'Failed' || failure?.status?.error) {
    const cause = causeOfCode(failure.status.error?.code, 'unmountFailed')
    const volume = failure.spec.volume === undefined ? {} : { volume: failure.spec.volume }
    return blocked(title, actor, cause, { ...names, ...volume }, failureFacts(failure))
  }
  const running = runningOf(facts, podTarget(pod), unmountOperations)
  const asked = parse(pod.metadata.deletionTimestamp) ?? facts.now
  if (!running && facts.now - asked > quietMs) return blocked(title, actor, 'nodeSilent', names, sinceFacts(asked))
  return blocked(title, actor, 'unmounting', names, {
    ...sinceFacts(parse(running?.status?.startedAt)),
    transient: true,
  })
}

function goneLink(pod: Pod): Link {
  const finalizers = pod.metadata.finalizers ?? []
  if (finalizers.length === 0)
    return later('it is gone', pod.spec?.nodeName ? `node ${pod.spec.nodeName}` : 'the server')
  const names = { ...podNames(pod), detail: finalizers.join(', ') }
  return blocked('it is gone', 'the owner of the finalizer', 'finalizersHold', names)
}
