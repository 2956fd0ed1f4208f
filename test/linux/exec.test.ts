// Do exec and attach work on real containers? Commands with pipes and with a terminal; no process of them is left behind.
// Real Linux, root, a private directory under /tmp; everything is unmounted and removed again.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { podUid } from '../../src/api/names.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import { createLinuxProcesses } from '../../src/host/linux/processes.ts'
import { runSession } from '../../src/host/linux/exec-sessions.ts'
import type { ContainerRequest } from '../../src/node/runtime/port.ts'
import { createProcessRuntime } from '../../src/node/runtime/processes.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { createSizes } from '../../src/streams/terminal-sizes.ts'
import { interactive, interactiveContract, pieces, recordingStreams } from '../contracts/runtime.ts'
import type { RunningContainer } from '../contracts/runtime.ts'
import { removeContainers } from '../kit/scratch-host.ts'

const skip = process.getuid?.() === 0 ? false : 'needs root'
const base = mkdtempSync(join(tmpdir(), 'hawser-exec-'))
const clock = createSystemClock()
const host = createLinuxHost()
const processes = createLinuxProcesses({ clock })
const never = new AbortController().signal
const directory = join(base, 'containers')
const pod = podUid('11111111-2222-3333-4444-666666666666')
mkdirSync(join(base, 'volume'))
writeFileSync(join(base, 'volume/f'), 'hello')

async function make(more: Partial<ContainerRequest> = {}): Promise<RunningContainer> {
  const deps = { host, processes, clock, log: silentLog, directory, logDirectory: join(base, 'logs'), hidden: [] }
  const runtime = createProcessRuntime(deps)
  const source = join(base, 'volume')
  const mount = { source, target: '/data', readOnly: false, recursiveReadOnly: false, propagation: 'None' as const }
  const names = { pod, podName: 'p', namespace: 'default', name: 'c', attempt: 0, argv: ['sleep', '600'] }
  const rest = { env: { PATH: '/usr/bin:/bin' }, workingDirectory: '/', groups: [], readOnlyRoot: true, devices: [] }
  await runtime.start({ ...names, ...rest, graceMs: 30_000, mounts: [mount], ...more }, never)
  return {
    runtime,
    pod,
    name: 'c',
    async [Symbol.asyncDispose]() {
      await runtime.stop({ pod, name: 'c', graceMs: 0 }, never)
      await runtime.removePod(pod, never)
      await runtime[Symbol.asyncDispose]()
    },
  }
}

after(() => removeContainers(base, directory, host))

interactiveContract('processes', () => make(), { skip })

test('a command sees what the container sees, as its user, and writes to both streams', { skip }, async () => {
  await using container = await make()
  const { output, streams } = recordingStreams()
  const text =
    'cat /data/f; id -u; echo $FLAVOUR; pwd; touch /x 2>/dev/null || echo read-only; echo e >/dev/stderr; exit 7'
  const request = {
    ...interactive(container, ['sh', '-c', text]),
    user: 65534,
    group: 65534,
    workingDirectory: '/data',
  }
  assert.equal(await container.runtime.runInteractive(request, streams, never), 7)
  assert.deepEqual(output, { stdout: 'hello65534\nsour\n/data\nread-only\n', stderr: 'e\n' })
})

test('a terminal is a terminal, knows its size and tells when it changes', { skip }, async () => {
  await using container = await make()
  const sizes = createSizes()
  sizes.read('{"Width":77,"Height":33}')
  let screen = ''
  const input = Promise.withResolvers<void>()
  const stdin = (async function* () {
    await input.promise
    yield Buffer.from('stty size\n')
    yield Buffer.from('exit 5\n')
    await new Promise(() => {})
  })()
  const streams = {
    stdin,
    sizes,
    stderr: async () => assert.fail('a terminal has one stream'),
    async stdout(bytes: Uint8Array) {
      screen += Buffer.from(bytes).toString()
      if (screen.includes('77 ready')) {
        sizes.read('{"Width":100,"Height":40}')
        setTimeout(() => input.resolve(), 100)
      }
    },
  }
  const script = 'stty size; tty; echo 77 ready; TERM=$TERM exec sh'
  const code = await container.runtime.runInteractive(
    interactive(container, ['sh', '-c', script], true),
    streams,
    never,
  )
  assert.equal(code, 5)
  assert.match(screen, /^33 77\r\n\/dev\/pts\/\d+\r\n77 ready/)
  assert.match(screen, /40 100\r\n/)
})

test('megabytes go both ways and arrive whole, however slowly they are taken', { skip, timeout: 60_000 }, async () => {
  await using container = await make()
  const piece = Buffer.alloc(65_536, 'a')
  let size = 0
  const stdin = (async function* () {
    for (let count = 0; count < 80; count++) yield piece
  })()
  const slowly = async (bytes: Uint8Array) => {
    size += bytes.length
    if (size % 7 === 0) await clock.sleep(5, never)
  }
  const streams = { ...recordingStreams(stdin).streams, stdout: slowly }
  assert.equal(await container.runtime.runInteractive(interactive(container, ['cat']), streams, never), 0)
  assert.equal(size, 80 * 65_536)
})

test('whoever never listens stops the command instead of filling memory', { skip, timeout: 60_000 }, async () => {
  await using container = await make()
  const stop = new AbortController()
  let [taken, asked] = [0, 0]
  const streams = {
    ...recordingStreams().streams,
    async stdout(bytes: Uint8Array) {
      asked++
      taken += bytes.length
      await new Promise(() => {})
    },
  }
  const running = container.runtime.runInteractive(interactive(container, ['yes', mark]), streams, stop.signal)
  await clock.sleep(500, never)
  assert.equal(asked, 1)
  assert.ok(taken <= 65_536)
  stop.abort(new Error('gone'))
  await assert.rejects(running, /gone/)
  await nobodyLeft()
})

test(
  'a client that goes leaves no process behind, not even one that left its group',
  { skip, timeout: 60_000 },
  async () => {
    await using container = await make()
    for (const tty of [false, true]) {
      const stop = new AbortController()
      const up = Promise.withResolvers<void>()
      const streams = { ...recordingStreams(pieces()).streams, stdout: async () => up.resolve() }
      const script = `sh -mc 'sleep 600.${mark} & exec sleep 600.${mark}' & echo up; sleep 600.${mark}`
      const request = interactive(container, ['sh', '-c', script], tty)
      const running = container.runtime.runInteractive(request, streams, stop.signal)
      await up.promise
      await clock.sleep(200, never)
      assert.ok(leftOver().length >= 2)
      stop.abort(new Error('gone'))
      await assert.rejects(running, /gone/)
      await nobodyLeft()
    }
  },
)

test('a child that keeps the pipes does not keep the caller', { skip, timeout: 60_000 }, async () => {
  await using container = await make()
  const { output, streams } = recordingStreams()
  const request = interactive(container, ['sh', '-c', `sleep 600.${mark} & echo done`])
  assert.equal(await container.runtime.runInteractive(request, streams, never), 0)
  assert.equal(output.stdout, 'done\n')
})

test(
  'a container that may be spoken to hears what is output, and the end of it when that is for once',
  { skip, timeout: 60_000 },
  async () => {
    for (const once of [false, true]) {
      rmSync(join(base, 'logs'), { recursive: true, force: true })
      const script = 'while read -r line; do echo "heard $line"; done; echo end'
      await using container = await make({ stdin: true, argv: ['sh', '-c', script] })
      const { runtime, pod, name } = container
      await runtime.writeStdin({ pod, name, once }, pieces('one\n', 'two\n'), never)
      const file = join(base, `logs/default_p_${pod}/c/0.log`)
      const expected = `heard one\nheard two\n${once ? 'end\n' : ''}`
      for (let tries = 0; tries < 50 && readFileSync(file, 'utf8') !== expected; tries++) await clock.sleep(20, never)
      assert.equal(readFileSync(file, 'utf8'), expected)
    }
  },
)

test('one that was not made for it is not spoken to', { skip }, async () => {
  await using container = await make()
  const { runtime, pod, name } = container
  await assert.rejects(runtime.writeStdin({ pod, name, once: true }, pieces('x'), never), /container c reads no input/)
})

test('output that arrives while the agent is busy is not lost', async () => {
  const child = spawn('sh', ['-c', 'sleep 0.2; echo late'], { stdio: ['ignore', 'pipe', 'ignore'] })
  const sockets = new Map([['stdout', child.stdout as Socket]] as const)
  const { output, streams } = recordingStreams()
  const deps = { clock, sockets, exited: Promise.resolve(0), resize() {}, kill() {} }
  const running = runSession(deps, streams, never)
  // Behind a pause of the event loop timers that are due come first, and what has arrived comes after them.
  await new Promise((resolve) => setImmediate(resolve))
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600)
  assert.equal(await running, 0)
  assert.equal(output.stdout, 'late\n')
})

test('twenty at once', { skip, timeout: 60_000 }, async () => {
  await using container = await make()
  const ends = Array.from({ length: 20 }, async (_, index) => {
    const { output, streams } = recordingStreams(pieces(`${index}`))
    const request = interactive(container, ['sh', '-c', `cat; exit ${index}`])
    return [await container.runtime.runInteractive(request, streams, never), output.stdout]
  })
  assert.deepEqual(
    await Promise.all(ends),
    ends.map((_, index) => [index, `${index}`]),
  )
})

const mark = String(process.pid).padStart(9, '0')

function leftOver(): readonly string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(mark)
    } catch {
      return false // gone while we looked
    }
  })
}

async function nobodyLeft(): Promise<void> {
  for (let tries = 0; tries < 50 && leftOver().length > 0; tries++) await clock.sleep(50, never)
  assert.deepEqual(leftOver(), [])
}
