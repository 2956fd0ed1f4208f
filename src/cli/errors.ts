// Which outcomes have an exit code of their own? Something that is not there, no server, and what is not done yet; and what simply
// did not work.
import { UsageError } from '../installation/config.ts'
import type { StopSignal } from './exit-codes.ts'

/** What the user named does not exist: exit code 3. */
export class Missing extends UsageError {}

/** No server has ever run where we looked: exit code 5. */
export class Unreachable extends UsageError {}

/** It was tried and did not work: exit code 1, and one sentence that says what and why. */
export class Failed extends Error {
  override readonly name = 'Failed'
  readonly code = 'FAILED'
}

/** A signal came while the command waited: the exit code of the signal, and what the command leaves behind. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly signal: StopSignal
  readonly hint: string | undefined
  constructor(signal: StopSignal, left: string, hint?: string) {
    super(`${signal}: ${left}`)
    this.signal = signal
    this.hint = hint
  }
}

/** It may still come true: exit code 4, and the command that tells why it does not. */
export class StillWaiting extends Error {
  override readonly name = 'StillWaiting'
  readonly hint: string | undefined
  constructor(message: string, hint?: string) {
    super(message)
    this.hint = hint
  }
}
