// What was told to the history? Entries and reasons to wait, kept in lists for a test to read.
import type { History, HistoryEntry, HistorySubject, WaitingEntry } from '../../src/client/history.ts'

export function createKeptHistory() {
  const told: HistoryEntry[] = []
  const waited: [HistorySubject, readonly WaitingEntry[]][] = []
  const history: History = {
    tell: (entry) => void told.push(entry),
    waits: (subject, waiting) => void waited.push([subject, waiting]),
    recovered: () => {},
    idle: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
  return { told, waited, history }
}
