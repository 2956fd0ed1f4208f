// What time is it, and who wakes me later? Every part asks this port, never the global clock,
// so the simulator can run a day in a second and the same day twice.

export interface Clock {
  /** Milliseconds since 1970, for times that are written down. It may go back when the machine's clock is set back. */
  now(): number
  /** Milliseconds from some start. Nobody sets it: for how long something has lasted, where a wrong answer does harm. */
  steady(): number
  /** Resolves after `ms`; rejects with the signal's reason when it is aborted first. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** A signal that aborts with DeadlineExceeded after `ms`, or with the outer signal. Dispose it when the work is over. */
  deadline(ms: number, signal: AbortSignal): Deadline
  /** Calls back once at the given time (at once, but not synchronously, if it has passed). Dispose to cancel. */
  at(time: number, wake: () => void): Disposable
}

interface Deadline extends Disposable {
  readonly signal: AbortSignal
}

/** The reason of a signal that ran out of time. */
export class DeadlineExceeded extends Error {
  override readonly name = 'DeadlineExceeded'
  readonly timeoutMs: number
  constructor(timeoutMs: number) {
    super(`timed out after ${timeoutMs} ms`)
    this.timeoutMs = timeoutMs
  }
}

/** RFC 3339 with seconds, as Kubernetes writes its times. */
export function timestamp(ms: number): string {
  const text = new Date(ms).toISOString()
  return `${text.slice(0, -'.000Z'.length)}Z`
}

/** RFC 3339 with microseconds, as Kubernetes writes MicroTime. */
export function microTimestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.(\d{3})Z$/, '.$1000Z')
}

/** Is this a time in which something was to rest? A clock that was set back to before its start ends the rest too. */
export function isWithin(now: number, from: number, until: number): boolean {
  return from <= now && now < until
}

/** The two operations every clock derives from `now` and `at`, so that real and virtual time behave alike. */
export function waitsOver(at: Clock['at'], now: () => number): Pick<Clock, 'sleep' | 'deadline'> {
  return {
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        const onAbort = () => {
          timer[Symbol.dispose]()
          reject(signal.reason)
        }
        const timer = at(now() + ms, () => {
          signal.removeEventListener('abort', onAbort)
          resolve()
        })
        signal.addEventListener('abort', onAbort, { once: true })
      })
    },
    deadline(ms, signal) {
      const own = new AbortController()
      const timer = at(now() + ms, () => own.abort(new DeadlineExceeded(ms)))
      const onAbort = () => own.abort(signal.reason)
      if (signal.aborted) onAbort()
      else signal.addEventListener('abort', onAbort, { once: true })
      return {
        signal: own.signal,
        [Symbol.dispose]() {
          timer[Symbol.dispose]()
          signal.removeEventListener('abort', onAbort)
        },
      }
    },
  }
}
