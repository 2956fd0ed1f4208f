// Whose programs does the agent run inside a container, and with which rights? A volume or the container itself may have put its own
// in place of ours (`mv`, `setpriv`, `sh`, the loader's list): what runs from there has the container's rights, never the agent's.
import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import koffi from 'koffi'
import { podUid } from '../../src/api/names.ts'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import type { ContainerRequest } from '../../src/node/runtime/port.ts'
import { needsRoot as skip } from '../kit/machine.ts'
import { containerRequest, createRuntimeIn } from '../kit/process-runtime.ts'
import { removeContainers } from '../kit/scratch-host.ts'

const base = mkdtempSync(join(tmpdir(), 'hawser-tools-'))
const host = createLinuxHost()
const { signal } = new AbortController()
const directory = join(base, 'containers')
const uid = podUid('11111111-2222-3333-4444-999999999999')
const runtime = createRuntimeIn(base, host)
after(async () => {
  await runtime[Symbol.asyncDispose]()
  await removeContainers(base, directory, host)
})

// As a shell leaves it open (`exec 200>lock`), before the launch server is started. Node closes the first sixteen by itself.
const dup2 = koffi.load('libc.so.6').func('dup2', 'int', ['int', 'int'])
assert.equal(dup2(2, 200), 200)

const [tools, reports] = [join(base, 'tools'), join(base, 'reports')]
mkdirSync(tools)
mkdirSync(reports)
chmodSync(reports, 0o777)
const programs = [
  'sh',
  'dash',
  'bash',
  'mv',
  'mkdir',
  'mount',
  'setpriv',
  'setsid',
  'nsenter',
  'chroot',
  'env',
  'true',
  'sleep',
]
const real = new Map(
  programs
    .flatMap((name) => ['/usr/bin', '/bin'].map((at) => `${at}/${name}`).filter(existsSync))
    .map((at) => [at, at]),
)
/** Tells with which rights it runs, then does what the real one does; the real ones are mounted below /real. */
for (const path of real.keys())
  writeFileSync(
    join(tools, path.replaceAll('/', '_')),
    `#!/real/shell\n{ echo "${path} $0"; while read -r line; do case $line in Uid:*|Cap*) echo "$line" ;; esac; done; } ` +
      `</proc/self/status >>/reports/$$.${path.replaceAll('/', '_')} 2>/dev/null\nexec /real${path} "$@"\n`,
    { mode: 0o755 },
  )

const plain = { readOnly: false, recursiveReadOnly: false, propagation: 'None' } as const
const covered = [
  { source: reports, target: '/reports', ...plain },
  { source: '/bin/sh', target: '/real/shell', ...plain },
  ...[...real.keys()].flatMap((path) => [
    { source: path, target: `/real${path}`, ...plain },
    { source: join(tools, path.replaceAll('/', '_')), target: path, ...plain },
  ]),
]
const request = (name: string, more: Partial<ContainerRequest> = {}): ContainerRequest =>
  containerRequest(uid, {
    name,
    graceMs: 1_000,
    argv: ['/real/usr/bin/sleep', '60'],
    workingDirectory: '/made/for/it',
    groups: [4321],
    readOnlyRoot: true,
    mounts: covered,
    capabilities: [],
    ...more,
  })

/** Who ran from the volume as somebody else than the container's user, or with any capability. */
const tooMighty = (user: number) =>
  readdirSync(reports).flatMap((file) => {
    const text = readFileSync(join(reports, file), 'utf8')
    const ids = /^Uid:\s+(.*)$/m.exec(text)?.[1]?.split(/\s+/).map(Number) ?? []
    const held = [...text.matchAll(/^Cap(?:Inh|Prm|Eff|Bnd|Amb):\s+(\S+)$/gm)].map(([, mask]) => BigInt(`0x${mask}`))
    return ids.every((id) => id === user) && held.length === 5 && held.every((mask) => mask === 0n) ? [] : [text]
  })

for (const user of [1234, 0])
  for (const hostPid of [false, true])
    test(
      `programs of a volume run with the container's rights only: user ${user}${hostPid ? ', host pids' : ''}`,
      { skip, timeout: 60_000 },
      async () => {
        for (const file of readdirSync(reports)) rmSync(join(reports, file))
        const name = `c${user}${hostPid ? 'h' : ''}`
        const asked = request(name, { user, group: 2345, hostPid })
        await runtime.start(asked, signal)
        assert.deepEqual(tooMighty(user), [], 'at the start')
        const command = { ...asked, argv: ['/usr/bin/true'], timeoutMs: 20_000 } as const
        assert.equal((await runtime.exec(command, signal)).exitCode, 0)
        assert.deepEqual(tooMighty(user), [], 'of a command beside it')
        const streams = { stdin: undefined, stdout: async () => {}, stderr: async () => {}, sizes: none() }
        for (const tty of [false, true])
          assert.equal(await runtime.runInteractive({ ...command, tty }, streams, signal), 0)
        assert.deepEqual(tooMighty(user), [], 'of a command with a terminal')
        assert.ok(readdirSync(reports).length > 0, 'the programs of the volume were found by the commands')
        await runtime.stop({ pod: uid, name, graceMs: 100 }, signal)
      },
    )

test('a descriptor that the agent was started with does not reach a container', { skip }, async () => {
  const name = 'closed'
  const ended = Promise.withResolvers<void>()
  using _ = runtime.subscribe((record) => void (record.name === name && record.exit && ended.resolve()))
  const text = 'ls /proc/self/fd'
  await runtime.start(request(name, { argv: ['sh', '-c', `${text}; sleep 1`], mounts: [] }), signal)
  const { output } = await runtime.exec({ ...request(name), argv: ['sh', '-c', text], timeoutMs: 20_000 }, signal)
  await ended.promise
  const log = readFileSync(join(base, `logs/default_p_${uid}/${name}/0.log`), 'utf8')
  // 3 is the directory that ls reads.
  assert.deepEqual([log, output], ['0\n1\n2\n3\n', '0\n1\n2\n3\n'])
})

async function* none(): AsyncGenerator<never, void, undefined> {}
