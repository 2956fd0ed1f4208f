// Which changes can still be replayed? A queue of the newest ones, found by revision without searching.
// Invariant: revisions in the log are consecutive, from `oldest() + 1` to the newest.
import type { Change, Revision } from './store.ts'

export interface ChangeLog {
  /** Everything up to and including this revision is forgotten. */
  oldest(): Revision
  size(): number
  bytes(): number
  append(change: Change): void
  /** The first change after the revision, or nothing. */
  after(revision: Revision): Change | undefined
  /** Forgets the oldest change and answers it. */
  shift(): Change | undefined
}

export function createChangeLog(oldest: Revision): ChangeLog {
  let changes: (Change | undefined)[] = []
  let head = 0
  let floor = oldest
  let bytes = 0

  return {
    oldest: () => floor,
    size: () => changes.length - head,
    bytes: () => bytes,
    append(change) {
      changes.push(change)
      bytes += change.entry.value.length
    },
    after(revision) {
      return changes[head + Math.max(0, revision - floor)]
    },
    shift() {
      const change = changes[head]
      if (change === undefined) return undefined
      changes[head] = undefined
      head++
      floor = change.revision
      bytes -= change.entry.value.length
      if (head > 1024 && head * 2 > changes.length) {
        changes = changes.slice(head)
        head = 0
      }
      return change
    },
  }
}
