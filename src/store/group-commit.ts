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

export function createGroupCommit(
  journal: Journal,
  state: VersionedState,
  nextTurn: (run: () => void) => void,
): GroupCommit {
  let queue: Queued[] = []
  /** Versions that nobody can ask for any more; deleted together with the next write. */
  let useless: readonly Revision[] = []
  let closed: StoreError | undefined
  /** The batch on its way to the disk. */
  let underWay: Promise<void> | undefined

  function commit(): void {
    if (underWay !== undefined) return
    const batch = queue
    queue = []
    const accepted = accept(batch, state)
    if (accepted.length === 0) return
    const changes = accepted.map(({ change }) => change)
    try {
      journal.append(changes, useless, state.oldest())
    } catch (error) {
      // A failed transaction leaves the file as it was; the callers must not believe that their write happened.
      const reason = new StoreError('unavailable', `the store could not be written: ${String(error)}`, { cause: error })
      for (const { queued } of accepted) queued.reject(reason)
      return
    }
    useless = []
    try {
      const flushing = journal.flush()
      if (flushing === undefined) acknowledge(accepted, changes)
      else underWay = finish(flushing, accepted, changes)
    } catch (error) {
      fail(accepted, error)
    }
  }

  async function finish(
    flushing: Promise<void>,
    accepted: readonly Accepted[],
    changes: readonly Change[],
  ): Promise<void> {
    try {
      await flushing
    } catch (error) {
      fail(accepted, error)
      return
    } finally {
      underWay = undefined
    }
    acknowledge(accepted, changes)
  }

  function acknowledge(accepted: readonly Accepted[], changes: readonly Change[]): void {
    useless = state.commit(changes).flatMap(uselessVersions)
    for (const { queued, change } of accepted) queued.resolve(change.entry)
    // The answers are read first: what they lead to joins the next batch.
    if (queue.length > 0) nextTurn(commit)
  }

  /** Nobody knows what the disk holds after a failed flush (later ones may succeed and lie), so this is the end. */
  function fail(accepted: readonly Accepted[], cause: unknown): void {
    const text = `the store could not be flushed to disk; whether the last writes survive is uncertain: ${String(cause)}`
    closed = new StoreError('unavailable', text, { cause })
    for (const { queued } of accepted) queued.reject(closed)
    for (const queued of queue) queued.reject(closed)
    queue = []
  }

  /** Until nothing is queued and nothing is on its way. */
  async function settle(): Promise<void> {
    while (queue.length > 0 || underWay !== undefined) {
      if (underWay === undefined) commit()
      await underWay
    }
  }

  return {
    enqueue(write) {
      if (closed !== undefined) return Promise.reject(closed)
      return new Promise((resolve, reject) => {
        if (queue.length === 0 && underWay === undefined) nextTurn(commit)
        queue.push({ write, resolve, reject })
      })
    },
    async forget(before) {
      await settle()
      if (closed !== undefined) throw closed
      useless = [...useless, ...state.forget(before).flatMap(uselessVersions)]
      journal.append([], useless, state.oldest())
      useless = []
    },
    async close() {
      if (closed !== undefined) return
      closed = new StoreError('unavailable', 'the store is closed')
      await settle()
    },
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
