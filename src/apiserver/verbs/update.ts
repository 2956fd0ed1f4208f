// How does an object change? Read, make the wanted object, take from it what this write may touch, check, swap.
// A lost race starts over with the newer object; a pinned resource version then fails by itself.
import { invalid, invalidObject } from '../../api/field-errors.ts'
import type { KindInfo } from '../../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../../api/meta.ts'
import type { StatusError } from '../../api/status-error.ts'
import { badRequest, conflict, isNotFound, notFound } from '../../api/status-error.ts'
import { unchanged as unchangedField } from '../../api/validation/metadata.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Entry } from '../../store/store.ts'
import { isStoreError } from '../../store/store.ts'
import { admitUpdate } from '../admission/chain.ts'
import type { Call } from '../request/call.ts'
import type { ServerContext } from '../objects/context.ts'
import { readStored, storeFailure } from '../objects/context.ts'
import { omit } from '../../api/members.ts'
import { sameJson, storeKey } from '../objects/stored-objects.ts'
import { applyDefaults, checkUpdate, ownFields, tidyMetadata, warnAbout } from '../objects/rules.ts'
import { prepareForUpdate } from '../objects/strategies.ts'
import { createPace } from '../request/pace.ts'
import type { Written } from './create.ts'
import { createObject } from './create.ts'

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
  /** The wanted object comes out of a patch: another uid in it is a change, not a precondition. */
  readonly patched?: boolean
}

const attempts = 50

/** PUT: the body is the wanted object. */
export function replaceObject(
  context: ServerContext,
  request: Omit<ChangeRequest, 'change'> & { readonly object: KubeObject },
  call: Call,
): Promise<Written & { readonly created?: boolean }> {
  const { info, ref, subresource } = request
  if (!request.object.metadata.name) throw nameless(ref)
  const object = placed(info, request.object, ref)
  const change = (): KubeObject => {
    if (info.strategy.updateNeedsVersion && !object.metadata.resourceVersion) {
      const error = invalid('metadata.resourceVersion', 0, 'must be specified for an update')
      throw invalidObject({ group: info.group, kind: info.plural }, ref.name, [error])
    }
    return object
  }
  return changeObject(context, { ...request, change }, call).catch((error: unknown) => {
    if (!isNotFound(error) || !info.strategy.updateCreates || subresource !== undefined) throw error
    return createInstead(context, { ...request, object }, call)
  })
}

/** A lease or an event that is put where there is none comes into being; it cannot be a certain one that was there. */
async function createInstead(
  context: ServerContext,
  request: Omit<ChangeRequest, 'change'> & { readonly object: KubeObject },
  call: Call,
): Promise<Written & { readonly created: true }> {
  const { info, ref } = request
  const { uid, resourceVersion: _version, ...metadata } = request.object.metadata
  if (uid) throw otherUid(info, { ...ref, uid }, '')
  const object = { ...request.object, metadata }
  return { ...(await createObject(context, { ...request, object, namespace: ref.namespace }, call)), created: true }
}

export async function changeObject(context: ServerContext, request: ChangeRequest, call: Call): Promise<Written> {
  const { info, ref } = request
  for (let attempt = 0; attempt < attempts; attempt++) {
    const { entry } = await readStored(context, info, ref)
    const current = context.objects.decode(info, entry)
    const wanted = placed(info, request.change(current), ref)
    checkPreconditions(info, wanted, current)
    checkMarks(request, wanted, current)
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
  const pace = createPace(context.clock)
  const now = timestamp(context.clock.now())
  const prepared = prepareForUpdate(info, tidyMetadata(wanted), current, subresource, now)
  const defaulted = applyDefaults(info, prepared)
  checkUpdate(info, defaulted, current, subresource)
  if (subresource === undefined) warnAbout(info, defaulted, call.warn)
  const admitted = await admitUpdate(context, info, defaulted, current, subresource, call)
  if (request.managed) return admitted
  const rest = pace.rest()
  if (rest) await rest
  return ownFields(context.objects.managedFields, info, current, admitted, {
    manager: request.fieldManager,
    now: context.clock.now(),
    subresource,
  })
}

/** Stores the next version; an object that is being deleted goes away with its last finalizer (API-11). */
async function swap(context: ServerContext, info: KindInfo, entry: Entry, next: KubeObject): Promise<Written> {
  const { metadata } = next
  const { namespace, name } = metadata
  const key = storeKey(info, namespace ? { namespace, name } : { name })
  const held = (metadata.finalizers?.length ?? 0) > 0 || (metadata.deletionGracePeriodSeconds ?? 0) > 0
  if (metadata.deletionTimestamp !== undefined && !held && !holdsNamespace(info, next)) {
    const removed = await context.store.remove(key, entry.revision)
    context.objects.letGo(entry)
    // Shown as it was wanted: the entry still has the bytes of the version before.
    return { object: context.objects.remember(info, removed, next), entry: undefined }
  }
  const written = await context.store.update(key, context.objects.encode(info, next), entry.revision)
  context.objects.letGo(entry)
  return { object: context.objects.remember(info, written, next), entry: written }
}

function holdsNamespace(info: KindInfo, object: KubeObject): boolean {
  if (info.name !== 'Namespace') return false
  const { spec } = object as { spec?: { finalizers?: readonly string[] } } // Namespace
  return (spec?.finalizers?.length ?? 0) > 0
}

function checkPreconditions(info: KindInfo, wanted: KubeObject, current: KubeObject): void {
  const { resourceVersion, name } = wanted.metadata
  if (resourceVersion && resourceVersion !== '0' && resourceVersion !== current.metadata.resourceVersion) {
    throw conflict(info, name)
  }
}

/** What only the server sets: who the object is, and that it is being deleted. */
function checkMarks(request: ChangeRequest, wanted: KubeObject, current: KubeObject): void {
  const { info, patched } = request
  const { uid, deletionTimestamp: deletion, deletionGracePeriodSeconds: grace } = wanted.metadata
  const before = current.metadata
  if (uid && uid !== before.uid && !patched) throw otherUid(info, { ...before, uid }, before.uid ?? '')
  const errors = [
    ...(uid ? unchangedField(uid, before.uid, 'metadata.uid') : []),
    ...(deletion ? unchangedField(deletion, before.deletionTimestamp, 'metadata.deletionTimestamp') : []),
    ...(grace === undefined
      ? []
      : unchangedField(grace, before.deletionGracePeriodSeconds, 'metadata.deletionGracePeriodSeconds')),
  ]
  // Kubernetes looks twice, for all kinds and for this one.
  if (errors.length > 0) throw invalidObject(info, before.name, [...errors, ...errors])
}

/** The object of that name is not the one that was meant. */
function otherUid(info: KindInfo, meant: ObjectRef & { readonly uid: string }, found: string): StatusError {
  const key = `/registry/${info.plural}/${meant.namespace ? `${meant.namespace}/` : ''}${meant.name}`
  const why = `Precondition failed: UID in precondition: ${meant.uid}, UID in object meta: ${found}`
  const text = `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`
  return conflict(info, meant.name, text)
}

export function nameless(ref: ObjectRef): StatusError {
  return badRequest(`the name of the object (${ref.name} based on URL) was undeterminable: name must be provided`)
}

/** Name and namespace come from the path; a body may repeat them, not change them. */
function placed(info: KindInfo, wanted: KubeObject, ref: ObjectRef): KubeObject {
  const { name, namespace } = wanted.metadata
  if (name && name !== ref.name) {
    throw badRequest(`the name of the object (${name}) does not match the name on the URL (${ref.name})`)
  }
  if (namespace && info.namespaced && namespace !== ref.namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
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
