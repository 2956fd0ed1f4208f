// Do the memory and the SQLite store keep the same promises, and does the SQLite one keep them across restarts?
// The kill -9 test is in test/store/.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { DatabaseSync } from 'node:sqlite'
import { createMemoryStore } from '../../src/store/memory-store.ts'
import { openSqliteStore } from '../../src/store/sqlite-store.ts'
import { storeContract } from './store.ts'

const directory = mkdtempSync(join(tmpdir(), 'hawser-store-'))
after(() => rmSync(directory, { recursive: true, force: true }))
let files = 0
const nextPath = (): string => join(directory, `${files++}.db`)

storeContract('memory', (history) => createMemoryStore(history ? { history } : {}))
storeContract('sqlite', (history) => openSqliteStore({ path: nextPath(), ...(history ? { history } : {}) }))

test('sqlite: entries, revisions and history come back after a restart', async () => {
  const path = nextPath()
  {
    await using store = openSqliteStore({ path })
    const one = await store.create('/a/1', 'one')
    await store.create('/a/2', 'two')
    await store.update('/a/1', 'changed', one.revision)
    await store.remove('/a/2', undefined)
  }
  await using store = openSqliteStore({ path })
  assert.equal(store.revision(), 4)
  assert.equal((await store.get('/a/1'))?.value.toString(), 'changed')
  const seen: string[] = []
  for await (const change of store.watch('/a/', 1, new AbortController().signal)) {
    seen.push(`${change.type} ${change.entry.key} ${change.entry.value.toString()} ${change.revision}`)
    if (seen.length === 3) break
  }
  assert.deepEqual(seen, ['created /a/2 two 2', 'updated /a/1 changed 3', 'removed /a/2 two 4'])
})

test('sqlite: forgotten history leaves the file, and revisions never go back', async () => {
  const path = nextPath()
  const history = { changes: 10, bytes: 1_000_000 }
  {
    await using store = openSqliteStore({ path, history })
    let entry = await store.create('/a/1', 'x'.repeat(1000))
    for (let round = 0; round < 500; round++) {
      entry = await store.update('/a/1', `${round}${'x'.repeat(1000)}`, entry.revision)
    }
    await store.remove('/a/1', entry.revision)
    await store.compact(store.revision())
  }
  {
    using database = new DatabaseSync(path)
    assert.equal(database.prepare('SELECT count(*) AS count FROM versions').get()?.['count'], 0)
  }
  await using store = openSqliteStore({ path, history })
  assert.equal(store.revision(), 502)
  assert.equal((await store.create('/a/1', 'y')).revision, 503)
})

test('sqlite: a second process is told that the file is in use', async () => {
  const path = nextPath()
  await using _store = openSqliteStore({ path })
  assert.throws(() => openSqliteStore({ path }), /is in use by another process/)
})

test('sqlite: a file of a newer version is refused and left alone', () => {
  const path = nextPath()
  {
    using database = new DatabaseSync(path)
    database.exec('PRAGMA user_version = 99')
  }
  assert.throws(() => openSqliteStore({ path }), /newer version of Hawser \(format 99/)
})
