// What does a record of an operation say, and how does it change when something new is said? Pure functions; history.ts writes
// the records.
import { hash } from 'node:crypto'
import type {
  ObjectReference,
  OperationRecord,
  OperationRecordStatus,
  OperationWaiting,
} from '../api/generated/types.ts'
import { microTimestamp } from '../clock/clock.ts'

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
  /** The socket of a driver. */
  readonly endpoint?: string
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

/** Told often, written seldom: a record is kept as it was told and put into words only when it is written. */
export interface Kept {
  readonly subject: HistorySubject
  readonly told: Told
  readonly attempts: number
  /** When the first of the tries began that have failed one after another; absent while none has. */
  readonly failingSince?: number
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

/** A record after the latest telling about an operation. */
export function keptAfterEntry(entry: HistoryEntry, before: Kept | undefined): Kept {
  const begins = entry.phase === 'Running' && entry.step === undefined
  const succeeded = before !== undefined && phaseOf(before) === 'Succeeded'
  const attempts = Math.max(1, (succeeded ? 0 : (before?.attempts ?? 0)) + (begins ? 1 : 0))
  const failingSince = failingAfter(entry, before)
  return { subject: entry, told: toldAfter(entry, before?.told), attempts, ...present({ failingSince }), since: none }
}

/** Set by the first failure, kept over the tries that follow, gone with the first success. */
function failingAfter(entry: HistoryEntry, before: Kept | undefined): number | undefined {
  if (entry.phase === 'Succeeded') return undefined
  const known = before !== undefined && phaseOf(before) !== 'Succeeded' ? before.failingSince : undefined
  if (known !== undefined || entry.phase === 'Running') return known
  const lastStart =
    before?.told.kind === 'entry' && phaseOf(before) === 'Running' ? before.told.entry.startedAt : undefined
  return Math.min(entry.startedAt, lastStart ?? entry.startedAt)
}

/** A record of what an object waits for; undefined if that is what the record says already. */
export function keptWhileWaiting(
  subject: HistorySubject,
  waiting: readonly WaitingEntry[],
  before: Kept | undefined,
  now: number,
): Kept | undefined {
  const pausedAt = before?.told.kind === 'ended' ? before.told.finishedAt : now
  const known = now - pausedAt < shortPauseMs ? before?.since : undefined
  const listed = waiting.map((entry) => ({ ...entry, since: known?.get(reasonKey(entry)) ?? now }))
  if (before?.told.kind === 'waiting' && sameWaiting(before.told.waiting, listed)) return undefined
  const since = new Map(listed.map((entry) => [reasonKey(entry), entry.since]))
  return { subject, told: { kind: 'waiting', waiting: listed }, attempts: 0, since }
}

/** A record whose failure or wait is over. */
export function keptAfterEnd(before: Kept, now: number): Kept {
  const { failingSince: _over, ...rest } = before
  return { ...rest, told: ended(before.told, now), attempts: 0 }
}

/** A record that an earlier process wrote; undefined where it has no status. */
export function keptFromEarlier({ spec, status }: OperationRecord): Kept | undefined {
  if (!status) return undefined
  const { actor, operation, volume, pod, node, endpoint, objects } = spec
  const subject = { actor, operation, key: '', ...present({ volume, pod, node, endpoint, objects }) }
  // A try that was cut off by the end of its process has not succeeded either.
  const failing = status.failingSince ?? (status.phase === 'Running' ? status.startedAt : undefined)
  const failingSince = failing === undefined ? undefined : Date.parse(failing)
  const kept = { subject, told: { kind: 'adopted' as const, status }, attempts: status.attempts ?? 0 }
  const since = new Map((status.waiting ?? []).map((each) => [reasonKey(each), Date.parse(each.since ?? '')]))
  return { ...kept, ...present({ failingSince }), since }
}

/** A record as it would be if `earlier` had been known when it was told. */
export function continued(kept: Kept, earlier: Kept): Kept {
  if (kept.told.kind === 'entry') return keptAfterEntry(kept.told.entry, earlier)
  if (kept.told.kind !== 'waiting') return kept
  const waiting = kept.told.waiting.map((entry) => ({
    ...entry,
    since: earlier.since.get(reasonKey(entry)) ?? entry.since,
  }))
  return {
    ...kept,
    told: { kind: 'waiting', waiting },
    since: new Map(waiting.map((each) => [reasonKey(each), each.since])),
  }
}

const separator = '\n'
const earlier = 'earlier:'
/** A wait that goes on after a pause shorter than this keeps its beginning. */
const shortPauseMs = 600_000
const none: ReadonlyMap<string, number> = new Map()

/** Only the digest of an identity is stored: a record of an earlier process goes by its name until the same is told again. */
export const earlierIdentity = (recordName: string) => `${earlier}${recordName}`

export const identityOf = ({ actor, operation, key }: HistorySubject) => [operation, actor, key].join(separator)

/** Stable over restarts, so that a record is found again and not doubled. */
export function recordName(identity: string): string {
  if (identity.startsWith(earlier)) return identity.slice(earlier.length)
  const digest = hash('sha256', identity).slice(0, 24)
  const word = identity.slice(0, identity.indexOf(separator)).toLowerCase()
  return `${word.replaceAll(/[^a-z0-9]+/g, '-').slice(0, 30)}-${digest}`
}

export function recordOf(identity: string, kept: Kept): OperationRecord {
  const { actor, operation, volume, pod, node, endpoint, objects } = kept.subject
  return {
    apiVersion: 'hawser.dev/v1',
    kind: 'Operation',
    metadata: { name: recordName(identity) },
    spec: { actor, operation, ...present({ volume, pod, node, endpoint, objects }) },
    status: statusOf(kept),
  }
}

export function phaseOf({ told }: Kept): OperationRecordStatus['phase'] {
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
  const last = lastOf(before)
  const step = entry.step ?? (entry.phase === 'Failed' ? last?.step : undefined)
  const error = entry.error ?? (entry.phase === 'Running' ? last?.error : undefined)
  return { kind: 'entry', entry, ...present({ step, error }) }
}

/** What an operation said before it was tried again, unless it had succeeded. */
function lastOf(before: Told | undefined): { readonly step?: string; readonly error?: HistoryEntry['error'] } {
  if (before?.kind === 'entry' && before.entry.phase !== 'Succeeded')
    return present({ step: stepOf(before), error: before.error })
  if (before?.kind !== 'adopted' || before.status.phase === 'Succeeded') return {}
  return present({ step: before.status.step, error: before.status.error })
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

function statusOf({ told, attempts, failingSince }: Kept): OperationRecordStatus {
  const at = (time: number | undefined) => (time === undefined ? undefined : microTimestamp(time))
  switch (told.kind) {
    case 'entry': {
      const { phase, startedAt, finishedAt, nextTry } = told.entry
      const times = {
        startedAt: at(startedAt),
        failingSince: at(failingSince),
        finishedAt: at(finishedAt),
        nextTry: at(nextTry),
      }
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

function waitingOf({ reason, since, message, pod, node, until }: WaitingEntry & { since: number }): OperationWaiting {
  const time = until === undefined ? undefined : microTimestamp(until)
  return { reason, since: microTimestamp(since), ...present({ message, pod, node, until: time }) }
}

const reasonKey = ({ reason, pod, node }: Pick<OperationWaiting, 'reason' | 'pod' | 'node'>) =>
  `${reason} ${pod ?? ''} ${node ?? ''}`

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
