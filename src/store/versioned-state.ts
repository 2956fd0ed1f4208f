// What is the state of a store in memory? Current entries, their order, the log of changes and who watches.
// All stores stand on it; they differ only in what must happen before a change may enter.
import type { ChangeLog } from './change-log.ts'
import { createChangeLog } from './change-log.ts'
import type { HistoryLimits } from './compaction.ts'
import { trim } from './compaction.ts'
import type { OrderedIndex } from './ordered-index.ts'
import { createOrderedIndex } from './ordered-index.ts'
import type { Change, Entry, Page, PageRequest, Revision } from './store.ts'
import { StoreError } from './store.ts'
import type { WatchHub } from './watch-hub.ts'
import { createWatchHub } from './watch-hub.ts'

export type Write =
  | { readonly type: 'create'; readonly key: string; readonly value: string }
  | { readonly type: 'update'; readonly key: string; readonly value: string; readonly expected: Revision }
  | { readonly type: 'remove'; readonly key: string; readonly expected: Revision | undefined }

export interface VersionedState {
  readonly hub: WatchHub
  revision(): Revision
  oldest(): Revision
  get(key: string): Entry | undefined
  list(prefix: string, page: PageRequest): Page
  /** Lets changes in, tells the watchers, and answers the changes that history no longer holds. */
  commit(changes: readonly Change[]): readonly Change[]
  forget(before: Revision): readonly Change[]
  /** The store has come this far without a change that we keep. */
  advance(revision: Revision): void
  /** Other entries from now on; whoever watches has missed something and is told `tooOld`. */
  replace(entries: Map<string, Entry>, revision: Revision): void
}

export interface InitialState {
  /** Handed over: the state goes on with this very map. */
  readonly entries: Map<string, Entry>
  readonly history: readonly Change[]
  readonly revision: Revision
  readonly oldest: Revision
}

export function createVersionedState(initial: InitialState, limits: HistoryLimits): VersionedState {
  let { entries } = initial
  let index = indexOf(entries)
  const log = createChangeLog(initial.oldest)
  for (const change of initial.history) log.append(change)
  let revision = initial.revision
  const hub = createWatchHub(log, () => revision)

  return {
    hub,
    revision: () => revision,
    oldest: () => log.oldest(),
    get: (key) => entries.get(key),
    list(prefix, page) {
      const at = page.at ?? revision
      if (at === revision) return currentPage(entries, index, prefix, page, revision)
      if (at > revision) throw new StoreError('unavailable', `revision ${at} has not been reached`)
      if (at < log.oldest()) throw new StoreError('tooOld', `revision ${at} is compacted (oldest is ${log.oldest()})`)
      return pastPage(entries, index, log, prefix, page, at)
    },
    commit(changes) {
      for (const change of changes) {
        const { entry } = change
        if (change.type === 'removed') {
          entries.delete(entry.key)
          index.delete(entry.key)
        } else {
          entries.set(entry.key, entry)
          if (change.type === 'created') index.add(entry.key)
        }
        log.append(change)
        revision = change.revision
      }
      const forgotten = trim(log, limits)
      if (changes.length > 0) hub.publish(changes)
      return forgotten
    },
    forget: (before) => trim(log, limits, Math.min(before, revision)),
    advance(to) {
      if (to <= revision) return
      revision = to
      hub.publish([])
    },
    replace(other, to) {
      entries = other
      index = indexOf(entries)
      revision = to
      log.restart(to)
      hub.cutOff()
    },
  }
}

/** Without a comparison of ours, texts are sorted by code units, and several times faster. */
function indexOf(entries: ReadonlyMap<string, Entry>): OrderedIndex {
  return createOrderedIndex([...entries.keys()].toSorted())
}

/** What a write would change, given the entry it meets; throws when its expectation does not hold. */
export function changeOf(write: Write, current: Entry | undefined, revision: Revision): Change {
  const { key } = write
  if (write.type === 'create') {
    if (current !== undefined) throw new StoreError('exists', `key ${key} exists`)
    const entry: Entry = { key, value: write.value, revision, createRevision: revision }
    return { type: 'created', revision, entry, previous: undefined }
  }
  if (current === undefined) throw new StoreError('missing', `key ${key} does not exist`)
  if (write.expected !== undefined && write.expected !== current.revision) {
    throw new StoreError('conflict', `key ${key} is at revision ${current.revision}, not ${write.expected}`)
  }
  const { createRevision } = current
  if (write.type === 'remove') {
    const entry: Entry = { key, value: current.value, revision, createRevision }
    return { type: 'removed', revision, entry, previous: current }
  }
  return { type: 'updated', revision, entry: { key, value: write.value, revision, createRevision }, previous: current }
}

function currentPage(
  entries: ReadonlyMap<string, Entry>,
  index: OrderedIndex,
  prefix: string,
  page: PageRequest,
  revision: Revision,
): Page {
  const found: Entry[] = []
  const limit = page.limit ?? Infinity
  for (const key of index.keys(prefix, page.after)) {
    const entry = entries.get(key)
    if (entry !== undefined) found.push(entry)
    if (found.length >= limit) break
  }
  const last = found.at(-1)
  const remaining = limit === Infinity || last === undefined ? 0 : index.count(prefix, last.key)
  return { entries: found, revision, remaining }
}

/** The page as it was: today's entries, with every later change of the prefix undone. */
function pastPage(
  entries: ReadonlyMap<string, Entry>,
  index: OrderedIndex,
  log: ChangeLog,
  prefix: string,
  page: PageRequest,
  at: Revision,
): Page {
  const undone = new Map<string, Entry | undefined>()
  const end = log.end()
  for (let position = log.positionAfter(at); position < end; position++) {
    const change = log.at(position)
    if (change === undefined) continue
    const { key } = change.entry
    if (key.startsWith(prefix) && (page.after === undefined || key > page.after) && !undone.has(key)) {
      undone.set(key, change.previous)
    }
  }
  const keys = [...index.keys(prefix, page.after)]
  for (const [key, past] of undone) if (past !== undefined && !entries.has(key)) keys.push(key)
  if (undone.size > 0) keys.sort(byCodeUnit)

  const found: Entry[] = []
  const limit = page.limit ?? Infinity
  let remaining = 0
  for (const key of keys) {
    const entry = undone.has(key) ? undone.get(key) : entries.get(key)
    if (entry === undefined) continue
    if (found.length < limit) found.push(entry)
    else remaining++
  }
  return { entries: found, revision: at, remaining }
}

function byCodeUnit(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0
}
