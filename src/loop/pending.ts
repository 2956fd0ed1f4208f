// May this operation start now? Nested exclusive keys with back-off: rules NPO-1 … NPO-13 in a simpler form.
//
// 1. A key is a path, [whole] or [whole, part]. Two keys overlap when one is a prefix of the other (NPO-3).
// 2. Overlapping operations never run at the same time; others always may (NPO-6a).
// 3. A failure is remembered for its key and operation; another operation on it starts at once (NPO-6c, DES-3). Each
//    operation has its own back-off: a retry of one does not reset the other's.
// 4. A crash inside an operation is a failure and releases its key (NPO-12).
// 5. The world is told the outcome before the key is released (OP-2).
import type { BackoffRecord } from '../clock/backoff.ts'
import { afterFailure, mayRetry, retryAt } from '../clock/backoff.ts'
import type { Clock } from '../clock/clock.ts'
import { errorText } from '../telemetry/error-text.ts'
import { createListeners } from './listeners.ts'

export type PendingKey = readonly [whole: string, part?: string]

export type Refusal =
  | { readonly kind: 'busy'; readonly operation: string; readonly since: number }
  | { readonly kind: 'backingOff'; readonly until: number; readonly failures: number; readonly error: string }

export interface Pending {
  /** Why an operation of this name could not start now; undefined when it could. */
  refusal(key: PendingKey, operation: string): Refusal | undefined
  isPending(key: PendingKey): boolean
  /** Starts `run` unless refused. The promise settles when the key is free again and never rejects. */
  start(key: PendingKey, operation: string, run: () => Promise<void>): Refusal | Started
  /** Drops what is remembered of failures under this whole, for example when the volume is gone. */
  forget(whole: string): void
  /** Hears of every key that became free; if its operation failed, with the time until which it backs off and the error. */
  onRelease(listener: ReleaseListener): Disposable
  readonly size: number
  /** Resolves when nothing runs. */
  idle(): Promise<void>
}

type ReleaseListener = (key: PendingKey, retryAt: number | undefined, error: string | undefined) => void

export interface Started {
  readonly kind: 'started'
  readonly finished: Promise<void>
}

interface Running {
  readonly operation: string
  readonly since: number
}

interface Slot {
  readonly running: Map<string | undefined, Running> // by part
  /** Failures per part, `undefined` is the whole, and operation. */
  readonly failures: Map<string | undefined, Map<string, BackoffRecord>>
}

export function createPending(clock: Clock): Pending {
  const slots = new Map<string, Slot>()
  const listeners = createListeners<Parameters<ReleaseListener>>()
  const idleWaiters: (() => void)[] = []
  let running = 0

  const busyWith = ([whole, part]: PendingKey): Running | undefined => {
    const slot = slots.get(whole)
    if (!slot || slot.running.size === 0) return undefined
    if (part === undefined) return slot.running.values().next().value
    return slot.running.get(undefined) ?? slot.running.get(part)
  }
  const refusal = (key: PendingKey, operation: string): Refusal | undefined => {
    const busy = busyWith(key)
    if (busy) return { kind: 'busy', ...busy }
    const record = failureOf(slots.get(key[0]), key[1], operation)
    if (!record || mayRetry(record, clock.now())) return undefined
    const { failures, error } = record
    return { kind: 'backingOff', until: retryAt(record), failures, error }
  }
  const release = (key: PendingKey, operation: string, error: unknown) => {
    const [whole, part] = key
    const slot = slots.get(whole)!
    slot.running.delete(part)
    let until: number | undefined
    if (error === undefined) clearFailures(slot, part)
    else {
      const record = afterFailure(failureOf(slot, part, operation), clock.now(), errorText(error))
      slot.failures.getOrInsertComputed(part, () => new Map()).set(operation, record)
      until = retryAt(record)
    }
    if (slot.running.size === 0 && slot.failures.size === 0) slots.delete(whole)
    running--
    const words = error === undefined ? undefined : errorText(error)
    listeners.tell(key, until, words)
    if (running === 0) for (const resolve of idleWaiters.splice(0)) resolve()
  }
  const start: Pending['start'] = (key, operation, run) => {
    const refused = refusal(key, operation)
    if (refused) return refused
    const slot = slots.get(key[0]) ?? { running: new Map(), failures: new Map() }
    slots.set(key[0], slot)
    slot.running.set(key[1], { operation, since: clock.now() })
    running++
    // Promise.try: a synchronous throw inside `run` is a failure like any other and releases the key.
    const finished = Promise.try(run).then(
      () => release(key, operation, undefined),
      (error: unknown) => release(key, operation, error ?? new Error('failed without an error')),
    )
    return { kind: 'started', finished }
  }
  return {
    refusal,
    start,
    isPending: (key) => busyWith(key) !== undefined,
    forget(whole) {
      const slot = slots.get(whole)
      slot?.failures.clear()
      if (slot && slot.running.size === 0) slots.delete(whole)
    },
    onRelease: listeners.listen,
    get size() {
      return running
    },
    idle: () => (running === 0 ? Promise.resolve() : new Promise((resolve) => void idleWaiters.push(resolve))),
  }
}

/** The failure that speaks for this key: its own, else the one of the whole (a part waits for the whole's back-off). */
function failureOf(slot: Slot | undefined, part: string | undefined, operation: string): BackoffRecord | undefined {
  return slot?.failures.get(part)?.get(operation) ?? slot?.failures.get(undefined)?.get(operation)
}

/** A success on the whole speaks for all parts; one on a part also clears the whole's records (same slot upstream). */
function clearFailures(slot: Slot, part: string | undefined): void {
  if (part === undefined) slot.failures.clear()
  else {
    slot.failures.delete(part)
    slot.failures.delete(undefined)
  }
}
