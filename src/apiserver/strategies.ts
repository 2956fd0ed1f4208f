// What may a create or an update touch? Per kind: what the server sets itself, and how the main object
// and its status are kept apart (API-1 to API-3). Pure: objects in, object out.
import type { KindInfo, KindName } from '../api/kinds.ts'
import type { KubeObject } from '../api/meta.ts'
import type { ObjectMeta, Pod } from '../api/types.ts'
import { withPatience } from './admission/pod-defaults.ts'
import type { Loose } from './objects.ts'
import { sameJson } from './objects.ts'
import { omit } from '../api/members.ts'

export interface Stamp {
  /** RFC 3339. */
  readonly now: string
  readonly uid: string
}

/** Kinds whose creator may bring a status: kubelets register nodes with theirs, operation records are one write. */
const statusOfCreator: ReadonlySet<KindName> = new Set<KindName>(['Node', 'Operation'])
/** Kinds whose main resource writes the status too. */
const statusWithMain: ReadonlySet<KindName> = new Set<KindName>(['Operation'])
/** Kinds that count changes of their spec in metadata.generation. */
const countsGenerations: ReadonlySet<KindName> = new Set<KindName>([
  'Pod',
  'CSIDriver',
  'VolumeSnapshot',
  'VolumeSnapshotContent',
  'VolumeSnapshotClass',
  'Operation',
])
/** Kinds whose status writes leave the metadata alone. */
const statusKeepsMetadata: ReadonlySet<KindName> = new Set<KindName>([
  'VolumeAttachment',
  'VolumeSnapshot',
  'VolumeSnapshotContent',
])

/** Kinds whose deletion is answered with what was deleted instead of a bare success. */
export const answersDeleted: ReadonlySet<KindName> = new Set<KindName>([
  'Pod',
  'PersistentVolume',
  'PersistentVolumeClaim',
  'ServiceAccount',
  'StorageClass',
  'VolumeAttachment',
  'VolumeAttributesClass',
  'CSIDriver',
  'CSINode',
])
/** Kinds that PUT may create. */
export const createdByUpdate: ReadonlySet<KindName> = new Set<KindName>(['Lease', 'Event', 'EventsEvent'])
/** Kinds that are only replaced by those who say which version they have seen. */
export const needsVersion: ReadonlySet<KindName> = new Set<KindName>([
  'VolumeAttachment',
  'CSIDriver',
  'CSINode',
  'CSIStorageCapacity',
  'Lease',
  'VolumeSnapshot',
  'VolumeSnapshotContent',
  'VolumeSnapshotClass',
])

export function hasStatus(info: KindInfo): boolean {
  return info.subresources.some(({ name }) => name === 'status')
}

/** What a creator says about the status of a kind that has one of its own is not listened to. */
export function withoutForeignStatus(info: KindInfo, object: KubeObject): KubeObject {
  if (!hasStatus(info) || statusOfCreator.has(info.name)) return object
  return omit(object, ['status'])
}

/** The object as it will be stored: system metadata set, foreign claims about the status dropped. */
export function prepareForCreate(info: KindInfo, object: KubeObject, stamp: Stamp): KubeObject {
  const metadata = {
    ...omit(object.metadata, setByServer),
    uid: stamp.uid,
    creationTimestamp: stamp.now,
    // A driver's first version has no number: Kubernetes counts only its changes.
    ...(countsGenerations.has(info.name) && info.name !== 'CSIDriver' ? { generation: 1 } : {}),
  }
  if (!hasStatus(info) || statusOfCreator.has(info.name)) return { ...object, metadata }
  const status = initialStatus(info.name, object, stamp.now)
  return withStatus({ ...object, metadata }, status)
}

const setByServer = ['deletionTimestamp', 'deletionGracePeriodSeconds', 'resourceVersion', 'selfLink', 'generation']

function withStatus(object: KubeObject, status: unknown): KubeObject {
  return status === undefined ? omit(object, ['status']) : ({ ...object, status } as KubeObject)
}

function initialStatus(kind: KindName, object: KubeObject, now: string): Loose | undefined {
  switch (kind) {
    case 'PersistentVolume':
      return { phase: 'Pending', lastPhaseTransitionTime: now }
    case 'PersistentVolumeClaim':
      return { phase: 'Pending' }
    case 'Pod':
      return { phase: 'Pending', ...gatedCondition(object, now), qosClass: qosClass(object) }
    case 'Namespace':
      return { phase: 'Active' }
    case 'VolumeAttachment':
      return { attached: false }
    default:
      return undefined
  }
}

/** Nobody will look for a place for a pod with gates; its status says so from the first. */
function gatedCondition(pod: KubeObject, now: string): Loose {
  const { spec } = pod as { spec?: { schedulingGates?: readonly unknown[] } } // Pod
  if ((spec?.schedulingGates?.length ?? 0) === 0) return {}
  const condition = {
    type: 'PodScheduled',
    status: 'False',
    lastProbeTime: null,
    lastTransitionTime: now,
    reason: 'SchedulingGated',
    message: 'Scheduling is blocked due to non-empty scheduling gates',
  }
  return { conditions: [condition] }
}

/** The wanted object with everything that this write may not change taken from the current one. */
export function prepareForUpdate(
  info: KindInfo,
  wanted: KubeObject,
  current: KubeObject,
  subresource: string | undefined,
  now: string,
): KubeObject {
  const next: Loose = writeOf(info, wanted, current, subresource, now)
  next['metadata'] = carriedMetadata(info, wanted, current, subresource, next)
  return next as unknown as KubeObject // metadata was just set
}

function writeOf(
  info: KindInfo,
  wanted: KubeObject,
  current: KubeObject,
  subresource: string | undefined,
  now: string,
): Loose {
  switch (subresource) {
    case undefined:
      return mainWrite(info, wanted, current)
    case 'status':
      return statusWrite(info, wanted, current, now)
    case 'ephemeralcontainers':
      return withEphemeralContainers(wanted, current)
    case 'finalize':
      return { ...current, spec: { finalizers: [], ...((wanted as KubeObject & Loose)['spec'] as Loose | undefined) } }
    default:
      // The server's own subresources (a pod's binding) touch exactly what they mean to.
      return { ...wanted }
  }
}

/** Nothing else of the pod can be changed this way. */
function withEphemeralContainers(wanted: KubeObject, current: KubeObject): Loose {
  const [next, before] = [wanted, current].map((pod) => ((pod as KubeObject & Loose)['spec'] ?? {}) as Loose)
  const { ephemeralContainers } = next ?? {}
  const spec = { ...before, ...(ephemeralContainers === undefined ? {} : { ephemeralContainers }) }
  return { ...current, spec: ephemeralContainers === undefined ? omit(spec, ['ephemeralContainers']) : spec }
}

function mainWrite(info: KindInfo, wanted: KubeObject, current: KubeObject): Loose {
  const keepsStatus = hasStatus(info) && !statusWithMain.has(info.name)
  const next = keepsStatus ? withStatus(wanted, (current as KubeObject & Loose)['status']) : wanted
  // Only /finalize may change what holds a namespace.
  if (info.name === 'Namespace') return { ...next, spec: (current as KubeObject & Loose)['spec'] }
  if (info.name === 'Pod') return { ...next, spec: withPatience((next as Pod).spec) }
  return { ...next }
}

function statusWrite(info: KindInfo, wanted: KubeObject, current: KubeObject, now: string): Loose {
  const before = (current as KubeObject & Loose)['status'] as Loose | undefined // our own stored status
  const status = filledStatus(info.name, (wanted as KubeObject & Loose)['status'] as Loose | undefined, before)
  if (info.name !== 'PersistentVolume') return { ...withStatus(current, status) }
  return { ...withStatus(current, transitionTime(status, before, now)) }
}

/** A status is never without these, whatever the writer leaves out. */
function filledStatus(kind: KindName, status: Loose | undefined, before: Loose | undefined): Loose | undefined {
  switch (kind) {
    case 'PersistentVolume':
    case 'PersistentVolumeClaim':
      return { ...status, phase: status?.['phase'] ?? 'Pending' }
    case 'VolumeAttachment':
      return { ...status, attached: status?.['attached'] ?? false }
    case 'Pod':
      return { ...(before?.['qosClass'] === undefined ? {} : { qosClass: before['qosClass'] }), ...status }
    default:
      return status
  }
}

/** API-3: a new phase is stamped unless the client brought a time of its own; an old phase keeps its time. */
function transitionTime(status: Loose | undefined, before: Loose | undefined, now: string): Loose | undefined {
  if (status === undefined) return undefined
  const old = before ?? {}
  const time = status['lastPhaseTransitionTime']
  const changed = status['phase'] !== old['phase']
  if (changed && (time === undefined || time === old['lastPhaseTransitionTime'])) {
    return { ...status, lastPhaseTransitionTime: now }
  }
  if (!changed && time === undefined && old['lastPhaseTransitionTime'] !== undefined) {
    return { ...status, lastPhaseTransitionTime: old['lastPhaseTransitionTime'] }
  }
  return status
}

/** Members that a write cannot change: they stay as they are, or absent. */
const keptMetadata: ReadonlySet<keyof ObjectMeta> = new Set<keyof ObjectMeta>([
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
])
const keptOfPodStatus: ReadonlySet<keyof ObjectMeta> = new Set([...keptMetadata, 'ownerReferences'] as const)

function carriedMetadata(
  info: KindInfo,
  wanted: KubeObject,
  current: KubeObject,
  subresource: string | undefined,
  next: Loose,
): ObjectMeta {
  const keeps =
    subresource === 'ephemeralcontainers' || (subresource === 'status' && statusKeepsMetadata.has(info.name))
  const source = keeps ? withOwners(current.metadata, wanted.metadata.managedFields) : wanted.metadata
  const kept = subresource === 'status' && info.name === 'Pod' ? keptOfPodStatus : keptMetadata
  // A copy of the whole costs less than one member by member. The version is set anew before anybody sees it.
  const copy: Loose = { ...source, resourceVersion: undefined }
  const foreign = ['selfLink']
  for (const name of kept) {
    if (current.metadata[name] !== undefined) copy[name] = current.metadata[name]
    else if (copy[name] !== undefined) foreign.push(name)
  }
  const base = omit(copy, foreign)
  const writesSpec = subresource === undefined || subresource === 'ephemeralcontainers'
  if (countsGenerations.has(info.name) && writesSpec) {
    const { spec } = current as KubeObject & Loose
    if (!sameJson(spec, next['spec'])) base['generation'] = (current.metadata.generation ?? 0) + 1
  }
  return base as unknown as ObjectMeta // the name comes from wanted, which was checked against the path
}

function withOwners(metadata: ObjectMeta, managedFields: ObjectMeta['managedFields']): ObjectMeta {
  return managedFields ? { ...metadata, managedFields } : metadata
}

interface ResourceLists {
  readonly requests?: Readonly<Record<string, string>>
  readonly limits?: Readonly<Record<string, string>>
}

/** Guaranteed: every container limits cpu and memory to what it requests; BestEffort: nobody asks for anything. */
function qosClass(pod: KubeObject): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const { spec } = pod as { spec?: { containers?: unknown; initContainers?: unknown; resources?: ResourceLists } } // Pod
  const ofContainers = [spec?.containers, spec?.initContainers]
    .flatMap((list) => (Array.isArray(list) ? list : []))
    .map((container: { resources?: ResourceLists } | null) => container?.resources ?? {})
  // What is said of the whole pod counts instead of what its containers say.
  const containers = spec?.resources === undefined ? ofContainers : [spec.resources]
  const names = ['cpu', 'memory'] as const
  const any = containers.some(({ requests, limits }) => names.some((name) => requests?.[name] ?? limits?.[name]))
  if (!any) return 'BestEffort'
  const guaranteed = containers.every(({ requests, limits }) =>
    names.every((name) => limits?.[name] !== undefined && (requests?.[name] ?? limits[name]) === limits[name]),
  )
  return guaranteed ? 'Guaranteed' : 'Burstable'
}
