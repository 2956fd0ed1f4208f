// What does a driver answer when its work fails half-way? It undoes what it did. A final status says that nothing was left
// behind (CSI-15), so it is answered only after the undoing has succeeded; else the caller must ask for the opposite call.
import type { Clock } from '../../clock/clock.ts'
import { errorText } from '../../telemetry/error-text.ts'
import { CsiError, effectOf, statusFrom } from '../codes.ts'
import { fail } from './checks.ts'

const undoMs = 60_000

/** `undo` has a deadline of its own: the caller may have gone. */
export async function orUndo<T>(
  clock: Clock,
  work: () => Promise<T>,
  undo: (signal: AbortSignal) => Promise<void>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    using deadline = clock.deadline(undoMs, new AbortController().signal)
    try {
      await undo(deadline.signal)
    } catch (second) {
      throw leftOpen(error, second)
    }
    throw statusFrom(error, '')
  }
}

/**
 * For calls that make something. A final status is our own decision, or follows an undoing. Any other error (records that
 * cannot be read) says nothing about what an earlier call left behind, so the answer leaves that open too.
 */
export async function answered<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw error instanceof CsiError ? error : fail('UNAVAILABLE', errorText(error))
  }
}

function leftOpen(error: unknown, second: unknown): CsiError {
  const { status, details } = statusFrom(error, '')
  const text = `${details}; what it had done so far could not be undone: ${errorText(second)}`
  return fail(effectOf(status) === 'none' ? 'ABORTED' : status, text)
}
