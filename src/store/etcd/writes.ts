// How does a write enter etcd? One transaction that compares the revision of the key, and who may write at all. Writes of one
// key go one after the other. A transaction whose answer was lost is sent again: the comparison tells whether it had entered.
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Entry, Revision } from '../store.ts'
import { StoreError } from '../store.ts'
import type { Write } from '../versioned-state.ts'
import type { Answered, EtcdClient } from './client.ts'
import type { Copy } from './copy.ts'
import { entryOf } from './copy.ts'
import type { Current } from './current.ts'
import { EtcdError } from './errors.ts'
import type { CompareSchema, KeyValue, RequestOpSchema, TxnResponse } from './generated/etcd_pb.ts'
import { Compare_CompareResult, Compare_CompareTarget, KV } from './generated/etcd_pb.ts'
import type { EtcdPlace } from './layout.ts'
import { etcdKey } from './layout.ts'

export interface WritesDeps {
  readonly client: EtcdClient
  readonly place: EtcdPlace
  readonly copy: Copy
  readonly current: Current
  /** Holds as long as this server may write. Throws when it knows that it may not. */
  readonly permit: () => MessageInitShape<typeof CompareSchema>
}

export interface Writes {
  write(request: Write, signal: AbortSignal): Promise<Entry>
}

/** Transactions on their way at a time; the others wait. */
const atOnce = 128
/** Beyond this etcd is too slow for what is asked of it. */
const longestQueue = 10_000

interface Gate {
  free: number
  readonly queue: (() => void)[]
}

export function createWrites(deps: WritesDeps): Writes {
  const gate: Gate = { free: atOnce, queue: [] }
  const lastOfKey = new Map<string, Promise<unknown>>()
  return {
    write(request, signal) {
      const { key } = request
      const before = lastOfKey.get(key) ?? Promise.resolve()
      const mine = before.then(() => pass(gate, () => perform(deps, request, signal)))
      const settled = mine.then(
        () => {},
        () => {},
      )
      lastOfKey.set(key, settled)
      void settled.then(() => {
        if (lastOfKey.get(key) === settled) lastOfKey.delete(key)
      })
      return mine
    },
  }
}

async function pass<T>(gate: Gate, work: () => Promise<T>): Promise<T> {
  if (gate.free > 0) gate.free--
  else if (gate.queue.length >= longestQueue) {
    throw new StoreError('unavailable', `${longestQueue} writes wait for etcd already`)
  } else await new Promise<void>((resolve) => gate.queue.push(resolve))
  try {
    return await work()
  } finally {
    const next = gate.queue.shift()
    if (next === undefined) gate.free++
    else next()
  }
}

async function perform(deps: WritesDeps, request: Write, signal: AbortSignal): Promise<Entry> {
  const { copy, current } = deps
  let expected: Revision = 0
  if (request.type === 'update') expected = request.expected
  else if (request.type === 'remove') {
    if (request.expected === undefined) await current.catchUp(signal)
    expected = request.expected ?? copy.state.get(request.key)?.revision ?? 0
    if (expected === 0) throw missing(request.key)
  }
  for (;;) {
    const before = copy.state.get(request.key)
    const outcome = outcomeOf(deps, request, { expected, before }, await send(deps, request, expected, signal))
    if (outcome.kind === 'other') {
      // Removal of whatever is there: it has changed since we looked.
      expected = outcome.revision
      continue
    }
    // The write has entered; nobody may see less from now on. If the copy is late, its readers wait for it anyway.
    await current.reach(outcome.entry.revision, signal).catch(() => {})
    const seen = copy.state.get(request.key)
    return request.type !== 'remove' && seen?.revision === outcome.entry.revision ? seen : outcome.entry
  }
}

async function send(
  { client, place, permit }: WritesDeps,
  request: Write,
  expected: Revision,
  signal: AbortSignal,
): Promise<Answered<TxnResponse>> {
  const key = etcdKey(place, request.key)
  const unchanged: MessageInitShape<typeof CompareSchema> = {
    result: Compare_CompareResult.EQUAL,
    target: Compare_CompareTarget.MOD,
    key,
    targetUnion: { case: 'modRevision', value: BigInt(expected) },
  }
  const permission = permit()
  const success: MessageInitShape<typeof RequestOpSchema> =
    request.type === 'remove'
      ? { request: { case: 'requestDeleteRange', value: { key, prevKv: true } } }
      : { request: { case: 'requestPut', value: { key, value: place.layout.encode(request.key, request.value) } } }
  const look = (at: Uint8Array): MessageInitShape<typeof RequestOpSchema> => ({
    request: { case: 'requestRange', value: { key: at } },
  })
  try {
    return await client.call(
      KV.method.txn,
      {
        compare: [unchanged, permission],
        success: [success],
        failure: [look(key), look(permission.key ?? key)],
      },
      signal,
    )
  } catch (error) {
    throw error instanceof EtcdError ? refusal(error) : error
  }
}

function refusal(error: EtcdError): StoreError {
  const code = error.failure === 'tooLarge' ? 'tooLarge' : 'unavailable'
  const doubt =
    error.failure === 'unreachable' || error.failure === 'noQuorum'
      ? '; whether the write took effect is uncertain'
      : ''
  return new StoreError(code, error.message + doubt, { cause: error })
}

type Outcome =
  | { readonly kind: 'done'; readonly entry: Entry }
  /** The key was meant as it is, and it is another by now. */
  | { readonly kind: 'other'; readonly revision: Revision }

function outcomeOf(
  deps: WritesDeps,
  request: Write,
  { expected, before }: { readonly expected: Revision; readonly before: Entry | undefined },
  { answer, repeated }: Answered<TxnResponse>,
): Outcome {
  const revision = Number(answer.header?.revision ?? 0n)
  const { key } = request
  if (answer.succeeded) {
    if (request.type === 'remove') return { kind: 'done', entry: removed(deps.place, key, revision, answer) }
    const createRevision = request.type === 'create' ? revision : (before?.createRevision ?? revision)
    return { kind: 'done', entry: { key, value: request.value, revision, createRevision } }
  }
  const [found, holder] = answer.responses.map(({ response }) =>
    response.case === 'responseRange' ? response.value.kvs[0] : undefined,
  )
  if (repeated && isOurs(deps.place, request, found)) {
    if (found !== undefined) return { kind: 'done', entry: entryOf(deps.place, key, found) }
    if (before !== undefined) return { kind: 'done', entry: { ...before, revision, made: undefined } }
  }
  if (Number(found?.modRevision ?? 0n) === expected) {
    const text = holder === undefined ? 'nobody holds the lease of the store' : 'another server holds the store'
    throw new StoreError('unavailable', `this server may not write to etcd at ${deps.client.where} any more: ${text}`)
  }
  return refused(request, found)
}

function refused(request: Write, found: KeyValue | undefined): Outcome {
  const { key } = request
  if (request.type === 'create') throw new StoreError('exists', `key ${key} exists`)
  if (found === undefined) throw missing(key)
  const revision = Number(found.modRevision)
  if (request.expected === undefined) return { kind: 'other', revision }
  throw new StoreError('conflict', `key ${key} is at revision ${revision}, not ${request.expected}`)
}

/** The same bytes: the first sending had entered, only its answer was lost. */
function isOurs(place: EtcdPlace, request: Write, found: KeyValue | undefined): boolean {
  if (request.type === 'remove') return found === undefined
  return found !== undefined && Buffer.compare(found.value, place.layout.encode(request.key, request.value)) === 0
}

function removed(place: EtcdPlace, key: string, revision: Revision, answer: TxnResponse): Entry {
  const response = answer.responses[0]?.response
  const previous = response?.case === 'responseDeleteRange' ? response.value.prevKvs[0] : undefined
  if (previous === undefined) throw new StoreError('unavailable', `etcd did not say what it removed at ${key}`)
  return { ...entryOf(place, key, previous), revision }
}

function missing(key: string): StoreError {
  return new StoreError('missing', `key ${key} does not exist`)
}
