// How do we ask a server that may go away? A server that is away, or busy, is asked again until it answers. A refusal is thrown.
import { StatusError } from '../api/status-error.ts'
import { backoff } from '../clock/backoff.ts'
import type { Clock } from '../clock/clock.ts'
import type { Log } from '../telemetry/log.ts'

const retryShape = { firstMs: 200, capMs: 10_000 }

/** `what` names the question in the log: "the lease of node worker-1". */
export async function untilAnswered<T>(
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  what: string,
  ask: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await ask()
    } catch (error) {
      signal.throwIfAborted()
      if (!isAway(error)) throw error
      const retryMs = backoff(failures, retryShape)
      log.warn('the server does not answer; trying again', { asked: what, retryMs, error })
      await clock.sleep(retryMs, signal)
    }
  }
}

const busyCodes: readonly number[] = [408, 409, 429]

/** The connection failed or took too long, or the server says that it cannot answer now. */
export function isAway(error: unknown): boolean {
  if (error instanceof StatusError) return error.code >= 500 || busyCodes.includes(error.code)
  for (let current = error; current instanceof Error; current = current.cause) {
    const { code } = current as NodeJS.ErrnoException
    if (typeof code === 'string' && /^(E[A-Z]+|EAI_[A-Z]+|HPE_[A-Z_]+)$/.test(code)) return true
  }
  return false
}
