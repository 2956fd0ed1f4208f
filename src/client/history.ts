// What was done to a volume, how long did it take, what does it wait for? A bounded, durable record per operation and
// object, readable through the API by whoever asks why (`hawser why`, the console), also from another process.
//
// 1. One Operation object per (actor, operation, key); a repeated operation overwrites its own record.
// 2. Writing never slows the work down: records are coalesced, written one after another at a bounded rate, and the
//    oldest finished ones are dropped first when there are too many. Bad news is written before good news.
// 3. A record that cannot be written is tried again later; history is never a reason to fail.
// 4. What an earlier process left as running or waiting goes away unless it is told again.
import type { OperationRecord } from '../api/generated/types.ts'
import { ignoreNotFound, isAlreadyExists, isConflict, isNotFound } from '../api/status-error.ts'
import type { Clock } from '../clock/clock.ts'
import { createKeyLoop } from '../loop/key-loop.ts'
import type { KeyLoop } from '../loop/key-loop.ts'
import type { Log } from '../telemetry/log.ts'
import type { Client } from './client.ts'
import type { HistoryEntry, HistorySubject, Kept, WaitingEntry } from './history-record.ts'
import {
  continued,
  earlierIdentity,
  identityOf,
  keptAfterEnd,
  keptAfterEntry,
  keptFromEarlier,
  keptWhileWaiting,
  phaseOf,
  recordName,
  recordOf,
} from './history-record.ts'

export type { HistoryEntry, HistorySubject, WaitingEntry } from './history-record.ts'

export interface History extends AsyncDisposable {
  /** Records the state of an operation; the latest one wins. */
  tell(entry: HistoryEntry): void
  /** Records what an object waits for now; an empty list means that it waits no more. */
  waits(subject: HistorySubject, waiting: readonly WaitingEntry[]): void
  /** An operation that failed before no longer does; says nothing about one that did not. */
  recovered(subject: HistorySubject): void
  idle(): Promise<void>
}

export interface HistoryDeps {
  readonly client: Pick<Client, 'get' | 'list' | 'create' | 'update' | 'remove'>
  readonly clock: Clock
  readonly log: Log
  /** Whether records of this actor, written by an earlier process, are ours to take over. */
  owns(actor: string): boolean
  /** All its records are of this node; a node reads no others. */
  readonly node?: string
  readonly limits?: HistoryLimits
}

export interface HistoryLimits {
  readonly records: number
  /** Failures and waits are written this long after their first change. */
  readonly delayMs: number
  /** Successes are written this long after: a quick operation is one write, and a burst is over before its records are written. */
  readonly successDelayMs: number
  /** So many records are written at once, in one commit of the store; then there is a pause. */
  readonly together: number
  readonly paceMs: number
  /** What an earlier process left unfinished is dropped after this time unless it is told again. */
  readonly staleMs: number
}

export const defaultHistoryLimits: HistoryLimits = {
  records: 4_000,
  delayMs: 300,
  successDelayMs: 1_500,
  together: 32,
  paceMs: 160,
  staleMs: 30_000,
}

interface State {
  readonly client: HistoryDeps['client']
  readonly clock: Clock
  readonly limits: HistoryLimits
  /** By identity; the oldest change first. */
  readonly records: Map<string, Kept>
  /** Resource versions of the records in the store, by identity. */
  readonly written: Map<string, string>
  /** Identities of records whose write was begun: each may be in the store, also if no answer came. */
  readonly begun: Set<string>
  /** Identities of records that are to be removed from the store. */
  readonly removing: Set<string>
  /** Identities of records of an earlier process that nobody has spoken of since. */
  readonly adopted: Set<string>
}

export function createHistory(deps: HistoryDeps): History {
  const { client, clock, log, limits = defaultHistoryLimits } = deps
  const sets = { begun: new Set<string>(), removing: new Set<string>(), adopted: new Set<string>() }
  const state: State = { client, clock, limits, records: new Map(), written: new Map(), ...sets }
  const { records, written } = state
  const loop = createKeyLoop<string>({
    name: 'history',
    clock,
    workers: limits.together,
    backoff: { firstMs: 1_000, capMs: 60_000 },
    look: (identity, signal) => writeOrRemove(state, identity, signal),
    onError(identity, error) {
      if (isConflict(error) || isNotFound(error) || isAlreadyExists(error)) written.delete(identity)
      log.debug('history not written', { identity, error })
    },
  })
  const before = (identity: string) => records.get(identity) ?? takeOver(state, identity)
  let staleTimer: Disposable | undefined
  let stopped = false
  const adopted = adopt(deps, state, loop).then(
    (timer) => (stopped ? timer?.[Symbol.dispose]() : void (staleTimer = timer)),
    (error: unknown) => log.debug('earlier history not read', { error }),
  )
  return {
    tell(entry) {
      const identity = identityOf(entry)
      keep(state, loop, identity, keptAfterEntry(entry, before(identity)))
    },
    waits(subject, waiting) {
      const identity = identityOf(subject)
      const known = before(identity)
      if (waiting.length > 0) {
        const kept = keptWhileWaiting(subject, waiting, known, clock.now())
        if (kept) keep(state, loop, identity, kept)
        return
      }
      if (known === undefined || phaseOf(known) !== 'Waiting') return
      // A wait that was never written and is over leaves no record.
      if (!written.has(identity) && known.attempts === 0) return forget(state, loop, identity)
      keep(state, loop, identity, keptAfterEnd(known, clock.now()))
    },
    recovered(subject) {
      const identity = identityOf(subject)
      const known = before(identity)
      if (known === undefined || phaseOf(known) !== 'Failed') return
      keep(state, loop, identity, keptAfterEnd({ ...known, subject }, clock.now()))
    },
    async idle() {
      await adopted
      await loop.idle()
    },
    async [Symbol.asyncDispose]() {
      stopped = true
      staleTimer?.[Symbol.dispose]() // a process that has ended its work must not wait for it
      await loop[Symbol.asyncDispose]()
    },
  }
}

/** What an earlier process told of the same: times and tries go on from there. From now on it is a record of ours. */
function takeOver({ records, written, removing, adopted }: State, identity: string): Kept | undefined {
  if (adopted.size === 0) return undefined
  const earlier = earlierIdentity(recordName(identity))
  if (!adopted.delete(earlier)) return undefined
  const kept = records.get(earlier)
  const version = written.get(earlier)
  records.delete(earlier)
  written.delete(earlier)
  removing.delete(earlier)
  if (kept) records.set(identity, kept)
  if (version !== undefined) written.set(identity, version)
  return kept
}

async function writeOrRemove(state: State, identity: string, signal: AbortSignal): Promise<void> {
  const kept = state.records.get(identity)
  if (state.removing.has(identity)) await remove(state, identity, signal)
  else if (kept) await write(state, identity, kept, signal)
  else return
  await state.clock.sleep(state.limits.paceMs, signal)
}

async function write(state: State, identity: string, kept: Kept, signal: AbortSignal): Promise<void> {
  const { client, records, written, begun, removing } = state
  const record = recordOf(identity, kept)
  // A record of an earlier process about the same operation becomes this one.
  const adoptedAs = earlierIdentity(record.metadata.name ?? '')
  const version = written.get(identity) ?? written.get(adoptedAs)
  if (adoptedAs !== identity) {
    records.delete(adoptedAs)
    written.delete(adoptedAs)
    removing.delete(adoptedAs)
  }
  begun.add(identity)
  written.set(identity, await put(client, record, version, signal))
}

async function remove(
  { client, written, begun, removing }: State,
  identity: string,
  signal: AbortSignal,
): Promise<void> {
  await client.remove('Operation', { name: recordName(identity) }, {}, signal).catch(ignoreNotFound)
  removing.delete(identity)
  written.delete(identity)
  begun.delete(identity)
}

function keep(state: State, loop: KeyLoop<string>, identity: string, kept: Kept): void {
  const { clock, limits, records, removing } = state
  records.delete(identity)
  records.set(identity, kept)
  removing.delete(identity)
  const phase = phaseOf(kept)
  const isGood = phase === 'Succeeded' || phase === 'Running'
  loop.wakeAt(identity, clock.now() + (isGood ? limits.successDelayMs : limits.delayMs))
  trim(state, loop)
}

function forget(state: State, loop: KeyLoop<string>, identity: string): void {
  state.records.delete(identity)
  if (!state.written.has(identity) && !state.begun.has(identity)) return loop.forget(identity)
  state.removing.add(identity)
  loop.wakeAt(identity, state.clock.now() + state.limits.delayMs)
}

function trim(state: State, loop: KeyLoop<string>): void {
  const { records, limits } = state
  // A sixteenth at a time: passing over the unfinished ones for every single record would cost more than keeping it.
  if (records.size <= limits.records + Math.floor(limits.records / 16)) return
  for (const [identity, kept] of records) {
    if (records.size <= limits.records) return
    const phase = phaseOf(kept)
    if (phase === 'Succeeded' || phase === 'Failed') forget(state, loop, identity)
  }
  // Only unfinished records are left: the oldest go all the same, because memory is bounded (rule 2).
  for (const identity of records.keys()) {
    if (records.size <= limits.records) return
    forget(state, loop, identity)
  }
}

/**
 * Records of an earlier process count against the bound. Unfinished ones are removed after a while unless they are told
 * again (rule 4); the timer is returned.
 */
async function adopt(
  { client, clock, owns, node }: HistoryDeps,
  state: State,
  loop: KeyLoop<string>,
): Promise<Disposable | undefined> {
  const { items } = await client.list('Operation', node === undefined ? {} : { fieldSelector: `spec.node=${node}` })
  const unfinished = new Map<string, Kept>()
  // What was told while the list was read goes on from the earlier record, too.
  const told = new Map([...state.records.keys()].map((identity) => [recordName(identity), identity]))
  for (const record of items) {
    const identity = earlierIdentity(record.metadata.name ?? '')
    const kept = owns(record.spec.actor) ? keptFromEarlier(record) : undefined
    if (kept === undefined) continue
    const ours = told.get(record.metadata.name ?? '')
    const [known, ownKept] = ours === undefined ? [] : [ours, state.records.get(ours)]
    if (known !== undefined && ownKept !== undefined) {
      if (!state.written.has(known)) keep(state, loop, known, continued(ownKept, kept))
      continue
    }
    state.adopted.add(identity)
    state.written.set(identity, record.metadata.resourceVersion ?? '')
    state.records.set(identity, kept)
    const phase = phaseOf(kept)
    if (phase === 'Running' || phase === 'Waiting') unfinished.set(identity, kept)
  }
  if (unfinished.size === 0) return undefined
  return clock.at(clock.now() + state.limits.staleMs, () => {
    for (const [identity, kept] of unfinished) {
      if (state.records.get(identity) === kept) forget(state, loop, identity)
    }
  })
}

/** One request: an update of the version we wrote last, or a creation. */
async function put(
  client: HistoryDeps['client'],
  record: OperationRecord,
  resourceVersion: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  const write = async (version: string) => {
    const next = { ...record, metadata: { ...record.metadata, resourceVersion: version } }
    return (await client.update('Operation', next, {}, signal)).metadata.resourceVersion ?? ''
  }
  if (resourceVersion !== undefined) return write(resourceVersion)
  try {
    return (await client.create('Operation', record, {}, signal)).metadata.resourceVersion ?? ''
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    const known = await client.get('Operation', { name: record.metadata.name ?? '' }, signal)
    return write(known.metadata.resourceVersion ?? '')
  }
}
