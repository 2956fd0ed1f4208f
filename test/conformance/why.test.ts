// Does `why` name the right cause for every object, after every step of every recorded scenario? causes.json says what it must
// say, by hand and judged one by one; what it does not name has nothing to wait for, and `why` must say so too.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createHttpClient } from '../../src/client/http.ts'
import { runProgram, startServer } from '../kit/server-process.ts'
import type { Pause } from './pauses.ts'
import { atEachPause, writeWithPauses } from './pauses.ts'
import type { Causes, WantedCauses } from '../kit/causes-of-play.ts'
import { assertCauses, causesOf, untilCauses } from '../kit/causes-of-play.ts'

const suite = join(import.meta.dirname, '../recorded/conformance/suite')
const timeoutMs = 20_000
const wanted = JSON.parse(readFileSync(join(import.meta.dirname, 'causes.json'), 'utf8')) as Readonly<
  Record<string, Readonly<Record<string, WantedCauses>>>
>

test('why, after every step of every recorded scenario', { timeout: 600_000 }, async (context) => {
  const scratch = mkdtempSync(join(tmpdir(), 'hawser-why-'))
  using stack = new DisposableStack()
  stack.defer(() => rmSync(scratch, { recursive: true }))
  const steps = writeWithPauses(suite, scratch)
  await using server = await startServer(['--bare', '--store', 'memory'])
  using client = createHttpClient({ url: server.url, token: server.token, insecureSkipTlsVerify: true })
  const told = new Map<string, Record<string, Causes>>()
  const over = new AbortController()
  const looking = atEachPause(
    client,
    async ({ scenario, step, id }: Pause) => {
      const play = { namespaces: [`${id}-ns`, `${id}-ns2`], prefix: `${id}-` } as const
      const found = await untilCauses(() => causesOf(client, play, 'own'), wanted[scenario]?.[step] ?? {}, timeoutMs)
      told.set(scenario, { ...told.get(scenario), [step]: found })
    },
    over.signal,
  )
  const played = await runProgram(process.execPath, [
    join(suite, 'run.mjs'),
    ...['--url', server.url, '--token', server.token, '--jobs', '6', '--no-skip'],
    ...['--scenarios', join(scratch, 'scenarios'), '--compare', join(scratch, 'expected')],
  ])
  over.abort()
  await looking
  assert.equal(played.code, 0, played.stdout)
  for (const [scenario, count] of steps)
    await context.test(scenario, () => {
      const found = told.get(scenario) ?? {}
      assert.equal(Object.keys(found).length, count, 'not every step was looked at')
      for (const [step, causes] of Object.entries(found)) assertCauses(causes, wanted[scenario]?.[step] ?? {}, step)
    })
  assert.deepEqual(
    Object.entries(wanted).flatMap(([scenario, causes]) =>
      Object.keys(causes)
        .filter((step) => told.get(scenario)?.[step] === undefined)
        .map((step) => `${scenario} ${step}`),
    ),
    [],
    'steps that causes.json names and that nobody played',
  )
})
