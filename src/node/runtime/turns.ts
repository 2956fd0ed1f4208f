// Who may start a container now? At most so many at a time, for a start keeps a processor busy; but one that takes long
// waits for something else, so it gives its turn away and the others go on.
import type { Clock } from '../../clock/clock.ts'

export interface TurnsOptions {
  readonly clock: Clock
  readonly limit: number
  /** Work that takes longer no longer counts. */
  readonly slowMs: number
}

export function createTurns({ clock, limit, slowMs }: TurnsOptions) {
  let running = 0
  const queue: (() => void)[] = []
  const begin = (): Disposable => {
    running++
    let mine = true
    const giveUp = () => {
      if (!mine) return
      mine = false
      running--
      queue.shift()?.()
    }
    const timer = clock.at(clock.now() + slowMs, giveUp)
    return {
      [Symbol.dispose]() {
        timer[Symbol.dispose]()
        giveUp()
      },
    }
  }
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= limit) await new Promise<void>((resolve) => void queue.push(resolve))
    using turn = begin()
    void turn
    return await work()
  }
}
