// Does `hawser run` behave like the command itself? Input, output, exit code, no idle time; and what it says when nothing starts.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import type { Server } from '../kit/command-line.ts'
import { fileIn, isRoot, startServer } from '../kit/command-line.ts'
import { launcher, runProgram } from '../kit/server-process.ts'

const needs = { skip: !isRoot && 'needs root', timeout: 120_000 }
let server: Server
before(async () => {
  if (isRoot) server = await startServer('--node-name', 'one', '--store', 'memory')
})
after(() => server?.[Symbol.asyncDispose]())

const run = (args: readonly string[], input?: string) =>
  runProgram(launcher, ['run', ...args], { env: server.env, ...(input === undefined ? {} : { input }) })

test('what is piped into run is the input of the command, to its end', needs, async () => {
  const line = await run(['--', 'cat'], 'hello\n')
  assert.deepEqual([line.code, line.stdout], [0, 'hello\n'], line.stderr)
  const much = await run(['--', 'wc', '-c'], 'x'.repeat(3_000_000))
  assert.deepEqual([much.code, much.stdout.trim()], [0, '3000000'], much.stderr)
  const deaf = await run(['--no-stdin', '--', 'wc', '-c'], 'hello\n')
  assert.deepEqual([deaf.code, deaf.stdout.trim()], [0, '0'], deaf.stderr)
  const early = await run(['--', 'true'], 'x'.repeat(3_000_000))
  assert.equal(early.code, 0, early.stderr)
})

test('run ends with its command, though nobody closes its input', needs, async () => {
  const child = spawn(launcher, ['run', '--', 'sh', '-c', 'echo done'], {
    env: { ...process.env, ...server.env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let saidAt = 0
  child.stdout.on('data', () => (saidAt = performance.now()))
  const [code] = (await once(child, 'close')) as [number]
  const idleMs = performance.now() - saidAt
  assert.equal(code, 0)
  // An uncleared timer held it for two seconds.
  assert.ok(idleMs < 1_900, `${Math.round(idleMs)} ms between the last output and the end`)
})

test('a run that does not start says why, and suggests nothing about the pod that it has deleted', needs, async () => {
  const claim =
    '{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"never","namespace":"kube-system"},"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"nowhere","resources":{"requests":{"storage":"1Gi"}}}}'
  const applied = await server.hawser('apply', '-f', fileIn(server.directory, 'never.json', claim))
  assert.equal(applied.code, 0, applied.err)
  const { code, stderr } = await run(['-n', 'kube-system', '--claim', 'never:/data', '--timeout', '2', '--', 'true'])
  assert.equal(code, 4, stderr)
  assert.match(stderr, /nowhere/)
  assert.match(stderr, /\(the pod was deleted\)\n {2}try: hawser why persistentvolumeclaim\/never -n kube-system\n/)
  const why = await server.hawser('why', 'persistentvolumeclaim/never', '-n', 'kube-system')
  assert.equal(why.code, 4, why.err)
})
