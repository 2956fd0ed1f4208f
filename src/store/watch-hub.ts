// How do many watchers follow one store? Each is a cursor into the shared log of changes: no buffer of its own
// to grow, and a reader that falls behind the log is told `tooOld` instead of being served for ever.
import type { ChangeLog, Position } from './change-log.ts'
import type { Change, Revision, Watch } from './store.ts'
import { StoreError } from './store.ts'

export interface WatchHub {
  watch(prefix: string, after: Revision, signal: AbortSignal): Watch
  /** Tells watchers about changes that are already in the log. */
  publish(changes: readonly Change[]): void
  /** The log has begun anew: nobody can go on. */
  cutOff(): void
  size(): number
  /** Ends every watch with an error. */
  close(): void
}

interface Cursor {
  readonly prefix: string
  seen: Revision
  /** Where in the log the reader goes on. */
  next: Position
  /** Set while the reader waits for a change. */
  wake: (() => void) | undefined
  /** A matching change lies after `seen`. */
  behind: boolean
}

export function createWatchHub(log: ChangeLog, revision: () => Revision): WatchHub {
  const cursors = new Set<Cursor>()
  let closed = false

  function open(prefix: string, after: Revision): Cursor {
    if (closed) throw new StoreError('unavailable', 'the store is closed')
    if (after < log.oldest()) throw tooOld(after, log.oldest())
    const cursor: Cursor = {
      prefix,
      seen: Math.min(after, revision()),
      next: log.positionAfter(after),
      wake: undefined,
      behind: after < revision(),
    }
    cursors.add(cursor)
    return cursor
  }

  return {
    watch(prefix, after, signal) {
      const cursor = open(prefix, after)
      const leave = (): void => {
        cursors.delete(cursor)
        cursor.wake?.()
      }
      if (signal.aborted) leave()
      else signal.addEventListener('abort', leave, { once: true })
      const ended = (): boolean => signal.aborted
      const release = (): void => {
        signal.removeEventListener('abort', leave)
        cursors.delete(cursor)
      }
      return {
        seen: () => (cursor.behind ? seenWhole(cursor, log) : Math.max(cursor.seen, revision())),
        take() {
          // Ends and refusals are the iterator's to tell.
          if (signal.aborted || closed || cursor.next < log.first()) return undefined
          return next(cursor, log)
        },
        [Symbol.asyncIterator]: () => read(cursor, log, revision, ended, () => closed, release),
      }
    },
    publish(changes) {
      for (const cursor of cursors) {
        if (!cursor.behind && changes.some((change) => change.entry.key.startsWith(cursor.prefix))) cursor.behind = true
        if (cursor.behind) cursor.wake?.()
        else {
          cursor.seen = Math.max(cursor.seen, revision())
          cursor.next = log.end()
        }
      }
    },
    cutOff() {
      for (const cursor of cursors) {
        cursor.behind = true
        cursor.wake?.()
      }
    },
    size: () => cursors.size,
    close() {
      closed = true
      for (const cursor of cursors) cursor.wake?.()
    },
  }
}

async function* read(
  cursor: Cursor,
  log: ChangeLog,
  revision: () => Revision,
  ended: () => boolean,
  closed: () => boolean,
  release: () => void,
): AsyncGenerator<Change, void, undefined> {
  try {
    while (!ended()) {
      if (closed()) throw new StoreError('unavailable', 'the store is closed')
      const change = next(cursor, log)
      if (change !== undefined) {
        yield change
        continue
      }
      cursor.behind = false
      cursor.seen = Math.max(cursor.seen, revision())
      cursor.next = log.end()
      await new Promise<void>((resolve) => (cursor.wake = resolve))
      cursor.wake = undefined
    }
  } finally {
    release()
  }
}

/** The next change of the cursor's prefix, which it then has seen; skips the others without handing control away. */
function next(cursor: Cursor, log: ChangeLog): Change | undefined {
  if (!cursor.behind) return undefined
  if (cursor.next < log.first()) throw tooOld(cursor.seen, log.oldest())
  for (let change = log.at(cursor.next); change !== undefined; change = log.at(cursor.next)) {
    cursor.next++
    cursor.seen = change.revision
    if (change.entry.key.startsWith(cursor.prefix)) return change
  }
  return undefined
}

/** A revision of which changes are still to come is not seen yet. */
function seenWhole({ seen, next: position }: Cursor, log: ChangeLog): Revision {
  return log.at(position)?.revision === seen ? seen - 1 : seen
}

function tooOld(asked: Revision, oldest: Revision): StoreError {
  return new StoreError('tooOld', `too old resource version: ${asked} (${oldest})`)
}
