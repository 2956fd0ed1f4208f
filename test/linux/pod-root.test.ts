// What does a process pod see as its root? Each row of the table in docs/process-pods.md, asked from inside a real container, on a
// machine whose mounts we choose: the file runs itself again in a mount namespace of its own. Needs root.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { podUid } from '../../src/api/names.ts'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import { needsRoot } from '../kit/machine.ts'
import { containerRequest, createRuntimeIn } from '../kit/process-runtime.ts'
import { removeContainers } from '../kit/scratch-host.ts'

const isInner = process.env['HAWSER_POD_ROOT'] === '1'
const skip = needsRoot || (isInner ? false : 'runs inside, see the last test')
const base = mkdtempSync(join(tmpdir(), 'hawser-root-'))
const directory = join(base, 'containers')
const host = createLinuxHost()
const { signal } = new AbortController()
const uid = podUid('11111111-2222-3333-4444-777777777777')
const runtime = createRuntimeIn(base, host, [join(base, 'node'), '/gnu/store/node'])
/** Of the mounts of their own that programs may lie on, the one that no machine of ours has. */
const programs = '/gnu/store'
const madePrograms = isInner && !existsSync('/gnu')

before(() => {
  if (skip) return
  const mount = (...args: string[]) => execFileSync('mount', args)
  for (const part of ['upper', 'work', 'node']) mkdirSync(join(base, part))
  writeFileSync(join(base, 'node/key'), 'secret')
  mount('-t', 'overlay', '-o', `lowerdir=/etc,upperdir=${base}/upper,workdir=${base}/work`, 'overlay', '/etc')
  mount('-t', 'tmpfs', 'tmpfs', '/run')
  mount('-t', 'tmpfs', 'tmpfs', '/home')
  mkdirSync('/home/alice')
  writeFileSync('/run/resolv', 'nameserver 192.0.2.53\n')
  execFileSync('rm', ['-f', '/etc/resolv.conf'])
  symlinkSync('/run/resolv', '/etc/resolv.conf')
  mkdirSync(programs, { recursive: true })
  mount('-t', 'tmpfs', 'tmpfs', programs)
  mkdirSync(join(programs, 'node'))
  writeFileSync(join(programs, 'node/key'), 'secret')
  writeFileSync(join(programs, 'tool'), '#!/bin/sh\necho works\n', { mode: 0o755 })
})
after(async () => {
  await runtime[Symbol.asyncDispose]()
  await removeContainers(base, directory, host)
  if (!madePrograms) return
  spawnSync('umount', [programs])
  rmdirSync(programs)
  rmdirSync('/gnu')
})

let attempt = 0
async function see(text: string): Promise<string> {
  const name = `c${attempt++}`
  const ended = Promise.withResolvers<void>()
  using _ = runtime.subscribe((record) => record.name === name && record.exit && ended.resolve())
  const rights = { capabilities: ['chown'], graceMs: 1_000 }
  await runtime.start(containerRequest(uid, { name, argv: ['sh', '-c', text], ...rights }), signal)
  await ended.promise
  return readFileSync(join(base, `logs/default_p_${uid}/${name}/0.log`), 'utf8').trim()
}

const rows: readonly [row: string, script: string, expected: string | RegExp][] = [
  ['/etc/hosts is the file of the machine', 'cat /etc/hosts', readFileSync('/etc/hosts', 'utf8').trim()],
  ['/etc/resolv.conf is what its link leads to', 'cat /etc/resolv.conf', 'nameserver 192.0.2.53'],
  ['/etc/resolv.conf is a file of its own', 'test -h /etc/resolv.conf || echo own', 'own'],
  ['the hostname is that of the machine', 'uname -n', hostname()],
  ['/home on a disk of its own is not there', 'ls /home', /^(?!.*alice)/s],
  ['/run on a disk of its own is not there', 'test -e /run/resolv || echo none', 'none'],
  ['/run can be written to', 'echo x >/run/mine && cat /run/mine', 'x'],
  ['/tmp can be written to by everybody', 'stat -c %a /tmp', '1777'],
  ['/mnt is empty', 'ls /mnt', ''],
  ['the data of the node is hidden', `ls ${base}/node`, ''],
  [
    '/dev has the harmless devices',
    'ls /dev',
    /^fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero$/,
  ],
  ['/dev/shm is its own', 'stat -f -c %T /dev/shm && ls /dev/shm', 'tmpfs'],
  ['/proc shows its own processes', 'cat /proc/1/comm', /^(sh|dash)$/],
  ['/sys is read-only', 'grep -c " /sys sysfs ro" /proc/mounts', '1'],
  ['programs on a disk of their own run', `${programs}/tool`, 'works'],
  ['and cannot be changed', `echo x 2>/dev/null >${programs}/tool || echo refused`, 'refused'],
  ['what it writes is its own', 'echo x >/usr/hawser-mark && cat /usr/hawser-mark', 'x'],
]
for (const [row, script, expected] of rows)
  test(row, { skip }, async () => {
    const seen = await see(script)
    if (typeof expected === 'string') assert.equal(seen, expected)
    else assert.match(seen, expected)
    assert.equal(existsSync('/usr/hawser-mark'), false)
  })

test('each row holds on a machine with mounts of its own', { skip: needsRoot || isInner }, () => {
  const argv = ['--mount', '--propagation', 'private', '--', process.execPath, '--test', import.meta.filename]
  const env = { ...process.env, HAWSER_POD_ROOT: '1' }
  delete (env as Record<string, unknown>)['NODE_TEST_CONTEXT']
  const { status, stdout } = spawnSync('unshare', argv, { env, encoding: 'utf8', timeout: 120_000 })
  assert.equal(status, 0, stdout)
  assert.match(stdout, new RegExp(`pass ${rows.length}\\b`))
})
