// How much history is kept? The newest changes within two bounds; each write forgets about as much as it adds.
// Small frequent steps: no pause, and the file on disk stays about as large as what it holds.
import type { ChangeLog } from './change-log.ts'
import type { Change, Revision } from './store.ts'

export interface HistoryLimits {
  readonly changes: number
  readonly bytes: number
}

export const defaultHistory: HistoryLimits = { changes: 10_000, bytes: 32 * 1024 * 1024 }

/** Forgets what lies beyond the limits, and everything up to `before`; answers the forgotten changes. */
export function trim(log: ChangeLog, limits: HistoryLimits, before: Revision = 0): readonly Change[] {
  const forgotten: Change[] = []
  while (
    log.size() > limits.changes ||
    (log.bytes() > limits.bytes && log.size() > 1) ||
    (log.oldest() < before && log.size() > 0)
  ) {
    const change = log.shift()
    if (change === undefined) break
    forgotten.push(change)
  }
  return forgotten
}

/** Versions on disk that nobody can ask for once the change is forgotten: what it replaced, and its own tombstone. */
export function uselessVersions(change: Change): readonly Revision[] {
  const useless: Revision[] = []
  if (change.previous !== undefined) useless.push(change.previous.revision)
  if (change.type === 'removed') useless.push(change.revision)
  return useless
}
