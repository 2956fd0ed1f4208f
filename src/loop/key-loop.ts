// How is work driven? A key is a reminder to look. Waking a key costs the same whether there are ten or a
// hundred thousand others; an idle loop holds one timer at most and uses no CPU.
import type { BackoffShape } from '../clock/backoff.ts'
import { backoff, keyBackoff } from '../clock/backoff.ts'
import type { Clock } from '../clock/clock.ts'
import { createSchedule } from './schedule.ts'

/** What a look may answer: nothing more to do, or a time at which to look again. */
export interface Looked {
  readonly again?: number | undefined
}

export interface KeyLoop<Key> extends AsyncDisposable {
  /** Look at this key soon. Waking a waiting key twice is one look; waking a running key means one look afterwards. */
  wake(key: Key): void
  /** Look at this key at the given time, unless it is woken before. The earliest of several times wins. */
  wakeAt(key: Key, time: number): void
  /** Forgets failures and timers of a key whose object is gone. */
  forget(key: Key): void
  /** Resolves when nothing is queued or running (timers may be set). For tests and orderly stops. */
  idle(): Promise<void>
  readonly depth: number
  readonly running: number
  /** Keys that failed last time, with the time of their next try. */
  readonly failing: ReadonlyMap<Key, Failing>
}

export interface Failing {
  readonly failures: number
  readonly retryAt: number
  readonly error: unknown
}

export interface KeyLoopOptions<Key> {
  readonly name: string
  readonly clock: Clock
  /** Bounded workers: how many keys are looked at side by side. A key is never looked at twice at the same time. */
  readonly workers: number
  readonly backoff?: BackoffShape
  look(key: Key, signal: AbortSignal): Promise<Looked | void>
  /** Called once for each failed look; the loop itself retries with back-off. */
  onError?(key: Key, error: unknown, retryAt: number): void
}

export function createKeyLoop<Key>(options: KeyLoopOptions<Key>): KeyLoop<Key> {
  const { clock, workers, look } = options
  const shape = options.backoff ?? keyBackoff
  const stopping = new AbortController()
  const queue = new Set<Key>() // insertion order is the order of work
  // One iterator walks along with the work: a fresh one would pass over the places of all keys taken before.
  let walk = queue.values()
  const active = new Map<Key, { dirty: boolean }>()
  const failing = new Map<Key, Failing>()
  const idleWaiters: (() => void)[] = []

  function wake(key: Key): void {
    if (stopping.signal.aborted) return
    schedule.clear(key)
    const running = active.get(key)
    if (running) running.dirty = true
    else {
      queue.add(key)
      pump()
    }
  }
  const schedule = createSchedule<Key>(clock, wake)
  const wakeAt = (key: Key, time: number) => {
    if (stopping.signal.aborted) return
    const planned = schedule.timeOf(key)
    if (planned === undefined || time < planned) schedule.set(key, time)
  }
  const takeFirst = () => {
    const first = walk.next()
    if (!first.done) return first
    // An iterator that has come to the end stays there, whatever is added later.
    walk = queue.values()
    return walk.next()
  }
  const pump = () => {
    while (active.size < workers && queue.size > 0) {
      const first = takeFirst()
      if (first.done) break
      queue.delete(first.value)
      void work(first.value)
    }
    if (active.size === 0 && queue.size === 0) for (const resolve of idleWaiters.splice(0)) resolve()
  }
  const work = async (key: Key) => {
    const state = { dirty: false }
    active.set(key, state)
    try {
      // A turn of its own: whoever wakes several keys in one go sees none of them run before it is done.
      await Promise.resolve()
      state.dirty = false
      const looked = await look(key, stopping.signal)
      failing.delete(key)
      if (looked?.again !== undefined && !state.dirty) wakeAt(key, looked.again)
    } catch (error) {
      if (!stopping.signal.aborted) failed(key, error)
    } finally {
      active.delete(key)
      if (state.dirty && !stopping.signal.aborted) queue.add(key)
      pump()
    }
  }
  const failed = (key: Key, error: unknown) => {
    const failures = (failing.get(key)?.failures ?? 0) + 1
    const retryAt = clock.now() + backoff(failures, shape)
    failing.set(key, { failures, retryAt, error })
    options.onError?.(key, error, retryAt)
    wakeAt(key, retryAt)
  }
  const idle = () =>
    active.size === 0 && queue.size === 0
      ? Promise.resolve()
      : new Promise<void>((resolve) => void idleWaiters.push(resolve))

  return {
    wake,
    wakeAt,
    forget(key) {
      schedule.clear(key)
      failing.delete(key)
    },
    idle,
    failing,
    get depth() {
      return queue.size
    },
    get running() {
      return active.size
    },
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error(`${options.name} is stopping`))
      schedule[Symbol.dispose]()
      queue.clear()
      await idle()
    },
  }
}
