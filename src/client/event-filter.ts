// Which events are written, and under which message? The figures every Kubernetes component uses: a limited number of
// events per object, and similar messages combined once there are many.
import type { Clock } from '../clock/clock.ts'

export interface EventFilter {
  /** Undefined when the object has had too many events. Calls about the same object and reason with one identity are one Event. */
  accept(about: EventGroup, message: string): FiledMessage | undefined
}

interface EventGroup {
  /** The object, in words. */
  readonly subject: string
  readonly type: string
  readonly reason: string
}

interface FiledMessage {
  readonly identity: string
  readonly message: string
}

/** client-go's figures: at most ten different messages of one reason in ten minutes, then they are combined. */
const similarLimit = 10
const similarWindowMs = 600_000
/** A bucket of 25 events per object and component, one more every five minutes. */
const burst = 25
const refillMs = 300_000

interface Similar {
  readonly messages: Set<string>
  last: number
}

interface Bucket {
  tokens: number
  last: number
}

export function createEventFilter(clock: Clock): EventFilter {
  const similar = createRecent<Similar>()
  const buckets = createRecent<Bucket>()
  return {
    accept({ subject, type, reason }, message) {
      const now = clock.steady()
      const group = [subject, type, reason].join(' ')
      const filed = file(
        similar.getOr(group, () => ({ messages: new Set(), last: now })),
        group,
        message,
        now,
      )
      const bucket = buckets.getOr(subject, () => ({ tokens: burst, last: now }))
      return takeToken(bucket, now) ? filed : undefined
    },
  }
}

/** The message under which this is filed: its own, or the common one once there were too many. */
function file(record: Similar, group: string, message: string, now: number): FiledMessage {
  if (now - record.last > similarWindowMs) record.messages.clear()
  record.last = now
  if (!record.messages.has(message) && record.messages.size >= similarLimit - 1)
    return { identity: group, message: `(combined from similar events): ${message}` }
  record.messages.add(message)
  return { identity: `${group} ${message}`, message }
}

function takeToken(bucket: Bucket, now: number): boolean {
  const tokens = Math.min(burst, bucket.tokens + (now - bucket.last) / refillMs)
  bucket.last = now
  bucket.tokens = tokens >= 1 ? tokens - 1 : tokens
  return tokens >= 1
}

const remembered = 4_096

export interface Recent<T> {
  get(key: string): T | undefined
  set(key: string, value: T): void
  getOr(key: string, make: () => T): T
}

/** Keeps the most recently used entries and drops the oldest. */
export function createRecent<T>(): Recent<T> {
  const entries = new Map<string, T>()
  const set = (key: string, value: T) => {
    entries.delete(key)
    entries.set(key, value)
    if (entries.size > remembered) entries.delete(entries.keys().next().value!)
  }
  return {
    get: (key) => entries.get(key),
    set,
    getOr(key, make) {
      const value = entries.get(key) ?? make()
      set(key, value)
      return value
    },
  }
}
