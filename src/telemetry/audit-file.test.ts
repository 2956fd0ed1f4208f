// Is every changing request written down, and does the file stay bounded?
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { silentLog } from './log.ts'
import type { AuditFileDeps } from './audit-file.ts'
import { openAuditFile } from './audit-file.ts'

const place = mkdtempSync(join(tmpdir(), 'hawser-audit-'))
after(() => rmSync(place, { recursive: true, force: true }))

const record = (name: string) => ({ user: 'admin', verb: 'post', resource: 'pods', name, code: 201, ms: 3 })
const namesIn = (path: string) =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { name: string }).name)

function openAt(name: string, options: Pick<AuditFileDeps, 'largestBytes' | 'files' | 'onFailure'> = {}) {
  const path = join(place, name)
  return { path, audit: openAuditFile({ path, clock: createVirtualClock(), log: silentLog, ...options }) }
}

test('lines are in the file before the next promise is heard of, and readable by nobody else', async () => {
  const { path, audit } = openAt('a')
  void audit.write(record('a'))
  void audit.write(record('b'))
  await Promise.resolve()
  assert.deepEqual(namesIn(path), ['a', 'b'])
  assert.equal(statSync(path).mode & 0o777, 0o600)
  const [first = ''] = readFileSync(path, 'utf8').split('\n')
  assert.deepEqual(Object.keys(JSON.parse(first) as object), ['time', 'user', 'verb', 'resource', 'name', 'code', 'ms'])
  audit[Symbol.dispose]()
})

test('a later start goes on in the same file, and closing writes what is left', () => {
  const first = openAt('b')
  void first.audit.write(record('a'))
  first.audit[Symbol.dispose]()
  const { path, audit } = openAt('b')
  void audit.write(record('b'))
  audit[Symbol.dispose]()
  assert.deepEqual(namesIn(path), ['a', 'b'])
})

test('large files are kept under other names, so that all together stay bounded', async () => {
  const { path, audit } = openAt('c', { largestBytes: 150, files: 3 })
  for (const name of ['a', 'b', 'c', 'd']) await audit.write(record(name))
  assert.deepEqual([`${path}.2`, `${path}.1`, path].map(namesIn), [['b'], ['c'], ['d']])
  assert.equal(existsSync(`${path}.3`), false)
  audit[Symbol.dispose]()
})

/** Linux answers every write to /dev/full with "no space left on device"; a link to it is a full disk. */
const full = { skip: process.platform !== 'linux' && 'needs /dev/full' }

test('a full disk stops what belongs into the log; when it has room again, no line is missing', full, async () => {
  symlinkSync('/dev/full', join(place, 'e'))
  const { path, audit } = openAt('e')
  await assert.rejects(audit.write(record('b')), { code: 'ENOSPC' })
  assert.match(audit.refusal() ?? '', /audit log .*e cannot be written: ENOSPC/)
  rmSync(path)
  assert.equal(audit.refusal(), undefined)
  await audit.write(record('c'))
  assert.deepEqual(namesIn(path), ['b', 'c'])
  audit[Symbol.dispose]()
})

test('who prefers service to the log may go on without it', full, async () => {
  symlinkSync('/dev/full', join(place, 'f'))
  const { audit } = openAt('f', { onFailure: 'continue' })
  await audit.write(record('a'))
  assert.equal(audit.refusal(), undefined)
  audit[Symbol.dispose]()
})

test('a file that somebody moved away is begun anew', async () => {
  const { path, audit } = openAt('d')
  void audit.write(record('a'))
  await Promise.resolve()
  renameSync(path, `${path}.moved`)
  void audit.write(record('b'))
  await Promise.resolve()
  assert.deepEqual([namesIn(`${path}.moved`), namesIn(path)], [['a'], ['b']])
  audit[Symbol.dispose]()
})
