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
  /** Asked when the record is written, if no step was told. */
  readonly stepNow?: () => string | undefined
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
  /** So many records are written side by side, in one commit of the store; then there is a rest. */
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

/** Told often, written seldom: a record is kept as it was told and put into words only when it is written. */
interface Kept {
  readonly subject: HistorySubject
  readonly told: Told
  readonly attempts: number
  /** Since when each reason to wait holds, kept over short pauses between two tries. */
  readonly since: ReadonlyMap<string, number>
}

type Told =
  | {
      readonly kind: 'entry'
      readonly entry: HistoryEntry
      readonly step?: string
      readonly error?: HistoryEntry['error']
    }
  | { readonly kind: 'waiting'; readonly waiting: readonly (WaitingEntry & { readonly since: number })[] }
  | { readonly kind: 'ended'; readonly startedAt?: number; readonly finishedAt: number; readonly step?: string }
  /** By an earlier process; its words stay as they are. */
  | { readonly kind: 'adopted'; readonly status: OperationRecordStatus }

export function createHistory(deps: HistoryDeps): History {
  const { client, clock, log, limits = defaultHistoryLimits } = deps
  const records = new Map<string, Kept>() // by identity; oldest change first
  const written = new Map<string, string>() // identity → resourceVersion
  const gone = new Set<string>()

  const loop = createKeyLoop<string>({
    name: 'history',
    clock,
    workers: limits.together,
    backoff: { firstMs: 1_000, capMs: 60_000 },
    async look(identity, signal) {
      const kept = records.get(identity)
      if (gone.has(identity)) await drop(identity, signal)
      else if (kept) await write(identity, kept, signal)
      else return
      await clock.sleep(limits.paceMs, signal)
    },
    onError(identity, error) {
      if (isConflict(error) || isNotFound(error) || isAlreadyExists(error)) written.delete(identity)
      log.debug('history not written', { identity, error })
    },
  })
  const write = async (identity: string, kept: Kept, signal: AbortSignal) => {
    const record = recordOf(identity, kept)
    // An earlier process told the same story: its record becomes this one.
    const adoptedAs = `${earlier}${record.metadata.name}`
    const version = written.get(identity) ?? written.get(adoptedAs)
    if (adoptedAs !== identity) {
      records.delete(adoptedAs)
      written.delete(adoptedAs)
      gone.delete(adoptedAs)
    }
    written.set(identity, await put(client, record, version, signal))
  }
  const drop = async (identity: string, signal: AbortSignal) => {
    await client.remove('Operation', { name: recordName(identity) }, {}, signal).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
    gone.delete(identity)
    written.delete(identity)
  }
  const forget = (identity: string) => {
    records.delete(identity)
    if (written.has(identity)) {
      gone.add(identity)
      loop.wakeAt(identity, clock.now() + limits.delayMs)
    } else loop.forget(identity)
  }
  const keep = (identity: string, kept: Kept) => {
    records.delete(identity)
    records.set(identity, kept)
    gone.delete(identity)
    const phase = phaseOf(kept.told)
    const isGood = phase === 'Succeeded' || phase === 'Running'
    loop.wakeAt(identity, clock.now() + (isGood ? limits.successDelayMs : limits.delayMs))
    trim()
  }
  const trim = () => {
    // Some at a time: passing over the unfinished ones for every single record would cost more than keeping it.
    if (records.size <= limits.records + Math.floor(limits.records / 16)) return
    for (const [identity, { told }] of records) {
      if (records.size <= limits.records) return
      const phase = phaseOf(told)
      if (phase === 'Succeeded' || phase === 'Failed') forget(identity)
    }
    // Nothing but unfinished stories: the oldest go all the same, for memory is bounded (rule 2).
    for (const identity of records.keys()) {
      if (records.size <= limits.records) return
      forget(identity)
    }
  }
  let lastChance: Disposable | undefined
  let stopped = false
  const adopted = adopt(deps, limits, { records, written, forget }).then(
    (timer) => (stopped ? timer?.[Symbol.dispose]() : void (lastChance = timer)),
    (error: unknown) => log.debug('earlier history not read', { error }),
  )
  return {
    tell(entry) {
      const identity = identityOf(entry)
      const before = records.get(identity)
      const begins = entry.phase === 'Running' && entry.step === undefined
      const succeeded = before !== undefined && phaseOf(before.told) === 'Succeeded'
      const attempts = Math.max(1, (succeeded ? 0 : (before?.attempts ?? 0)) + (begins ? 1 : 0))
      keep(identity, { subject: entry, told: toldAfter(entry, before?.told), attempts, since: none })
    },
    waits(subject, waiting) {
      const identity = identityOf(subject)
      const before = records.get(identity)
      if (waiting.length === 0) {
        if (before === undefined || phaseOf(before.told) !== 'Waiting') return
        // A wait so short that nobody has read of it leaves no trace.
        if (!written.has(identity) && before.attempts === 0) return forget(identity)
        return keep(identity, { ...before, told: ended(before.told, clock.now()), attempts: 0 })
      }
      const now = clock.now()
      const pausedAt = before?.told.kind === 'ended' ? before.told.finishedAt : now
      const known = now - pausedAt < shortPauseMs ? before?.since : undefined
      const listed = waiting.map((entry) => ({ ...entry, since: known?.get(reasonKey(entry)) ?? now }))
      if (before?.told.kind === 'waiting' && sameWaiting(before.told.waiting, listed)) return
      const since = new Map(listed.map((entry) => [reasonKey(entry), entry.since]))
      keep(identity, { subject, told: { kind: 'waiting', waiting: listed }, attempts: 0, since })
    },
    recovered(subject) {
      const identity = identityOf(subject)
      const before = records.get(identity)
      if (before === undefined || phaseOf(before.told) !== 'Failed') return
      keep(identity, { ...before, told: ended(before.told, clock.now()), attempts: 0 })
    },
    async idle() {
      await adopted
      await loop.idle()
    },
    async [Symbol.asyncDispose]() {
      stopped = true
      lastChance?.[Symbol.dispose]() // or a process that is done would live on until it comes
      await loop[Symbol.asyncDispose]()
    },
  }
}

/** Rule 4: records of an earlier life count against the bound, and those without an end are given a last chance. */
async function adopt(
  { client, clock, owns }: HistoryDeps,
  limits: HistoryLimits,
  state: {
    readonly records: Map<string, Kept>
    readonly written: Map<string, string>
    forget(identity: string): void
  },
): Promise<Disposable | undefined> {
  const { items } = await client.list('Operation')
  const unfinished = new Map<string, Kept>()
  for (const { metadata, spec, status } of items) {
    // Only the digest of an identity is stored; when the same story is told again, the two are joined (createHistory).
    const identity = `${earlier}${metadata.name ?? ''}`
    if (!status || !owns(spec.actor)) continue
    const { actor, operation, volume, pod, node, objects } = spec
    const subject = { actor, operation, key: '', ...present({ volume, pod, node, objects }) }
    const kept: Kept = { subject, told: { kind: 'adopted', status }, attempts: status.attempts ?? 0, since: none }
    state.written.set(identity, metadata.resourceVersion ?? '')
    state.records.set(identity, kept)
    if (status.phase === 'Running' || status.phase === 'Waiting') unfinished.set(identity, kept)
  }
  if (unfinished.size === 0) return undefined
  return clock.at(clock.now() + limits.staleMs, () => {
    for (const [identity, kept] of unfinished) if (state.records.get(identity) === kept) state.forget(identity)
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

const separator = '\n'
const earlier = 'earlier:'
const none: ReadonlyMap<string, number> = new Map()

const identityOf = ({ actor, operation, key }: HistorySubject) => [operation, actor, key].join(separator)

/** Stable over restarts, so that a record is found again and not doubled. */
function recordName(identity: string): string {
  if (identity.startsWith(earlier)) return identity.slice(earlier.length)
  const digest = hash('sha256', identity).slice(0, 24)
  const word = identity.slice(0, identity.indexOf(separator)).toLowerCase()
  return `${word.replaceAll(/[^a-z0-9]+/g, '-').slice(0, 30)}-${digest}`
}

function recordOf(identity: string, kept: Kept): OperationRecord {
  const { actor, operation, volume, pod, node, objects } = kept.subject
  return {
    apiVersion: 'hawser.dev/v1',
    kind: 'Operation',
    metadata: { name: recordName(identity) },
    spec: { actor, operation, ...present({ volume, pod, node, objects }) },
    status: statusOf(kept),
  }
}

function phaseOf(told: Told): OperationRecordStatus['phase'] {
  switch (told.kind) {
    case 'entry':
      return told.entry.phase
    case 'waiting':
      return 'Waiting'
    case 'ended':
      return 'Succeeded'
    case 'adopted':
      return told.status.phase
    default:
      return told satisfies never
  }
}

/** While it is tried again the last error stays readable: most of the time of a failing operation is trying. */
function toldAfter(entry: HistoryEntry, before: Told | undefined): Told {
  const last = before?.kind === 'entry' && before.entry.phase !== 'Succeeded' ? before : undefined
  const step = entry.step ?? (entry.phase === 'Failed' && last ? stepOf(last) : undefined)
  const error = entry.error ?? (entry.phase === 'Running' ? last?.error : undefined)
  return { kind: 'entry', entry, ...present({ step, error }) }
}

const stepOf = ({ step, entry }: Extract<Told, { kind: 'entry' }>) => step ?? entry.stepNow?.()

function ended(told: Told, now: number): Told {
  switch (told.kind) {
    case 'entry':
      return { kind: 'ended', startedAt: told.entry.startedAt, finishedAt: now, ...present({ step: stepOf(told) }) }
    case 'waiting':
      return { kind: 'ended', startedAt: Math.min(...told.waiting.map(({ since }) => since)), finishedAt: now }
    case 'ended':
    case 'adopted':
      return { kind: 'ended', finishedAt: now }
    default:
      return told satisfies never
  }
}

function statusOf({ told, attempts }: Kept): OperationRecordStatus {
  const at = (time: number | undefined) => (time === undefined ? undefined : microTimestamp(time))
  switch (told.kind) {
    case 'entry': {
      const { phase, startedAt, finishedAt, nextTry } = told.entry
      const times = { startedAt: at(startedAt), finishedAt: at(finishedAt), nextTry: at(nextTry) }
      return { phase, ...present({ ...times, step: stepOf(told), error: told.error }), attempts }
    }
    case 'waiting': {
      const waiting = told.waiting.map(waitingOf)
      return {
        phase: 'Waiting',
        startedAt: microTimestamp(Math.min(...told.waiting.map(({ since }) => since))),
        waiting,
      }
    }
    case 'ended': {
      const times = { startedAt: at(told.startedAt), finishedAt: at(told.finishedAt) }
      return { phase: 'Succeeded', ...present({ ...times, step: told.step }) }
    }
    case 'adopted':
      return told.status
    default:
      return told satisfies never
  }
}

const shortPauseMs = 600_000

function waitingOf({ reason, since, message, pod, node, until }: WaitingEntry & { since: number }): OperationWaiting {
  const time = until === undefined ? undefined : microTimestamp(until)
  return { reason, since: microTimestamp(since), ...present({ message, pod, node, until: time }) }
}

const reasonKey = ({ reason, pod, node }: WaitingEntry) => `${reason} ${pod ?? ''} ${node ?? ''}`

function sameWaiting(before: readonly WaitingEntry[], after: readonly WaitingEntry[]): boolean {
  return (
    before.length === after.length &&
    before.every((one, index) => {
      const other = after[index]!
      return reasonKey(one) === reasonKey(other) && one.message === other.message && one.until === other.until
    })
  )
}

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function present<T extends object>(fields: T): Present<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Present<T>
}
