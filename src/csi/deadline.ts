// Who stops a call that takes too long? Each call gets a deadline from the clock; running out of it is
// DEADLINE_EXCEEDED, the caller giving up is CANCELLED, whatever the transport says about it.
import type { Clock } from '../clock/clock.ts'
import { CsiError, statusFrom } from './codes.ts'
import type { CallOptions } from './service.ts'

/** SIDE-3: default deadlines of each job. */
export const timeouts = {
  provisioner: 10_000,
  attacher: 15_000,
  resizer: 10_000,
  snapshotter: 60_000,
  health: 15_000,
  registrar: 1_000,
  liveness: 3_000,
  node: 120_000,
} as const

export type Call = <T>(rpc: string, invoke: (options: CallOptions) => Promise<T>, signal: AbortSignal) => Promise<T>

export function createCall(clock: Clock, timeoutMs: number): Call {
  return async (rpc, invoke, signal) => {
    using deadline = clock.deadline(timeoutMs, signal)
    try {
      return await answeredOrAborted(invoke({ signal: deadline.signal, timeoutMs }), deadline.signal)
    } catch (error) {
      if (signal.aborted) throw new CsiError('CANCELLED', 'context canceled', { rpc, cause: error })
      if (deadline.signal.aborted) {
        throw new CsiError('DEADLINE_EXCEEDED', 'context deadline exceeded', { rpc, cause: error })
      }
      if (error instanceof CsiError) throw error
      // Not a status: the transport broke, or our own code did. Nobody knows what the driver does now.
      throw new CsiError('UNKNOWN', statusFrom(error, rpc).details, { rpc, cause: error, effect: 'unknown' })
    }
  }
}

/** A handler that ignores its signal must not hold the caller. */
function answeredOrAborted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    answer.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

export function requireArgument(rpc: string, name: string, value: string): void {
  if (value === '') throw new CsiError('INVALID_ARGUMENT', `${name} is missing`, { rpc, effect: 'untried' })
}
