// When is something that failed tried again? After a wait that doubles, once per key however often it fails meanwhile.
import type { Clock } from '../../clock/clock.ts'

export interface Retries {
  /** Calls `act` later, unless a call for this key is already planned. */
  later(key: string, act: () => void): void
  succeeded(key: string): void
}

const firstMs = 250
const longestMs = 60_000

export function createRetries(clock: Clock, signal: AbortSignal): Retries {
  const failures = new Map<string, number>()
  const planned = new Set<string>()
  return {
    later(key, act) {
      if (planned.has(key)) return
      planned.add(key)
      const failed = failures.get(key) ?? 0
      failures.set(key, failed + 1)
      clock.at(clock.now() + Math.min(longestMs, firstMs * 2 ** failed), () => {
        planned.delete(key)
        if (!signal.aborted) act()
      })
    },
    succeeded: (key) => void failures.delete(key),
  }
}
