// Do containers really run as processes with their own view of the machine, and survive the agent?
// Real Linux, root, a private directory under /tmp; everything is unmounted and removed again.
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  existsSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { podUid } from '../../src/api/names.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import { createLinuxProcesses } from '../../src/host/linux/processes.ts'
import type { ContainerRecord, ContainerRequest } from '../../src/node/runtime/port.ts'
import { superviseScript } from '../../src/node/runtime/launcher.ts'
import { createProcessRuntime } from '../../src/node/runtime/processes.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { needsRoot as skip, until } from '../kit/machine.ts'
import { containerRequest, createRuntimeIn } from '../kit/process-runtime.ts'
import { removeContainers } from '../kit/scratch-host.ts'

const base = mkdtempSync(join(tmpdir(), 'hawser-runtime-'))
const clock = createSystemClock()
const host = createLinuxHost()
const signal = new AbortController().signal
const directory = join(base, 'containers')
const uid = podUid('11111111-2222-3333-4444-555555555555')
mkdirSync(join(base, 'node/pods/secret'), { recursive: true })
writeFileSync(join(base, 'node/pods/secret/x'), 'hidden')

const makeRuntime = () => createRuntimeIn(base, host, [join(base, 'node')])
const request = (more: Partial<ContainerRequest>): ContainerRequest => containerRequest(uid, more)
const script = (text: string, more: Partial<ContainerRequest> = {}) => request({ argv: ['sh', '-c', text], ...more })
const output = (name = 'c', attempt = 0) =>
  readFileSync(join(base, `logs/default_p_${uid}/${name}/${attempt}.log`), 'utf8')
const mount = (source: string, target: string, more: object = {}) => ({
  source,
  target,
  readOnly: false,
  recursiveReadOnly: false,
  propagation: 'None' as const,
  ...more,
})

function exitOf(runtime: ReturnType<typeof makeRuntime>, name: string): Promise<ContainerRecord> {
  return new Promise((resolve) => {
    runtime.subscribe((record) => {
      if (record.name === name && record.exit) resolve(record)
    })
  })
}
async function runToEnd(wanted: ContainerRequest): Promise<{ code: number; log: string }> {
  const runtime = makeRuntime()
  const ended = exitOf(runtime, wanted.name)
  await runtime.start(wanted, signal)
  const { exit } = await ended
  const log = output(wanted.name, wanted.attempt)
  await runtime.removePod(uid, signal)
  rmSync(join(base, 'logs'), { recursive: true, force: true })
  await runtime[Symbol.asyncDispose]()
  return { code: exit!.code, log }
}

after(() => removeContainers(base, directory, host))

test('a process sees its volumes where its mountPaths say, and the host is untouched', { skip }, async () => {
  const volume = join(base, 'volume')
  mkdirSync(volume)
  writeFileSync(join(volume, 'f'), 'hello')
  const text = `cat /data/f; echo more > /data/g; touch /etc/hawser-mark; mkdir -p /opt/x; ls ${base}/node; echo end`
  const result = await runToEnd(
    script(text, { mounts: [mount(volume, '/data'), mount(join(volume, 'f'), '/one/file')] }),
  )
  assert.deepEqual(result, { code: 0, log: 'helloend\n' })
  assert.equal(readFileSync(join(volume, 'g'), 'utf8'), 'more\n')
  assert.equal(existsSync('/etc/hawser-mark'), false)
  assert.equal(existsSync('/data'), false)
})

test('a link in a volume takes the working directory nowhere but into the container', { skip }, async () => {
  const volume = join(base, 'links')
  mkdirSync(volume)
  symlinkSync('/proc/self/cwd', join(volume, 'own'))
  symlinkSync('/proc/1/cwd', join(volume, 'first'))
  for (const link of ['own', 'first']) {
    const where = { workingDirectory: `/data/${link}`, mounts: [mount(volume, '/data')] }
    assert.deepEqual(await runToEnd(script('pwd -P; touch mark', where)), { code: 0, log: '/\n' }, link)
  }
})

test('readOnly mounts refuse writes, recursively when asked', { skip }, async () => {
  const volume = join(base, 'ro')
  mkdirSync(join(volume, 'sub'), { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', join(volume, 'sub')])
  try {
    const text =
      'for d in /a /a/sub /b /b/sub; do if touch $d/x 2>/dev/null; then echo $d yes; else echo $d no; fi; done'
    const mounts = [
      mount(volume, '/a', { readOnly: true }),
      mount(volume, '/b', { readOnly: true, recursiveReadOnly: true }),
    ]
    const result = await runToEnd(script(text, { mounts }))
    assert.equal(result.log, '/a no\n/a/sub yes\n/b no\n/b/sub no\n')
  } finally {
    execFileSync('umount', [join(volume, 'sub')])
  }
})

test(
  'environment, working directory, user and groups are as asked; odd names and newlines survive',
  { skip },
  async () => {
    const env = { PATH: '/usr/bin:/bin', name: 'a b', LINES: 'one\ntwo', 'odd.name': "it's", HAWSER_COUNT: 'mine' }
    const text = `printf "%s|" "$name" "$LINES" "$HAWSER_COUNT"; tr '\\0' '\\n' < /proc/$$/environ | grep odd; pwd; id -u; id -g; id -G; env | grep -c HAWSER_E`
    const wanted = script(text, {
      env,
      workingDirectory: '/work-here/deep',
      user: 1234,
      group: 2345,
      groups: [2345, 3456],
    })
    const { log } = await runToEnd(wanted)
    assert.equal(log, "a b|one\ntwo|mine|odd.name=it's\n/work-here/deep\n1234\n2345\n2345 3456\n0\n")
  },
)

test('exit codes are told, also of programs that do not exist', { skip }, async () => {
  assert.equal((await runToEnd(script('exit 7'))).code, 7)
  assert.equal((await runToEnd(request({ argv: ['/no/such/program'] }))).code, 127)
  assert.equal((await runToEnd(script('kill -9 $$'))).code, 137)
})

for (const path of ['/', '//', '/x/..', '.'])
  test(`a volume at ${path} is refused: it would not be the root that the container sees`, { skip }, async () => {
    const runtime = makeRuntime()
    const start = runtime.start(request({ mounts: [mount(base, path)] }), signal)
    await assert.rejects(start, /a volume cannot be mounted at \/, the container's root/)
    assert.deepEqual(await runtime.restore(signal), [])
    await runtime[Symbol.asyncDispose]()
  })

test('a source that is missing fails the start with a reason and starts nothing', { skip }, async () => {
  const runtime = makeRuntime()
  await assert.rejects(runtime.start(request({ mounts: [mount(join(base, 'missing'), '/x')] }), signal), /missing/)
  assert.deepEqual(await runtime.restore(signal), [])
  await runtime[Symbol.asyncDispose]()
})

test(
  'stop sends TERM, waits for the grace, then kills the group and everybody in the namespace',
  { skip },
  async () => {
    const runtime = makeRuntime()
    await runtime.start(script('trap "exit 3" TERM; echo up; while :; do sleep 0.05; done', { name: 'polite' }), signal)
    await runtime.start(
      script('trap "" TERM; setsid sleep 4711 & echo up; while :; do sleep 0.05; done', { name: 'deaf' }),
      signal,
    )
    // Started means that the shell runs, not that it has read its first line.
    for (const name of ['polite', 'deaf']) await until(`${name} has its trap`, () => output(name).includes('up'))
    const [polite, deaf] = [exitOf(runtime, 'polite'), exitOf(runtime, 'deaf')]
    await runtime.stop({ pod: uid, name: 'polite', graceMs: 5_000 }, signal)
    const before = Date.now()
    await runtime.stop({ pod: uid, name: 'deaf', graceMs: 300 }, signal)
    assert.ok(Date.now() - before < 3_000)
    assert.equal((await polite).exit!.code, 3)
    assert.equal((await deaf).exit!.code, 137)
    assert.throws(() => execFileSync('pgrep', ['-f', 'sleep 4711']), 'the child that left the group is gone too')
    await runtime.removePod(uid, signal)
    await runtime[Symbol.asyncDispose]()
  },
)

test(
  'a container that ends takes nobody else along, though the next one may get the name of its namespace',
  { skip },
  async () => {
    const runtime = makeRuntime()
    const ended: string[] = []
    using _ = runtime.subscribe(({ name, exit }) => exit && ended.push(`${name} ${exit.code}`))
    for (let round = 0; round < 15; round++) {
      await runtime.start(script('exit 0', { name: `short${round}` }), signal)
      await runtime.start(request({ name: `long${round}` }), signal)
    }
    await clock.sleep(500, signal)
    assert.deepEqual(
      ended.filter((line) => line.startsWith('long')),
      [],
    )
    for (let round = 0; round < 15; round++) await runtime.stop({ pod: uid, name: `long${round}`, graceMs: 0 }, signal)
    await runtime.removePod(uid, signal)
    await runtime[Symbol.asyncDispose]()
  },
)

test(
  'containers survive the agent: running ones are found again and their exit codes are not lost',
  { skip },
  async () => {
    const first = makeRuntime()
    const release = join(base, 'release')
    mkdirSync(release)
    await first.start(
      script('while [ ! -e /r/go ]; do sleep 0.05; done; exit 5', { name: 'long', mounts: [mount(release, '/r')] }),
      signal,
    )
    await first.start(script('exit 6', { name: 'short' }), signal)
    await first[Symbol.asyncDispose]()
    await clock.sleep(300, signal)

    const second = makeRuntime()
    const found = await second.restore(signal)
    assert.deepEqual(found.map(({ name, exit }) => [name, exit?.code]).sort(), [
      ['long', undefined],
      ['short', 6],
    ])
    const ended = exitOf(second, 'long')
    writeFileSync(join(release, 'go'), '')
    assert.equal((await ended).exit!.code, 5)
    await second.removePod(uid, signal)
    assert.deepEqual(await second.restore(signal), [])
    await second[Symbol.asyncDispose]()
  },
)

test(
  'a later life learns of the latest start and the one before, also when the latest never began',
  { skip },
  async () => {
    const first = makeRuntime()
    for (const [attempt, code] of [3, 4].entries()) {
      const ended = exitOf(first, 'again')
      await first.start(script(`exit ${code}`, { name: 'again', attempt }), signal)
      await ended
    }
    await first.start(request({ name: 'again', attempt: 2 }), signal)
    await first[Symbol.asyncDispose]()
    const found = async () => {
      await using runtime = makeRuntime()
      return (await runtime.restore(signal)).map(({ attempt, exit }) => [attempt, exit?.code])
    }
    const both = [
      [1, 4],
      [2, undefined],
    ]
    assert.deepEqual(await found(), both)
    await using last = makeRuntime()
    await last.restore(signal)
    await last.stop({ pod: uid, name: 'again', graceMs: 0 }, signal)
    const unborn = join(directory, uid, 'again', '3')
    mkdirSync(unborn)
    writeFileSync(join(unborn, 'record.json'), '{"startedAt":1}')
    writeFileSync(join(unborn, 'start-1'), '')
    assert.deepEqual(await found(), [[2, 137]])
    assert.equal(existsSync(unborn), false)
    await last.removePod(uid, signal)
  },
)

test(
  'a container that an earlier version counted as running without a process is found as not started',
  { skip },
  async () => {
    const path = join(directory, uid, 'silent/0')
    mkdirSync(path, { recursive: true })
    writeFileSync(join(path, 'record.json'), '{"startedAt":1,"pause":true,"owner":"default/p"}')
    await using runtime = makeRuntime()
    assert.deepEqual(await runtime.restore(signal), [])
    await runtime.removePod(uid, signal)
  },
)

test('block devices appear at their devicePath without touching the host’s /dev', { skip }, async () => {
  const image = join(base, 'image')
  execFileSync('truncate', ['-s', '1M', image])
  const loop = execFileSync('losetup', ['-f', '--show', image]).toString().trim()
  try {
    symlinkSync(loop, join(base, 'link'))
    const text = 'test -b /dev/hawser-block && printf data > /dev/hawser-block && ls /dev/null'
    const result = await runToEnd(
      script(text, { devices: [{ source: join(base, 'link'), target: '/dev/hawser-block' }] }),
    )
    assert.deepEqual(result, { code: 0, log: '/dev/null\n' })
    assert.equal(existsSync('/dev/hawser-block'), false)
    assert.equal(readFileSync(image).subarray(0, 4).toString(), 'data')
  } finally {
    execFileSync('losetup', ['-d', loop])
  }
})

test('a Bidirectional mount made by a container reaches the host; a private one does not', { skip }, async () => {
  const [shared, own] = [join(base, 'shared'), join(base, 'own')]
  mkdirSync(join(shared, 'in'), { recursive: true })
  mkdirSync(join(own, 'in'), { recursive: true })
  execFileSync('mount', ['--bind', shared, shared])
  execFileSync('mount', ['--make-shared', shared])
  try {
    const text = 'mount -t tmpfs tmpfs /s/in; mount -t tmpfs tmpfs /o/in; grep -c "/[so]/in" /proc/self/mountinfo'
    const mounts = [mount(shared, '/s', { propagation: 'Bidirectional' }), mount(own, '/o')]
    const { log } = await runToEnd(script(text, { mounts }))
    const table = readFileSync('/proc/self/mountinfo', 'utf8')
    assert.equal(log.trim(), '2')
    assert.equal(table.includes(`${shared}/in `), true)
    assert.equal(table.includes(`${own}/in `), false)
  } finally {
    execFileSync('umount', ['-R', shared])
  }
})

test(
  'an agent that died while a container began: one on its way is called back, one that has begun is waited for',
  { skip },
  async () => {
    const place = (name: string) => {
      const path = join(directory, uid, name, '0')
      mkdirSync(path, { recursive: true })
      writeFileSync(join(path, 'record.json'), JSON.stringify({ startedAt: 123 }))
      return path
    }
    const late = place('late')
    writeFileSync(join(late, 'start-123'), '')
    const begun = place('begun')
    writeFileSync(join(begun, 'begun'), '')
    const child = spawn('sleep', ['60'], { detached: true })
    const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8')
    const startTime = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
    setTimeout(() => writeFileSync(join(begun, 'pid'), `${child.pid} ${startTime}\n`), 300)
    await using runtime = makeRuntime()
    try {
      const found = await runtime.restore(signal)
      assert.deepEqual(
        found.map(({ name, exit }) => [name, exit]),
        [['begun', undefined]],
      )
      assert.equal(existsSync(late), false)
      // The one that was on its way arrives, also after the next start has made the place anew.
      mkdirSync(late, { recursive: true })
      writeFileSync(join(late, 'start-456'), '')
      const marker = join(base, 'marker')
      const words = ['-c', superviseScript, 'hawser-supervise', late, 'start-123', '', 'touch', marker]
      assert.equal(spawnSync('/bin/sh', words, { stdio: ['ignore', 'ignore', 'ignore', 'ignore'] }).status, 1)
      assert.equal(existsSync(marker), false)
    } finally {
      child.kill('SIGKILL')
    }
    await runtime.removePod(uid, signal)
  },
)

test(
  'a living container is adopted whatever became of its files, and foreign files concern nobody',
  { skip },
  async () => {
    const first = makeRuntime()
    await first.start(request({ name: 'alive' }), signal)
    await first.start(request({ name: 'ended', argv: ['true'] }), signal)
    await first[Symbol.asyncDispose]()
    const at = (...parts: string[]) => join(directory, uid, ...parts)
    while (!existsSync(at('ended/0/exit'))) await clock.sleep(10, signal)
    writeFileSync(at('alive/0/record.json'), '')
    mkdirSync(at('alive/not-a-number'))
    writeFileSync(at('ended/0/exit'), '')
    writeFileSync(join(directory, 'notes.txt'), 'mine')
    const second = makeRuntime()
    const found = await second.restore(signal)
    assert.deepEqual(found.map(({ name, attempt, exit }) => [name, attempt, exit?.code]).sort(), [
      ['alive', 0, undefined],
      ['ended', 0, undefined],
    ])
    const ended = exitOf(second, 'ended')
    assert.equal((await ended).exit?.code, 137)
    await second.stop({ pod: uid, name: 'alive', graceMs: 1_000 }, signal)
    await second.removePod(uid, signal)
    assert.equal(readFileSync(join(directory, 'notes.txt'), 'utf8'), 'mine')
    await second[Symbol.asyncDispose]()
  },
)

test('a pod that is gone leaves neither records nor logs', { skip }, async () => {
  const runtime = makeRuntime()
  await runtime.start(script('echo words'), signal)
  await runtime.stop({ pod: uid, name: 'c', graceMs: 1_000 }, signal)
  mkdirSync(join(base, 'logs/default_other_1'), { recursive: true })
  await runtime.removePod(uid, signal)
  assert.deepEqual([existsSync(join(directory, uid)), readdirSync(join(base, 'logs'))], [false, ['default_other_1']])
  await runtime[Symbol.asyncDispose]()
})

test("a removal that was cut short is finished by the next life, and is nobody's container", { skip }, async () => {
  const half = join(directory, `.going-${uid}`, 'c', '0')
  mkdirSync(half, { recursive: true })
  writeFileSync(join(half, 'stdin'), '')
  await using runtime = makeRuntime()
  assert.deepEqual(await runtime.restore(signal), [])
  assert.equal(existsSync(join(directory, `.going-${uid}`)), false)
  await runtime.removePod(uid, signal) // there is nothing, which is what was asked for
})

test('a removal that still cannot be finished keeps nobody from starting, and crosses no mount', { skip }, async () => {
  const half = join(directory, `.going-${uid}`, 'c', '0')
  mkdirSync(half, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', half])
  try {
    writeFileSync(join(half, 'precious'), 'x')
    await using runtime = makeRuntime()
    assert.deepEqual(await runtime.restore(signal), [])
    assert.equal(readFileSync(join(half, 'precious'), 'utf8'), 'x')
  } finally {
    execFileSync('umount', [half])
  }
  await using later = makeRuntime()
  assert.deepEqual(await later.restore(signal), [])
  assert.equal(existsSync(join(directory, `.going-${uid}`)), false)
})

test(
  'a container whose pid is written late is entered in its own mount namespace, and stop ends its process (E1)',
  { skip },
  async () => {
    const real = createLinuxProcesses({ clock })
    // The file `pid` appears a second after everything that comes before it.
    const delay = (word: string) => word.replaceAll('mv "$dir/setup-$token"', 'sleep 1; mv "$dir/setup-$token"')
    const processes: typeof real = {
      ...real,
      launch(asked, given) {
        const [program, ...words] = asked.argv
        return real.launch({ ...asked, argv: [program, ...words.map(delay)] }, given)
      },
    }
    await using runtime = createProcessRuntime({
      host,
      processes,
      clock,
      log: silentLog,
      directory,
      logDirectory: join(base, 'logs'),
      hidden: [],
    })
    await runtime.start(request({ argv: ['sleep', '77123'] }), signal)
    const { env, workingDirectory, groups } = request({})
    const inside = await runtime.exec(
      {
        pod: uid,
        name: 'c',
        argv: ['readlink', '/proc/self/ns/mnt'],
        timeoutMs: 10_000,
        env,
        workingDirectory,
        groups,
      },
      signal,
    )
    const own = execFileSync('readlink', ['/proc/self/ns/mnt']).toString()
    await runtime.stop({ pod: uid, name: 'c', graceMs: 0 }, signal)
    const left = spawnSync('pgrep', ['-f', '^sleep 77123']).stdout.toString()
    for (const pid of left.split('\n').filter(Boolean)) process.kill(Number(pid), 'SIGKILL')
    await runtime.removePod(uid, signal)
    assert.deepEqual({ inHostNamespace: inside.output === own, left }, { inHostNamespace: false, left: '' })
  },
)

test('a container whose pid cannot be read is neither entered nor called stopped', { skip }, async () => {
  const real = createLinuxProcesses({ clock })
  const file = join(directory, uid, 'c', '0', 'pid')
  let pid = 0
  const processes: typeof real = {
    ...real,
    async launch(asked, given) {
      const launched = await real.launch(asked, given)
      pid = Number.parseInt(readFileSync(file, 'utf8'), 10)
      rmSync(file)
      return launched
    },
  }
  const logDirectory = join(base, 'logs')
  const deps = { host, processes, clock, log: silentLog, directory, logDirectory, hidden: [] }
  await using runtime = createProcessRuntime(deps)
  const ended = exitOf(runtime, 'c')
  const wanted = request({})
  await runtime.start(wanted, signal)
  await assert.rejects(runtime.exec({ ...wanted, argv: ['true'], timeoutMs: 10_000 }, signal), /container c is unknown/)
  await assert.rejects(runtime.stop({ pod: uid, name: 'c', graceMs: 0 }, signal), /container c is unknown/)
  process.kill(-pid, 'SIGKILL')
  assert.equal((await ended).exit?.code, 137)
  await runtime.removePod(uid, signal)
})
