// What does a person see of a run? The check at work on a terminal, each finding at once, and the counts at the end.
import type { LabListener } from '../../../lab/run.ts'
import type { LabReport, Result } from '../../../lab/report.ts'
import { countsOf, suitesOf } from '../../../lab/report.ts'
import type { Context } from '../../context.ts'
import { duration, paint, table } from '../../output.ts'
import { startProgress } from '../../wait.ts'

export function tellProgress(context: Context, verbose: boolean): LabListener & Disposable {
  const live = startProgress(context)
  return {
    started: (check, index, total) => {
      if (context.interactive) live.say(`${index + 1} of ${total}: ${check.id}`)
    },
    ended(result) {
      if (result.verdict.kind === 'failed' || verbose) for (const line of linesOf(context, result)) context.print(line)
    },
    [Symbol.dispose]: () => live[Symbol.dispose](),
  }
}

function linesOf(context: Context, { check, verdict, ms, leftovers }: Result): string[] {
  const left = leftovers.map((each) => `        left behind: ${each}`)
  switch (verdict.kind) {
    case 'passed':
      return [`${paint(context, 'green', 'passed')}  ${check.id} (${duration(ms)})`, ...left]
    case 'skipped':
      return [`${paint(context, 'yellow', 'skipped')} ${check.id}: ${verdict.reason}`]
    case 'failed':
      return [
        `${paint(context, 'red', 'failed')}  ${check.id}: ${verdict.finding}`,
        paint(context, 'dim', `        ${check.call}: ${check.says}`),
        ...left,
      ]
    default:
      return verdict satisfies never
  }
}

export function printReport(context: Context, report: LabReport): void {
  const { driver, results, ms } = report
  context.print(`${driver.name} ${driver.version}: ${results.length} checks in ${duration(ms)}`)
  const rows = suitesOf(report).map((suite) => {
    const { passed, failed, skipped } = countsOf(results.filter(({ check }) => check.suite === suite))
    return [`  ${suite}`, `${passed} passed`, `${failed} failed`, `${skipped} skipped`]
  })
  context.print(table([], rows))
  const reasons = results.flatMap(({ verdict }) => (verdict.kind === 'skipped' ? [verdict.reason] : []))
  for (const [reason, each] of Map.groupBy(reasons, (reason) => reason))
    context.print(`  ${paint(context, 'yellow', 'skipped')} ${each.length}: ${reason}`)
  const left = results.flatMap(({ leftovers }) => leftovers)
  if (left.length > 0) context.print(`  ${paint(context, 'yellow', 'left behind')}: ${left.join('; ')}`)
}
