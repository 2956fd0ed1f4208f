// How does a controller sync its objects? One loop over tagged keys that keeps each object's reasons to wait.
//
// 1. No key is synced before every cache is full, nor after the stop.
// 2. What an object waits for is kept until its next sync; an object that is gone waits for nothing (WC-24).
// 3. A reason that names a time brings its key back at that time; a failed sync comes back with back-off.
import { createObjectLoop, keyText } from '../../client/object-loop.ts'
import type { ObjectKey, ObjectLoop } from '../../client/object-loop.ts'
import type { Controller, ControllerDeps } from './controller.ts'
import type { Waiting } from './waiting.ts'

export interface ControllerLoopOptions<Key extends ObjectKey> {
  readonly name: string
  readonly workers: number
  /** Is the object still in the cache? */
  exists(key: Key): boolean
  /** Answers what the object waits for now. */
  sync(key: Key, signal: AbortSignal): Promise<readonly Waiting[]>
  /** How a failed sync is shown; `retrying` with the error's text unless told otherwise. */
  failure?(error: unknown): Waiting
}

export interface ControllerLoop<Key extends ObjectKey> {
  /** Nothing happens before the caches are full. */
  wake(key: Key): void
  wakeAt(key: Key, time: number): void
  /** The object is gone: its failures, timers and reasons to wait go with it. */
  forget(key: Key): void
  isFailing(key: Key): boolean
  /** Every cache is full, and the loop has not been stopped. */
  readonly isOpen: boolean
  /** Replaces the object's reasons to wait, also those of a sync that is running now. */
  setWaiting(key: Key, waiting: readonly Waiting[]): void
  /** The loop as a controller: begins when `synced` resolves. */
  start(parts: StartParts): LoopController
}

interface LoopController extends Controller {
  /** Nothing is queued or running now. */
  isIdle(): boolean
}

interface StartParts {
  /** Resolves when every cache is full. */
  readonly synced: Promise<unknown>
  /** Wakes every key that exists at the start. */
  begin(): void
  /** Disposed after the loop has stopped. */
  readonly stack: AsyncDisposableStack
}

export function createControllerLoop<Key extends ObjectKey>(
  deps: Pick<ControllerDeps, 'clock' | 'log' | 'onWaiting'>,
  options: ControllerLoopOptions<Key>,
): ControllerLoop<Key> {
  const { clock, log } = deps
  const { name, exists, sync, failure = retrying } = options
  const waiting = new Map<string, readonly Waiting[]>()
  /** Keys that are being synced, and their reasons to wait if these were set meanwhile. */
  const syncing = new Map<string, readonly Waiting[] | undefined>()
  let isOpen = false
  const set = (key: Key, reasons: readonly Waiting[]) => {
    if (reasons.length === 0) waiting.delete(keyText(key))
    else waiting.set(keyText(key), reasons)
    deps.onWaiting?.(name, key, reasons)
  }
  const loop = createObjectLoop<Key>({
    name,
    clock,
    workers: options.workers,
    async look(key, signal) {
      const text = keyText(key)
      syncing.set(text, undefined)
      try {
        const answer = await sync(key, signal)
        const reasons = exists(key) ? (syncing.get(text) ?? answer) : []
        set(key, reasons)
        const times = reasons.flatMap(({ until }) => until ?? [])
        return times.length === 0 ? {} : { again: Math.min(...times) }
      } finally {
        syncing.delete(text)
      }
    },
    onError(key, error, until) {
      set(key, [{ ...failure(error), until }])
      log.debug('sync failed and will be tried again', { controller: name, object: keyText(key), error })
    },
  })
  return {
    wake(key) {
      if (isOpen) loop.wake(key)
    },
    wakeAt: loop.wakeAt,
    forget(key) {
      set(key, [])
      loop.forget(key)
    },
    isFailing: loop.isFailing,
    get isOpen() {
      return isOpen
    },
    setWaiting(key, reasons) {
      if (syncing.has(keyText(key))) syncing.set(keyText(key), reasons)
      set(key, reasons)
    },
    start(parts) {
      const open = (value: boolean) => void (isOpen = value)
      return { name, waiting: () => waiting, ...running(loop, parts, open) }
    },
  }
}

/** The life of a loop: it opens when the caches are full and is stopped before the caches are. */
function running<Key extends ObjectKey>(
  loop: ObjectLoop<Key>,
  { synced, begin, stack }: StartParts,
  open: (value: boolean) => void,
): Omit<LoopController, 'name' | 'waiting'> {
  const started = synced.then(() => {
    open(true)
    begin()
  })
  return {
    isIdle: () => loop.depth + loop.running === 0,
    async idle() {
      await started
      await loop.idle()
    },
    async [Symbol.asyncDispose]() {
      open(false)
      await loop[Symbol.asyncDispose]()
      await stack.disposeAsync()
    },
  }
}

function retrying(error: unknown): Waiting {
  return { reason: 'retrying', message: String(error) }
}
