// How is work driven? A key is a reminder to look. Waking a key costs the same whether there are ten or a
// hundred thousand others; an idle loop holds one timer at most and uses no CPU.
import type { BackoffShape } from '../clock/backoff.ts'
import { backoff, keyBackoff } from '../clock/backoff.ts'
import type { Clock } from '../clock/clock.ts'
import type { Schedule } from './schedule.ts'
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
  /** The key is queued or running, failed last time, or waits for a time. */
  has(key: Key): boolean
  /** Resolves when nothing is queued or running (timers may be set). For tests and orderly stops. */
  idle(): Promise<void>
  readonly depth: number
  readonly running: number
  /** Keys that failed last time, with the time of their next try. */
  readonly failing: ReadonlyMap<Key, Failing>
}

interface Failing {
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

/** What the functions of this file share. */
interface Loop<Key> {
  readonly options: KeyLoopOptions<Key>
  readonly stopping: AbortController
  readonly schedule: Schedule<Key>
  /** Insertion order is the order of work. */
  readonly queue: Set<Key>
  /** One iterator goes along with the work: a fresh one would pass over the places of all keys taken before. */
  next: SetIterator<Key>
  readonly active: Map<Key, { dirty: boolean }>
  readonly failing: Map<Key, Failing>
  readonly idleWaiters: (() => void)[]
}

export function createKeyLoop<Key>(options: KeyLoopOptions<Key>): KeyLoop<Key> {
  const queue = new Set<Key>()
  const loop: Loop<Key> = {
    options,
    stopping: new AbortController(),
    schedule: createSchedule<Key>(options.clock, (key) => wake(loop, key)),
    queue,
    next: queue.values(),
    active: new Map(),
    failing: new Map(),
    idleWaiters: [],
  }
  const { stopping, schedule, active, failing } = loop
  return {
    wake: (key) => wake(loop, key),
    wakeAt: (key, time) => wakeAt(loop, key, time),
    forget(key) {
      schedule.clear(key)
      failing.delete(key)
    },
    has: (key) => queue.has(key) || active.has(key) || failing.has(key) || schedule.timeOf(key) !== undefined,
    idle: () => idle(loop),
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
      await idle(loop)
    },
  }
}

function wake<Key>(loop: Loop<Key>, key: Key): void {
  if (loop.stopping.signal.aborted) return
  loop.schedule.clear(key)
  const running = loop.active.get(key)
  if (running) running.dirty = true
  else {
    loop.queue.add(key)
    startWork(loop)
  }
}

function wakeAt<Key>({ stopping, schedule }: Loop<Key>, key: Key, time: number): void {
  if (stopping.signal.aborted) return
  const planned = schedule.timeOf(key)
  if (planned === undefined || time < planned) schedule.set(key, time)
}

function startWork<Key>(loop: Loop<Key>): void {
  const { queue, active, idleWaiters } = loop
  while (active.size < loop.options.workers && queue.size > 0) {
    const first = takeFirst(loop)
    if (first.done) break
    queue.delete(first.value)
    void work(loop, first.value)
  }
  if (isIdle(loop)) for (const resolve of idleWaiters.splice(0)) resolve()
}

function takeFirst<Key>(loop: Loop<Key>): IteratorResult<Key> {
  const first = loop.next.next()
  if (!first.done) return first
  // An iterator that has come to the end stays there, whatever is added later.
  loop.next = loop.queue.values()
  return loop.next.next()
}

async function work<Key>(loop: Loop<Key>, key: Key): Promise<void> {
  const { options, stopping, active, failing, queue } = loop
  const state = { dirty: false }
  active.set(key, state)
  try {
    // A turn of its own: whoever wakes several keys in one go sees none of them run before it is done.
    await Promise.resolve()
    state.dirty = false
    const looked = await options.look(key, stopping.signal)
    failing.delete(key)
    if (looked?.again !== undefined && !state.dirty) wakeAt(loop, key, looked.again)
  } catch (error) {
    if (!stopping.signal.aborted) noteFailure(loop, key, error)
  } finally {
    active.delete(key)
    if (state.dirty && !stopping.signal.aborted) queue.add(key)
    startWork(loop)
  }
}

function noteFailure<Key>(loop: Loop<Key>, key: Key, error: unknown): void {
  const { options, failing } = loop
  const failures = (failing.get(key)?.failures ?? 0) + 1
  const retryAt = options.clock.now() + backoff(failures, options.backoff ?? keyBackoff)
  failing.set(key, { failures, retryAt, error })
  options.onError?.(key, error, retryAt)
  wakeAt(loop, key, retryAt)
}

function idle<Key>(loop: Loop<Key>): Promise<void> {
  return isIdle(loop) ? Promise.resolve() : new Promise((resolve) => void loop.idleWaiters.push(resolve))
}

const isIdle = <Key>({ active, queue }: Loop<Key>) => active.size === 0 && queue.size === 0
