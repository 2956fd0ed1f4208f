// What do we tell users in Kubernetes Events? One object per (object, reason, message), counted up by PATCH when it
// repeats, merged when messages vary, and limited per object, with the figures every Kubernetes component uses.
import { kinds } from '../api/kinds.ts'
import type { KindName } from '../api/kinds.ts'
import type { KubeObject } from '../api/meta.ts'
import { isAlreadyExists, isNotFound } from '../api/status-error.ts'
import type { Event, ObjectReference } from '../api/generated/types.ts'
import { timestamp } from '../clock/clock.ts'
import type { Clock } from '../clock/clock.ts'
import type { Log } from '../telemetry/log.ts'
import type { Client } from './client.ts'
import { createEventFilter, createRecent } from './event-filter.ts'
import type { Recent } from './event-filter.ts'

export interface Recorder extends AsyncDisposable {
  /** Records an event about an object. Never throws and never waits: events must not stop the work. */
  event(about: EventSubject, type: 'Normal' | 'Warning', reason: string, message: string): void
  /** Resolves when every event so far was written or given up. */
  flush(): Promise<void>
}

interface EventSubject {
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

const queueLimit = 1_000
const messageLimit = 1_024
const writers = 4
const tries = 3

interface State {
  readonly deps: RecorderDeps
  /** By identity of the event, so that repeats that wait to be written are merged. */
  readonly queue: Map<string, QueuedEvent>
  readonly known: Recent<KnownEvent>
  /** Nothing is written any more. */
  readonly stopping: AbortController
  /** Nothing is tried a second time any more. */
  readonly closing: AbortController
  /** Called when nothing is queued or being written. */
  readonly onIdle: (() => void)[]
  /** Writers at work. */
  active: number
  serial: bigint
}

export function createRecorder(deps: RecorderDeps): Recorder {
  const { clock } = deps
  const filter = createEventFilter(clock)
  const state: State = {
    deps,
    queue: new Map(),
    known: createRecent(),
    stopping: new AbortController(),
    closing: new AbortController(),
    onIdle: [],
    active: 0,
    serial: 0n,
  }
  const { queue, stopping, closing, onIdle } = state
  return {
    event(about, type, reason, message) {
      if (stopping.signal.aborted || queue.size >= queueLimit) return
      const involved = referenceTo(about)
      const subject = [involved.kind, involved.namespace, involved.name, involved.uid].join('/')
      const cut = message.length > messageLimit ? `${message.slice(0, messageLimit - 3)}...` : message
      const filed = filter.accept({ subject, type, reason }, cut)
      if (filed === undefined) return
      const times = (queue.get(filed.identity)?.times ?? 0) + 1
      queue.set(filed.identity, { involved, type, reason, message: filed.message, times })
      if (state.active < writers) void writeQueued(state)
    },
    flush: () =>
      state.active === 0 && queue.size === 0 ? Promise.resolve() : new Promise((resolve) => void onIdle.push(resolve)),
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

/** One writer: takes events off the queue until it is empty. */
async function writeQueued(state: State): Promise<void> {
  const { queue, stopping, onIdle } = state
  state.active++
  try {
    for (;;) {
      const next = queue.entries().next()
      if (next.done || stopping.signal.aborted) return
      const [identity, event] = next.value
      queue.delete(identity)
      await tryToWrite(state, identity, event)
    }
  } finally {
    state.active--
    if (state.active === 0 && queue.size === 0) for (const resolve of onIdle.splice(0)) resolve()
  }
}

async function tryToWrite(state: State, identity: string, event: QueuedEvent): Promise<void> {
  const { deps, stopping, closing } = state
  for (let attempted = 1; attempted <= tries; attempted++) {
    try {
      await write(state, identity, event)
      return
    } catch (error) {
      if (stopping.signal.aborted) return
      if (attempted === tries || isFinal(error)) {
        deps.log.debug('event not written', { reason: event.reason, error: String(error) })
        return
      }
      if (closing.signal.aborted) return
      await deps.clock.sleep(500 * attempted, closing.signal).catch(() => {})
    }
  }
}

/** Counts up the Event that was written before, or creates one. */
async function write(state: State, identity: string, event: QueuedEvent): Promise<void> {
  const { deps, known, stopping } = state
  const seen = known.get(identity)
  const now = timestamp(deps.clock.now())
  if (seen !== undefined) {
    const count = seen.count + event.times
    const body = { count, lastTimestamp: now, message: event.message }
    try {
      await deps.client.patch('Event', seen.ref, { type: 'merge', body }, {}, stopping.signal)
      known.set(identity, { ref: seen.ref, count })
      return
    } catch (error) {
      if (!isNotFound(error)) throw error
    }
  }
  const { metadata } = await create(state, event, now)
  known.set(identity, {
    ref: { namespace: metadata.namespace ?? 'default', name: metadata.name },
    count: event.times,
  })
}

async function create(state: State, event: QueuedEvent, now: string): Promise<Event> {
  const { deps, stopping } = state
  for (let attempted = 1; ; attempted++) {
    // A serial number instead of nanoseconds: unique within this recorder even when the clock stands still. Another
    // recorder may have used the same one about the same object; then the next number is tried at once.
    state.serial = (state.serial + 1n) % 1_000_000n
    const suffix = (BigInt(Math.floor(deps.clock.now())) * 1_000_000n + state.serial).toString(16)
    try {
      return await deps.client.create('Event', newEvent(deps, event, suffix, now), {}, stopping.signal)
    } catch (error) {
      if (!isAlreadyExists(error) || attempted === 20) throw error
    }
  }
}

interface QueuedEvent {
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

function newEvent(deps: RecorderDeps, event: QueuedEvent, suffix: string, now: string): Event {
  const { involved, type, reason, message, times } = event
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
