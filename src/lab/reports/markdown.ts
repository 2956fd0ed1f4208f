// How is a report shown in a pull request or a job summary? As Markdown: counts, findings with their clause, what was skipped.
import type { LabReport, Result } from '../report.ts'
import { countsOf, suitesOf } from '../report.ts'

export function markdownReport(report: LabReport): string {
  const { driver } = report
  return `# ${line(driver.name)} ${line(driver.version)}

${countLine(report)}

${suiteTable(report)}
${findings(report.results)}${skips(report.results)}${latencies(report)}`
}

function countLine(report: LabReport): string {
  const { passed, failed, skipped } = countsOf(report.results)
  const verdict = failed === 0 ? 'No findings' : `**${failed} ${failed === 1 ? 'finding' : 'findings'}**`
  return `${verdict}: ${passed} passed, ${failed} failed, ${skipped} skipped in ${(report.ms / 1_000).toFixed(1)} s.`
}

function suiteTable(report: LabReport): string {
  const rows = suitesOf(report).map((suite) => {
    const { passed, failed, skipped } = countsOf(report.results.filter(({ check }) => check.suite === suite))
    return `| ${suite} | ${passed} | ${failed} | ${skipped} |\n`
  })
  return `| Suite | Passed | Failed | Skipped |\n|---|---|---|---|\n${rows.join('')}`
}

function findings(results: readonly Result[]): string {
  const rows = results.flatMap(({ check, verdict }) =>
    verdict.kind === 'failed'
      ? [`| \`${check.id}\` | ${cell(verdict.finding)} | ${check.call}: ${cell(check.says)} |\n`]
      : [],
  )
  if (rows.length === 0) return ''
  return `\n## Findings\n\n| Check | Finding | The specification |\n|---|---|---|\n${rows.join('')}`
}

function skips(results: readonly Result[]): string {
  const byReason = Map.groupBy(
    results.filter(({ verdict }) => verdict.kind === 'skipped'),
    ({ verdict }) => (verdict.kind === 'skipped' ? verdict.reason : ''),
  )
  if (byReason.size === 0) return ''
  const rows = [...byReason].map(([reason, each]) => `- ${each.length} because ${cell(reason)}\n`)
  return `\n## Skipped\n\n${rows.join('')}`
}

function latencies({ latencies: all }: LabReport): string {
  if (all.length === 0) return ''
  const rows = all.map(({ rpc, calls, p50, p95, max }) => `| ${rpc} | ${calls} | ${p50} | ${p95} | ${max} |\n`)
  return `\n## Calls (milliseconds)\n\n| Call | Calls | p50 | p95 | Longest |\n|---|---|---|---|---|\n${rows.join('')}`
}

/** One line without markup or control characters: a driver's words may hold any. */
const line = (words: string) =>
  words
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .replaceAll(/[<>&]/g, (each) => `&#${each.charCodeAt(0)};`)
const cell = (words: string) => line(words).replaceAll('|', '\\|').replaceAll('`', "'")
