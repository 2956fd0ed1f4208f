// Does a second server take over: when the first stops, when it is killed, when it sleeps? And does one that was asleep do no harm when
// it wakes? Real processes on a real etcd, as docs/how-to/keep-a-second-server.md says.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { startEtcd } from '../kit/etcd.ts'
import { launcher, runProgram } from '../kit/server-process.ts'

const place = realpathSync(mkdtempSync(join(tmpdir(), 'hawser-standby-')))
after(() => rmSync(place, { recursive: true, force: true }))
/** A busy machine must not look like one that sleeps. */
const leaseSeconds = 10

interface Standby extends AsyncDisposable {
  readonly directory: string
  kill(signal: NodeJS.Signals): void
  /** Resolves when the process has written this. Throws with all it wrote when it ends before. */
  wrote(pattern: RegExp): Promise<void>
  ended(): Promise<{ readonly code: number | null; readonly text: string }>
}

function startStandby(urls: readonly string[], name: string): Standby {
  const directory = join(place, name)
  const args = [
    ...['up', '--no-node', '--data-dir', directory, '--listen', '127.0.0.1:0', '--store', 'etcd', '--standby'],
    ...['--etcd-servers', urls.join(','), '--etcd-lease-seconds', String(leaseSeconds)],
  ]
  const child = spawn(launcher, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const exit = once(child, 'close')
  let text = ''
  let hasEnded = false
  const changed = new Set<() => void>()
  const tell = () => changed.forEach((wake) => wake())
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      tell()
    })
  void exit.then(() => {
    hasEnded = true
    tell()
  })
  const ended = async () => {
    const [code] = (await exit) as [number | null]
    return { code, text }
  }
  return {
    directory,
    kill: (signal) => void child.kill(signal),
    async wrote(pattern) {
      while (!pattern.test(text)) {
        assert.ok(!hasEnded, `${name} ended and had not written ${pattern}:\n${text}`)
        await new Promise<void>((resolve) => {
          changed.add(resolve)
        })
      }
    },
    ended,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exit
    },
  }
}

const serves = /serves https:/
const waits = /in use by the server .*; this one stands by/

async function hawser(server: Standby, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runProgram(launcher, [
    ...args,
    '--kubeconfig',
    join(server.directory, 'kubeconfig'),
  ])
  assert.equal(code, 0, stderr)
  return stdout
}

async function create(server: Standby, name: string): Promise<void> {
  const file = join(place, `${name}.json`)
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } }))
  await hawser(server, 'apply', '-f', file)
}

test('a second server takes over from one that stops, dies or sleeps', { timeout: 180_000 }, async (t) => {
  await using etcd = await startEtcd()
  await using first = startStandby(etcd.urls, 'first')
  await first.wrote(serves)
  await create(first, 'one')
  await using second = startStandby(etcd.urls, 'second')
  await second.wrote(waits)
  {
    await using third = startStandby(etcd.urls, 'third')
    await third.wrote(waits)
    third.kill('SIGTERM')
    const { code, text } = await third.ended()
    assert.equal(code, 0, text)
    assert.match(text, /SIGTERM: stopping before the start was complete/)
  }
  const since = performance.now()
  first.kill('SIGTERM')
  await second.wrote(serves)
  t.diagnostic(`after a clean stop the second server served in ${Math.round(performance.now() - since)} ms`)
  assert.equal((await first.ended()).code, 0)
  assert.match(await hawser(second, 'get', 'configmaps', '-o', 'name'), /configmap\/one/)
  assert.match(await hawser(second, 'get', 'storageclasses', '-o', 'name'), /hawser-local/)
  assert.equal(token(second), token(first))

  await create(second, 'two')
  await using third = startStandby(etcd.urls, 'third')
  await third.wrote(waits)
  const killed = performance.now()
  second.kill('SIGKILL')
  await third.wrote(serves)
  t.diagnostic(
    `after kill -9 the next one served in ${Math.round(performance.now() - killed)} ms (lease ${leaseSeconds} s)`,
  )
  assert.match(await hawser(third, 'get', 'configmaps', '-o', 'name'), /configmap\/one\nconfigmap\/two/)

  // The process sleeps: another takes its place, and it ends as soon as it wakes.
  await using fourth = startStandby(etcd.urls, 'fourth')
  await fourth.wrote(waits)
  third.kill('SIGSTOP')
  await fourth.wrote(serves)
  await create(fourth, 'three')
  third.kill('SIGCONT')
  const { code, text } = await third.ended()
  assert.equal(code, 1, text)
  assert.match(text, /the store is lost: this server ends/)
  assert.match(await hawser(fourth, 'get', 'configmaps', '-o', 'name'), /configmap\/three/)
})

function token({ directory }: Standby): string {
  return readFileSync(join(directory, 'admin.token'), 'utf8')
}
