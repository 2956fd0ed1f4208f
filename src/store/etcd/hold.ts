// Which server may write? One at a time: it holds a key that lives as long as its lease, and each of its transactions compares
// that key, so a server that was taken for dead cannot write any more. It stops by itself before etcd can give the key away.
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Clock } from '../../clock/clock.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { Log } from '../../telemetry/log.ts'
import { StoreError } from '../store.ts'
import type { EtcdClient } from './client.ts'
import type { CompareSchema, KeyValue } from './generated/etcd_pb.ts'
import { Compare_CompareResult, Compare_CompareTarget, KV, Lease } from './generated/etcd_pb.ts'
import type { EtcdPlace } from './layout.ts'
import { bytesOf, ownKey, textOf } from './layout.ts'

export interface Holder {
  /** The same for every process of one data directory, which only one process can have open. */
  readonly id: string
  /** How people find the server: host and process. */
  readonly name: string
}

export interface HoldDeps {
  readonly client: EtcdClient
  readonly place: EtcdPlace
  readonly clock: Clock
  readonly log: Log
  readonly holder: Holder
  readonly leaseSeconds: number
  /** Wait for the end of another server, however long it lives; otherwise for the lease of one that is dead. */
  readonly standby: boolean
  /** Another server holds the objects: we wait. */
  readonly onWait: (server: string) => void
}

export interface Hold {
  /** The comparison that every transaction carries. Throws once the lease may have ended. */
  permit(): MessageInitShape<typeof CompareSchema>
  /** Renews the lease; ends when the signal aborts, throws when the hold is lost. */
  run(signal: AbortSignal): Promise<void>
  /** Gives the key away at once. */
  release(signal: AbortSignal): Promise<void>
}

export const defaultLeaseSeconds = 60
/** We stop this part of the lease before etcd ends it. */
const margin = 0.2

export async function takeHold(deps: HoldDeps, signal: AbortSignal): Promise<Hold> {
  const { client, clock, leaseSeconds, place } = deps
  const { lease, renewed, revision } = await takeKey(deps, signal)
  const state = { renewed, lost: undefined as string | undefined }
  const endsAt = () => state.renewed + leaseSeconds * 1_000 * (1 - margin)
  return {
    permit() {
      if (state.lost === undefined && clock.steady() >= endsAt()) state.lost = 'its lease could not be renewed in time'
      if (state.lost !== undefined) throw lostError(client, state.lost)
      return {
        result: Compare_CompareResult.EQUAL,
        target: Compare_CompareTarget.CREATE,
        key: ownKey(place, 'server'),
        targetUnion: { case: 'createRevision', value: revision },
      }
    },
    run: (until) => renew(deps, lease, state, endsAt, until),
    async release(until) {
      state.lost ??= 'it has stopped'
      await client.call(Lease.method.leaseRevoke, { id: lease }, until)
    },
  }
}

async function renew(
  { client, clock, leaseSeconds, log }: HoldDeps,
  lease: bigint,
  state: { renewed: number; lost: string | undefined },
  endsAt: () => number,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const pauseMs = Math.min((leaseSeconds * 1_000) / 10, endsAt() - clock.steady())
    await clock.sleep(Math.max(pauseMs, 0), signal).catch(() => {}) // ended by the signal
    if (signal.aborted) return
    const begun = clock.steady()
    // An answer that comes later does not help: by then we have stopped.
    using rest = clock.deadline(Math.max(endsAt() - begun, 0), signal)
    try {
      if ((await client.keepAlive(lease, rest.signal)) > 0) state.renewed = begun
      else state.lost = 'its lease has ended'
    } catch (error) {
      if (!signal.aborted) log.warn('the lease of the store in etcd was not renewed', { error: errorText(error) })
    }
    if (clock.steady() >= endsAt()) state.lost ??= 'its lease could not be renewed in time'
    if (state.lost !== undefined) throw lostError(client, state.lost)
  }
}

interface Held {
  readonly lease: bigint
  /** When the lease was renewed last, at the latest. */
  readonly renewed: number
  readonly revision: bigint
}

/** Waits for the end of a lease that nobody renews, or as a standby; a server that lives is not pushed aside. */
async function takeKey(deps: HoldDeps, signal: AbortSignal): Promise<Held> {
  const { client, clock, holder, leaseSeconds } = deps
  const until = clock.steady() + leaseSeconds * 1_000 * (1 + margin)
  for (let waitsFor = ''; ;) {
    const found = await tryKey(deps, signal)
    if (found.kind === 'ours') return found
    const other = readHolder(found.by)
    if (other.id === holder.id) {
      // We have its data directory, so its process is dead.
      await client.call(Lease.method.leaseRevoke, { id: found.by.lease }, signal).catch(() => {}) // may have ended
      continue
    }
    if (!deps.standby && clock.steady() >= until) {
      throw new StoreError(
        'unavailable',
        `the objects in etcd at ${client.where} are in use by the server ${other.name}: stop it first, or wait for its end with --standby`,
      )
    }
    if (waitsFor !== other.name) deps.onWait(other.name)
    waitsFor = other.name
    await untilGone(deps, found.by, signal)
  }
}

/** A second at most: whoever does not hear of the end looks again, and then learns what is wrong. */
async function untilGone({ client, clock }: HoldDeps, by: KeyValue, signal: AbortSignal): Promise<void> {
  using deadline = clock.deadline(1_000, signal)
  const ended = clock.sleep(1_000, deadline.signal).catch(() => {}) // ended by the signal
  const hear = async () => {
    const request = { key: by.key, startRevision: by.modRevision + 1n }
    for await (const answer of client.watch(request, deadline.signal)) if (answer.events.length > 0) return
    await ended
  }
  await hear().catch(() => ended)
  signal.throwIfAborted()
}

type Taken = ({ readonly kind: 'ours' } & Held) | { readonly kind: 'theirs'; readonly by: KeyValue }

/** With a lease of its own: one that waits would end. */
async function tryKey(deps: HoldDeps, signal: AbortSignal): Promise<Taken> {
  const { client, clock, leaseSeconds, place } = deps
  const holding = (await client.call(KV.method.range, { key: ownKey(place, 'server') }, signal)).answer.kvs[0]
  if (holding !== undefined) return { kind: 'theirs', by: holding }
  const renewed = clock.steady()
  const granted = await client.call(Lease.method.leaseGrant, { ttl: BigInt(leaseSeconds) }, signal)
  const lease = granted.answer.id
  const taken = await putKey(deps, lease, signal).catch((error: unknown) => ({ kind: 'failed' as const, error }))
  if (taken.kind === 'ours') return { ...taken, lease, renewed }
  await client.call(Lease.method.leaseRevoke, { id: lease }, signal).catch(() => {}) // it ends by itself
  if (taken.kind === 'failed') throw taken.error
  return taken
}

type Put = { readonly kind: 'ours'; readonly revision: bigint } | { readonly kind: 'theirs'; readonly by: KeyValue }

async function putKey(deps: HoldDeps, lease: bigint, signal: AbortSignal): Promise<Put> {
  const { client, holder, place } = deps
  const key = ownKey(place, 'server')
  const value = bytesOf(JSON.stringify(holder))
  const { answer } = await client.call(
    KV.method.txn,
    {
      compare: [
        {
          result: Compare_CompareResult.EQUAL,
          target: Compare_CompareTarget.CREATE,
          key,
          targetUnion: { case: 'createRevision', value: 0n },
        },
      ],
      success: [{ request: { case: 'requestPut', value: { key, value, lease } } }],
      failure: [{ request: { case: 'requestRange', value: { key } } }],
    },
    signal,
  )
  if (answer.succeeded) return { kind: 'ours', revision: answer.header?.revision ?? 0n }
  const response = answer.responses[0]?.response
  const by = response?.case === 'responseRange' ? response.value.kvs[0] : undefined
  if (by === undefined) return putKey(deps, lease, signal)
  // Our own transaction, whose answer was lost.
  return by.lease === lease ? { kind: 'ours', revision: by.createRevision } : { kind: 'theirs', by }
}

function readHolder({ value }: KeyValue): Holder {
  try {
    const { id = '', name = '' } = JSON.parse(textOf(value)) as Partial<Holder> // checked below
    return { id: String(id), name: String(name) || 'unknown' }
  } catch {
    return { id: '', name: 'unknown' }
  }
}

function lostError({ where }: EtcdClient, why: string): StoreError {
  return new StoreError('unavailable', `this server may not write to etcd at ${where} any more: ${why}`)
}
