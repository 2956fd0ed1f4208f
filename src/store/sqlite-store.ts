// How does state survive kill -9 and a loss of power? Every version is one row of an append-only table; one batch is one
// transaction, and nothing is acknowledged or shown before the write-ahead log is on disk.
import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { StatementSync } from 'node:sqlite'
import { errorText } from '../telemetry/error-text.ts'
import type { HistoryLimits } from './compaction.ts'
import { defaultHistory } from './compaction.ts'
import type { Journal } from './group-commit.ts'
import { createGroupCommit } from './group-commit.ts'
import type { Change, Entry, Revision, Store } from './store.ts'
import { StoreError } from './store.ts'
import type { InitialState } from './versioned-state.ts'
import { createVersionedState } from './versioned-state.ts'

const schemaVersion = 1
/** "HWSR": tells our files from any other SQLite database. */
const applicationId = 0x48575352

/** A flush that usually takes no longer than this is waited for on the spot. */
const fastMs = 1
/** How many versions are read in one go when the store opens. */
const rowsAtOnce = 500

export interface SqliteStoreOptions {
  readonly path: string
  readonly history?: HistoryLimits
}

/** Throws `unavailable` when the file is in use, belongs to a newer version or cannot be opened. */
export function openSqliteStore(options: SqliteStoreOptions): Store {
  const database = openDatabase(options.path)
  const initial = readAll(database, options.path)
  const state = createVersionedState(initial, options.history ?? defaultHistory)
  const journal = createJournal(database, options.path)
  const writer = createGroupCommit(journal, state, setImmediate)

  return {
    revision: state.revision,
    oldest: state.oldest,
    get: async (key) => state.get(key),
    list: async (prefix, page) => state.list(prefix, page),
    create: (key, value) => writer.enqueue({ type: 'create', key, value }),
    update: (key, value, expected) => writer.enqueue({ type: 'update', key, value, expected }),
    remove: (key, expected) => writer.enqueue({ type: 'remove', key, expected }),
    watch: (prefix, after, signal) => state.hub.watch(prefix, after, signal),
    compact: (before) => writer.forget(before),
    async [Symbol.asyncDispose]() {
      await writer.close()
      state.hub.close()
      journal.close()
      database.close()
    },
  }
}

/**
 * SQLite itself flushes only before it moves the log into the table (synchronous = NORMAL). The flush that every
 * commit needs is ours, on the same file.
 */
function createJournal(database: DatabaseSync, path: string): Journal & { close(): void } {
  const statements = prepare(database)
  const log = openSync(`${path}-wal`, 'r+')
  return {
    append: (changes, useless, oldest) => persist(statements, changes, useless, oldest),
    flush: createFlush(log),
    close: () => closeSync(log),
  }
}

/**
 * A slow disk must not stop the event loop: it is flushed in a thread of the pool. On a fast one the way there and
 * back costs more than the flush, so it is flushed at once. The time of the last flushes decides.
 */
function createFlush(log: number): () => Promise<void> | undefined {
  let usualMs = fastMs
  const took = (since: number) => (usualMs += (performance.now() - since - usualMs) / 8)
  return () => {
    const since = performance.now()
    if (usualMs <= fastMs) {
      fdatasyncSync(log)
      took(since)
      return undefined
    }
    return new Promise((resolve, reject) =>
      fdatasync(log, (error) => {
        took(since)
        if (error === null) resolve()
        else reject(error)
      }),
    )
  }
}

interface Statements {
  readonly begin: StatementSync
  readonly commit: StatementSync
  readonly rollback: StatementSync
  readonly insert: StatementSync
  readonly remove: StatementSync
  readonly setFloor: StatementSync
}

function prepare(database: DatabaseSync): Statements {
  return {
    begin: database.prepare('BEGIN IMMEDIATE'),
    commit: database.prepare('COMMIT'),
    rollback: database.prepare('ROLLBACK'),
    insert: database.prepare(
      // SQLite makes the bytes of a text faster than a Buffer does.
      'INSERT INTO versions (revision, key, create_revision, removed, value) VALUES (?, ?, ?, ?, CAST(? AS BLOB))',
    ),
    remove: database.prepare('DELETE FROM versions WHERE revision = ?'),
    setFloor: database.prepare(`INSERT OR REPLACE INTO meta (name, value) VALUES ('oldest', ?)`),
  }
}

/** `oldest` is the floor that makes the useless versions useless; both go into the same transaction. */
function persist(
  statements: Statements,
  changes: readonly Change[],
  useless: readonly Revision[],
  oldest: Revision,
): void {
  statements.begin.run()
  try {
    for (const { entry, type } of changes) {
      const removed = type === 'removed'
      // A tombstone needs no value of its own: the version before it is still there.
      const value = removed ? '' : entry.value
      statements.insert.run(entry.revision, entry.key, entry.createRevision, removed ? 1 : 0, value)
    }
    for (const revision of useless) statements.remove.run(revision)
    if (useless.length > 0) statements.setFloor.run(oldest)
    statements.commit.run()
  } catch (error) {
    try {
      statements.rollback.run()
    } catch {
      // The failure itself may already have ended the transaction.
    }
    throw error
  }
}

function openDatabase(path: string): DatabaseSync {
  let database: DatabaseSync
  try {
    database = new DatabaseSync(path, { timeout: 0 })
  } catch (error) {
    throw new StoreError('unavailable', `cannot open ${path}: ${errorText(error)}`, { cause: error })
  }
  try {
    // Exclusive mode is the lock against a second process: the operating system frees it when we die.
    database.exec('PRAGMA locking_mode = EXCLUSIVE')
    database.exec('PRAGMA page_size = 8192')
    database.exec('PRAGMA journal_mode = WAL')
    database.exec('PRAGMA synchronous = NORMAL')
    migrate(database, path)
    return database
  } catch (error) {
    database.close()
    if (error instanceof StoreError) throw error
    const busy = /locked|busy/i.test(errorText(error))
    const text = busy ? `${path} is in use by another process` : `cannot open ${path}: ${errorText(error)}`
    throw new StoreError('unavailable', text, { cause: error })
  }
}

function migrate(database: DatabaseSync, path: string): void {
  database.exec('BEGIN IMMEDIATE')
  const found = pragma(database, 'user_version')
  const owner = pragma(database, 'application_id')
  if (owner !== 0 && owner !== applicationId) throw new StoreError('unavailable', `${path} is not a Hawser store`)
  if (found > schemaVersion) {
    throw new StoreError(
      'unavailable',
      `${path} was written by a newer version of Hawser (format ${found}, this one reads up to ${schemaVersion})`,
    )
  }
  if (found === 0) {
    database.exec(`
      CREATE TABLE versions (
        revision INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        create_revision INTEGER NOT NULL,
        removed INTEGER NOT NULL,
        value BLOB NOT NULL
      ) STRICT;
      CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
      PRAGMA application_id = ${applicationId};
      PRAGMA user_version = ${schemaVersion};
    `)
  }
  database.exec('COMMIT')
}

function pragma(database: DatabaseSync, name: string): number {
  const row = database.prepare(`PRAGMA ${name}`).get()
  return Number(row?.[name] ?? 0)
}

/** A store that was cut short opens well; its missing pages are found when they are read. */
function readAll(database: DatabaseSync, path: string): InitialState {
  try {
    return load(database)
  } catch (error) {
    database.close()
    if (error instanceof StoreError) throw error
    throw new StoreError('unavailable', `cannot read ${path}: ${errorText(error)}`, { cause: error })
  }
}

/** Replays the versions in order; those after the floor become history again. */
function load(database: DatabaseSync): InitialState {
  const floor = database.prepare(`SELECT value FROM meta WHERE name = 'oldest'`).get()
  const oldest = Number(floor?.['value'] ?? 0)
  const entries = new Map<string, Entry>()
  const history: Change[] = []
  let revision = 0
  const rows = database.prepare(
    `SELECT revision, key, create_revision, removed, CAST(value AS TEXT) FROM versions
     WHERE revision > ? ORDER BY revision LIMIT ${rowsAtOnce}`,
  )
  // Arrays are read markedly faster than objects, many rows faster than one by one; this runs over everything there is.
  rows.setReturnArrays(true)
  for (;;) {
    const some = rows.all(revision) as readonly unknown[]
    if (some.length === 0) break
    for (const row of some) {
      const change = changeOfRow(row as readonly unknown[], entries)
      const { key } = change.entry
      if (change.type === 'removed') entries.delete(key)
      else entries.set(key, change.entry)
      if (change.revision > oldest) history.push(change)
      revision = change.revision
    }
  }
  return { entries, history, revision: Math.max(revision, oldest), oldest }
}

function changeOfRow(row: readonly unknown[], entries: ReadonlyMap<string, Entry>): Change {
  const [rawRevision, key, rawCreateRevision, removed, value] = row
  if (typeof key !== 'string' || typeof value !== 'string') {
    throw new StoreError('unavailable', 'the store holds a row that cannot be read')
  }
  const revision = Number(rawRevision)
  const createRevision = Number(rawCreateRevision)
  const previous = entries.get(key)
  if (removed === 1) {
    const last = previous?.value ?? ''
    return { type: 'removed', revision, entry: { key, value: last, revision, createRevision }, previous }
  }
  const type = previous === undefined ? 'created' : 'updated'
  return { type, revision, entry: { key, value, revision, createRevision }, previous }
}
