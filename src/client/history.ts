// What was done to a volume, how long did it take, what does it wait for? A bounded, durable record per operation and
// object, readable through the API by whoever asks why (`hawser why`, the console), also from another process.
//
// 1. One Operation object per (actor, operation, key); a repeated operation overwrites its own record.
// 2. Writing never slows the work down: records are coalesced, written one after another at a bounded rate, and the
//    oldest finished ones are dropped first when there are too many. Bad news is written before good news.
// 3. A record that cannot be written is tried again later; history is never a reason to fail.
// 4. What an earlier process left as running or waiting goes away unless it is told again.
import { hash } from 'node:crypto'
import type { ObjectReference, OperationRecord, OperationRecordStatus, OperationWaiting } from '../api/types.ts'
import { isAlreadyExists, isConflict, isNotFound } from '../api/status-error.ts'
import type { Clock } from '../clock/clock.ts'
import { microTimestamp } from '../clock/clock.ts'
import { createKeyLoop } from '../loop/key-loop.ts'
import type { Log } from '../telemetry/log.ts'
import type { Client } from './client.ts'

export interface History extends AsyncDisposable {
  /** Tells how an operation goes on; the latest telling wins. */
  tell(entry: HistoryEntry): void
  /** Tells what an object waits for now; an empty list means it waits no more. */
  waits(subject: HistorySubject, waiting: readonly WaitingEntry[]): void
  /** An operation that failed before no longer does; says nothing about one that did not. */
  recovered(subject: HistorySubject): void
  idle(): Promise<void>
}

export interface HistorySubject {
  /** Who speaks: 'binding', 'attachment', 'node a', 'csi-provisioner example.com', … */
  readonly actor: string
  /** 'volume_mount', 'bind', 'provision', … */
  readonly operation: string
  /** Together with actor and operation the identity of the record. */
  readonly key: string
  readonly volume?: string
  readonly pod?: string
  readonly node?: string
  readonly objects?: readonly ObjectReference[]
}

export interface HistoryEntry extends HistorySubject {
  readonly phase: 'Running' | 'Succeeded' | 'Failed'
  readonly step?: string
  readonly startedAt: number
  readonly finishedAt?: number
  readonly error?: { readonly code?: string; readonly message: string; readonly effect?: string }
  readonly nextTry?: number
}

export interface WaitingEntry {
  readonly reason: string
  readonly message?: string
  readonly pod?: string
  readonly node?: string
  readonly until?: number
}

export interface HistoryDeps {
  readonly client: Pick<Client, 'get' | 'list' | 'create' | 'update' | 'remove'>
  readonly clock: Clock
  readonly log: Log
  /** Whose records of an earlier life are ours to take over. */
  owns(actor: string): boolean
  readonly limits?: HistoryLimits
}

export interface HistoryLimits {
  readonly records: number
  /** Failures and waits are written this long after their first change. */
  readonly delayMs: number
  /** So are successes: quick operations are one write, and bursts are over before their stories are written. */
  readonly successDelayMs: number
  /** Rest between two writes. */
  readonly paceMs: number
  /** What an earlier process left unfinished is dropped after this time unless it is told again. */
  readonly staleMs: number
}

export const defaultHistoryLimits: HistoryLimits = {
  records: 4_000,
  delayMs: 300,
  successDelayMs: 1_500,
  paceMs: 20,
  staleMs: 30_000,
}

interface Kept {
  readonly subject: HistorySubject
  readonly status: OperationRecordStatus
  readonly attempts: number
  /** Since when each reason to wait holds, kept over short pauses between two tries. */
  readonly since: ReadonlyMap<string, string>
}

export function createHistory(deps: HistoryDeps): History {
  const { client, clock, log, limits = defaultHistoryLimits } = deps
  const records = new Map<string, Kept>() // oldest change first
  const written = new Map<string, string>() // name → resourceVersion
  const gone = new Set<string>()

  const loop = createKeyLoop<string>({
    name: 'history',
    clock,
    workers: 1,
    backoff: { firstMs: 1_000, capMs: 60_000 },
    async look(name, signal) {
      const kept = records.get(name)
      if (gone.has(name)) await drop(name, signal)
      else if (kept) written.set(name, await put(client, recordOf(name, kept), written.get(name), signal))
      else return
      await clock.sleep(limits.paceMs, signal)
    },
    onError(name, error) {
      if (isConflict(error) || isNotFound(error) || isAlreadyExists(error)) written.delete(name)
      log.debug('history not written', { name, error })
    },
  })
  const drop = async (name: string, signal: AbortSignal) => {
    await client.remove('Operation', { name }, {}, signal).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
    gone.delete(name)
    written.delete(name)
  }
  const forget = (name: string) => {
    records.delete(name)
    if (written.has(name)) {
      gone.add(name)
      loop.wakeAt(name, clock.now() + limits.delayMs)
    } else loop.forget(name)
  }
  const keep = (name: string, kept: Kept) => {
    records.delete(name)
    records.set(name, kept)
    gone.delete(name)
    const isGood = kept.status.phase === 'Succeeded' || kept.status.phase === 'Running'
    loop.wakeAt(name, clock.now() + (isGood ? limits.successDelayMs : limits.delayMs))
    trim()
  }
  const trim = () => {
    if (records.size <= limits.records) return
    for (const [name, { status }] of records) {
      if (records.size <= limits.records) return
      if (status.phase === 'Succeeded' || status.phase === 'Failed') forget(name)
    }
    // Nothing but unfinished stories: the oldest go all the same, for memory is bounded (rule 2).
    for (const name of records.keys()) {
      if (records.size <= limits.records) return
      forget(name)
    }
  }
  const adopted = adopt(deps, limits, { records, written, forget }).catch((error: unknown) =>
    log.debug('earlier history not read', { error }),
  )
  return {
    tell(entry) {
      const name = recordName(entry)
      const before = records.get(name)
      const begins = entry.phase === 'Running' && entry.step === undefined
      const earlier = before?.status.phase === 'Succeeded' ? 0 : (before?.attempts ?? 0)
      const attempts = Math.max(1, earlier + (begins ? 1 : 0))
      keep(name, { subject: entry, status: statusOf(entry, attempts, before), attempts, since: new Map() })
    },
    waits(subject, waiting) {
      const name = recordName(subject)
      const before = records.get(name)
      if (waiting.length === 0) {
        if (before === undefined || before.status.phase !== 'Waiting') return
        // A wait so short that nobody has read of it leaves no trace.
        if (!written.has(name) && before.attempts === 0) return forget(name)
        const status = ended(before, clock.now())
        return keep(name, { ...before, status, attempts: 0 })
      }
      const listed = waiting.map((entry) => waitingOf(entry, before, clock.now()))
      const same = before?.status.phase === 'Waiting' && sameWaiting(before.status.waiting ?? [], listed)
      if (same) return
      const since = new Map(listed.map((entry) => [reasonKey(entry), entry.since ?? '']))
      const startedAt = listed.map((entry) => entry.since ?? '').toSorted()[0]!
      keep(name, { subject, status: { phase: 'Waiting', startedAt, waiting: listed }, attempts: 0, since })
    },
    recovered(subject) {
      const name = recordName(subject)
      const before = records.get(name)
      if (before?.status.phase !== 'Failed') return
      keep(name, { ...before, status: ended(before, clock.now()), attempts: 0 })
    },
    async idle() {
      await adopted
      await loop.idle()
    },
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  }
}

/** Rule 4: records of an earlier life count against the bound, and those without an end are given a last chance. */
async function adopt(
  { client, clock, owns }: HistoryDeps,
  limits: HistoryLimits,
  state: {
    readonly records: Map<string, Kept>
    readonly written: Map<string, string>
    forget(name: string): void
  },
): Promise<void> {
  const { items } = await client.list('Operation')
  const adoptedAt = new Map<string, Kept>()
  for (const { metadata, spec, status } of items) {
    const name = metadata.name ?? ''
    if (!status || !owns(spec.actor)) continue
    if (!state.written.has(name)) state.written.set(name, metadata.resourceVersion ?? '')
    if (state.records.has(name)) continue
    const { actor, operation, volume, pod, node, objects } = spec
    const subject = { actor, operation, key: '', ...present({ volume, pod, node, objects }) }
    const kept: Kept = { subject, status, attempts: status.attempts ?? 0, since: new Map() }
    state.records.set(name, kept)
    if (status.phase === 'Running' || status.phase === 'Waiting') adoptedAt.set(name, kept)
  }
  if (adoptedAt.size === 0) return
  clock.at(clock.now() + limits.staleMs, () => {
    for (const [name, kept] of adoptedAt) if (state.records.get(name) === kept) state.forget(name)
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

/** Stable over restarts, so that a record is found again and not doubled. */
export function recordName({ actor, operation, key }: HistorySubject): string {
  const digest = hash('sha256', JSON.stringify([actor, operation, key])).slice(0, 24)
  return `${operation
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 30)}-${digest}`
}

function recordOf(name: string, { subject, status }: Kept): OperationRecord {
  const { actor, operation, volume, pod, node, objects } = subject
  return {
    apiVersion: 'hawser.dev/v1',
    kind: 'Operation',
    metadata: { name },
    spec: { actor, operation, ...present({ volume, pod, node, objects }) },
    status,
  }
}

function statusOf(entry: HistoryEntry, attempts: number, before: Kept | undefined): OperationRecordStatus {
  // While it is tried again, the last error stays readable: most of the time of a failing operation is trying.
  const lastError = entry.phase === 'Running' ? before?.status.error : undefined
  return {
    phase: entry.phase,
    startedAt: microTimestamp(entry.startedAt),
    ...present({
      step: entry.step ?? (entry.phase === 'Failed' ? before?.status.step : undefined),
      finishedAt: entry.finishedAt === undefined ? undefined : microTimestamp(entry.finishedAt),
      error: entry.error ?? (before?.status.phase === 'Succeeded' ? undefined : lastError),
      nextTry: entry.nextTry === undefined ? undefined : microTimestamp(entry.nextTry),
    }),
    attempts,
  }
}

function ended({ status }: Kept, now: number): OperationRecordStatus {
  return {
    phase: 'Succeeded',
    finishedAt: microTimestamp(now),
    ...present({ startedAt: status.startedAt, step: status.step, attempts: status.attempts }),
  }
}

const shortPauseMs = 600_000

/** A reason that was there before keeps the time since which it holds, also when a try in between made it pause. */
function waitingOf(entry: WaitingEntry, before: Kept | undefined, now: number): OperationWaiting {
  const pausedAt = before?.status.finishedAt
  const isFresh = pausedAt === undefined || now - Date.parse(pausedAt) < shortPauseMs
  const known = isFresh ? before?.since.get(reasonKey(entry)) : undefined
  return {
    reason: entry.reason,
    since: known ?? microTimestamp(now),
    ...present({
      message: entry.message,
      pod: entry.pod,
      node: entry.node,
      until: entry.until === undefined ? undefined : microTimestamp(entry.until),
    }),
  }
}

const reasonKey = ({ reason, pod, node }: { reason: string; pod?: string; node?: string }) =>
  `${reason} ${pod ?? ''} ${node ?? ''}`

function sameWaiting(before: readonly OperationWaiting[], after: readonly OperationWaiting[]): boolean {
  return JSON.stringify(before) === JSON.stringify(after)
}

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function present<T extends object>(fields: T): Present<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Present<T>
}
