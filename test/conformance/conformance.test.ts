// The recorded outcomes of Kubernetes 1.35, played against a real `hawser up --bare`: every scenario is a test.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { runProgram, startServer } from '../support/server-process.ts'

const suite = join(import.meta.dirname, 'suite')

interface Report {
  readonly scenarios: readonly { readonly file: string; readonly ok: boolean; readonly problems: readonly string[] }[]
}

test('recorded outcomes of the control plane', { timeout: 900_000 }, async (context) => {
  await using server = await startServer(['--bare'])
  const scratch = mkdtempSync(join(tmpdir(), 'hawser-conformance-'))
  const report = join(scratch, 'report.json')
  const answer = await runProgram(process.execPath, [
    join(suite, 'run.mjs'),
    ...['--url', server.url, '--token', server.token],
    ...['--scenarios', join(suite, 'scenarios'), '--compare', join(suite, 'expected')],
    ...['--jobs', '8', '--no-skip', '--report', report],
  ])
  const { scenarios } = JSON.parse(readFileSync(report, 'utf8')) as Report
  rmSync(scratch, { recursive: true })
  assert.ok(scenarios.length >= 163, `only ${scenarios.length} scenarios were played\n${answer.stderr}`)
  for (const { file, ok, problems } of scenarios) {
    await context.test(file, () => assert.ok(ok, problems.join('\n')))
  }
})
