// What do the answers of a probe mean? A pure count: so many in a row make a container started, ready, unready or dead.
import type { Container, Probe } from '../../api/generated/types.ts'
import type { ContainerHealth, ContainerView } from '../pods/container-plan.ts'

export type ProbeKind = 'startup' | 'readiness' | 'liveness'
export const probeKinds: readonly ProbeKind[] = ['startup', 'readiness', 'liveness']

export interface ProbeCount {
  readonly successes: number
  readonly failures: number
}
export const noCount: ProbeCount = { successes: 0, failures: 0 }

export type Verdict = 'good' | 'bad' | undefined

export function probeOf(container: Container, kind: ProbeKind): Probe | undefined {
  switch (kind) {
    case 'startup':
      return container.startupProbe
    case 'readiness':
      return container.readinessProbe
    case 'liveness':
      return container.livenessProbe
    default:
      return kind satisfies never
  }
}

/** One more answer; a verdict only when enough of its kind came in a row. */
export function count(
  probe: Probe,
  before: ProbeCount,
  ok: boolean,
): { readonly count: ProbeCount; readonly verdict: Verdict } {
  if (ok) {
    const successes = before.successes + 1
    return {
      count: { successes, failures: 0 },
      verdict: successes >= (probe.successThreshold ?? 1) ? 'good' : undefined,
    }
  }
  const failures = before.failures + 1
  return { count: { successes: 0, failures }, verdict: failures >= (probe.failureThreshold ?? 3) ? 'bad' : undefined }
}

/** When a probe is due, if at all: startup first and only once, the others when that is done. */
export function dueAt(container: Container, kind: ProbeKind, view: ContainerView | undefined): number | undefined {
  const probe = probeOf(container, kind)
  const { record, health } = view ?? {}
  if (!probe || !record || record.exit || health?.failed) return undefined
  const started = health?.started ?? container.startupProbe === undefined
  if (kind === 'startup' ? started : !started) return undefined
  return record.startedAt + (probe.initialDelaySeconds ?? 0) * 1000
}

/** What a container is worth before its first answer; after a restart of the agent, what its status said last. */
export function firstHealth(
  container: Container,
  told: { started?: boolean; ready?: boolean } | undefined,
): ContainerHealth {
  const started = container.startupProbe === undefined || told?.started === true
  return { started, ready: container.readinessProbe === undefined || told?.ready === true, failed: false }
}

export function healthAfter(health: ContainerHealth, kind: ProbeKind, verdict: Verdict): ContainerHealth {
  if (verdict === undefined) return health
  if (kind === 'readiness')
    return health.ready === (verdict === 'good') ? health : { ...health, ready: verdict === 'good' }
  if (verdict === 'bad') return { ...health, failed: true }
  return kind === 'startup' ? { ...health, started: true } : health
}
