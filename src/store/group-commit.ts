// When may a write be acknowledged? Once the batch that holds it is on disk. One batch is on its way at a time; what
// comes in meanwhile becomes the next one, so the event loop never waits for the disk.
import { uselessVersions } from './compaction.ts'
import type { Change, Entry, Revision } from './store.ts'
import { StoreError } from './store.ts'
import type { VersionedState, Write } from './versioned-state.ts'
import { changeOf } from './versioned-state.ts'

export interface Journal {
  /**
   * Hands one transaction to the operating system: the changes, and the removal of versions that nobody can ask for
   * any more, with the floor that makes them useless. Throws when nothing of it happened.
   */
  append(changes: readonly Change[], useless: readonly Revision[], oldest: Revision): void
  /** Everything appended before the call survives a loss of power once this returns or, if it takes time, resolves. */
  flush(): Promise<void> | undefined
}

export interface GroupCommit {
  enqueue(write: Write): Promise<Entry>
  forget(before: Revision): Promise<void>
  /** Writes what is queued, then refuses further writes. */
  close(): Promise<void>
}

interface Queued {
  readonly write: Write
  readonly resolve: (entry: Entry) => void
  readonly reject: (error: unknown) => void
}

interface Accepted {
  readonly queued: Queued
  readonly change: Change
}

interface State {
  readonly journal: Journal
  readonly versions: VersionedState
  /** Runs a function in a later turn of the event loop. */
  readonly nextTurn: (run: () => void) => void
  queue: Queued[]
  /** Versions that nobody can ask for any more; deleted together with the next write. */
  useless: readonly Revision[]
  /** Why no write is taken any more. */
  closed: StoreError | undefined
  /** The batch on its way to the disk. */
  underWay: Promise<void> | undefined
}

export function createGroupCommit(
  journal: Journal,
  versions: VersionedState,
  nextTurn: (run: () => void) => void,
): GroupCommit {
  const state: State = {
    journal,
    versions,
    nextTurn,
    queue: [],
    useless: [],
    closed: undefined,
    underWay: undefined,
  }
  return {
    enqueue(write) {
      if (state.closed !== undefined) return Promise.reject(state.closed)
      return new Promise((resolve, reject) => {
        if (state.queue.length === 0 && state.underWay === undefined) nextTurn(() => commit(state))
        state.queue.push({ write, resolve, reject })
      })
    },
    async forget(before) {
      await settle(state)
      if (state.closed !== undefined) throw state.closed
      state.useless = [...state.useless, ...versions.forget(before).flatMap(uselessVersions)]
      journal.append([], state.useless, versions.oldest())
      state.useless = []
    },
    async close() {
      if (state.closed !== undefined) return
      state.closed = new StoreError('unavailable', 'the store is closed')
      await settle(state)
    },
  }
}

function commit(state: State): void {
  if (state.underWay !== undefined) return
  const { journal, versions, queue } = state
  state.queue = []
  const accepted = accept(queue, versions)
  if (accepted.length === 0) return
  const changes = accepted.map(({ change }) => change)
  try {
    journal.append(changes, state.useless, versions.oldest())
  } catch (error) {
    // A failed transaction leaves the file as it was; the callers must not believe that their write happened.
    const reason = new StoreError('unavailable', `the store could not be written: ${String(error)}`, { cause: error })
    for (const { queued } of accepted) queued.reject(reason)
    return
  }
  state.useless = []
  try {
    const flushing = journal.flush()
    if (flushing === undefined) acknowledge(state, accepted, changes)
    else state.underWay = finish(state, flushing, accepted, changes)
  } catch (error) {
    fail(state, accepted, error)
  }
}

async function finish(
  state: State,
  flushing: Promise<void>,
  accepted: readonly Accepted[],
  changes: readonly Change[],
): Promise<void> {
  try {
    await flushing
  } catch (error) {
    fail(state, accepted, error)
    return
  } finally {
    state.underWay = undefined
  }
  acknowledge(state, accepted, changes)
}

function acknowledge(state: State, accepted: readonly Accepted[], changes: readonly Change[]): void {
  state.useless = state.versions.commit(changes).flatMap(uselessVersions)
  for (const { queued, change } of accepted) queued.resolve(change.entry)
  // The answers are read first: what they lead to joins the next batch.
  if (state.queue.length > 0) state.nextTurn(() => commit(state))
}

/** After a failed flush nobody knows what the disk holds, and later flushes may succeed all the same: no further writes. */
function fail(state: State, accepted: readonly Accepted[], cause: unknown): void {
  const text = `the store could not be flushed to disk; whether the last writes survive is uncertain: ${String(cause)}`
  const closed = new StoreError('unavailable', text, { cause })
  state.closed = closed
  for (const { queued } of accepted) queued.reject(closed)
  for (const queued of state.queue) queued.reject(closed)
  state.queue = []
}

/** Until nothing is queued and nothing is on its way. */
async function settle(state: State): Promise<void> {
  while (state.queue.length > 0 || state.underWay !== undefined) {
    if (state.underWay === undefined) commit(state)
    await state.underWay
  }
}

/** The changes of those writes whose expectations hold, each seeing the ones before it; the others are refused. */
function accept(batch: readonly Queued[], state: VersionedState): readonly Accepted[] {
  const staged = new Map<string, Entry | undefined>()
  const accepted: Accepted[] = []
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
  return accepted
}
