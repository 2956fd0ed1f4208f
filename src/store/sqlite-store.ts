// How does state survive kill -9? Every version is one row of an append-only table; whatever is queued in one turn
// of the event loop becomes one transaction, and nothing is acknowledged or shown before it is on disk.
import { DatabaseSync } from 'node:sqlite'
import type { StatementSync } from 'node:sqlite'
import type { HistoryLimits } from './compaction.ts'
import { defaultHistory, uselessVersions } from './compaction.ts'
import type { Change, Entry, Revision, Store } from './store.ts'
import { StoreError } from './store.ts'
import type { InitialState, VersionedState, Write } from './versioned-state.ts'
import { changeOf, createVersionedState } from './versioned-state.ts'

const schemaVersion = 1
/** "HWSR": tells our files from any other SQLite database. */
const applicationId = 0x48575352

/** The longest that a write waits for company, in turns of the event loop. */
const mostTurns = 6
const largeBatch = 128

export interface SqliteStoreOptions {
  readonly path: string
  readonly history?: HistoryLimits
}

interface Queued {
  readonly write: Write
  readonly resolve: (entry: Entry) => void
  readonly reject: (error: unknown) => void
}

/** Throws `unavailable` when the file is in use, belongs to a newer version or cannot be opened. */
export function openSqliteStore(options: SqliteStoreOptions): Store {
  const database = openDatabase(options.path)
  const initial = load(database)
  const state = createVersionedState(initial, options.history ?? defaultHistory)
  const writer = createWriter(database, state)

  return {
    revision: state.revision,
    oldest: state.oldest,
    get: async (key) => state.get(key),
    list: async (prefix, page) => state.list(prefix, page),
    create: (key, value) => writer.enqueue({ type: 'create', key, value }),
    update: (key, value, expected) => writer.enqueue({ type: 'update', key, value, expected }),
    remove: (key, expected) => writer.enqueue({ type: 'remove', key, expected }),
    watch: (prefix, after, signal) => state.hub.watch(prefix, after, signal),
    async compact(before) {
      writer.forget(before)
    },
    async [Symbol.asyncDispose]() {
      writer.close()
      state.hub.close()
      database.close()
    },
  }
}

interface Writer {
  enqueue(write: Write): Promise<Entry>
  forget(before: Revision): void
  /** Writes what is queued, then refuses further writes. */
  close(): void
}

function createWriter(database: DatabaseSync, state: VersionedState): Writer {
  const statements = prepare(database)
  let queue: Queued[] = []
  /** Versions that nobody can ask for any more; deleted together with the next write. */
  let useless: Revision[] = []
  let closed = false
  /** How many writes were queued, and how many turns had passed, when we last looked. */
  let looked = { writes: 0, turns: 0 }
  let failure: StoreError | undefined

  function flush(): void {
    const batch = queue
    queue = []
    if (batch.length === 0) return
    const staged = new Map<string, Entry | undefined>()
    const accepted: { readonly queued: Queued; readonly change: Change }[] = []
    let revision = state.revision()
    for (const queued of batch) {
      const { key } = queued.write
      try {
        const current = staged.has(key) ? staged.get(key) : state.get(key)
        const change = changeOf(queued.write, current, revision + 1)
        revision++
        staged.set(key, change.type === 'removed' ? undefined : change.entry)
        accepted.push({ queued, change })
      } catch (error) {
        queued.reject(error)
      }
    }
    if (accepted.length === 0) return
    const changes = accepted.map(({ change }) => change)
    try {
      persist(statements, changes, useless, state.oldest())
    } catch (error) {
      // A failed commit leaves the file as it was; the callers must not believe that their write happened.
      const reason = new StoreError('unavailable', `the store could not be written: ${String(error)}`, { cause: error })
      for (const { queued } of accepted) queued.reject(reason)
      return
    }
    useless = state.commit(changes).flatMap(uselessVersions)
    for (const { queued, change } of accepted) queued.resolve(change.entry)
  }

  /** A commit costs the same for one write as for a hundred: while more come in with every turn, they are let in. */
  function flushSoon(): void {
    const writes = queue.length
    const isGrowing = writes > 1 && writes > looked.writes
    if (isGrowing && looked.turns < mostTurns && writes < largeBatch) {
      looked = { writes, turns: looked.turns + 1 }
      setImmediate(flushSoon)
      return
    }
    looked = { writes: 0, turns: 0 }
    flush()
  }

  return {
    enqueue(write) {
      if (closed) return Promise.reject(failure ?? new StoreError('unavailable', 'the store is closed'))
      return new Promise((resolve, reject) => {
        if (queue.length === 0) setImmediate(flushSoon)
        queue.push({ write, resolve, reject })
      })
    },
    forget(before) {
      flush()
      useless.push(...state.forget(before).flatMap(uselessVersions))
      persist(statements, [], useless, state.oldest())
      useless = []
    },
    close() {
      if (closed) return
      flush()
      closed = true
      failure = new StoreError('unavailable', 'the store is closed')
    },
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
      'INSERT INTO versions (revision, key, create_revision, removed, value) VALUES (?, ?, ?, ?, ?)',
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
      const value = Buffer.from(removed ? '' : entry.value)
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
    throw new StoreError('unavailable', `cannot open ${path}: ${messageOf(error)}`, { cause: error })
  }
  try {
    // Exclusive mode is the lock against a second process: the operating system frees it when we die.
    database.exec('PRAGMA locking_mode = EXCLUSIVE')
    database.exec('PRAGMA page_size = 8192')
    database.exec('PRAGMA journal_mode = WAL')
    database.exec('PRAGMA synchronous = FULL')
    migrate(database, path)
    return database
  } catch (error) {
    database.close()
    if (error instanceof StoreError) throw error
    const busy = /locked|busy/i.test(messageOf(error))
    const text = busy ? `${path} is in use by another process` : `cannot open ${path}: ${messageOf(error)}`
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

/** Replays the versions in order; those after the floor become history again. */
function load(database: DatabaseSync): InitialState {
  const floor = database.prepare(`SELECT value FROM meta WHERE name = 'oldest'`).get()
  const oldest = Number(floor?.['value'] ?? 0)
  const entries = new Map<string, Entry>()
  const history: Change[] = []
  let revision = oldest
  const rows = database.prepare(
    'SELECT revision, key, create_revision, removed, CAST(value AS TEXT) FROM versions ORDER BY revision',
  )
  // Arrays are read markedly faster than objects, and this runs over everything there is.
  rows.setReturnArrays(true)
  for (const row of rows.iterate() as Iterable<unknown>) {
    const change = changeOfRow(row as readonly unknown[], entries)
    const { key } = change.entry
    if (change.type === 'removed') entries.delete(key)
    else entries.set(key, change.entry)
    if (change.revision > oldest) history.push(change)
    revision = Math.max(revision, change.revision)
  }
  return { entries: [...entries.values()], history, revision, oldest }
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

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
