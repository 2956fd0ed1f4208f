// How does this process have all objects at hand? A copy in memory, read once and then fed by one watch over the prefix. The
// watch hands out every change in order, so the copy always shows one revision; which one, whoever reads must ask.
import type { Clock } from '../../clock/clock.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { Log } from '../../telemetry/log.ts'
import type { HistoryLimits } from '../compaction.ts'
import type { Change, Entry, Revision } from '../store.ts'
import { StoreError } from '../store.ts'
import type { VersionedState } from '../versioned-state.ts'
import { createVersionedState } from '../versioned-state.ts'
import type { EtcdClient } from './client.ts'
import { EtcdError, isEtcdFailure } from './errors.ts'
import type { Event, KeyValue } from './generated/etcd_pb.ts'
import { Event_EventType } from './generated/etcd_pb.ts'
import type { EtcdPlace } from './layout.ts'
import { entryKey, textOf, watchedRange } from './layout.ts'
import { pagesOf } from './pages.ts'

export interface CopyDeps {
  readonly client: EtcdClient
  readonly place: EtcdPlace
  readonly clock: Clock
  readonly log: Log
  readonly history: HistoryLimits
}

export interface Copy {
  readonly state: VersionedState
  /** Resolves when the copy shows this revision or a later one. */
  reach(revision: Revision, signal: AbortSignal): Promise<void>
  /** The stream may have died silently: opens another one from where the copy is. */
  reopen(): void
  /** Reads everything again and goes on from there, without a watch telling how far etcd has come. */
  reread(signal: AbortSignal): Promise<void>
  /** Why the copy does not grow, if it does not. */
  problem(): string | undefined
  /** Feeds the copy until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

const loadAttempts = 5
const firstPauseMs = 100
const longestPauseMs = 2_000
/** A value that cannot be read is looked at again after this time: somebody may have mended it. */
const unreadableMs = 2_000

interface Waiter {
  readonly revision: Revision
  readonly resolve: () => void
}

interface Feeding {
  readonly deps: CopyDeps
  readonly state: VersionedState
  readonly waiters: Set<Waiter>
  problem: string | undefined
  stream: AbortController | undefined
  failures: number
}

export async function loadCopy(deps: CopyDeps, signal: AbortSignal): Promise<Copy> {
  const { entries, revision } = await readAll(deps, undefined, signal)
  const state = createVersionedState({ entries, history: [], revision, oldest: revision }, deps.history)
  const feeding: Feeding = { deps, state, waiters: new Set(), problem: undefined, stream: undefined, failures: 0 }
  return {
    state,
    reach: (wanted, until) => reach(feeding, wanted, until),
    reopen: () => feeding.stream?.abort(new EtcdError('unreachable', 'the watch was opened anew')),
    reread: (until) => reread(feeding, until),
    problem: () => feeding.problem,
    run: (until) => run(feeding, until),
  }
}

function reach(feeding: Feeding, revision: Revision, signal: AbortSignal): Promise<void> {
  if (feeding.state.revision() >= revision) return Promise.resolve()
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const onAbort = () => {
      feeding.waiters.delete(waiter)
      reject(signal.reason)
    }
    const waiter: Waiter = {
      revision,
      resolve: () => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      },
    }
    feeding.waiters.add(waiter)
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

function wakeWaiters({ state, waiters }: Feeding): void {
  if (waiters.size === 0) return
  const revision = state.revision()
  for (const waiter of waiters) {
    if (waiter.revision > revision) continue
    waiters.delete(waiter)
    waiter.resolve()
  }
}

async function run(feeding: Feeding, signal: AbortSignal): Promise<void> {
  const { clock, log } = feeding.deps
  while (!signal.aborted) {
    try {
      await follow(feeding, signal)
    } catch (error) {
      if (signal.aborted) return
      feeding.problem = errorText(error)
      if (error instanceof StoreError) await reload(feeding, signal).catch(() => {}) // tried again with the next watch
      if (feeding.failures++ === 0) log.warn('the watch of etcd ended and is opened again', { error: feeding.problem })
    }
    const pauseMs =
      feeding.failures === 0 ? 0 : Math.min(firstPauseMs * 2 ** Math.min(feeding.failures - 1, 8), longestPauseMs)
    await clock.sleep(pauseMs, signal).catch(() => {}) // ended by the signal
  }
}

async function follow(feeding: Feeding, signal: AbortSignal): Promise<void> {
  const { client, place } = feeding.deps
  const stream = new AbortController()
  const end = () => stream.abort(signal.reason)
  signal.addEventListener('abort', end, { once: true })
  feeding.stream = stream
  const startRevision = BigInt(feeding.state.revision() + 1)
  // A change that is larger than a message comes in fragments; it enters as a whole.
  let gathered: Event[] = []
  try {
    for await (const answer of client.watch({ ...watchedRange(place), startRevision, fragment: true }, stream.signal)) {
      if (answer.canceled && answer.compactRevision > 0n) return await reload(feeding, signal)
      if (answer.canceled) throw new EtcdError('failed', `etcd ended our watch: ${answer.cancelReason}`)
      if (answer.created) recovered(feeding)
      if (answer.events.length > 0) gathered.push(...answer.events)
      if (answer.fragment || gathered.length === 0) continue
      enter(feeding, gathered)
      gathered = []
    }
  } finally {
    signal.removeEventListener('abort', end)
    feeding.stream = undefined
  }
}

function recovered(feeding: Feeding): void {
  if (feeding.failures > 0) feeding.deps.log.info('the watch of etcd goes on')
  feeding.failures = 0
  feeding.problem = undefined
}

/** etcd has forgotten what came after the copy: read all of it again. Whoever watches is told so. */
async function reload(feeding: Feeding, signal: AbortSignal): Promise<void> {
  const { deps, state } = feeding
  const { entries, revision } = await readAll(deps, (key) => state.get(key), signal)
  deps.log.warn('etcd has compacted changes that this server had not seen; all objects were read again', { revision })
  state.replace(entries, revision)
  wakeWaiters(feeding)
}

async function reread(feeding: Feeding, signal: AbortSignal): Promise<void> {
  const { deps, state } = feeding
  const { entries, revision } = await readAll(deps, (key) => state.get(key), signal)
  if (state.revision() >= revision) return
  const now = state.list('/', {}).entries
  // Entries that are the same are the very same objects.
  if (now.length === entries.size && now.every((entry) => entries.get(entry.key) === entry)) state.advance(revision)
  else state.replace(entries, revision)
  feeding.stream?.abort(new EtcdError('unreachable', 'everything was read again'))
  wakeWaiters(feeding)
}

function enter(feeding: Feeding, events: readonly Event[]): void {
  const { deps, state } = feeding
  // Within one batch a later change of a key sees the earlier one.
  const staged = new Map<string, Entry | undefined>()
  const changes: Change[] = []
  let last = 0
  for (const { type, kv } of events) {
    if (kv === undefined || Number(kv.modRevision) <= state.revision()) continue
    last = Number(kv.modRevision)
    const key = entryKey(deps.place, kv.key)
    if (key === undefined) continue
    const previous = staged.has(key) ? staged.get(key) : state.get(key)
    const change = type === Event_EventType.DELETE ? removal(key, kv, previous) : written(deps.place, key, kv, previous)
    if (change === undefined) continue
    staged.set(key, change.type === 'removed' ? undefined : change.entry)
    changes.push(change)
  }
  state.commit(changes)
  state.advance(last)
  wakeWaiters(feeding)
}

function removal(key: string, kv: KeyValue, previous: Entry | undefined): Change | undefined {
  if (previous === undefined) return undefined
  const revision = Number(kv.modRevision)
  return { type: 'removed', revision, entry: { ...previous, key, revision, made: undefined }, previous }
}

function written(place: EtcdPlace, key: string, kv: KeyValue, previous: Entry | undefined): Change {
  const entry = entryOf(place, key, kv)
  return { type: previous === undefined ? 'created' : 'updated', revision: entry.revision, entry, previous }
}

export function entryOf(place: EtcdPlace, key: string, kv: KeyValue): Entry {
  try {
    const value = place.layout.decode(key, kv.value)
    return { key, value, revision: Number(kv.modRevision), createRevision: Number(kv.createRevision) }
  } catch (error) {
    const text = `${textOf(kv.key)} in etcd cannot be read (${errorText(error)}): correct or delete it`
    throw new StoreError('unavailable', text, { cause: error })
  }
}

interface Loaded {
  readonly entries: Map<string, Entry>
  readonly revision: Revision
}

/** Everything at one revision, in pages. Compaction may overtake us: then from the beginning. */
async function readAll(
  deps: CopyDeps,
  known: ((key: string) => Entry | undefined) | undefined,
  signal: AbortSignal,
): Promise<Loaded> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await readAt(deps, known, signal)
    } catch (error) {
      if (isEtcdFailure(error, 'compacted') && attempt < loadAttempts) continue
      if (!(error instanceof StoreError) || known === undefined) throw error
      // While serving: nobody is shown a world without this object.
      deps.log.error('an object in etcd cannot be read; this server waits for its correction', { error: error.message })
      await deps.clock.sleep(unreadableMs, signal)
    }
  }
}

async function readAt(
  deps: CopyDeps,
  known: ((key: string) => Entry | undefined) | undefined,
  signal: AbortSignal,
): Promise<Loaded> {
  const { place } = deps
  const entries = new Map<string, Entry>()
  let revision = 0n
  for await (const page of pagesOf(deps, signal)) {
    revision = page.revision
    for (const kv of page.kvs) {
      const entry = entryKey(place, kv.key)
      if (entry === undefined) continue
      const same = known?.(entry)
      entries.set(entry, same?.revision === Number(kv.modRevision) ? same : entryOf(place, entry, kv))
    }
  }
  return { entries, revision: Number(revision) }
}
