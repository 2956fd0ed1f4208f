// What do all verbs share? The store, time, chance, and small helpers that speak Kubernetes' errors over them.
import type { KindInfo } from '../../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../../api/meta.ts'
import { badRequest, notFound, requestEntityTooLarge, serviceUnavailable, StatusError } from '../../api/status-error.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Random } from '../../clock/random.ts'
import type { Entry, Store } from '../../store/store.ts'
import { StoreError } from '../../store/store.ts'
import type { StoredObjects } from './stored-objects.ts'
import { storeKey } from './stored-objects.ts'

export interface ServerContext {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly objects: StoredObjects
  /** Every pod gets the token of its account, which must exist. */
  readonly mountsTokens?: boolean
}

/** One version of one object: bytes at hand, parsed on demand. */
export interface Stored {
  readonly info: KindInfo
  readonly entry: Entry
}

export async function readStored(context: ServerContext, info: KindInfo, ref: ObjectRef): Promise<Stored> {
  const entry = await context.store.get(storeKey(info, ref))
  if (entry === undefined) throw notFound(info, ref.name)
  return { info, entry }
}

export async function findObject(
  context: ServerContext,
  info: KindInfo,
  ref: ObjectRef,
): Promise<KubeObject | undefined> {
  const entry = await context.store.get(storeKey(info, ref))
  return entry === undefined ? undefined : context.objects.decode(info, entry)
}

/** What a client sees when the store itself cannot answer. Conflicts are handled where they arise. */
export function storeFailure(error: unknown): unknown {
  if (!(error instanceof StoreError)) return error
  if (error.code === 'tooLarge') return requestEntityTooLarge(error.message)
  return serviceUnavailable(`the store cannot answer: ${error.message}`)
}

/** A path that lacks the namespace of a namespaced kind can only be read. */
export function requireNamespace(info: KindInfo, namespace: string | undefined): void {
  if (info.namespaced && !namespace) throw badRequest('an empty namespace may not be set during creation')
}

/** Resource versions on the wire are decimal texts; `''` and `'0'` mean "any". */
export function parseRevision(text: string | undefined, before = ''): number | undefined {
  if (text === undefined || text === '') return undefined
  if (!/^\d{1,15}$/.test(text)) {
    const quoted = JSON.stringify(text)
    const why = `strconv.ParseUint: parsing ${quoted}: invalid syntax`
    throw badRequest(`${before}resourceVersion: Invalid value: ${quoted}: ${why}`)
  }
  return Number(text)
}

export function tooLargeRevision(asked: number, current: number): StatusError {
  const message = `Too large resource version: ${asked}, current: ${current}`
  return new StatusError(504, 'Timeout', `Timeout: ${message}`, {
    retryAfterSeconds: 1,
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
  })
}
