// How does work that grows with the number of objects, or with the size of one, let others run? It asks here after each object or
// step, and rests when it has held the event loop for long enough.
import type { Clock } from '../../clock/clock.ts'

/** Well below what a request may hold the loop: what comes between two questions takes time too. */
const turnMs = 5
const never = new AbortController().signal

export interface Pace {
  /** Undefined: go on. */
  rest(): Promise<void> | undefined
}

export function createPace(clock: Clock): Pace {
  let since = clock.steady()
  return {
    rest() {
      if (clock.steady() - since < turnMs) return undefined
      return clock.sleep(0, never).then(() => void (since = clock.steady()))
    },
  }
}
