// What does every store promise? Revisions, compare-and-swap, ordered lists, watches, compaction.
// Values are opaque texts; one number grows with every change of the whole store.

/** Grows with every change of the store; also the version of the entry that the change wrote. */
export type Revision = number

export interface Entry {
  readonly key: string
  readonly value: string
  readonly revision: Revision
  readonly createRevision: Revision
  /** What a reader made of the value and wants to find again. Nobody else looks at it; it goes with the entry. */
  made?: unknown
}

/**
 * One change. `entry` is the new state, or, for a removal, the last value under the revision of the removal.
 * The same object is handed to every watcher, so work done per change can be shared by remembering it.
 */
export interface Change {
  readonly type: 'created' | 'updated' | 'removed'
  readonly revision: Revision
  readonly entry: Entry
  readonly previous: Entry | undefined
}

export interface PageRequest {
  /** Only keys greater than this one. */
  readonly after?: string
  readonly limit?: number
  /** The state as it was at this revision; refused as `tooOld` once compacted. */
  readonly at?: Revision
}

export interface Page {
  readonly entries: readonly Entry[]
  /** The revision whose state this page shows. */
  readonly revision: Revision
  /** How many further entries follow this page. */
  readonly remaining: number
}

export interface Watch extends AsyncIterable<Change> {
  /** Everything up to this revision has been handed out; a bookmark may name it. */
  seen(): Revision
  /** The next change if it is already there. Not while the iterator is waiting: the two share one place. */
  take(): Change | undefined
}

/**
 * 1. An acknowledged write survives the death of the process (where the store is durable).
 * 2. Revisions grow with every change, by one where nobody else writes to the store; readers never see a change that could
 *    still be lost.
 * 3. `get` and `list` show every write that was acknowledged before they were asked, by whichever server.
 * 4. A watch hands out every change of its prefix exactly once and in order, or ends with `tooOld`.
 */
export interface Store extends AsyncDisposable {
  /** How far this process has seen the store; never less than what it has acknowledged or shown. */
  revision(): Revision
  /** The oldest revision from which a watch or a list can still start. */
  oldest(): Revision
  get(key: string): Promise<Entry | undefined>
  list(prefix: string, page: PageRequest): Promise<Page>
  create(key: string, value: string): Promise<Entry>
  update(key: string, value: string, expected: Revision): Promise<Entry>
  /** Answers the removed value under the revision of its removal. */
  remove(key: string, expected: Revision | undefined): Promise<Entry>
  /** Subscribes at once, so that nothing after `after` is missed; throws `tooOld` when it cannot. */
  watch(prefix: string, after: Revision, signal: AbortSignal): Watch
  compact(before: Revision): Promise<void>
}

export type StoreErrorCode = 'exists' | 'missing' | 'conflict' | 'tooOld' | 'tooLarge' | 'unavailable'

export class StoreError extends Error {
  readonly code: StoreErrorCode

  constructor(code: StoreErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.name = 'StoreError'
    this.code = code
  }
}

export function isStoreError(error: unknown, code: StoreErrorCode): error is StoreError {
  return error instanceof StoreError && error.code === code
}
