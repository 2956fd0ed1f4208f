// When may a container start? Mounting goes before starting, which costs many times as much: when pods come in a crowd, all
// of them get their volumes before the first of them starts. The first of a crowd is told by what its process has to do:
// others are on their way in. A pod that comes alone to a quiet node waits for three milliseconds.
import type { PodUid } from '../api/names.ts'
import type { Clock } from '../clock/clock.ts'
import type { Pending } from '../loop/pending.ts'

export interface Lull {
  /** A pod came to this node; others may follow closely. */
  came(pod: PodUid): void
  /** Resolves when no volume is being worked on and no other pod has come just now; after half a second in any case. */
  wait(pod: PodUid): Promise<void>
}

export interface LullDeps {
  readonly clock: Clock
  readonly pending: Pick<Pending, 'size' | 'idle'>
  /** Begins to measure; asked later, says for how much of the time since then this process was at work (0 … 1). */
  readonly measureWork?: (() => () => number) | undefined
}

/** Pods that come within this time of each other are a crowd. */
const crowdMs = 30
const longestMs = 500
/** For so long it is watched whether this process has much to do. */
const watchedMs = 3
const muchWork = 0.5

/** All who wait wait for the same lull. The signal ends it. */
export function createLull(deps: LullDeps, signal: AbortSignal): Lull {
  const { clock, pending } = deps
  let newest = { pod: '', at: -Infinity }
  let before = -Infinity
  let next: Promise<void> | undefined
  const untilQuiet = (at: number) => at + crowdMs - clock.now()
  const isQuiet = (at: number) => pending.size === 0 && untilQuiet(at) <= 0
  const hasMuchToDo = async () => {
    const workSince = deps.measureWork?.()
    if (!workSince) return false
    await pause(clock, watchedMs, signal)
    return workSince() > muchWork
  }
  const nextLull = async () => {
    const latest = clock.now() + longestMs
    for (let left = longestMs; left > 0 && !signal.aborted; left = latest - clock.now()) {
      if (pending.size > 0) await idleOrOver(clock, pending, left, signal)
      else if (untilQuiet(newest.at) > 0) await pause(clock, Math.min(left, untilQuiet(newest.at)), signal)
      else if (!(await hasMuchToDo()) && isQuiet(newest.at)) break
    }
    next = undefined
  }
  return {
    came(pod) {
      before = newest.at
      newest = { pod, at: clock.now() }
    },
    async wait(pod) {
      const isAlone = () => isQuiet(newest.pod === pod ? before : newest.at)
      if (next || !isAlone() || (await hasMuchToDo()) || !isAlone()) await (next ??= nextLull())
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
