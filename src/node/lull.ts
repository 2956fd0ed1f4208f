// When may a container start? Mounting goes before starting, which costs many times as much: when pods come in a crowd, all
// of them get their volumes before the first of them starts. A pod that comes alone to a quiet node never waits.
import type { PodUid } from '../api/names.ts'
import type { Clock } from '../clock/clock.ts'
import type { Pending } from '../loop/pending.ts'

export interface Lull {
  /** A pod came to this node; others may follow closely. */
  came(pod: PodUid): void
  /** Resolves when no volume is being worked on and no other pod has come just now; after half a second in any case. */
  wait(pod: PodUid): Promise<void>
}

/** Pods that come within this time of each other are a crowd. */
const crowdMs = 30
const longestMs = 500

/** All who wait wait for the same lull. The signal ends it. */
export function createLull(clock: Clock, pending: Pick<Pending, 'size' | 'idle'>, signal: AbortSignal): Lull {
  let newest = { pod: '', at: -Infinity }
  let before = -Infinity
  let next: Promise<void> | undefined
  const untilQuiet = (at: number) => at + crowdMs - clock.now()
  const nextLull = async () => {
    const latest = clock.now() + longestMs
    for (let left = longestMs; left > 0 && !signal.aborted; left = latest - clock.now()) {
      if (pending.size > 0) await idleOrOver(clock, pending, left, signal)
      else if (untilQuiet(newest.at) > 0) await pause(clock, Math.min(left, untilQuiet(newest.at)), signal)
      else break
    }
    next = undefined
  }
  return {
    came(pod) {
      before = newest.at
      newest = { pod, at: clock.now() }
    },
    async wait(pod) {
      const isAlone = untilQuiet(newest.pod === pod ? before : newest.at) <= 0
      if (pending.size > 0 || !isAlone) await (next ??= nextLull())
    },
  }
}

async function idleOrOver(clock: Clock, pending: Pick<Pending, 'idle'>, ms: number, signal: AbortSignal) {
  const enough = new AbortController()
  await Promise.race([pending.idle(), pause(clock, ms, AbortSignal.any([signal, enough.signal]))])
  enough.abort()
}

/** Being told to stop is no failure. */
const pause = (clock: Clock, ms: number, signal: AbortSignal) => clock.sleep(ms, signal).catch(() => {})
