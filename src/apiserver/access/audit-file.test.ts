// Is every changing request written down, and does the file stay bounded?
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { silentLog } from '../../telemetry/log.ts'
import { openAuditFile } from './audit-file.ts'

const place = mkdtempSync(join(tmpdir(), 'hawser-audit-'))
after(() => rmSync(place, { recursive: true, force: true }))

const record = (name: string) => ({ user: 'admin', verb: 'post', resource: 'pods', name, code: 201, ms: 3 })
const namesIn = (path: string) =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { name: string }).name)

function openAt(name: string, largestBytes?: number) {
  const path = join(place, name)
  const limit = largestBytes === undefined ? {} : { largestBytes }
  return { path, audit: openAuditFile({ path, clock: createVirtualClock(), log: silentLog, ...limit }) }
}

test('lines are in the file before the next promise is heard of, and readable by nobody else', async () => {
  const { path, audit } = openAt('a')
  audit.write(record('a'))
  audit.write(record('b'))
  await Promise.resolve()
  assert.deepEqual(namesIn(path), ['a', 'b'])
  assert.equal(statSync(path).mode & 0o777, 0o600)
  const [first = ''] = readFileSync(path, 'utf8').split('\n')
  assert.deepEqual(Object.keys(JSON.parse(first) as object), ['time', 'user', 'verb', 'resource', 'name', 'code', 'ms'])
  audit[Symbol.dispose]()
})

test('a later start goes on in the same file, and closing writes what is left', () => {
  const first = openAt('b')
  first.audit.write(record('a'))
  first.audit[Symbol.dispose]()
  const { path, audit } = openAt('b')
  audit.write(record('b'))
  audit[Symbol.dispose]()
  assert.deepEqual(namesIn(path), ['a', 'b'])
})

test('a large file is kept once under another name, so that both together stay bounded', async () => {
  const { path, audit } = openAt('c', 150)
  for (const name of ['a', 'b', 'c']) {
    audit.write(record(name))
    await Promise.resolve()
  }
  assert.deepEqual([namesIn(`${path}.1`), namesIn(path)], [['b'], ['c']])
  assert.equal(existsSync(`${path}.2`), false)
  audit[Symbol.dispose]()
})

test('a file that somebody moved away is begun anew', async () => {
  const { path, audit } = openAt('d')
  audit.write(record('a'))
  await Promise.resolve()
  renameSync(path, `${path}.moved`)
  audit.write(record('b'))
  await Promise.resolve()
  assert.deepEqual([namesIn(`${path}.moved`), namesIn(path)], [['a'], ['b']])
  audit[Symbol.dispose]()
})
