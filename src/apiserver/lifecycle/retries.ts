// When is something that failed tried again? After a wait that doubles, once per key however often it fails meanwhile.
import { backoff } from '../../clock/backoff.ts'
import type { Clock } from '../../clock/clock.ts'

export interface Retries {
  /** Calls `act` later, unless a call for this key is already planned. */
  later(key: string, act: () => void): void
  succeeded(key: string): void
}

const shape = { firstMs: 250, capMs: 60_000 }

export function createRetries(clock: Clock, signal: AbortSignal): Retries {
  const failures = new Map<string, number>()
  const planned = new Set<string>()
  return {
    later(key, act) {
      if (planned.has(key)) return
      planned.add(key)
      const failed = (failures.get(key) ?? 0) + 1
      failures.set(key, failed)
      clock.at(clock.now() + backoff(failed, shape), () => {
        planned.delete(key)
        if (!signal.aborted) act()
      })
    },
    succeeded: (key) => void failures.delete(key),
  }
}
