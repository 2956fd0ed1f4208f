// Recorded outcomes of Kubernetes 1.35, played against a real `hawser up --bare`, on SQLite and on etcd: every scenario is a test.
// `suite` is the project's common ground, `own` holds what we recorded beyond it, in the same form.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { startEtcd } from '../kit/etcd.ts'
import { runProgram, startServer } from '../kit/server-process.ts'
import type { ServerProcess } from '../kit/server-process.ts'

const recordings = join(import.meta.dirname, '../recorded/conformance')
const runner = join(recordings, 'suite/run.mjs')

interface Report {
  readonly scenarios: readonly { readonly file: string; readonly ok: boolean; readonly problems: readonly string[] }[]
}

const folders = [
  ['suite', 163],
  ['own', 79],
] as const

for (const [folder, count] of folders) {
  test(`recorded outcomes of the control plane: ${folder}`, { timeout: 900_000 }, async (context) => {
    await using server = await startServer(['--bare'])
    await play(server, folder, count, context)
  })

  test(`recorded outcomes of the control plane on etcd: ${folder}`, { timeout: 900_000 }, async (context) => {
    await using etcd = await startEtcd()
    await using server = await startServer(['--bare', '--store', 'etcd', '--etcd-servers', etcd.urls.join(',')])
    await play(server, folder, count, context)
  })
}

async function play(server: ServerProcess, folder: string, count: number, context: TestContext): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'hawser-conformance-'))
  const report = join(scratch, 'report.json')
  const recorded = join(recordings, folder)
  const answer = await runProgram(process.execPath, [
    runner,
    ...['--url', server.url, '--token', server.token],
    ...['--scenarios', join(recorded, 'scenarios'), '--compare', join(recorded, 'expected')],
    ...['--jobs', '8', '--no-skip', '--messages', '--report', report],
  ])
  const { scenarios } = JSON.parse(readFileSync(report, 'utf8')) as Report
  rmSync(scratch, { recursive: true })
  assert.ok(scenarios.length >= count, `only ${scenarios.length} scenarios were played\n${answer.stderr}`)
  for (const { file, ok, problems } of scenarios) {
    await context.test(file, () => assert.ok(ok, problems.join('\n')))
  }
}
