// How does a CI system read a report? As JUnit XML: one test suite per suite, one test case per check.
import type { LabReport, Result } from '../report.ts'
import { countsOf, suitesOf } from '../report.ts'

export function junitReport(report: LabReport): string {
  const suites = suitesOf(report).map((suite) => {
    const results = report.results.filter(({ check }) => check.suite === suite)
    const { failed, skipped } = countsOf(results)
    const seconds = secondsOf(results.reduce((sum, { ms }) => sum + ms, 0))
    const name = attribute(`hawser lab: ${suite} (${report.driver.name})`)
    const counts = `tests="${results.length}" failures="${failed}" errors="0" skipped="${skipped}" time="${seconds}"`
    return `  <testsuite name="${name}" ${counts}>\n${results.map(testCase).join('')}  </testsuite>\n`
  })
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.join('')}</testsuites>\n`
}

function testCase({ check, verdict, ms, leftovers }: Result): string {
  const [suite = '', ...rest] = check.id.split('/')
  const names = `classname="${attribute(`lab.${suite}`)}" name="${attribute(`${rest.join('/')}: ${check.title}`)}"`
  const open = `    <testcase ${names} time="${secondsOf(ms)}"`
  const said =
    leftovers.length === 0 ? '' : `      <system-out>${text(`left behind: ${leftovers.join('; ')}`)}</system-out>\n`
  switch (verdict.kind) {
    case 'passed':
      return said === '' ? `${open}/>\n` : `${open}>\n${said}    </testcase>\n`
    case 'failed': {
      const details = text(`${verdict.finding}\n${check.call}: ${check.says}\n`)
      const failure = `      <failure message="${attribute(verdict.finding)}">${details}</failure>\n`
      return `${open}>\n${failure}${said}    </testcase>\n`
    }
    case 'skipped':
      return `${open}>\n      <skipped message="${attribute(verdict.reason)}"/>\n    </testcase>\n`
    default:
      return verdict satisfies never
  }
}

const secondsOf = (ms: number) => (ms / 1_000).toFixed(3)

/** XML has no way to write most control characters: a driver's words may hold any. */
const text = (words: string) =>
  words
    .replaceAll(/[^\P{Cc}\n\t]|[\uFFFE\uFFFF]|\p{Cs}/gu, '\uFFFD')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')

const attribute = (words: string) => text(words).replaceAll('"', '&quot;').replaceAll('\n', '&#10;')
