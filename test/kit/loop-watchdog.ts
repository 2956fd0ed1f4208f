// How long does one request hold the event loop? Between two turns of the loop, counted in processor time of this thread: a busy
// machine that lets the thread wait is no fault of the request. What the collector of garbage does on this thread counts too.

export interface LoopWatchdog extends Disposable {
  /** Runs `work` between two turns of the loop and answers the longest stretch in it, in milliseconds of processor time. */
  measure<T>(work: () => Promise<T>): Promise<{ readonly value: T; readonly longestMs: number }>
}

export function startLoopWatchdog(): LoopWatchdog {
  let last = threadMs()
  let longest = 0
  let stopped = false
  const beat = (): void => {
    const now = threadMs()
    longest = Math.max(longest, now - last)
    last = now
    if (!stopped) setImmediate(beat)
  }
  setImmediate(beat)
  return {
    async measure(work) {
      await turn()
      last = threadMs()
      longest = 0
      const value = await work()
      await turn()
      return { value, longestMs: longest }
    },
    [Symbol.dispose]: () => void (stopped = true),
  }
}

/** Two turns: the beat of the first may have come before us. */
async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
  await new Promise((resolve) => setImmediate(resolve))
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
