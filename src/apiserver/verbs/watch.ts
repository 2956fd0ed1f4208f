// What happens from here on? Changes of one kind as Kubernetes tells them: selectors turn changes into entering and
// leaving, bookmarks say how far everything was seen, history that is gone is a 410.
import type { KindInfo } from '../../api/kinds.ts'
import { expired } from '../../api/status-error.ts'
import type { Change, Entry, Revision } from '../../store/store.ts'
import { isStoreError } from '../../store/store.ts'
import type { WatchOptions } from '../../api/verbs.ts'
import type { ServerContext } from '../objects/context.ts'
import { parseRevision, storeFailure, tooLargeRevision } from '../objects/context.ts'
import type { StoredObjects } from '../objects/stored-objects.ts'
import { prefixOf } from '../objects/stored-objects.ts'
import { checkVersions } from '../request/options.ts'
import type { Selection } from '../objects/selection.ts'
import { selectionOf } from '../objects/selection.ts'
import { listEntries, matches } from './list.ts'

export type EntryEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly entry: Entry }
  | { readonly type: 'BOOKMARK'; readonly revision: Revision; readonly initialEventsEnd?: true }

export interface WatchRequest extends WatchOptions {
  readonly info: KindInfo
  readonly sendInitialEvents?: boolean
  readonly resourceVersionMatch?: string
  readonly timeoutMs?: number
  /**
   * Without a resource version: begin with changes from now on instead of the present state. That is what
   * Kubernetes 1.35 was seen to do for HTTP watches that ask for bookmarks (conformance 343).
   */
  readonly fromNow?: boolean
}

const bookmarkEveryMs = 60_000
/** Kubernetes sends a last bookmark this long before it ends a watch. */
const lastBookmarkMs = 2_000

/** Subscribes before it returns the first event: nothing after the asked revision is missed. */
export async function* watchEntries(
  context: ServerContext,
  request: WatchRequest,
  signal: AbortSignal,
): AsyncGenerator<EntryEvent, void, undefined> {
  const selection = selectionOf(request.info, request)
  const initial = request.sendInitialEvents === true
  let from = parseRevision(request.resourceVersion)
  if (from !== undefined && from > context.store.revision()) throw tooLargeRevision(from, context.store.revision())

  using deadline = request.timeoutMs === undefined ? undefined : context.clock.deadline(request.timeoutMs, signal)
  const until = request.timeoutMs === undefined ? undefined : context.clock.now() + request.timeoutMs
  const fromNow = from === undefined && !initial && request.fromNow === true
  if (fromNow) {
    from = context.store.revision()
  } else if (from === undefined || from === 0 || initial) {
    const { labelSelector, fieldSelector, namespace } = request
    const list = await listEntries(context, {
      info: request.info,
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      ...(namespace === undefined ? {} : { namespace }),
    })
    from = list.revision
    for (const entry of list.entries) yield { type: 'ADDED', entry }
    // Asked from version 0, Kubernetes 1.35 streams the list as well: it says where the present state ends.
    const ends = initial || request.resourceVersion === '0'
    if (ends && request.allowBookmarks) yield { type: 'BOOKMARK', revision: from, initialEventsEnd: true }
  }
  using stop = ownSignal(deadline?.signal ?? signal)
  try {
    const watch = context.store.watch(prefixOf(request.info, request.namespace), from, stop.signal)
    using ticking = request.allowBookmarks ? startTicking(context, fromNow ? undefined : until) : undefined
    const iterator = watch[Symbol.asyncIterator]()
    let told: Revision = -1
    for (;;) {
      // Bursts are handed on without waiting for each change.
      const change = ticking?.isWaiting() ? undefined : watch.take()
      const step = change === undefined ? await nextStep(ticking, iterator) : { value: change }
      if (step === 'tick') {
        if (watch.seen() > told) yield { type: 'BOOKMARK', revision: (told = watch.seen()) }
        continue
      }
      if (step.done === true) return
      const event = eventOf(context.objects, request.info, step.value, selection)
      if (event !== undefined) yield event
    }
  } catch (error) {
    if (isStoreError(error, 'tooOld')) throw expired(error.message)
    throw storeFailure(error)
  }
}

const over = new Error('the watch is over')

/** A signal that also ends when the reader simply walks away. */
function ownSignal(outer: AbortSignal): Disposable & { readonly signal: AbortSignal } {
  const own = new AbortController()
  const end = (): void => own.abort(over)
  if (outer.aborted) end()
  else outer.addEventListener('abort', end, { once: true })
  return {
    signal: own.signal,
    [Symbol.dispose]() {
      outer.removeEventListener('abort', end)
      end()
    },
  }
}

/** What is wrong with the request itself is answered before the stream begins. */
export function checkWatch(request: WatchRequest & { readonly continue?: string }): void {
  checkVersions({ watch: true, ...request })
  selectionOf(request.info, request)
  parseRevision(request.resourceVersion)
}

type Step = IteratorResult<Change> | 'tick'

/** What comes next: a change that is there, or one that is waited for, or a bookmark's time. */
async function nextStep(ticking: Ticking | undefined, iterator: AsyncIterator<Change>): Promise<Step> {
  return ticking === undefined ? iterator.next() : ticking.next(iterator)
}

interface Ticking extends Disposable {
  /** A change was asked for and has not come yet. */
  isWaiting(): boolean
  next(iterator: AsyncIterator<Change>): Promise<IteratorResult<Change> | 'tick'>
}

/** Waits for a change or the next bookmark. Not Promise.race: racing one long promise again and again leaks. */
function startTicking(context: ServerContext, until: number | undefined): Ticking {
  let wake: (() => void) | undefined
  let due = false
  let waiting = false
  let arrived: { readonly result: IteratorResult<Change> } | { readonly error: unknown } | undefined
  let timer = schedule()

  function schedule(): Disposable {
    const now = context.clock.now()
    const last = until === undefined ? Infinity : until - lastBookmarkMs
    const at = last > now ? Math.min(now + bookmarkEveryMs, last) : now + bookmarkEveryMs
    return context.clock.at(at, () => {
      due = true
      wake?.()
    })
  }

  return {
    isWaiting: () => waiting || arrived !== undefined,
    async next(iterator) {
      if (!waiting && arrived === undefined) {
        waiting = true
        iterator.next().then(
          (result) => settle({ result }),
          (error: unknown) => settle({ error }),
        )
      }
      while (!due && arrived === undefined) await new Promise<void>((resolve) => (wake = resolve))
      if (arrived === undefined) {
        due = false
        timer = schedule()
        return 'tick'
      }
      const outcome = arrived
      arrived = undefined
      if ('error' in outcome) throw outcome.error
      return outcome.result
    },
    [Symbol.dispose]: () => timer[Symbol.dispose](),
  }

  function settle(outcome: NonNullable<typeof arrived>): void {
    waiting = false
    arrived = outcome
    wake?.()
  }
}

/** An object that begins to match is added, one that ceases to match is deleted (as it last matched). */
function eventOf(objects: StoredObjects, info: KindInfo, change: Change, selection: Selection): EntryEvent | undefined {
  const { entry, previous } = change
  if (!selection.key(entry.key)) return undefined
  if (selection.everything || selection.keyDecides) {
    if (change.type === 'removed') return { type: 'DELETED', entry }
    return { type: change.type === 'created' ? 'ADDED' : 'MODIFIED', entry }
  }
  const before = previous !== undefined && matches(objects, info, previous, selection)
  const now = change.type !== 'removed' && matches(objects, info, entry, selection)
  if (now) return { type: before ? 'MODIFIED' : 'ADDED', entry }
  if (!before || previous === undefined) return undefined
  if (change.type === 'removed') return { type: 'DELETED', entry }
  return { type: 'DELETED', entry: { ...previous, revision: change.revision } }
}
