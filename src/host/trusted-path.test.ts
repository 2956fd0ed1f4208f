import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PathEntry } from './trusted-path.ts'
import { explainDistrust, judgePath } from './trusted-path.ts'

const directory = (mode: number, uid = 0): PathEntry => ({ kind: 'directory', mode, uid, gid: 0 })
const file = (mode: number, uid = 0, gid = 0): PathEntry => ({ kind: 'file', mode, uid, gid })
const socket = (mode: number, uid = 0): PathEntry => ({ kind: 'socket', mode, uid, gid: 0 })
const link = (target: string, uid = 0): PathEntry => ({ kind: 'symlink', mode: 0o777, uid, gid: 0, target })
const base = { '/': directory(0o755), '/etc': directory(0o755), '/tmp': directory(0o1777) }

/** Which entry is wrong and why, for us as user 1000. */
function judge(path: string, entries: Readonly<Record<string, PathEntry>>): string {
  const all: Readonly<Record<string, PathEntry>> = { ...base, ...entries }
  const walk = judgePath(path, [0, 1000])
  let step = walk.next()
  while (step.done !== true) step = walk.next(all[step.value])
  return step.value ? `${step.value.problem} ${step.value.path}` : 'trusted'
}

const table: readonly (readonly [string, string, Readonly<Record<string, PathEntry>>, string])[] = [
  ["root's file", '/etc/x', { '/etc/x': file(0o644) }, 'trusted'],
  ['our own file', '/etc/x', { '/etc/x': file(0o600, 1000) }, 'trusted'],
  ["somebody else's file", '/etc/x', { '/etc/x': file(0o600, 7) }, 'owner /etc/x'],
  ['a file that its group writes', '/etc/x', { '/etc/x': file(0o664) }, 'writable /etc/x'],
  ['a file that our own group writes', '/etc/x', { '/etc/x': file(0o664, 1000, 1000) }, 'trusted'],
  ['a file that our own group and all write', '/etc/x', { '/etc/x': file(0o666, 1000, 1000) }, 'writable /etc/x'],
  ['a file that a shared group writes', '/etc/x', { '/etc/x': file(0o664, 1000, 100) }, 'writable /etc/x'],
  ['a file that all write', '/etc/x', { '/etc/x': file(0o646) }, 'writable /etc/x'],
  ['a file that is not there', '/etc/x', {}, 'trusted'],
  [
    'a file in a directory of others',
    '/etc/d/x',
    { '/etc/d': directory(0o755, 7), '/etc/d/x': file(0o600) },
    'owner /etc/d',
  ],
  [
    'a file in an open directory',
    '/etc/d/x',
    { '/etc/d': directory(0o777), '/etc/d/x': file(0o600) },
    'writable /etc/d',
  ],
  ['our file in a sticky directory', '/tmp/x', { '/tmp/x': file(0o600, 1000) }, 'trusted'],
  ["somebody else's file in a sticky directory", '/tmp/x', { '/tmp/x': file(0o600, 7) }, 'owner /tmp/x'],
  ['a sticky directory itself: others add files', '/tmp', {}, 'writable /tmp'],
  ['a socket to which all may connect', '/etc/s', { '/etc/s': socket(0o777) }, 'trusted'],
  ["somebody else's socket", '/tmp/s', { '/tmp/s': socket(0o600, 7) }, 'owner /tmp/s'],
  ['a link to a good file', '/tmp/l', { '/tmp/l': link('/etc/x'), '/etc/x': file(0o644) }, 'trusted'],
  [
    "somebody else's link to a good file",
    '/tmp/l',
    { '/tmp/l': link('/etc/x', 7), '/etc/x': file(0o644) },
    'owner /tmp/l',
  ],
  [
    'a link into an open directory',
    '/etc/l',
    { '/etc/l': link('../o/x'), '/o': directory(0o777), '/o/x': file(0o644) },
    'writable /o',
  ],
  ['a link on the way', '/etc/l/x', { '/etc/l': link('/tmp'), '/tmp/x': file(0o600, 7) }, 'owner /tmp/x'],
  ['a link to a sticky directory', '/etc/l', { '/etc/l': link('/tmp') }, 'writable /tmp'],
  ['a circle of links', '/etc/l', { '/etc/l': link('l') }, 'links /etc/l'],
  [
    'two dots after a link lead to its parent',
    '/etc/l/../x',
    { '/etc/l': link('/tmp/d'), '/tmp/d': directory(0o700), '/tmp/x': file(0o600, 7) },
    'owner /tmp/x',
  ],
  [
    'a descriptor that was handed over',
    '/dev/fd/3',
    { '/dev': directory(0o755), '/dev/fd': link('/proc/self/fd') },
    'trusted',
  ],
  ['an open root directory', '/etc/x', { '/': directory(0o777), '/etc/x': file(0o600) }, 'writable /'],
]
for (const [what, path, entries, expected] of table)
  test(`${what}: ${expected}`, () => assert.equal(judge(path, entries), expected))

test('a refusal names path, owner, mode and the command that helps', () => {
  assert.deepEqual(explainDistrust('the file /a/b', { path: '/a', uid: 7, mode: 0o775, problem: 'owner' }), {
    sentence: 'the file /a/b is not used, for others could change it: /a belongs to user 7 and has mode 0775',
    remedy: 'look at what is there, then: chown --no-dereference root /a',
  })
  assert.deepEqual(explainDistrust('it', { path: "/a b'c", uid: 0, mode: 0o664, problem: 'writable' }), {
    sentence: "it is not used, for others could change it: /a b'c belongs to user 0 and has mode 0664",
    remedy: String.raw`look at what is there, then: chmod go-w '/a b'\''c'`,
  })
})
