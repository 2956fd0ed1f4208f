// How is a case played? A cluster of its own, the breakage, the question, the mend, and the question again.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '@stricli/core'
import { createApplication } from '../../../src/cli/app.ts'
import type { Context } from '../../../src/cli/context.ts'
import { ownExitCode } from '../../../src/cli/exit-codes.ts'
import { printExplanation } from '../../../src/cli/why-text.ts'
import type { Explanation } from '../../../src/why/explain.ts'
import type { Asked } from '../../kit/assert-why.ts'
import { why } from '../../kit/assert-why.ts'
import type { WholeCluster } from '../../kit/whole-cluster.ts'
import { createWholeCluster } from '../../kit/whole-cluster.ts'
import type { Case, Mend } from './case.ts'

/** The history is written behind the work, and API times are whole seconds. */
const toleranceMs = 2_500

export async function play(each: Case): Promise<void> {
  const cluster = await createWholeCluster(each.cluster)
  try {
    await each.before?.(cluster)
    const start = cluster.clock.now()
    const made = await each.make(cluster)
    const brokenAt = typeof made === 'number' ? made : start
    await cluster.clock.advance(each.afterMs ?? 13_000)
    const subject = typeof each.ask === 'string' ? each.ask : await each.ask(cluster)
    const explanation = await why(cluster, subject)
    check(each, explanation, cluster.clock.now(), brokenAt)
    if (each.mend !== undefined && each.mend !== 'nothing') await mendAndSee(each, each.mend, cluster, subject)
  } finally {
    await cluster.stop()
  }
}

/** The same trouble has the same beginning after more tries, and after every agent was killed and started again. */
export async function playSince(each: Case): Promise<'same' | 'another cause'> {
  const cluster = await createWholeCluster(each.cluster)
  try {
    await each.before?.(cluster)
    await each.make(cluster)
    await cluster.clock.advance(each.afterMs ?? 13_000)
    const subject = typeof each.ask === 'string' ? each.ask : await each.ask(cluster)
    const first = (await why(cluster, subject)).blocked
    for (const happens of [() => {}, () => cluster.restartNodes()]) {
      await happens()
      await cluster.clock.advance(35_000)
      const later = (await why(cluster, subject)).blocked
      if (later?.cause !== first?.cause) return 'another cause'
      const movedMs = Date.parse(later?.since ?? '') - Date.parse(first?.since ?? '')
      assert.ok(Math.abs(movedMs) <= toleranceMs, `since moved by ${movedMs} ms\n${JSON.stringify(later, null, 1)}`)
    }
    return 'same'
  } finally {
    await cluster.stop()
  }
}

function check(each: Case, explanation: Explanation, now: number, brokenAt: number): void {
  const { blocked, verdict } = explanation
  const all = JSON.stringify(explanation, null, 1)
  assert.equal(blocked?.cause, each.cause, all)
  assert.equal(verdict, each.verdict ?? 'waiting', all)
  const text = printed(explanation, now)
  assert.doesNotMatch(text, /nothing is wrong/)
  assert.ok(!/\{\w+\}/.test(text), text)
  if (each.says) assert.match(text, each.says)
  if (each.saysNot) assert.doesNotMatch(text, each.saysNot)
  each.also?.(explanation)
  if (each.since === false) return
  assert.ok(blocked?.since, `no time is told\n${text}`)
  const off = Date.parse(blocked.since) - brokenAt
  assert.ok(Math.abs(off) <= toleranceMs, `since is ${off} ms off\n${text}`)
}

function printed(explanation: Explanation, now: number): string {
  const lines: string[] = []
  printExplanation(contextOf(lines), explanation, now)
  return lines.join('\n')
}

async function mendAndSee(each: Case, mend: Mend, cluster: WholeCluster, subject: string): Promise<void> {
  const { blocked } = await why(cluster, subject)
  if ('outside' in mend) await mend.act(cluster)
  else {
    const hinted = (blocked?.hints ?? []).map(({ command }) => command)
    const plain = mend.run.map(withoutFlags)
    if (mend.unhinted !== true)
      assert.ok(
        plain.some((command) => hinted.some((hint) => withoutFlags(hint) === command)),
        `none of ${plain.join(' | ')} is among ${hinted.join(' | ')}`,
      )
    await runCommands(cluster, mend)
  }
  const isMended = ({ verdict, blocked: left }: Explanation) =>
    each.afterwards === undefined ? verdict === 'healthy' || verdict === 'missing' : left?.cause === each.afterwards
  const end = cluster.clock.now() + (each.mendsWithinMs ?? 130_000)
  let after = await why(cluster, subject)
  for (let pauseMs = 1_000; !isMended(after) && cluster.clock.now() < end; pauseMs *= 2) {
    await cluster.clock.advance(Math.min(pauseMs, end - cluster.clock.now()))
    after = await why(cluster, subject)
  }
  const told = JSON.stringify(after, null, 1)
  assert.ok(isMended(after), `the mend did not help: ${told}`)
}

/** `hawser delete pod web --yes --no-wait` → `hawser delete pod web`; files and sizes are the user's own. */
const withoutFlags = (command: string) =>
  command
    .replaceAll(/ --(yes|no-wait|force|reason '[^']*'|reason \S+)(?= |$)/g, '')
    .replaceAll(/(-f) \S+/g, '$1 FILE')
    .replaceAll(/(volume resize \S+) \S+/g, '$1 SIZE')

/** Commands of the program itself, in this process, against the server of the cluster. */
async function runCommands(
  cluster: Asked,
  { run: commands, files = {} }: Extract<Mend, { run: readonly string[] }>,
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-why-'))
  try {
    for (const [name, object] of Object.entries(files)) writeFileSync(join(directory, name), JSON.stringify(object))
    for (const command of commands) {
      const words = command.split(' ').slice(1)
      const own = words.map((word) => (Object.hasOwn(files, word) ? join(directory, word) : word))
      const { text, exitCode } = await runCommand(cluster, own)
      assert.equal(exitCode, 0, `${command}: ${text}`)
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** One command line of the program; the exit code is what its process would end with. */
export async function runCommand(
  cluster: Asked,
  words: readonly string[],
): Promise<{ readonly text: string; readonly exitCode: number }> {
  const lines: string[] = []
  const context = contextOf(lines, cluster)
  await run(await createApplication(words), words, context)
  const { exitCode } = context.process as { exitCode?: number }
  return { text: lines.join('\n'), exitCode: ownExitCode(exitCode ?? 0) }
}

function contextOf(lines: string[], cluster?: Asked): Context {
  const stream = { write: (text: string) => void lines.push(text), getColorDepth: () => 1 }
  const process = { env: {}, stdout: stream, stderr: stream, exitCode: undefined as number | undefined }
  return {
    process: process as unknown as Context['process'],
    color: false,
    interactive: false,
    ...(cluster ? { server: { client: cluster.client, namespace: 'default', now: () => cluster.clock.now() } } : {}),
    print: (text) => void lines.push(text),
    write: () => {},
    note: (text) => void lines.push(text),
    fail: (code) => void (process.exitCode = code),
    pipedInput: () => undefined,
    exitLike: (code) => void (process.exitCode = code),
  }
}
