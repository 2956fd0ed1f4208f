// What do signals do to `hawser run`? They stop its command, with a grace period; they never wait for a node that does not answer.
import { signalCodes } from './exit-codes.ts'
import type { StopSignal } from './exit-codes.ts'

export interface Stops extends Disposable {
  /** Aborted when there is nothing to wait for any more. */
  readonly signal: AbortSignal
  readonly received: StopSignal | undefined
  isStarted(): void
}

/** The node needs a moment to tell that the command has ended. */
export const confirmMs = 3_000

/** A command that runs gets its grace period; one that has not started is not waited for. The second signal means: now. */
export function catchStops(graceSeconds: number, remove: (graceSeconds: number) => void): Stops {
  const ending = new AbortController()
  let received: StopSignal | undefined
  let isRunning = false
  let timer: NodeJS.Timeout | undefined
  const endIn = (ms: number) => {
    clearTimeout(timer)
    timer = setTimeout(() => ending.abort(new Error('stopped')), ms)
  }
  const onSignal = (name: NodeJS.Signals) => {
    const isSecond = received !== undefined
    received ??= name as StopSignal
    remove(isSecond ? 0 : graceSeconds)
    if (isRunning) endIn(isSecond ? confirmMs : graceSeconds * 1_000 + confirmMs)
    else ending.abort(new Error('stopped'))
  }
  for (const name of Object.keys(signalCodes)) process.on(name, onSignal)
  return {
    signal: ending.signal,
    get received() {
      return received
    },
    isStarted: () => void (isRunning = true),
    [Symbol.dispose]() {
      clearTimeout(timer)
      for (const name of Object.keys(signalCodes)) process.removeListener(name, onSignal)
    },
  }
}
