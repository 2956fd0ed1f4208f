// How does an object change? Read, make the wanted object, take from it what this write may touch, check, swap.
// A lost race starts over with the newer object; a pinned resource version then fails by itself.
import type { KindInfo } from '../../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../../api/meta.ts'
import { badRequest, conflict, notFound } from '../../api/status-error.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Entry } from '../../store/store.ts'
import { isStoreError } from '../../store/store.ts'
import { admitUpdate } from '../admission/chain.ts'
import type { Call } from '../call.ts'
import type { ServerContext } from '../context.ts'
import { readStored, storeFailure } from '../context.ts'
import { omit } from '../members.ts'
import { decodeObject, encodeObject, remember, sameJson, storeKey } from '../objects.ts'
import { applyDefaults, checkUpdate, ownFields, tidyMetadata } from '../rules.ts'
import { prepareForUpdate } from '../strategies.ts'
import type { Written } from './create.ts'

export interface ChangeRequest {
  readonly info: KindInfo
  readonly ref: ObjectRef
  readonly subresource: string | undefined
  readonly fieldManager: string
  readonly dryRun: boolean
  /** Makes the wanted object out of the current one; may run again on a newer one. */
  change(current: KubeObject): KubeObject
  /** Server-side apply has already said who owns what. */
  readonly managed?: boolean
}

const attempts = 50

/** PUT: the body is the wanted object. */
export function replaceObject(
  context: ServerContext,
  request: Omit<ChangeRequest, 'change'> & { readonly object: KubeObject },
  call: Call,
): Promise<Written> {
  const { object } = request
  if (!object.metadata.name) throw badRequest('name must be provided')
  return changeObject(context, { ...request, change: () => object }, call)
}

export async function changeObject(context: ServerContext, request: ChangeRequest, call: Call): Promise<Written> {
  const { info, ref } = request
  for (let attempt = 0; attempt < attempts; attempt++) {
    const { entry } = await readStored(context, info, ref)
    const current = decodeObject(info, entry)
    const wanted = placed(info, request.change(current), ref)
    checkPreconditions(info, wanted, current)
    const next = await nextVersion(context, request, wanted, current, call)
    if (unchanged(next, current, request.managed ?? false)) return { object: current, entry }
    if (request.dryRun) return { object: withVersion(next, current), entry: undefined }
    try {
      return await swap(context, info, entry, next)
    } catch (error) {
      if (isStoreError(error, 'missing')) throw notFound(info, ref.name)
      if (!isStoreError(error, 'conflict')) throw storeFailure(error)
    }
  }
  throw conflict(info, ref.name)
}

async function nextVersion(
  context: ServerContext,
  request: ChangeRequest,
  wanted: KubeObject,
  current: KubeObject,
  call: Call,
): Promise<KubeObject> {
  const { info, subresource } = request
  const now = timestamp(context.clock.now())
  const prepared = prepareForUpdate(info, tidyMetadata(wanted), current, subresource, now)
  const defaulted = applyDefaults(info, prepared)
  checkUpdate(info, defaulted, current, subresource)
  const admitted = await admitUpdate(context, info, defaulted, current, subresource, call)
  if (request.managed) return admitted
  return ownFields(info, current, admitted, { manager: request.fieldManager, now: context.clock.now(), subresource })
}

/** Stores the next version; an object that is being deleted goes away with its last finalizer (API-11). */
async function swap(context: ServerContext, info: KindInfo, entry: Entry, next: KubeObject): Promise<Written> {
  const { metadata } = next
  const { namespace, name } = metadata
  const key = storeKey(info, namespace ? { namespace, name } : { name })
  const held = (metadata.finalizers?.length ?? 0) > 0 || (metadata.deletionGracePeriodSeconds ?? 0) > 0
  if (metadata.deletionTimestamp !== undefined && !held && !holdsNamespace(info, next)) {
    const removed = await context.store.remove(key, entry.revision)
    // Shown as it was wanted: the entry still has the bytes of the version before.
    return { object: remember(info, removed, next), entry: undefined }
  }
  const written = await context.store.update(key, encodeObject(info, next), entry.revision)
  return { object: remember(info, written, next), entry: written }
}

function holdsNamespace(info: KindInfo, object: KubeObject): boolean {
  if (info.name !== 'Namespace') return false
  const { spec } = object as { spec?: { finalizers?: readonly string[] } } // Namespace
  return (spec?.finalizers?.length ?? 0) > 0
}

function checkPreconditions(info: KindInfo, wanted: KubeObject, current: KubeObject): void {
  const { resourceVersion, uid, name } = wanted.metadata
  if (uid && uid !== current.metadata.uid) {
    const key = `/registry/${info.plural}/${current.metadata.namespace ? `${current.metadata.namespace}/` : ''}${name}`
    const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${current.metadata.uid}`
    const text = `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`
    throw conflict(info, name, text)
  }
  if (resourceVersion && resourceVersion !== '0' && resourceVersion !== current.metadata.resourceVersion) {
    throw conflict(info, name)
  }
}

/** Name and namespace come from the path; a body may repeat them, not change them. */
function placed(info: KindInfo, wanted: KubeObject, ref: ObjectRef): KubeObject {
  const { name, namespace } = wanted.metadata
  if (name && name !== ref.name) {
    throw badRequest(`the name of the object (${name}) does not match the name on the URL (${ref.name})`)
  }
  if (namespace && info.namespaced && namespace !== ref.namespace) {
    const path = `the namespace on the request (${ref.namespace})`
    throw badRequest(`the namespace of the object (${namespace}) does not match ${path}`)
  }
  const rest = info.namespaced ? wanted.metadata : omit(wanted.metadata, ['namespace'])
  const place = info.namespaced && ref.namespace ? { namespace: ref.namespace } : {}
  const metadata = { ...rest, ...place, name: ref.name }
  return { ...wanted, kind: info.kind, apiVersion: info.apiVersion, metadata }
}

/** A dry run stores nothing, so the version is still that of the stored object. */
function withVersion(next: KubeObject, current: KubeObject): KubeObject {
  const { resourceVersion } = current.metadata
  return resourceVersion === undefined ? next : { ...next, metadata: { ...next.metadata, resourceVersion } }
}

function unchanged(next: KubeObject, current: KubeObject, managed: boolean): boolean {
  // A plain write that changes nothing leaves the record of owners alone: another record means another object.
  if (!managed && next.metadata.managedFields !== current.metadata.managedFields) return false
  const ofType = { apiVersion: undefined, kind: undefined, metadata: undefined }
  return (
    sameJson(next.metadata, { ...current.metadata, resourceVersion: undefined }) &&
    sameJson({ ...next, ...ofType }, { ...current, ...ofType })
  )
}
