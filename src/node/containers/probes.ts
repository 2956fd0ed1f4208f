// Are the containers of this node well? One loop over probes: ask when one is due, count the answers, and say what changed.
// A container that failed its startup or liveness probe is killed; whether it comes back is its restart policy's matter.
import type { PodUid } from '../../api/names.ts'
import type { Container } from '../../api/generated/types.ts'
import type { Clock } from '../../clock/clock.ts'
import type { KeyLoop } from '../../loop/key-loop.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { Log } from '../../telemetry/log.ts'
import { isSidecar } from '../pods/container-plan.ts'
import { isTerminating } from '../pods/pod-lifetime.ts'
import type { PodRecord, PodWorld } from '../pods/pod-record.ts'
import type { HandlerAnswer, HandlerDeps } from './handlers.ts'
import { callHandler } from './handlers.ts'
import type { ProbeCount, ProbeKind } from './probe-plan.ts'
import { count, dueAt, firstHealth, healthAfter, noCount, probeKinds, probeOf } from './probe-plan.ts'

export interface ProbesDeps extends HandlerDeps {
  readonly clock: Clock
  readonly log: Log
  readonly pods: PodWorld
  tell(pod: PodUid, type: 'Normal' | 'Warning', reason: string, message: string): void
  onFailed(pod: PodRecord, container: Container, kind: ProbeKind): void
}

/** One probe of one start of a container. */
interface Asked {
  readonly uid: PodUid
  readonly container: string
  readonly kind: ProbeKind
  /** Counts hold for one start of the container. */
  readonly id: string
  count: ProbeCount
}

interface Probing {
  readonly deps: ProbesDeps
  readonly asked: Map<string, Asked>
  readonly loop: KeyLoop<string>
}

const longestOutput = 1_024

/** Follows the pods' records: new containers are asked as soon as they run, ended ones no more. */
export function createProbes(deps: ProbesDeps): AsyncDisposable {
  const asked = new Map<string, Asked>()
  const loop = createKeyLoop<string>({
    name: 'probes',
    clock: deps.clock,
    workers: 32,
    look: (key, signal) => ask(probing, key, signal),
    onError: (key, error) => deps.log.warn('probe could not be made', { probe: key, error }),
  })
  const probing: Probing = { deps, asked, loop }
  const subscription = deps.pods.subscribe((uid) => watch(probing, uid))
  return {
    async [Symbol.asyncDispose]() {
      subscription[Symbol.dispose]()
      await loop[Symbol.asyncDispose]()
    },
  }
}

function watch(probing: Probing, uid: PodUid): void {
  const { asked, loop, deps } = probing
  const pod = deps.pods.items.get(uid)
  if (!pod) return // its containers have ended before
  const terminating = isTerminating(pod, deps.clock.now())
  for (const container of containersWithProbes(pod)) {
    const { record, health } = pod.containers.get(container.name) ?? {}
    const running = record && !record.exit ? record : undefined
    if (running && !health) {
      const told = toldOf(pod, container.name, running.id)
      deps.pods.apply({ kind: 'healthSeen', uid, container: container.name, health: firstHealth(container, told) })
    }
    for (const kind of probeKinds) {
      const key = keyOf(uid, container.name, kind)
      // A pod on its way out may become unready; it is no longer killed for being ill.
      const wanted = running && probeOf(container, kind) && !(terminating && kind !== 'readiness')
      if (!wanted) forget(probing, key)
      else if (asked.get(key)?.id !== running.id) {
        asked.set(key, { uid, container: container.name, kind, id: running.id, count: noCount })
        loop.wake(key)
      }
    }
  }
}

async function ask(probing: Probing, key: string, signal: AbortSignal): Promise<{ again: number } | undefined> {
  const { asked, deps } = probing
  const { clock, pods } = deps
  const item = asked.get(key)
  const pod = item && pods.items.get(item.uid)
  const container = pod && containersWithProbes(pod).find(({ name }) => name === item.container)
  const probe = container && probeOf(container, item.kind)
  if (!pod?.pod || !container || !probe) return forget(probing, key)
  const due = dueAt(container, item.kind, pod.containers.get(container.name))
  if (due === undefined) return undefined
  if (due > clock.now()) return { again: due }
  const begin = clock.now()
  const timeoutMs = (probe.timeoutSeconds ?? 1) * 1000
  const target = { pod: pod.pod, uid: pod.uid, container, settings: pod.settings.get(container.name) }
  const answer = await callHandler(deps, target, probe, timeoutMs, signal).catch(
    (error: unknown): string => `probe errored: ${errorText(error)}`,
  )
  // The container may have ended meanwhile, and then the answer is about nobody.
  const view = pods.items.get(pod.uid)?.containers.get(container.name)
  if (asked.get(key) === item && !signal.aborted && dueAt(container, item.kind, view) !== undefined) {
    if (typeof answer === 'string') tellUnhealthy(deps, item, answer)
    else takeAnswer(probing, item, container, answer)
  }
  return { again: begin + (probe.periodSeconds ?? 10) * 1000 }
}

function takeAnswer({ deps, loop }: Probing, item: Asked, container: Container, { ok, output }: HandlerAnswer): void {
  const { uid, kind } = item
  const { name } = container
  const { count: counted, verdict } = count(probeOf(container, kind)!, item.count, ok)
  item.count = counted
  if (!ok) tellUnhealthy(deps, item, `probe failed: ${output.slice(0, longestOutput)}`)
  const pod = deps.pods.items.get(uid)
  const before = pod?.containers.get(name)?.health ?? firstHealth(container, undefined)
  const health = healthAfter(before, kind, verdict)
  if (!pod || health === before) return
  deps.pods.apply({ kind: 'healthSeen', uid, container: name, health })
  if (health.failed) deps.onFailed(pod, container, kind)
  if (health.started && !before.started) for (const each of probeKinds) loop.wake(keyOf(uid, name, each))
}

function tellUnhealthy({ tell }: ProbesDeps, { uid, kind }: Asked, text: string): void {
  tell(uid, 'Warning', 'Unhealthy', `${kind[0]!.toUpperCase()}${kind.slice(1)} ${text}`)
}

function forget({ asked, loop }: Probing, key: string): undefined {
  if (asked.delete(key)) loop.forget(key)
}

const keyOf = (pod: PodUid, name: string, kind: ProbeKind) => `${pod}/${name}/${kind}`

/** Init containers are asked only when they are sidecars. */
function containersWithProbes({ pod }: PodRecord): readonly Container[] {
  const sidecars = (pod?.spec?.initContainers ?? []).filter(isSidecar)
  return [...sidecars, ...(pod?.spec?.containers ?? [])].filter((each) =>
    probeKinds.some((kind) => probeOf(each, kind)),
  )
}

/** What the API was told of this very start of the container, by an earlier life of this agent. */
function toldOf({ pod }: PodRecord, name: string, id: string) {
  const all = [...(pod?.status?.containerStatuses ?? []), ...(pod?.status?.initContainerStatuses ?? [])]
  const found = all.find((each) => each.name === name && each.containerID === id)
  return found && { started: found.started === true, ready: found.ready }
}
