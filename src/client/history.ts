// What was done to a volume, how long did it take, what does it wait for? A bounded, durable record per operation and
// object, readable through the API by whoever asks why (`hawser why`, the console), also from another process.
//
// 1. One Operation object per (actor, operation, key); a repeated operation overwrites its own record.
// 2. Writing never slows the work down: records are coalesced, written one after another at a bounded rate, and the
//    oldest finished ones are dropped first when there are too many.
// 3. A record that cannot be written is tried again later; history is never a reason to fail.
import { createHash } from 'node:crypto'
import type { ObjectReference, OperationRecord, OperationRecordStatus, OperationWaiting } from '../api/types.ts'
import { isNotFound } from '../api/status-error.ts'
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
  idle(): Promise<void>
}

export interface HistorySubject {
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
  readonly client: Client
  readonly clock: Clock
  readonly log: Log
  /** Who speaks: 'binding', 'attachment', 'node a', 'csi-provisioner', … */
  readonly actor: string
  readonly limits?: HistoryLimits
}

export interface HistoryLimits {
  /** Records kept per actor. */
  readonly records: number
  /** A record is written this long after its first change, so that quick operations are one write. */
  readonly delayMs: number
  /** Rest between two writes. */
  readonly paceMs: number
}

export const defaultHistoryLimits: HistoryLimits = { records: 2_000, delayMs: 300, paceMs: 25 }

interface Kept {
  readonly subject: HistorySubject
  readonly status: OperationRecordStatus
  attempts: number
  written: boolean
}

export function createHistory({ client, clock, log, actor, limits = defaultHistoryLimits }: HistoryDeps): History {
  const records = new Map<string, Kept>() // oldest change first
  const gone = new Set<string>()

  const loop = createKeyLoop<string>({
    name: `history of ${actor}`,
    clock,
    workers: 1,
    backoff: { firstMs: 1_000, capMs: 60_000 },
    async look(name, signal) {
      if (gone.has(name)) await drop(name)
      else await write(name)
      await clock.sleep(limits.paceMs, signal)
    },
    onError: (name, error) => log.debug('history not written', { name, error }),
  })
  const write = async (name: string) => {
    const kept = records.get(name)
    if (!kept) return
    const { operation, volume, pod, node, objects } = kept.subject
    const record: OperationRecord = {
      apiVersion: 'hawser.dev/v1',
      kind: 'Operation',
      metadata: { name },
      spec: { actor, operation, ...present({ volume, pod, node, objects }) },
      status: kept.status,
    }
    kept.written = true
    await put(client, record)
  }
  const drop = async (name: string) => {
    gone.delete(name)
    await client.remove('Operation', { name }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
  }
  const keep = (subject: HistorySubject, change: (before: Kept | undefined) => Kept) => {
    const name = recordName(actor, subject)
    const before = records.get(name)
    const after = change(before)
    records.delete(name)
    records.set(name, after)
    gone.delete(name)
    loop.wakeAt(name, clock.now() + limits.delayMs)
    trim()
  }
  const trim = () => {
    for (const [name, { status, written }] of records) {
      if (records.size <= limits.records) return
      if (status.phase === 'Running' || status.phase === 'Waiting') continue
      records.delete(name)
      if (written) {
        gone.add(name)
        loop.wake(name)
      } else loop.forget(name)
    }
  }
  return {
    tell(entry) {
      keep(entry, (before) => {
        const attempts =
          (before?.status.phase === 'Succeeded' ? 0 : (before?.attempts ?? 0)) +
          (entry.phase === 'Running' && !entry.step ? 1 : 0)
        return { subject: entry, status: statusOf(entry, attempts), attempts, written: before?.written ?? false }
      })
    },
    waits(subject, waiting) {
      const name = recordName(actor, subject)
      const before = records.get(name)
      if (waiting.length === 0 && before?.status.phase !== 'Waiting') return
      const listed = waiting.map((entry) => waitingOf(entry, before, clock.now()))
      if (before && JSON.stringify(before.status.waiting) === JSON.stringify(listed)) return
      keep(subject, () => ({
        subject,
        status:
          waiting.length === 0
            ? {
                phase: 'Succeeded',
                finishedAt: microTimestamp(clock.now()),
                ...present({ startedAt: before?.status.startedAt }),
              }
            : { phase: 'Waiting', startedAt: before?.status.startedAt ?? microTimestamp(clock.now()), waiting: listed },
        attempts: before?.attempts ?? 0,
        written: before?.written ?? false,
      }))
    },
    idle: () => loop.idle(),
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  }
}

async function put(client: Client, record: OperationRecord): Promise<void> {
  const ref = { name: record.metadata.name ?? '' }
  try {
    // The status is replaced as a whole: a merge would leave the error of an earlier try behind.
    const { resourceVersion } = (await client.get('Operation', ref)).metadata
    const next = { ...record, metadata: { ...record.metadata, ...present({ resourceVersion }) } }
    await client.update('Operation', next, { subresource: 'status' })
  } catch (error) {
    if (!isNotFound(error)) throw error
    const created = await client.create('Operation', record)
    if (created.status === undefined)
      await client.update('Operation', { ...created, ...present({ status: record.status }) }, { subresource: 'status' })
  }
}

/** Stable over restarts, so that a record is found again and not doubled. */
export function recordName(actor: string, { operation, key }: HistorySubject): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([actor, operation, key]))
    .digest('hex')
    .slice(0, 24)
  return `${operation
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 30)}-${digest}`
}

function statusOf(entry: HistoryEntry, attempts: number): OperationRecordStatus {
  return {
    phase: entry.phase,
    startedAt: microTimestamp(entry.startedAt),
    ...present({
      step: entry.step,
      finishedAt: entry.finishedAt === undefined ? undefined : microTimestamp(entry.finishedAt),
      error: entry.error,
      nextTry: entry.nextTry === undefined ? undefined : microTimestamp(entry.nextTry),
    }),
    attempts,
  }
}

/** A reason that was there before keeps the time since which it holds. */
function waitingOf(entry: WaitingEntry, before: Kept | undefined, now: number): OperationWaiting {
  const same = before?.status.waiting?.find(
    (other) => other.reason === entry.reason && other.pod === entry.pod && other.node === entry.node,
  )
  return {
    reason: entry.reason,
    since: same?.since ?? microTimestamp(now),
    ...present({
      message: entry.message,
      pod: entry.pod,
      node: entry.node,
      until: entry.until === undefined ? undefined : microTimestamp(entry.until),
    }),
  }
}

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function present<T extends object>(fields: T): Present<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Present<T>
}
