// What do we tell users in Kubernetes Events? One object per (object, reason, message), counted up by PATCH when it
// repeats, merged when messages vary, and limited per object, with the figures every Kubernetes component uses.
import { kinds } from '../api/kinds.ts'
import type { KindName } from '../api/kinds.ts'
import type { KubeObject } from '../api/meta.ts'
import { isAlreadyExists, isNotFound } from '../api/status-error.ts'
import type { Event, ObjectReference } from '../api/types.ts'
import { timestamp } from '../clock/clock.ts'
import type { Clock } from '../clock/clock.ts'
import type { Log } from '../telemetry/log.ts'
import type { Client } from './client.ts'

export interface Recorder extends AsyncDisposable {
  /** Says something about an object. Never throws and never waits; a user's reading matter must not stop the work. */
  event(about: EventSubject, type: 'Normal' | 'Warning', reason: string, message: string): void
  /** Resolves when everything said so far was written or given up. */
  flush(): Promise<void>
}

export interface EventSubject {
  readonly kind: KindName
  readonly object: KubeObject
}

export interface RecorderDeps {
  readonly client: Client
  readonly clock: Clock
  readonly log: Log
  readonly component: string
  readonly host?: string
}

/** client-go's figures: at most ten different messages of one reason in ten minutes, then they are combined. */
const similarLimit = 10
const similarWindowMs = 600_000
/** A bucket of 25 events per object and component, one more every five minutes. */
const burst = 25
const refillMs = 300_000
const remembered = 4_096
const queueLimit = 1_000
const messageLimit = 1_024
const writers = 4
const tries = 3

export function createRecorder(deps: RecorderDeps): Recorder {
  const { client, clock, log } = deps
  const stopping = new AbortController()
  /** No more second attempts: what fails now stays unsaid. */
  const closing = new AbortController()
  const known = createRecent<KnownEvent>()
  const similar = createRecent<{ readonly messages: Set<string>; last: number }>()
  const buckets = createRecent<{ tokens: number; last: number }>()
  const queue = new Map<string, Spoken>() // by identity of the event, so that repeats waiting to be written merge
  const idle: (() => void)[] = []
  let active = 0
  let serial = 0n

  const allowed = (subject: string): boolean => {
    const now = clock.now()
    const bucket = buckets.getOr(subject, () => ({ tokens: burst, last: now }))
    const tokens = Math.min(burst, bucket.tokens + (now - bucket.last) / refillMs)
    bucket.last = now
    bucket.tokens = tokens >= 1 ? tokens - 1 : tokens
    return tokens >= 1
  }
  /** The message under which this is filed: its own, or the common one once there were too many. */
  const combined = (group: string, message: string): { readonly identity: string; readonly message: string } => {
    const now = clock.now()
    const record = similar.getOr(group, () => ({ messages: new Set<string>(), last: now }))
    if (now - record.last > similarWindowMs) record.messages.clear()
    record.last = now
    if (record.messages.has(message)) return { identity: `${group} ${message}`, message }
    if (record.messages.size < similarLimit - 1) {
      record.messages.add(message)
      return { identity: `${group} ${message}`, message }
    }
    return { identity: group, message: `(combined from similar events): ${message}` }
  }
  const write = async (identity: string, spoken: Spoken) => {
    const seen = known.get(identity)
    const now = timestamp(clock.now())
    if (seen !== undefined) {
      const count = seen.count + spoken.times
      const body = { count, lastTimestamp: now, message: spoken.message }
      try {
        await client.patch('Event', seen.ref, { type: 'merge', body }, {}, stopping.signal)
        known.set(identity, { ref: seen.ref, count })
        return
      } catch (error) {
        if (!isNotFound(error)) throw error
      }
    }
    const event = await createNew(spoken, now)
    const namespace = event.metadata.namespace ?? 'default'
    known.set(identity, { ref: { namespace, name: event.metadata.name }, count: spoken.times })
  }
  const createNew = async (spoken: Spoken, now: string): Promise<Event> => {
    for (let attempted = 1; ; attempted++) {
      // A serial number instead of nanoseconds: unique within this recorder even when the clock stands still. Another
      // recorder may have used the same one about the same object; then the next number is tried at once.
      serial = (serial + 1n) % 1_000_000n
      const suffix = (BigInt(Math.floor(clock.now())) * 1_000_000n + serial).toString(16)
      try {
        return await client.create('Event', newEvent(deps, spoken, suffix, now), {}, stopping.signal)
      } catch (error) {
        if (!isAlreadyExists(error) || attempted === 20) throw error
      }
    }
  }
  const work = async () => {
    active++
    try {
      for (;;) {
        const next = queue.entries().next()
        if (next.done || stopping.signal.aborted) return
        const [identity, spoken] = next.value
        queue.delete(identity)
        await attempt(identity, spoken)
      }
    } finally {
      active--
      if (active === 0 && queue.size === 0) for (const resolve of idle.splice(0)) resolve()
    }
  }
  const attempt = async (identity: string, spoken: Spoken) => {
    for (let attempted = 1; attempted <= tries; attempted++) {
      try {
        await write(identity, spoken)
        return
      } catch (error) {
        if (stopping.signal.aborted) return
        if (attempted === tries || isFinal(error)) {
          log.debug('event not written', { reason: spoken.reason, error: String(error) })
          return
        }
        if (closing.signal.aborted) return
        await clock.sleep(500 * attempted, closing.signal).catch(() => {})
      }
    }
  }
  return {
    event(about, type, reason, message) {
      if (stopping.signal.aborted || queue.size >= queueLimit) return
      const involved = referenceTo(about)
      const subject = [involved.kind, involved.namespace, involved.name, involved.uid].join('/')
      const cut = message.length > messageLimit ? `${message.slice(0, messageLimit - 3)}...` : message
      const filed = combined([subject, type, reason].join(' '), cut)
      if (!allowed(subject)) return
      const waiting = queue.get(filed.identity)
      const times = (waiting?.times ?? 0) + 1
      queue.set(filed.identity, { involved, type, reason, message: filed.message, times })
      if (active < writers) void work()
    },
    flush: () =>
      active === 0 && queue.size === 0 ? Promise.resolve() : new Promise((resolve) => void idle.push(resolve)),
    async [Symbol.asyncDispose]() {
      closing.abort(new Error('recorder is stopping'))
      using deadline = clock.deadline(2_000, new AbortController().signal)
      const { promise: late, resolve } = Promise.withResolvers<void>()
      deadline.signal.addEventListener('abort', () => resolve(), { once: true })
      await Promise.race([this.flush(), late])
      stopping.abort(new Error('recorder is stopping'))
    },
  }
}

interface Spoken {
  readonly involved: ObjectReference
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
  readonly times: number
}

interface KnownEvent {
  readonly ref: { readonly namespace: string; readonly name: string }
  readonly count: number
}

function referenceTo({ kind, object }: EventSubject): ObjectReference {
  const { group, version, kind: name } = kinds[kind]
  const { metadata } = object
  return {
    kind: name,
    apiVersion: group === '' ? version : `${group}/${version}`,
    name: metadata.name,
    ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
    ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
    ...(metadata.resourceVersion === undefined ? {} : { resourceVersion: metadata.resourceVersion }),
  }
}

function newEvent(deps: RecorderDeps, spoken: Spoken, suffix: string, now: string): Event {
  const { involved, type, reason, message, times } = spoken
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${involved.name}.${suffix}`, namespace: involved.namespace ?? 'default' },
    involvedObject: involved,
    type,
    reason,
    message,
    count: times,
    firstTimestamp: now,
    lastTimestamp: now,
    source: { component: deps.component, ...(deps.host === undefined ? {} : { host: deps.host }) },
    reportingComponent: deps.component,
    ...(deps.host === undefined ? {} : { reportingInstance: deps.host }),
  }
}

/** An answer that trying again cannot change: the namespace is going away, or the server refuses the event. */
function isFinal(error: unknown): boolean {
  const code = (error as { code?: unknown }).code
  return typeof code === 'number' && code >= 400 && code < 500 && code !== 429 && code !== 409
}

/** Remembers the most recently used entries and forgets the oldest. */
function createRecent<T>() {
  const entries = new Map<string, T>()
  const set = (key: string, value: T) => {
    entries.delete(key)
    entries.set(key, value)
    if (entries.size > remembered) entries.delete(entries.keys().next().value!)
  }
  return {
    get: (key: string) => entries.get(key),
    set,
    getOr(key: string, make: () => T): T {
      const value = entries.get(key) ?? make()
      set(key, value)
      return value
    },
  }
}
