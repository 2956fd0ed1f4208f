// How is a report kept for programs? JSON with stable ids: one entry per check, and what was said where a check failed.
import type { JsonValue } from '@bufbuild/protobuf'
import type { LabReport, Result } from '../report.ts'
import { countsOf } from '../report.ts'

export interface KeptCheck {
  readonly id: string
  readonly suite: string
  readonly title: string
  readonly verdict: 'passed' | 'failed' | 'skipped'
  readonly finding?: string
  readonly reason?: string
  readonly ms: number
  readonly leftovers?: readonly string[]
  /** Only for checks that failed. */
  readonly calls?: readonly KeptCall[]
}

interface KeptCall {
  readonly rpc: string
  readonly ms: number
  readonly request: JsonValue
  readonly answer?: JsonValue
  readonly error?: { readonly status: string; readonly details: string }
}

export interface KeptReport {
  readonly version: 1
  readonly driver: { readonly name: string; readonly version: string }
  readonly startedAt: string
  readonly ms: number
  readonly counts: { readonly passed: number; readonly failed: number; readonly skipped: number }
  readonly checks: readonly KeptCheck[]
  readonly latencies: LabReport['latencies']
}

export function keptReport(report: LabReport): KeptReport {
  const { driver, latencies } = report
  return {
    version: 1,
    driver: { name: driver.name, version: driver.version },
    startedAt: new Date(report.startedAt).toISOString(),
    ms: Math.round(report.ms),
    counts: countsOf(report.results),
    checks: report.results.map(keptCheck),
    latencies,
  }
}

function keptCheck({ check, verdict, ms, calls, leftovers }: Result): KeptCheck {
  const { id, suite, title } = check
  return {
    ...{ id, suite, title, verdict: verdict.kind, ms: Math.round(ms) },
    ...(verdict.kind === 'failed' && {
      finding: verdict.finding,
      calls: calls.map(({ rpc, ms: took, request, answer, error }) => ({
        ...{ rpc, ms: Math.round(took), request },
        ...(answer === undefined ? {} : { answer }),
        ...(error === undefined ? {} : { error }),
      })),
    }),
    ...(verdict.kind === 'skipped' && { reason: verdict.reason }),
    ...(leftovers.length > 0 && { leftovers }),
  }
}

/** A report that an earlier run wrote. Throws SyntaxError with a sentence. */
export function parseKeptReport(text: string): KeptReport {
  const value: unknown = JSON.parse(text)
  const checks = typeof value === 'object' && value !== null && 'checks' in value ? value.checks : undefined
  if (!Array.isArray(checks) || !checks.every(isKeptCheck)) throw new SyntaxError('this is no report of hawser lab')
  // Checked above as far as it is used; everything else is only shown.
  return value as KeptReport
}

function isKeptCheck(value: unknown): value is KeptCheck {
  return typeof value === 'object' && value !== null && 'id' in value && 'verdict' in value
}

export interface Comparison {
  /** Failed now, and did not in the baseline. */
  readonly worse: readonly string[]
  /** Failed in the baseline, and passed now. */
  readonly better: readonly string[]
  /** Failed in both. */
  readonly known: readonly string[]
}

/** What changed since an earlier run. Pure. */
export function compareReports(baseline: Pick<KeptReport, 'checks'>, now: KeptReport): Comparison {
  const before = new Map(baseline.checks.map(({ id, verdict }) => [id, verdict]))
  const failed = now.checks.filter(({ verdict }) => verdict === 'failed').map(({ id }) => id)
  return {
    worse: failed.filter((id) => before.get(id) !== 'failed'),
    better: now.checks
      .filter(({ id, verdict }) => verdict === 'passed' && before.get(id) === 'failed')
      .map(({ id }) => id),
    known: failed.filter((id) => before.get(id) === 'failed'),
  }
}
