// How does work get a moment to finish after it was called off? By a signal that follows the real one after a while.
import type { Clock } from '../../clock/clock.ts'

export function delayedAbort(
  clock: Clock,
  signal: AbortSignal,
  ms: number,
): Disposable & { readonly signal: AbortSignal } {
  const later = new AbortController()
  let timer: Disposable | undefined
  const onAbort = () => {
    timer = clock.at(clock.now() + ms, () => later.abort(signal.reason))
  }
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  return {
    signal: later.signal,
    [Symbol.dispose]() {
      timer?.[Symbol.dispose]()
      signal.removeEventListener('abort', onAbort)
    },
  }
}
