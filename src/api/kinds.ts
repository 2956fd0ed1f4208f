// Which kinds do we serve, and how is each called on the wire? One entry per kind: group, version, plural,
// scope, subresources, verbs. Everything that must know "all kinds" reads this table.
import type {
  ConfigMap,
  CSIDriver,
  CSINode,
  CSIStorageCapacity,
  Event,
  EventsEvent,
  Lease,
  Namespace,
  Node,
  OperationRecord,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  Secret,
  ServiceAccount,
  StorageClass,
  VolumeAttachment,
  VolumeAttributesClass,
  VolumeSnapshot,
  VolumeSnapshotClass,
  VolumeSnapshotContent,
} from './types.ts'

export interface KindMap {
  readonly Namespace: Namespace
  readonly Pod: Pod
  readonly Node: Node
  readonly PersistentVolume: PersistentVolume
  readonly PersistentVolumeClaim: PersistentVolumeClaim
  readonly ConfigMap: ConfigMap
  readonly Secret: Secret
  readonly ServiceAccount: ServiceAccount
  readonly Event: Event
  /** events.k8s.io/v1 Event: another view of the same stored objects as Event. */
  readonly EventsEvent: EventsEvent
  readonly Lease: Lease
  readonly StorageClass: StorageClass
  readonly VolumeAttachment: VolumeAttachment
  readonly CSIDriver: CSIDriver
  readonly CSINode: CSINode
  readonly CSIStorageCapacity: CSIStorageCapacity
  readonly VolumeAttributesClass: VolumeAttributesClass
  readonly VolumeSnapshot: VolumeSnapshot
  readonly VolumeSnapshotContent: VolumeSnapshotContent
  readonly VolumeSnapshotClass: VolumeSnapshotClass
  readonly Operation: OperationRecord
}

export type KindName = keyof KindMap

export type Verb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch'

/** A resource below an object: `pods/binding` takes and answers an object of another kind. */
export interface SubresourceInfo {
  readonly name: string
  /** The kind of the body, as discovery names it; `group` and `version` only when they differ from the parent's. */
  readonly kind: string
  readonly group?: string
  readonly version?: string
  readonly verbs: readonly Verb[]
  /** Answered by the node, not by the store. */
  readonly passedOn?: true
}

export interface KindInfo {
  readonly name: KindName
  /** The kind as written in objects: `Event` for both Event and EventsEvent. */
  readonly kind: string
  readonly group: string
  readonly version: string
  readonly apiVersion: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly namespaced: boolean
  readonly verbs: readonly Verb[]
  readonly subresources: readonly SubresourceInfo[]
  /** The message in the schema table. */
  readonly message: string
}

const allVerbs: readonly Verb[] = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']
const streamVerbs: readonly Verb[] = ['create', 'get']
const statusVerbs: readonly Verb[] = ['get', 'patch', 'update']

export const kinds: Readonly<Record<KindName, KindInfo>> = {
  Namespace: kind('Namespace', '', 'namespaces', 'core.Namespace', {
    namespaced: false,
    shortNames: ['ns'],
    verbs: allVerbs.filter((verb) => verb !== 'deletecollection'),
    subresources: [{ name: 'finalize', kind: 'Namespace', verbs: ['update'] }, status('Namespace')],
  }),
  Pod: kind('Pod', '', 'pods', 'core.Pod', {
    shortNames: ['po'],
    categories: ['all'],
    subresources: [
      { name: 'attach', kind: 'PodAttachOptions', verbs: streamVerbs, passedOn: true },
      { name: 'binding', kind: 'Binding', verbs: ['create'] },
      { name: 'ephemeralcontainers', kind: 'Pod', verbs: statusVerbs },
      { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] },
      { name: 'exec', kind: 'PodExecOptions', verbs: streamVerbs, passedOn: true },
      { name: 'log', kind: 'Pod', verbs: ['get'], passedOn: true },
      { name: 'portforward', kind: 'PodPortForwardOptions', verbs: streamVerbs, passedOn: true },
      status('Pod'),
    ],
  }),
  Node: kind('Node', '', 'nodes', 'core.Node', {
    namespaced: false,
    shortNames: ['no'],
    subresources: [{ name: 'proxy', kind: 'NodeProxyOptions', verbs: ['get'], passedOn: true }, status('Node')],
  }),
  PersistentVolume: kind('PersistentVolume', '', 'persistentvolumes', 'core.PersistentVolume', {
    namespaced: false,
    shortNames: ['pv'],
    subresources: [status('PersistentVolume')],
  }),
  PersistentVolumeClaim: kind('PersistentVolumeClaim', '', 'persistentvolumeclaims', 'core.PersistentVolumeClaim', {
    shortNames: ['pvc'],
    subresources: [status('PersistentVolumeClaim')],
  }),
  ConfigMap: kind('ConfigMap', '', 'configmaps', 'core.ConfigMap', { shortNames: ['cm'] }),
  Secret: kind('Secret', '', 'secrets', 'core.Secret', {}),
  ServiceAccount: kind('ServiceAccount', '', 'serviceaccounts', 'core.ServiceAccount', {
    shortNames: ['sa'],
    subresources: [
      { name: 'token', kind: 'TokenRequest', group: 'authentication.k8s.io', version: 'v1', verbs: ['create'] },
    ],
  }),
  Event: kind('Event', '', 'events', 'core.Event', { shortNames: ['ev'] }),
  EventsEvent: kind('EventsEvent', 'events.k8s.io', 'events', 'events.Event', { kind: 'Event', shortNames: ['ev'] }),
  Lease: kind('Lease', 'coordination.k8s.io', 'leases', 'coordination.Lease', {}),
  StorageClass: kind('StorageClass', 'storage.k8s.io', 'storageclasses', 'storage.StorageClass', {
    namespaced: false,
    shortNames: ['sc'],
  }),
  VolumeAttachment: kind('VolumeAttachment', 'storage.k8s.io', 'volumeattachments', 'storage.VolumeAttachment', {
    namespaced: false,
    subresources: [status('VolumeAttachment')],
  }),
  CSIDriver: kind('CSIDriver', 'storage.k8s.io', 'csidrivers', 'storage.CSIDriver', { namespaced: false }),
  CSINode: kind('CSINode', 'storage.k8s.io', 'csinodes', 'storage.CSINode', {
    namespaced: false,
    subresources: [status('CSINode')],
  }),
  CSIStorageCapacity: kind(
    'CSIStorageCapacity',
    'storage.k8s.io',
    'csistoragecapacities',
    'storage.CSIStorageCapacity',
    {},
  ),
  VolumeAttributesClass: kind(
    'VolumeAttributesClass',
    'storage.k8s.io',
    'volumeattributesclasses',
    'storage.VolumeAttributesClass',
    { namespaced: false, shortNames: ['vac'] },
  ),
  VolumeSnapshot: kind('VolumeSnapshot', 'snapshot.storage.k8s.io', 'volumesnapshots', 'snapshot.VolumeSnapshot', {
    shortNames: ['vs'],
    subresources: [status('VolumeSnapshot')],
  }),
  VolumeSnapshotContent: kind(
    'VolumeSnapshotContent',
    'snapshot.storage.k8s.io',
    'volumesnapshotcontents',
    'snapshot.VolumeSnapshotContent',
    { namespaced: false, shortNames: ['vsc', 'vscs'], subresources: [status('VolumeSnapshotContent')] },
  ),
  VolumeSnapshotClass: kind(
    'VolumeSnapshotClass',
    'snapshot.storage.k8s.io',
    'volumesnapshotclasses',
    'snapshot.VolumeSnapshotClass',
    { namespaced: false, shortNames: ['vsclass', 'vsclasses'] },
  ),
  Operation: kind('Operation', 'hawser.dev', 'operations', 'hawser.Operation', {
    namespaced: false,
    shortNames: ['op'],
    subresources: [status('Operation')],
  }),
}

export const kindNames: readonly KindName[] = Object.keys(kinds) as KindName[] // the keys of our own literal

const byResource = new Map(kindNames.map((name) => [resourceKey(kinds[name].group, kinds[name].plural), kinds[name]]))
const byKind = new Map(kindNames.map((name) => [`${kinds[name].apiVersion} ${kinds[name].kind}`, kinds[name]]))

/** The kind behind `/apis/{group}/{version}/{plural}` (`''` is the core group), if we serve it. */
export function kindByResource(group: string, version: string, plural: string): KindInfo | undefined {
  const info = byResource.get(resourceKey(group, plural))
  return info?.version === version ? info : undefined
}

/** The kind an object says it is. */
export function kindByType(apiVersion: string, kindText: string): KindInfo | undefined {
  return byKind.get(`${apiVersion} ${kindText}`)
}

export function isKindName(text: string): text is KindName {
  return Object.hasOwn(kinds, text)
}

/** `persistentvolumes`, `storageclasses.storage.k8s.io`: how error texts call a resource. */
export function qualifiedResource(info: KindInfo): string {
  return info.group === '' ? info.plural : `${info.plural}.${info.group}`
}

/** `PersistentVolume`, `StorageClass.storage.k8s.io`: how "is invalid" texts call a kind. */
export function qualifiedKind(info: KindInfo): string {
  return info.group === '' ? info.kind : `${info.kind}.${info.group}`
}

/** As Go prints a group, version and kind: `/v1, Kind=Pod`. */
export function versionKind(apiVersion: string, kind: string): string {
  return `${apiVersion.includes('/') ? '' : '/'}${apiVersion}, Kind=${kind}`
}

/** What Kubernetes calls the package of the kind's inner type; events live in core, whichever way they are seen. */
export function goPackage(info: KindInfo): string {
  const group = info.name === 'EventsEvent' ? '' : (info.group.split('.', 1)[0] ?? '')
  return group === '' ? 'core' : group
}

function kind(
  name: KindName,
  group: string,
  plural: string,
  message: string,
  rest: Partial<Pick<KindInfo, 'kind' | 'namespaced' | 'shortNames' | 'categories' | 'verbs' | 'subresources'>>,
): KindInfo {
  const kindText = rest.kind ?? name
  return {
    name,
    kind: kindText,
    group,
    version: 'v1',
    apiVersion: group === '' ? 'v1' : `${group}/v1`,
    plural,
    singular: kindText.toLowerCase(),
    shortNames: rest.shortNames ?? [],
    categories: rest.categories ?? [],
    namespaced: rest.namespaced ?? true,
    verbs: rest.verbs ?? allVerbs,
    subresources: rest.subresources ?? [],
    message,
  }
}

function status(kindText: string): SubresourceInfo {
  return { name: 'status', kind: kindText, verbs: statusVerbs }
}

function resourceKey(group: string, plural: string): string {
  return `${group}/${plural}`
}
