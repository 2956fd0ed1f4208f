// Is a lock held as long as its process lives, and no longer?
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { takeLock } from './directory-lock.ts'

test('a lock keeps others out, also in this process, until it is released', () => {
  using place = directory()
  const first = takeLock(place.file)
  assert.ok(first.kind === 'held')
  assert.deepEqual(takeLock(place.file), { kind: 'taken', holder: String(process.pid) })
  assert.deepEqual(takeLock(place.file), { kind: 'taken', holder: String(process.pid) })
  first.release()
  const second = takeLock(place.file)
  assert.ok(second.kind === 'held')
  second.release()
})

test('a process that is killed frees its lock, and its note is ignored', async () => {
  using place = directory()
  const child = spawn(process.execPath, ['-e', script(place.file)], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  assert.deepEqual(takeLock(place.file), { kind: 'taken', holder: String(child.pid) })
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
  const after = takeLock(place.file)
  assert.ok(after.kind === 'held')
  after.release()
})

test('the note of an older version holds; one of an earlier boot does not', () => {
  using place = directory()
  const stat = readFileSync('/proc/1/stat', 'utf8')
  const started = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  writeFileSync(place.file, `1 ${started}\n`)
  assert.deepEqual(takeLock(place.file), { kind: 'taken', holder: '1' })
  writeFileSync(place.file, `1 ${started} another-boot\n`)
  const lock = takeLock(place.file)
  assert.ok(lock.kind === 'held')
  lock.release()
})

function directory(): Disposable & { readonly file: string } {
  const path = mkdtempSync(join(tmpdir(), 'hawser-lock-'))
  return { file: join(path, 'lock'), [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

function script(file: string): string {
  const source = JSON.stringify(join(import.meta.dirname, 'directory-lock.ts'))
  return `import(${source}).then(({ takeLock }) => { globalThis.lock = takeLock(${JSON.stringify(file)}); console.log(lock.kind); setInterval(() => {}, 1000) })`
}
