// Compiled code is kept only where nobody else can change it (bin/code-cache.mjs).
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

const binary = join(import.meta.dirname, '../../bin/hawser')
const isRoot = process.getuid?.() === 0
const stranger = 65_534
const place = mkdtempSync(join(tmpdir(), 'hawser-code-cache-'))
after(() => rmSync(place, { recursive: true, force: true }))

/** A new home for one test. */
function makeHome(name: string): string {
  const home = join(place, name)
  mkdirSync(join(home, '.cache/hawser'), { recursive: true })
  return home
}

/** Runs a command that loads some code; it works whatever becomes of the cache. */
function run(env: Readonly<Record<string, string>>): void {
  const { status, stderr } = spawnSync(binary, ['--version'], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
}

const entries = (directory: string) => (existsSync(directory) ? readdirSync(directory) : [])

test('compiled code is kept below the home directory, closed to others', () => {
  const home = makeHome('own')
  run({ HOME: home })
  assert.notDeepEqual(entries(join(home, '.cache/hawser/code')), [])
})

test('a directory named by NODE_COMPILE_CACHE is used under the same conditions', () => {
  const named = join(place, 'named')
  run({ NODE_COMPILE_CACHE: named })
  assert.notDeepEqual(entries(join(named, 'code')), [])
  const open = join(place, 'open')
  mkdirSync(open)
  chmodSync(open, 0o777)
  run({ NODE_COMPILE_CACHE: open })
  assert.deepEqual(entries(join(open, 'code')), [])
})

test('without a home nothing is kept, in particular not in the directory for temporary files', () => {
  const before = existsSync('/tmp/.cache/hawser')
  run({})
  assert.equal(existsSync('/tmp/.cache/hawser'), before)
})

test('a directory that others may write to, or read, is not used', () => {
  for (const mode of [0o777, 0o770, 0o755]) {
    const code = join(makeHome(`mode-${mode.toString(8)}`), '.cache/hawser/code')
    mkdirSync(code)
    chmodSync(code, mode)
    run({ HOME: join(code, '../../..') })
    assert.deepEqual(readdirSync(code), [], mode.toString(8))
  }
})

test('a link is not followed, even to a directory that would do', () => {
  const home = makeHome('link')
  const target = join(place, 'target')
  mkdirSync(target, { mode: 0o700 })
  symlinkSync(target, join(home, '.cache/hawser/code'))
  run({ HOME: home })
  assert.deepEqual(readdirSync(target), [])
})

test('a directory planted by another user is not used', { skip: !isRoot && 'needs root to give files away' }, () => {
  const home = makeHome('planted')
  const code = join(home, '.cache/hawser/code')
  mkdirSync(code, { mode: 0o700 })
  chownSync(code, stranger, stranger)
  run({ HOME: home })
  assert.deepEqual(readdirSync(code), [])
})

test('nothing is kept below a directory of another user', { skip: !isRoot && 'needs root to give files away' }, () => {
  const home = makeHome('stranger')
  chownSync(home, stranger, stranger)
  run({ HOME: home })
  assert.deepEqual(entries(join(home, '.cache/hawser/code')), [])
})
