// Which changes can still be replayed? A queue of the newest ones. Revisions grow, but there may be gaps between them, and
// one revision may hold several changes: a reader keeps its position in the log, and only looks one up when it begins.
import type { Change, Revision } from './store.ts'

/** The place of a change in the log. It grows by one per change and never goes back. */
export type Position = number

export interface ChangeLog {
  /** Everything up to and including this revision is forgotten. */
  oldest(): Revision
  /** The position of the oldest change that is kept. */
  first(): Position
  /** The position that the next change will have. */
  end(): Position
  size(): number
  bytes(): number
  append(change: Change): void
  /** The position of the first change after the revision. */
  positionAfter(revision: Revision): Position
  at(position: Position): Change | undefined
  /** Forgets the oldest change and answers it. */
  shift(): Change | undefined
  /** Forgets everything, also what was never told: whoever reads has missed something. */
  restart(oldest: Revision): void
}

export function createChangeLog(oldest: Revision): ChangeLog {
  let changes: (Change | undefined)[] = []
  let head = 0
  let first: Position = 0
  let floor = oldest
  let bytes = 0

  return {
    oldest: () => floor,
    first: () => first,
    end: () => first + changes.length - head,
    size: () => changes.length - head,
    bytes: () => bytes,
    append(change) {
      changes.push(change)
      bytes += change.entry.value.length
    },
    positionAfter(revision) {
      let low = head
      let high = changes.length
      while (low < high) {
        const middle = (low + high) >>> 1
        if ((changes[middle]?.revision ?? 0) <= revision) low = middle + 1
        else high = middle
      }
      return first + low - head
    },
    at: (position) => (position < first ? undefined : changes[head + position - first]),
    shift() {
      const change = changes[head]
      if (change === undefined) return undefined
      changes[head] = undefined
      head++
      first++
      floor = change.revision
      bytes -= change.entry.value.length
      if (head > 1024 && head * 2 > changes.length) {
        changes = changes.slice(head)
        head = 0
      }
      return change
    },
    restart(revision) {
      first += changes.length - head + 1
      changes = []
      head = 0
      bytes = 0
      floor = revision
    },
  }
}
