// What came out? One result per check, what the driver says of itself, and how long its calls took.
import type { SeenCall } from '../csi/observed.ts'
import type { Check, SuiteName } from './check.ts'
import type { DriverFacts } from './driver-report.ts'

export type Verdict =
  | { readonly kind: 'passed' }
  | { readonly kind: 'failed'; readonly finding: string }
  | { readonly kind: 'skipped'; readonly reason: string }

export interface Result {
  readonly check: Check
  readonly verdict: Verdict
  readonly ms: number
  /** What was asked and answered, without secrets; the last calls when there were many. */
  readonly calls: readonly SeenCall[]
  /** What the undoing after the check could not undo. */
  readonly leftovers: readonly string[]
}

export interface LabReport {
  readonly driver: DriverFacts
  readonly startedAt: number
  readonly ms: number
  readonly results: readonly Result[]
  readonly latencies: readonly Latency[]
}

/** How long one kind of call took, in milliseconds. */
interface Latency {
  readonly rpc: string
  readonly calls: number
  readonly p50: number
  readonly p95: number
  readonly max: number
}

export interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

export function countsOf(results: readonly Result[]): Counts {
  const count = (kind: Verdict['kind']) => results.filter(({ verdict }) => verdict.kind === kind).length
  return { passed: count('passed'), failed: count('failed'), skipped: count('skipped') }
}

export function suitesOf(report: LabReport): readonly SuiteName[] {
  return [...new Set(report.results.map(({ check }) => check.suite))]
}

/** Percentiles per call; calls that were failed on purpose are not the driver's time. */
export function latenciesOf(calls: readonly Pick<SeenCall, 'rpc' | 'ms' | 'fault'>[]): readonly Latency[] {
  const byRpc = Map.groupBy(
    calls.filter(({ fault }) => fault === undefined),
    ({ rpc }) => rpc,
  )
  return [...byRpc]
    .map(([rpc, each]) => {
      const sorted = each.map(({ ms }) => ms).toSorted((a, b) => a - b)
      const at = (part: number) => round(sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? 0)
      return { rpc, calls: sorted.length, p50: at(0.5), p95: at(0.95), max: at(1) }
    })
    .toSorted((a, b) => (a.rpc < b.rpc ? -1 : 1))
}

const round = (ms: number) => Math.round(ms * 10) / 10
