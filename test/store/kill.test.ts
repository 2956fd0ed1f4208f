// Does kill -9 in the middle of writes lose anything acknowledged? A writer is killed again and again; after each death
// the store must open, hold every acknowledged write or a later one, and never go back in revisions.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { openSqliteStore } from '../../src/store/sqlite-store.ts'

/** 50 in the heavy suite. */
const rounds = Number(process.env['HAWSER_KILL_ROUNDS'] ?? (process.env['HAWSER_HEAVY'] === '1' ? 50 : 3))

interface Acknowledged {
  readonly value: string | undefined
  readonly revision: number
}

test(`kill -9 under load loses nothing acknowledged (${rounds} rounds)`, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-kill-'))
  const path = join(directory, 'store.db')
  const last = new Map<string, Acknowledged>()
  let highest = 0
  let acknowledged = 0
  try {
    for (let round = 0; round < rounds; round++) {
      for (const [key, write] of await playRound(path, round, 150 + ((round * 83) % 400))) {
        last.set(key, write)
        highest = Math.max(highest, write.revision)
        acknowledged++
      }
      await check(path, last, highest)
    }
    assert.ok(acknowledged > rounds * 50, `only ${acknowledged} writes were acknowledged`)
    using database = new DatabaseSync(path)
    assert.equal(database.prepare('PRAGMA integrity_check').get()?.['integrity_check'], 'ok')
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})

async function playRound(path: string, round: number, lifeMs: number): Promise<[string, Acknowledged][]> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'writer.ts'), path, String(round)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  let timer: ReturnType<typeof setTimeout> | undefined
  child.stdout.setEncoding('utf8')
  child.stdout.on('data', (text: string) => {
    // The clock starts with the first acknowledged write: starting up is not what we want to kill.
    timer ??= setTimeout(() => child.kill('SIGKILL'), lifeMs)
    output += text
  })
  await new Promise((resolve) => child.on('close', resolve))
  clearTimeout(timer)
  const complete = output.slice(0, output.lastIndexOf('\n'))
  return complete.split('\n').map((line) => {
    const [key = '', value = '', revision = ''] = line.split(' ')
    return [key, { value: value === '-' ? undefined : value, revision: Number(revision) }]
  })
}

async function check(path: string, last: ReadonlyMap<string, Acknowledged>, highest: number): Promise<void> {
  await using store = openSqliteStore({ path, history: { changes: 200, bytes: 1_000_000 } })
  assert.ok(store.revision() >= highest, `revision ${store.revision()} after ${highest} was acknowledged`)
  for (const [key, { value, revision }] of last) {
    const entry = await store.get(key)
    // A write that was made but not acknowledged may be there; nothing older may be.
    if (entry !== undefined && entry.revision > revision) continue
    if (entry === undefined && value !== undefined) {
      const later = await removedAfter(key, revision)
      assert.ok(later, `${key} of revision ${revision} is gone`)
      continue
    }
    assert.equal(entry?.value.toString(), value, key)
  }

  /** Its removal may have happened without being acknowledged: then history tells of it. */
  async function removedAfter(key: string, revision: number): Promise<boolean> {
    const stop = new AbortController()
    setTimeout(() => stop.abort(), 200)
    for await (const change of store.watch(key, Math.max(revision, store.oldest()), stop.signal)) {
      if (change.type === 'removed') return true
    }
    return false
  }
}
