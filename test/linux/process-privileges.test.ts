// What can a process pod do to its machine, and what does it see of it? As much as its securityContext says (A8, A9, A16).
// Real Linux, root, a private directory under /tmp; everything is unmounted and removed again.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { podUid } from '../../src/api/names.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import type { ContainerRequest } from '../../src/node/runtime/port.ts'
import { containerRequest, createRuntimeIn } from '../kit/process-runtime.ts'
import { removeContainers } from '../kit/scratch-host.ts'

const skip = process.getuid?.() === 0 ? false : 'needs root'
const base = mkdtempSync(join(tmpdir(), 'hawser-privileges-'))
const clock = createSystemClock()
const host = createLinuxHost()
const { signal } = new AbortController()
const directory = join(base, 'containers')
const uid = podUid('11111111-2222-3333-4444-888888888888')
const [real, link, secretFile] = [join(base, 'real'), join(base, 'link'), join(base, 'kubeconfig')]
mkdirSync(join(real, 'pods'), { recursive: true })
writeFileSync(join(real, 'token'), 'secret')
writeFileSync(secretFile, 'secret')
symlinkSync(real, link)
// As the packaged unit does it, only the other way round: this machine may not allow negative values.
if (!skip) writeFileSync('/proc/self/oom_score_adj', '500')

const runtime = createRuntimeIn(base, host, [link, secretFile])
after(async () => {
  await runtime[Symbol.asyncDispose]()
  await removeContainers(base, directory, host)
})

const usual = ['chown', 'dac_override', 'kill', 'setgid', 'setuid']
const request = (name: string, text: string, more: Partial<ContainerRequest> = {}) =>
  containerRequest(uid, { name, graceMs: 5_000, argv: ['sh', '-c', text], capabilities: usual, ...more })
let count = 0
/** What the container printed, and its exit code. */
async function run(text: string, more: Partial<ContainerRequest> = {}): Promise<{ code: number; lines: string[] }> {
  const name = `c${count++}`
  const ended = Promise.withResolvers<number>()
  using _ = runtime.subscribe((record) => void (record.name === name && record.exit && ended.resolve(record.exit.code)))
  await runtime.start(request(name, text, more), signal)
  const code = await ended.promise
  const output = readFileSync(join(base, `logs/default_p_${uid}/${name}/0.log`), 'utf8')
  return { code, lines: output.split('\n').filter(Boolean) }
}

test('root in a container has the capabilities that were asked for, and no more (A8)', { skip }, async () => {
  const text = 'grep -E "Cap(Prm|Eff|Bnd|Inh|Amb)|NoNewPrivs" /proc/self/status'
  const mask = (1n << 0n) | (1n << 1n) | (1n << 5n) | (1n << 6n) | (1n << 7n)
  const shown = mask.toString(16).padStart(16, '0')
  const none = '0'.repeat(16)
  assert.deepEqual((await run(text, { noNewPrivileges: true })).lines, [
    `CapInh:\t${none}`,
    `CapPrm:\t${shown}`,
    `CapEff:\t${shown}`,
    `CapBnd:\t${shown}`,
    `CapAmb:\t${none}`,
    'NoNewPrivs:\t1',
  ])
  const user = await run(text, { user: 1234, group: 2345, capabilities: [] })
  assert.deepEqual(
    user.lines.map((line) => line.split('\t')[1]),
    [none, none, none, none, none, '0'],
  )
})

test(
  'what root without capabilities could still do to the machine through files is closed (A8)',
  { skip },
  async () => {
    const disk = execFileSync('sh', [
      '-c',
      'for d in /dev/vd? /dev/sd? /dev/nvme?n? /dev/loop-control; do [ -e $d ] && echo $d; done; :',
    ])
    const devices = disk.toString().split('\n').filter(Boolean)
    const places = [
      '/proc/sys/kernel/core_pattern',
      '/proc/sysrq-trigger',
      '/sys/kernel/uevent_helper',
      '/sys/power/state',
    ]
    const text = [
      ...places.map((path) => `if ( : >>${path} ) 2>/dev/null; then echo ${path} can be written; fi`),
      ...devices.map((path) => `if [ -e ${path} ]; then echo ${path} is there; fi`),
      'mknod /x b 7 0 2>/dev/null && echo a device was made',
      'mount -t tmpfs tmpfs /mnt 2>/dev/null && echo something was mounted',
      'for d in null zero full random urandom tty; do [ -c /dev/$d ] || echo no $d; done',
      'echo word >/dev/null; echo shared >/dev/shm/x; cat /dev/shm/x; ls /dev/fd/ >/dev/null && echo end',
    ].join('\n')
    assert.deepEqual((await run(text)).lines, ['shared', 'end'])
  },
)

test('a device file on a volume cannot be used, unless the container is privileged (A8)', { skip }, async () => {
  const volume = join(base, 'volume')
  mkdirSync(volume)
  execFileSync('mknod', ['-m', '666', join(volume, 'zero'), 'c', '1', '5'])
  const mount = {
    source: volume,
    target: '/data',
    readOnly: false,
    recursiveReadOnly: false,
    propagation: 'None',
  } as const
  const text = 'head -c1 /data/zero >/dev/null 2>&1 && echo opened || echo refused'
  const { capabilities: _all, ...privileged } = request('x', text, { mounts: [mount] })
  assert.deepEqual((await run(text, { mounts: [mount] })).lines, ['refused'])
  const ended = Promise.withResolvers<void>()
  using _ = runtime.subscribe((record) => void (record.name === 'x' && record.exit && ended.resolve()))
  await runtime.start(privileged, signal)
  await ended.promise
  assert.equal(readFileSync(join(base, `logs/default_p_${uid}/x/0.log`), 'utf8'), 'opened\n')
})

test('a container sees its own processes only, with its own /proc; with hostPid it sees all', { skip }, async () => {
  const text = `ls /proc | grep -c "^[0-9]*$"; [ -e /proc/${process.pid}/stat ] && grep -q node /proc/${process.pid}/comm && echo sees the test; :`
  const own = await run(text)
  assert.ok(Number(own.lines[0]) < 8, own.lines.join())
  assert.equal(own.lines.length, 1)
  assert.equal((await run(text, { hostPid: true })).lines[1], 'sees the test')
})

test(
  'process 1 passes TERM on, reports the exit code, collects orphans, and takes everybody along',
  { skip },
  async () => {
    assert.equal((await run('exit 7')).code, 7)
    assert.equal((await run('kill -9 $$')).code, 137)
    assert.equal((await run('kill -TERM $$')).code, 143)
    assert.equal((await run('exit 143')).code, 143)
    const ended = Promise.withResolvers<number>()
    using _ = runtime.subscribe(
      (record) => void (record.name === 'polite' && record.exit && ended.resolve(record.exit.code)),
    )
    await runtime.start(
      request('polite', 'trap "exit 3" TERM; (sleep 0.1 &); echo ready; while :; do sleep 0.05; done'),
      signal,
    )
    const log = () => readFileSync(join(base, `logs/default_p_${uid}/polite/0.log`), 'utf8')
    while (!log().includes('ready')) await clock.sleep(10, signal)
    await clock.sleep(300, signal)
    const { env, workingDirectory, groups } = request('polite', '')
    const asked = { pod: uid, name: 'polite', env, workingDirectory, groups, capabilities: usual, timeoutMs: 10_000 }
    const zombies = await runtime.exec(
      { ...asked, argv: ['sh', '-c', 'grep -l "^State:.Z" /proc/[0-9]*/status 2>/dev/null; :'] },
      signal,
    )
    assert.equal(zombies.output, '')
    await runtime.stop({ pod: uid, name: 'polite', graceMs: 20_000 }, signal)
    assert.equal(await ended.promise, 3)
    await runtime.start(request('plain', 'exec sleep 4712'), signal)
    const before = Date.now()
    await runtime.stop({ pod: uid, name: 'plain', graceMs: 20_000 }, signal)
    assert.ok(Date.now() - before < 10_000, 'a program without a handler ends with TERM as it does anywhere else')
    await runtime.start(request('left', 'setsid sleep 4713 & exit 0'), signal)
    await clock.sleep(500, signal)
    assert.throws(() => execFileSync('pgrep', ['-f', '^sleep 471']))
  },
)

test('a command beside the container has its process ids and its capabilities', { skip }, async () => {
  await runtime.start(request('target', 'exec sleep 60'), signal)
  const { env, workingDirectory, groups } = request('target', '')
  const asked = { pod: uid, name: 'target', env, workingDirectory, groups, capabilities: usual, timeoutMs: 10_000 }
  const text = 'cat /proc/[0-9]*/comm | sort | uniq -c | grep -c sleep; grep CapEff /proc/self/status; exit 5'
  const { exitCode, output } = await runtime.exec({ ...asked, argv: ['sh', '-c', text] }, signal)
  await runtime.stop({ pod: uid, name: 'target', graceMs: 0 }, signal)
  assert.deepEqual({ exitCode, output }, { exitCode: 5, output: '1\nCapEff:\t00000000000000e3\n' })
})

test('the node’s directories and files are hidden by their real paths, links or not (A9)', { skip }, async () => {
  const text = `cat ${real}/token ${link}/token ${secretFile} 2>/dev/null; ls -A ${real} ${link}/; echo end`
  const { lines } = await run(text)
  assert.deepEqual(
    lines.filter((line) => !line.endsWith(':')),
    ['end'],
  )
})

test(
  'a container is not protected from the kernel’s choice whom to end when memory is short (A16)',
  { skip },
  async () => {
    assert.deepEqual((await run('cat /proc/self/oom_score_adj')).lines, ['0'])
    await runtime.start(request('beside', 'exec sleep 60', { user: 1234 }), signal)
    const asked = {
      ...request('beside', '', { user: 1234 }),
      argv: ['cat', '/proc/self/oom_score_adj'],
      timeoutMs: 10_000,
    }
    assert.equal((await runtime.exec(asked, signal)).output, '0\n', 'a command beside it')
    await runtime.stop({ pod: uid, name: 'beside', graceMs: 0 }, signal)
  },
)

test(
  'a working directory that a link in a volume leads out of the container is not entered with hostPid',
  { skip },
  async () => {
    const volume = join(base, 'steering')
    mkdirSync(volume)
    symlinkSync(`/proc/1/root${base}`, join(volume, 'out'))
    const mount = {
      source: volume,
      target: '/data',
      readOnly: false,
      recursiveReadOnly: false,
      propagation: 'None',
    } as const
    const result = await run('pwd', {
      hostPid: true,
      mounts: [mount],
      workingDirectory: '/data/out/made',
      user: 1234,
      group: 2345,
    })
    assert.equal(result.code, 126)
    rmSync(volume, { recursive: true })
  },
)

test('no process of a container shows paths of the host in its arguments or variables (A9)', { skip }, async () => {
  const text = 'for p in /proc/[0-9]*; do tr "\\0" "\\n" <$p/cmdline; tr "\\0" "\\n" <$p/environ; done'
  const { code, lines } = await run(text)
  assert.equal(code, 0)
  assert.ok(lines.includes('hawser-setup'), 'process 1 was looked at')
  assert.deepEqual(
    lines.filter((line) => line.includes(base)),
    [],
  )
})
