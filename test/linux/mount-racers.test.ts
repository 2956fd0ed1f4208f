// Can somebody who writes to a shared volume steer another mount? He swaps directories for links while containers start, ten
// thousand times. Nothing may appear on the host, and no read-only mount may be writable: on a private and on a shared `/`.
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, test } from 'node:test'
import { podUid } from '../../src/api/names.ts'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import type { ContainerMount, ContainerRequest } from '../../src/node/runtime/port.ts'
import { needsRoot as skip } from '../kit/machine.ts'
import { containerRequest, createRuntimeIn } from '../kit/process-runtime.ts'
import { removeContainers } from '../kit/scratch-host.ts'

/** Set in the run inside a mount namespace whose `/` is shared. */
const isInner = process.env['HAWSER_SHARED_ROOT'] === '1'
/** Per test; there are eight, on a private and on a shared root. */
const swapsWanted = 10_000
const fewestStarts = 5
const base = mkdtempSync(join(tmpdir(), 'hawser-racers-'))
const label = basename(base)
const [volume, outside, precious] = [join(base, 'volume'), join(base, 'outside'), join(base, 'precious')]
const host = createLinuxHost()
const { signal } = new AbortController()
const uid = podUid('11111111-2222-3333-4444-666666666666')
const directory = join(base, 'containers')
const runtime = createRuntimeIn(base, host)
for (const path of [volume, outside, precious]) mkdirSync(path)
// A filesystem of its own: its name tells its mounts apart, wherever they are.
if (!skip) execFileSync('mount', ['-t', 'tmpfs', label, precious])

after(async () => {
  if (skip) return
  await runtime[Symbol.asyncDispose]()
  execFileSync('umount', ['-l', precious])
  await removeContainers(base, directory, host)
})

const bind = (source: string, target: string, more: Partial<ContainerMount> = {}): ContainerMount => ({
  source,
  target,
  readOnly: false,
  recursiveReadOnly: false,
  propagation: 'None',
  ...more,
})
const request = (name: string, mounts: readonly ContainerMount[], text: string): ContainerRequest =>
  containerRequest(uid, { name, graceMs: 1_000, argv: ['sh', '-c', text], mounts })
const preciousMounts = () =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(` ${label} `))
    .map((line) => line.split(' ')[4])

/** What a container that ran to its end has printed; undefined when it was refused. */
async function runOnce(name: string, mounts: readonly ContainerMount[], text: string): Promise<string | Error> {
  const ended = Promise.withResolvers<void>()
  using _ = runtime.subscribe((record) => record.name === name && record.exit && ended.resolve())
  try {
    await runtime.start(request(name, mounts, text), signal)
  } catch (error) {
    return error as Error
  }
  await ended.promise
  return readFileSync(join(base, `logs/default_p_${uid}/${name}/0.log`), 'utf8')
}

const links: Readonly<Record<string, string>> = {
  'the old root': `/.hawser${outside}`,
  'the root of process 1': `/proc/1/root${outside}`,
  'the way up': `../../../../../../..${outside}`,
  'its own root': '/etc',
  'a directory of the same volume': 'real',
}

for (const [name, to] of Object.entries(links))
  for (const kind of ['directory', 'file'] as const)
    test(`a nested mount of a ${kind} is refused when a link in the volume leads to ${name}`, { skip }, async () => {
      mkdirSync(join(volume, 'real'), { recursive: true })
      symlinkSync(to, join(volume, 'link'))
      writeFileSync(join(base, 'one'), 'x')
      const source = kind === 'file' ? join(base, 'one') : precious
      const seen: unknown[] = []
      for (const target of ['/data/link', '/data/link/made/here']) {
        const mounts = [bind(volume, '/data'), bind(source, target, { propagation: 'HostToContainer' })]
        const result = await runOnce('steered', mounts, 'cat /proc/self/mountinfo')
        seen.push(result instanceof Error ? /link.*\/data|\/data.*link/.test(result.message) || result.message : result)
      }
      rmSync(join(volume, 'link'))
      rmSync(join(volume, 'real'), { recursive: true })
      const left = { outside: readdirSync(outside), mounts: preciousMounts(), volume: readdirSync(volume) }
      assert.deepEqual({ seen, left }, { seen: [true, true], left: { outside: [], mounts: [precious], volume: [] } })
    })

test('a link on the container’s own root is followed inside it, as the machine’s own links are', { skip }, async () => {
  const seen = await runOnce(
    'own-link',
    [bind(precious, '/var/run/hawser-racer')],
    `grep ' ${label} ' /proc/self/mountinfo`,
  )
  assert.match(String(seen), / \/(var\/)?run\/hawser-racer /)
  assert.equal(existsSync('/run/hawser-racer'), false)
})

/** Swaps two names of a directory until it is killed, and counts on its output. */
const racer = `
import koffi from 'koffi'
const renameat2 = koffi.load('libc.so.6').func('int renameat2(int, const char*, int, const char*, unsigned int)')
const [a, b] = process.argv.slice(1)
let swaps = 0
const turn = () => {
  for (let i = 0; i < 50; i++) if (renameat2(-100, a, -100, b, 2) === 0) swaps++
  process.stdout.write(swaps + '\\n')
  setImmediate(turn)
}
turn()
`

const rivals: Readonly<Record<string, string>> = {
  'a link to the old root': `/.hawser${outside}`,
  'a link to the root of process 1': `/proc/1/root${outside}`,
  'a link to a directory beside it': 'beside',
  'another directory': '',
}

for (const propagation of ['None', 'Bidirectional'] as const)
  for (const [name, to] of Object.entries(rivals))
    test(
      `read-only mounts stay read-only and inside while ${name} is swapped in (${propagation})`,
      { skip },
      async () => {
        for (const path of ['b', 'beside']) mkdirSync(join(volume, path), { recursive: true })
        const rival = join(volume, 'rival')
        if (to === '') mkdirSync(rival)
        else symlinkSync(to, rival)
        const arguments_ = ['--input-type=module', '-e', racer, join(volume, 'b'), rival]
        const child = spawn(process.execPath, arguments_, { cwd: process.cwd(), stdio: ['ignore', 'pipe', 'inherit'] })
        let swaps = 0
        child.stdout.on('data', (chunk: Buffer) => (swaps = Number(chunk.toString().trim().split('\n').at(-1))))
        const mounts = [bind(volume, '/data', { propagation }), bind(precious, '/data/b', { readOnly: true })]
        const report = `grep ' ${label} ' /proc/self/mountinfo; touch /data/b/made /data/rival/made 2>/dev/null; :`
        const [writable, strange]: string[][] = [[], []]
        let [starts, refused] = [0, 0]
        for (; swaps < swapsWanted || starts < fewestStarts; starts++) {
          const result = await runOnce(`c${propagation}${starts}`.toLowerCase(), mounts, report)
          if (result instanceof Error) {
            if (/link/.test(result.message)) refused++
            else strange?.push(result.message)
            continue
          }
          // What is mounted inside a Bidirectional volume appears in the host's view of that volume; the swaps would stop there.
          for (const path of preciousMounts()) if (path?.startsWith(`${volume}/`)) execFileSync('umount', ['-l', path])
          for (const line of result.split('\n').filter(Boolean))
            if (!/^ro\b/.test(line.split(' ')[5] ?? '')) writable?.push(line)
        }
        child.kill('SIGKILL')
        await new Promise((resolve) => child.once('exit', resolve))
        await runtime.removePod(uid, signal)
        const left = {
          outside: readdirSync(outside),
          precious: readdirSync(precious),
          mounts: preciousMounts().filter((path) => path !== precious && !path?.startsWith(`${volume}/`)),
        }
        for (const path of preciousMounts()) if (path !== precious) execFileSync('umount', ['-l', String(path)])
        rmSync(volume, { recursive: true })
        mkdirSync(volume)
        const clean = { writable: [], strange: [], left: { outside: [], precious: [], mounts: [] } }
        assert.deepEqual({ writable, strange, left }, clean, `${starts} starts, ${refused} refused, ${swaps} swaps`)
      },
    )

test('the same holds on a machine whose / is shared', { skip: skip || isInner }, () => {
  const argv = ['--mount', '--propagation', 'shared', '--', process.execPath, '--test', import.meta.filename]
  const env = { ...process.env, HAWSER_SHARED_ROOT: '1' }
  delete (env as Record<string, unknown>)['NODE_TEST_CONTEXT']
  const { status, stdout } = spawnSync('unshare', argv, { env, encoding: 'utf8', timeout: 120_000 })
  assert.equal(status, 0, stdout)
})
