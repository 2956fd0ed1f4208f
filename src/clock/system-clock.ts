// The real time: the only file that may read the machine's clock or set a timer.
import { setTimeout as setTimer, clearTimeout } from 'node:timers'
import type { Clock } from './clock.ts'
import { waitsOver } from './clock.ts'
import { createSteadyTime } from './steady-time.ts'

/** The longest time a timer of the platform can hold; longer waits are taken in pieces. */
const longestTimerMs = 2 ** 31 - 1

export function createSystemClock(): Clock {
  const steady = () => performance.now()
  const now = createSteadyTime(Date.now, steady)
  const at: Clock['at'] = (time, wake) => {
    let timer: NodeJS.Timeout
    const arm = () => {
      const waitMs = Math.max(0, time - now())
      timer = setTimer(
        () => (now() < time && waitMs >= longestTimerMs ? arm() : wake()),
        Math.min(waitMs, longestTimerMs),
      )
    }
    arm()
    return { [Symbol.dispose]: () => clearTimeout(timer) }
  }
  return { now, steady, at, ...waitsOver(at, now) }
}
