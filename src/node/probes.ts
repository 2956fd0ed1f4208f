// Are the containers of this node well? One loop over probes: ask when one is due, count the answers, and say what changed.
// A container that failed its startup or liveness probe is killed; whether it comes back is its restart policy's matter.
import type { PodUid } from '../api/names.ts'
import type { Container } from '../api/types.ts'
import type { Clock } from '../clock/clock.ts'
import { createKeyLoop } from '../loop/key-loop.ts'
import type { Log } from '../telemetry/log.ts'
import type { HandlerAnswer, HandlerDeps } from './handlers.ts'
import { callHandler } from './handlers.ts'
import type { PodWork } from './pod-work.ts'
import type { ProbeCount, ProbeKind } from './probe-plan.ts'
import { count, dueAt, firstHealth, healthAfter, noCount, probeKinds, probeOf } from './probe-plan.ts'

export interface Probes extends AsyncDisposable {
  /** Call when the pod or its containers changed: new containers are asked from now on, ended ones no more. */
  watch(work: PodWork, terminating: boolean): void
}

export interface ProbesDeps extends HandlerDeps {
  readonly clock: Clock
  readonly log: Log
  tell(work: PodWork, type: 'Normal' | 'Warning', reason: string, message: string): void
  /** A container became started, ready or unready. */
  onChange(pod: PodUid): void
  onFailed(work: PodWork, container: Container, kind: ProbeKind): void
}

interface Asked {
  readonly work: PodWork
  readonly name: string
  readonly kind: ProbeKind
  /** Counts hold for one start of the container. */
  readonly id: string
  count: ProbeCount
}

const longestOutput = 1_024

export function createProbes(deps: ProbesDeps): Probes {
  const { clock, log } = deps
  const asked = new Map<string, Asked>()
  const loop = createKeyLoop<string>({
    name: 'probes',
    clock,
    workers: 32,
    look: (key, signal) => look(key, signal),
    onError: (key, error) => log.warn('probe could not be made', { probe: key, error }),
  })
  const look = async (key: string, signal: AbortSignal): Promise<{ again: number } | undefined> => {
    const item = asked.get(key)
    const container = item && containerOf(item)
    const probe = container && probeOf(container, item.kind)
    if (!item || !container || !probe) return forget(key)
    const due = dueAt(container, item.kind, item.work.containers.get(item.name))
    if (due === undefined) return undefined
    if (due > clock.now()) return { again: due }
    const begin = clock.now()
    const timeoutMs = (probe.timeoutSeconds ?? 1) * 1000
    const { pod, uid, settings } = item.work
    const target = { pod: pod!, uid, container, settings: settings.get(container.name) }
    const answer = await callHandler(deps, target, probe, timeoutMs, signal).catch(
      (error: unknown): string => `probe errored: ${error instanceof Error ? error.message : String(error)}`,
    )
    // The container may have ended meanwhile, and then the answer is about nobody.
    const view = item.work.containers.get(item.name)
    if (asked.get(key) === item && !signal.aborted && dueAt(container, item.kind, view) !== undefined) {
      if (typeof answer === 'string') say(item, answer)
      else note(item, container, answer)
    }
    return { again: begin + (probe.periodSeconds ?? 10) * 1000 }
  }
  const note = (item: Asked, container: Container, { ok, output }: HandlerAnswer) => {
    const { work, name, kind } = item
    const { count: counted, verdict } = count(probeOf(container, kind)!, item.count, ok)
    item.count = counted
    if (!ok) say(item, `probe failed: ${output.slice(0, longestOutput)}`)
    const view = work.containers.get(name)!
    const before = view.health ?? firstHealth(container, undefined)
    const health = healthAfter(before, kind, verdict)
    if (health === before) return
    work.containers.set(name, { ...view, health })
    if (health.failed) deps.onFailed(work, container, kind)
    else deps.onChange(work.uid)
    if (health.started && !before.started) for (const each of probeKinds) loop.wake(keyOf(work.uid, name, each))
  }
  const say = ({ work, kind }: Asked, text: string) =>
    deps.tell(work, 'Warning', 'Unhealthy', `${kind[0]!.toUpperCase()}${kind.slice(1)} ${text}`)
  const forget = (key: string) => {
    asked.delete(key)
    loop.forget(key)
    return undefined
  }
  return {
    watch(work, terminating) {
      for (const container of containersWithProbes(work)) {
        const view = work.containers.get(container.name)
        const { record } = view ?? {}
        if (record && !record.exit && !view?.health) {
          const told = toldOf(work, container.name, record.id)
          work.containers.set(container.name, { ...view, record, health: firstHealth(container, told) })
        }
        for (const kind of probeKinds) {
          const key = keyOf(work.uid, container.name, kind)
          const item = asked.get(key)
          // A pod on its way out may become unready; it is no longer killed for being ill.
          const wanted = record && !record.exit && probeOf(container, kind) && !(terminating && kind !== 'readiness')
          if (!wanted) {
            if (item) forget(key)
          } else if (item?.id !== record.id) {
            asked.set(key, { work, name: container.name, kind, id: record.id, count: noCount })
            loop.wake(key)
          }
        }
      }
    },
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  }
}

const keyOf = (pod: PodUid, name: string, kind: ProbeKind) => `${pod}/${name}/${kind}`

/** Init containers are asked only when they are sidecars. */
function containersWithProbes({ pod }: PodWork): readonly Container[] {
  const sidecars = (pod?.spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  return [...sidecars, ...(pod?.spec?.containers ?? [])].filter((each) =>
    probeKinds.some((kind) => probeOf(each, kind)),
  )
}

const containerOf = ({ work, name }: Asked) => containersWithProbes(work).find((each) => each.name === name)

/** What the API was told of this very start of the container, by an earlier life of this agent. */
function toldOf({ pod }: PodWork, name: string, id: string) {
  const all = [...(pod?.status?.containerStatuses ?? []), ...(pod?.status?.initContainerStatuses ?? [])]
  const found = all.find((each) => each.name === name && each.containerID === id)
  return found && { started: found.started === true, ready: found.ready }
}
