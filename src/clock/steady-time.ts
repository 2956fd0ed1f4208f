// What time is it on a machine whose clock is set? A clock that is set forward, or wakes from sleep, is followed at once. One
// that is set back a little is waited for: time goes at half its speed until it is caught up, and never back. One that is set
// back by more was wrong before (set forward by mistake, then corrected): waiting for it would take twice the mistake, so
// it is followed at once too. Whoever keeps waits as times of the day moves them along (loop/schedule.ts, `isWithin`).

/** A clock that is set back by more than this is followed at once. */
const longestCatchUpMs = 60_000

/** `wall` is the machine's clock, `steady` one that nobody sets; both in milliseconds. */
export function createSteadyTime(wall: () => number, steady: () => number): () => number {
  let [last, lastSteady] = [wall(), steady()]
  return () => {
    const now = steady()
    const machine = wall()
    const slowed = last + (now - lastSteady) / 2
    last = slowed - machine > longestCatchUpMs ? machine : Math.max(machine, slowed)
    lastSteady = now
    return Math.floor(last)
  }
}
