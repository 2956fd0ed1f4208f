// What may a create or an update touch? What the server sets itself, and how the main object and its status are kept
// apart (API-1 to API-3), as the kind's definition says. Pure: objects in, object out.
import type { KindInfo } from '../../api/kinds.ts'
import type { Part } from '../../api/kinds/define-kind.ts'
import type { KubeObject } from '../../api/meta.ts'
import type { ObjectMeta } from '../../api/generated/types.ts'
import type { Loose } from './stored-objects.ts'
import { sameJson } from './stored-objects.ts'
import { omit } from '../../api/members.ts'

export interface Stamp {
  /** RFC 3339. */
  readonly now: string
  readonly uid: string
}

/** An object whose kind is not known: it may have a spec and a status. */
type AnyObject = KubeObject & { readonly spec?: Part; readonly status?: Part }

function hasStatus(info: KindInfo): boolean {
  return info.subresources.some(({ name }) => name === 'status')
}

/** Without the status that a creator sent, unless the kind lets creators set it. */
export function withoutForeignStatus(info: KindInfo, object: KubeObject): KubeObject {
  if (!hasStatus(info) || info.strategy.creatorSetsStatus) return object
  return omit(object, ['status'])
}

/** The object as it will be stored: system metadata and the first status are set. */
export function prepareForCreate(info: KindInfo, object: KubeObject, stamp: Stamp): KubeObject {
  const { strategy } = info
  const metadata = {
    ...omit(object.metadata, setByServer),
    uid: stamp.uid,
    creationTimestamp: stamp.now,
    ...(strategy.generation === 'fromCreate' ? { generation: 1 } : {}),
  }
  if (!hasStatus(info) || strategy.creatorSetsStatus) return { ...object, metadata }
  return withStatus({ ...object, metadata }, strategy.initialStatus?.(object, stamp.now))
}

const setByServer = ['deletionTimestamp', 'deletionGracePeriodSeconds', 'resourceVersion', 'selfLink', 'generation']

function withStatus(object: KubeObject, status: unknown): KubeObject {
  return status === undefined ? omit(object, ['status']) : ({ ...object, status } as KubeObject)
}

/** The wanted object with everything that this write may not change taken from the current one. */
export function prepareForUpdate(
  info: KindInfo,
  wanted: KubeObject,
  current: KubeObject,
  subresource: string | undefined,
  now: string,
): KubeObject {
  const next = writtenObject(info, wanted, current, subresource, now)
  return { ...next, metadata: carriedMetadata(info, wanted, current, subresource, next) }
}

function writtenObject(
  info: KindInfo,
  wanted: AnyObject,
  current: AnyObject,
  subresource: string | undefined,
  now: string,
): AnyObject {
  switch (subresource) {
    case undefined:
      return mainWrite(info, wanted, current)
    case 'status': {
      const write = info.strategy.statusWrite
      return withStatus(current, write ? write(wanted.status, current.status, now) : wanted.status)
    }
    case 'ephemeralcontainers':
      return withEphemeralContainers(wanted, current)
    case 'finalize':
      return { ...current, spec: { finalizers: [], ...wanted.spec } }
    default:
      // The server's own subresources (a pod's binding) touch exactly what they mean to.
      return wanted
  }
}

/** Nothing else of the pod can be changed this way. */
function withEphemeralContainers(wanted: AnyObject, current: AnyObject): AnyObject {
  const { ephemeralContainers } = wanted.spec ?? {}
  const spec = omit(current.spec ?? {}, ['ephemeralContainers'])
  return { ...current, spec: ephemeralContainers === undefined ? spec : { ...spec, ephemeralContainers } }
}

function mainWrite(info: KindInfo, wanted: AnyObject, current: AnyObject): AnyObject {
  const keepsStatus = hasStatus(info) && !info.strategy.updateWritesStatus
  const next = keepsStatus ? withStatus(wanted, current.status) : wanted
  return info.strategy.mainWrite?.(next, current) ?? next
}

/** Members that a write cannot change: they stay as they are, or absent. */
const keptMetadata: ReadonlySet<keyof ObjectMeta> = new Set<keyof ObjectMeta>([
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
])
const keptWithOwners: ReadonlySet<keyof ObjectMeta> = new Set([...keptMetadata, 'ownerReferences'] as const)

function carriedMetadata(
  info: KindInfo,
  wanted: KubeObject,
  current: AnyObject,
  subresource: string | undefined,
  next: AnyObject,
): ObjectMeta {
  const { strategy } = info
  const isStatus = subresource === 'status'
  const keeps = subresource === 'ephemeralcontainers' || (isStatus && strategy.statusKeepsMetadata === true)
  const source = keeps ? withManagedFields(current.metadata, wanted.metadata.managedFields) : wanted.metadata
  const kept = isStatus && strategy.statusKeepsOwners ? keptWithOwners : keptMetadata
  // A copy of the whole costs less than one member by member. The version is set anew before anybody sees it.
  const copy: Loose = { ...source, resourceVersion: undefined }
  const foreign = ['selfLink']
  for (const name of kept) {
    if (current.metadata[name] !== undefined) copy[name] = current.metadata[name]
    else if (copy[name] !== undefined) foreign.push(name)
  }
  const base = omit(copy, foreign)
  const writesSpec = subresource === undefined || subresource === 'ephemeralcontainers'
  if (strategy.generation !== undefined && writesSpec && !sameJson(current.spec, next.spec)) {
    base['generation'] = (current.metadata.generation ?? 0) + 1
  }
  return base as unknown as ObjectMeta // the name comes from wanted, which was checked against the path
}

function withManagedFields(metadata: ObjectMeta, managedFields: ObjectMeta['managedFields']): ObjectMeta {
  return managedFields ? { ...metadata, managedFields } : metadata
}
