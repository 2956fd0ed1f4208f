// Can every reader read the report? The same run as JSON, JUnit XML and Markdown, with words that would break each of them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allChecks } from '../catalogue.ts'
import type { Check } from '../check.ts'
import { lackOf, suiteNames } from '../check.ts'
import type { LabReport, Result, Verdict } from '../report.ts'
import { latenciesOf } from '../report.ts'
import { compareReports, keptReport, parseKeptReport } from './json.ts'
import { junitReport } from './junit.ts'
import { markdownReport } from './markdown.ts'

const check = (id: string): Check => ({
  ...{ id, suite: 'honesty', title: 'a <title>', call: 'CreateVolume', says: 'a | clause', needs: {} },
  run: async () => {},
})
const result = (id: string, verdict: Verdict, leftovers: readonly string[] = []): Result => ({
  ...{ check: check(id), verdict, ms: 12, leftovers },
  calls: [
    { service: 'Controller', rpc: 'CreateVolume', startedAt: 0, ms: 3, request: { name: 'x' }, answer: { volume: {} } },
  ],
})
const finding = 'it said "no" & <b>|\u0001\n'
const report: LabReport = {
  driver: { name: 'x.example.com', version: '1', ready: true, plugin: [], controller: [], node: [], failures: {} },
  startedAt: 0,
  ms: 1_500,
  results: [
    result('honesty/a/passed', { kind: 'passed' }, ['DeleteVolume v']),
    result('honesty/b/failed', { kind: 'failed', finding }),
    result('honesty/c/skipped', { kind: 'skipped', reason: 'no "root"' }),
  ],
  latencies: [{ rpc: 'CreateVolume', calls: 3, p50: 1, p95: 2, max: 3 }],
}

test('JUnit XML has a case per check, and no character that XML forbids', () => {
  const text = junitReport(report)
  assert.match(
    text,
    /<testsuite name="hawser lab: honesty \(x\.example\.com\)" tests="3" failures="1" errors="0" skipped="1"/,
  )
  assert.match(text, /<failure message="it said &quot;no&quot; &amp; &lt;b&gt;\|\uFFFD&#10;">/)
  assert.match(text, /<skipped message="no &quot;root&quot;"\/>/)
  assert.match(text, /<system-out>left behind: DeleteVolume v<\/system-out>/)
  assert.equal(text.match(/<testcase /g)?.length, 3)
  assert.ok(!text.includes('\u0001'))
})

test('Markdown keeps a finding in its cell', () => {
  const text = markdownReport(report)
  assert.match(text, /\*\*1 finding\*\*: 1 passed, 1 failed, 1 skipped in 1\.5 s\./)
  assert.match(
    text,
    /\| `honesty\/b\/failed` \| it said "no" &#38; &#60;b&#62;\\\|\S* \| CreateVolume: a \\\| clause \|/,
  )
  assert.match(text, /- 1 because no "root"/)
})

test('JSON holds the calls of what failed, and is read again as a baseline', () => {
  const kept = parseKeptReport(JSON.stringify(keptReport(report)))
  assert.deepEqual(kept.counts, { passed: 1, failed: 1, skipped: 1 })
  assert.deepEqual(
    kept.checks.map(({ verdict, calls }) => [verdict, calls?.length]),
    [
      ['passed', undefined],
      ['failed', 1],
      ['skipped', undefined],
    ],
  )
  for (const wrong of ['{}', '[]', '{"checks":[1]}', 'x']) assert.throws(() => parseKeptReport(wrong), SyntaxError)
})

test('a baseline tells new findings from known ones, and what was mended', () => {
  const with_ = (verdicts: Readonly<Record<string, Verdict>>) =>
    keptReport({ ...report, results: Object.entries(verdicts).map(([id, verdict]) => result(id, verdict)) })
  const failed: Verdict = { kind: 'failed', finding: 'x' }
  const passed: Verdict = { kind: 'passed' }
  assert.deepEqual(
    compareReports(with_({ a: failed, b: failed, c: passed }), with_({ a: failed, b: passed, c: failed, d: failed })),
    {
      worse: ['c', 'd'],
      better: ['b'],
      known: ['a'],
    },
  )
})

test('percentiles leave out calls that were failed on purpose', () => {
  const calls = [1, 2, 3, 4, 100].map((ms) => ({ rpc: 'Probe', ms }))
  const faulty = { rpc: 'Probe', ms: 9_999, fault: { kind: 'silent' } as const }
  assert.deepEqual(latenciesOf([...calls, faulty]), [{ rpc: 'Probe', calls: 5, p50: 3, p95: 100, max: 100 }])
})

test('ids of checks are unique, begin with their suite, and every suite has some', () => {
  const ids = allChecks.map(({ id }) => id)
  assert.deepEqual(ids, [...new Set(ids)])
  for (const { id, suite } of allChecks) assert.match(id, new RegExp(`^${suite}/[a-z-]+/[a-z-]+$`))
  for (const suite of suiteNames) assert.ok(allChecks.some((each) => each.suite === suite))
})

test('a check is skipped for what the driver does not claim, or the machine lacks', () => {
  const facts = { ...report.driver, controller: ['LIST_VOLUMES'], node: ['EXPAND_VOLUME'] }
  const able = { mountLack: undefined, growthLack: undefined, killLack: undefined }
  const none = { mountLack: 'no root', growthLack: 'no right', killLack: 'not ours' }
  const cases = [
    [{}, undefined],
    [{ controller: ['LIST_VOLUMES'] }, undefined],
    [{ controller: ['LIST_VOLUMES', 'GET_VOLUME'] }, 'the driver does not claim GET_VOLUME'],
    [{ withoutController: ['LIST_VOLUMES'] }, 'only for drivers that do not claim the capability'],
    [{ withoutController: ['GET_VOLUME'] }, undefined],
    [{ withoutController: ['EXPAND_VOLUME'] }, undefined],
  ] as const
  for (const [needs, lack] of cases) assert.equal(lackOf(needs, facts, able), lack)
  assert.equal(lackOf({ mounts: true }, facts, none), 'no root')
  assert.equal(lackOf({ onlineGrowth: true }, facts, none), 'no right')
  assert.equal(lackOf({ kill: true }, facts, none), 'not ours')
  assert.equal(lackOf({ mounts: true, onlineGrowth: true, kill: true }, facts, able), undefined)
})
