// What happens on Ctrl-C or SIGTERM while a command waits? It stops waiting, says what it leaves, and ends with the code of the signal.
// A second signal ends the process at once.
import { Interrupted } from './errors.ts'
import { signalCodes } from './exit-codes.ts'
import type { StopSignal } from './exit-codes.ts'

export interface Interrupts extends Disposable {
  /** Aborted by the first signal. */
  readonly signal: AbortSignal
  /** What to throw once the signal is aborted; `left` says what the command leaves behind. */
  error(left: string, hint?: string): Interrupted
}

/** Until disposed, signals do not end this process by themselves. */
export function catchInterrupts(): Interrupts {
  const stopping = new AbortController()
  let received: StopSignal = 'SIGTERM'
  const onSignal = (name: NodeJS.Signals) => {
    if (stopping.signal.aborted) process.exit(signalCodes[name as StopSignal])
    received = name as StopSignal
    stopping.abort(new Interrupted(received, 'no longer waiting'))
  }
  const names = Object.keys(signalCodes) as StopSignal[]
  for (const name of names) process.on(name, onSignal)
  return {
    signal: stopping.signal,
    error: (left, hint) => new Interrupted(received, left, hint),
    [Symbol.dispose]() {
      for (const name of names) process.removeListener(name, onSignal)
    },
  }
}
