// What time is it on a machine whose clock is set back? Waits are kept as times of the day, so a clock that went back an hour
// would put off every retry, renewal and lease by an hour. Time here never goes back: it goes at half its speed until the
// machine's clock has caught up. A clock that is set forward, or wakes from sleep, is followed at once.

/** `wall` is the machine's clock, `steady` one that nobody sets; both in milliseconds. */
export function createSteadyTime(wall: () => number, steady: () => number): () => number {
  let [last, lastSteady] = [wall(), steady()]
  return () => {
    const now = steady()
    last = Math.max(wall(), last + (now - lastSteady) / 2)
    lastSteady = now
    return Math.floor(last)
  }
}
