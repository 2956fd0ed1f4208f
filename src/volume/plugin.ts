// What can a volume type do? One object per side, node and cluster; capabilities are optional members that take
// the spec and may decline it. All calls are idempotent and say the effect of a failure truthfully (effect.ts).
import type { PluginName, PodUid } from '../api/names.ts'
import type { PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '../api/generated/types.ts'
import type { SourceKind, VolumeSpec } from './spec.ts'

/** Tells the pod's user something while a call goes on (a Kubernetes Event). */
export type Notify = (event: {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}) => void

/** Everything that SetUp needs (PLUG-7). */
export interface MountRequest<K extends SourceKind = SourceKind> {
  readonly spec: VolumeSpec<K>
  readonly pod: Pod
  /** The pod-local directory of LAYOUT-1. */
  readonly target: string
  /** What waitForAttach answered, if the volume has a device. */
  readonly devicePath?: string
  /** Where the device is mounted on this node, if the plugin mounts devices. */
  readonly deviceMountPath?: string
  readonly ownership: Ownership
  /** With which SELinux label it is mounted; absent: none. */
  readonly seLinuxLabel?: string
  /** With either of these, nothing on disk may be removed on failure: a pod may be using it (MNT-11). */
  readonly foundOnDisk: boolean
  readonly remount: boolean
  readonly notify: Notify
}

export interface Ownership {
  readonly fsGroup?: number
  readonly changePolicy?: 'Always' | 'OnRootMismatch'
  /** The one user that all containers run as; absent if they differ or do not say (FSG-6). */
  readonly fsUser?: number
}

interface UnmountRequest {
  /** The spec's name, as in the path. */
  readonly volumeName: string
  readonly pod: PodUid
  readonly target: string
  /** What the agent knows of the volume, for when the plugin's own files on disk are damaged. Absent for an orphan. */
  readonly spec?: VolumeSpec
}

export interface RestoreRequest {
  readonly volumeName: string
  readonly pod: PodUid
  readonly path: string
  readonly mode: 'Filesystem' | 'Block'
}

export interface ExpandRequest {
  readonly spec: VolumeSpec
  readonly oldBytes: bigint
  readonly newBytes: bigint
  /** Where the volume is mounted in a pod, or its device for block volumes. */
  readonly path?: string
  readonly stagingPath?: string
  readonly devicePath?: string
}

/** How full a volume is; absent fields are not known (METRIC-1). */
export interface Usage {
  readonly time: number
  readonly usedBytes?: bigint
  readonly capacityBytes?: bigint
  readonly availableBytes?: bigint
  readonly inodes?: bigint
  readonly inodesUsed?: bigint
  readonly inodesFree?: bigint
  readonly abnormal?: { readonly message: string }
}

/** Something wrong with a volume, as its storage says (CSI-71). */
export interface HealthCondition {
  readonly status: 'Degraded' | 'Inaccessible' | 'DataLoss'
  readonly reason: string
  readonly message: string
}

interface HealthRequest {
  readonly spec: VolumeSpec
  /** Where it is mounted for the pod, and on the node; '' if it is not, or if that is not known. */
  readonly path: string
  readonly stagingPath: string
}

export interface NodePlugin {
  /** NewMounter: refuses what cannot be mounted here at all, before anything is waited for or touched. */
  prepare?(spec: VolumeSpec, signal: AbortSignal): Promise<void>
  mount(request: MountRequest, signal: AbortSignal): Promise<void>
  unmount(request: UnmountRequest, signal: AbortSignal): Promise<void>
  /** Where containers find the volume; the target itself unless the plugin says otherwise (hostPath, csi). */
  path?(spec: VolumeSpec, target: string): string
  /** Read-only to containers whatever their volumeMounts say (PLUG-14). */
  readOnly?(spec: VolumeSpec): boolean
  /** Is this volume attached by the cluster side before this node may use it? */
  attachable?(spec: VolumeSpec): boolean
  /** Calls back when these answers may have changed: a CSIDriver that appears may say that no attaching is needed (KP-9). */
  watch?(listener: () => void): Disposable
  /** Calls back when storage that was away can be reached again: what failed on its volumes need not wait for its back-off. */
  onReturn?(listener: (serves: (spec: VolumeSpec) => boolean) => void): Disposable
  /** Was this volume refused because the node can hold no more of its kind? Then the pod can never start here (PLUG-4). */
  exhausted?(spec: VolumeSpec, signal: AbortSignal): Promise<boolean>
  /** Can this volume be mounted with a SELinux label of its own (PLUG-1)? */
  seLinuxMount?(spec: VolumeSpec): boolean
  /** The label that a volume found on disk was mounted with (RCS-5). */
  restoredLabel?(request: RestoreRequest, signal: AbortSignal): Promise<string | undefined>
  /** Rebuilds the spec from disk alone after a restart (RCO-1). */
  restore?(request: RestoreRequest, signal: AbortSignal): Promise<VolumeSpec>
  /** One mount per node, shared by pods. */
  device?(spec: VolumeSpec): DeviceMounter | undefined
  block?(spec: VolumeSpec): BlockMapper | undefined
  /** NodeExpandable. Answers the size reached. `requiresResize` false means there is nothing to do on the node. */
  expand?(request: ExpandRequest, signal: AbortSignal): Promise<bigint>
  requiresResize?(spec: VolumeSpec): boolean
  usage?(request: { readonly spec: VolumeSpec; readonly path: string }, signal: AbortSignal): Promise<Usage>
  /** What is wrong with the volume. Empty: nothing is. Undefined: the storage does not report it. */
  health?(request: HealthRequest, signal: AbortSignal): Promise<readonly HealthCondition[] | undefined>
  /** Must SetUp run again on this sync of a mounted volume? Overrides the trait where it depends on the spec. */
  remountRequired?(spec: VolumeSpec): boolean
  /** How many volumes of this plugin the node takes, by limit key. */
  attachLimits?(): ReadonlyMap<string, number>
}

/** `waitForAttach` brings the device to this node itself: iSCSI logs in. `unmount` or `tearDownDevice` undoes that too. */
export interface Connecting {
  readonly connects?: true
}

export interface DeviceMounter extends Connecting {
  /** The global path for this spec. */
  path(spec: VolumeSpec): string
  /** Waits until the device is there; answers its path ('' when there is none). */
  waitForAttach?(
    request: { readonly spec: VolumeSpec; readonly devicePath: string; readonly pod: Pod },
    signal: AbortSignal,
  ): Promise<string>
  mount(request: DeviceMountRequest, signal: AbortSignal): Promise<void>
  /** Works from the path alone; the spec is for when the plugin's own files on disk are damaged. */
  unmount(request: { readonly path: string; readonly spec?: VolumeSpec }, signal: AbortSignal): Promise<void>
}

export interface DeviceMountRequest {
  readonly spec: VolumeSpec
  readonly devicePath: string
  readonly path: string
  readonly pod: Pod
  readonly fsGroup?: number
  readonly seLinuxLabel?: string
}

export interface BlockMapper extends Connecting {
  /** `<root>/plugins/<plugin>/volumeDevices/…` for this spec. */
  globalMapPath(spec: VolumeSpec): string
  waitForAttach?(
    request: { readonly spec: VolumeSpec; readonly devicePath: string; readonly pod: Pod },
    signal: AbortSignal,
  ): Promise<string>
  /** Custom mappers: SetUpDevice; answers the staging path. */
  setUpDevice?(request: MapRequest, signal: AbortSignal): Promise<string>
  /** Custom mappers: MapPodDevice; '' means "use the attacher's device path". */
  mapPodDevice?(request: MapRequest, signal: AbortSignal): Promise<string>
  /** Custom mappers: the pods that MapPodDevice has something on disk for, found or left there by an earlier life (RCS-6). */
  mappedPods?(spec: VolumeSpec, signal: AbortSignal): Promise<readonly string[]>
  unmapPodDevice?(request: UnmapRequest, signal: AbortSignal): Promise<void>
  tearDownDevice?(
    request: { readonly spec: VolumeSpec; readonly globalMapPath: string; readonly devicePath: string },
    signal: AbortSignal,
  ): Promise<void>
  /** The device of a volume without attacher (local). */
  devicePath?(spec: VolumeSpec): string
  stagingPath?(spec: VolumeSpec): string
}

export interface MapRequest {
  readonly spec: VolumeSpec
  readonly pod: Pod
  readonly devicePath: string
  readonly globalMapPath: string
}

interface UnmapRequest {
  readonly spec: VolumeSpec
  readonly pod: PodUid
  readonly volumeName: string
}

export interface ClusterPlugin {
  attacher?(spec: VolumeSpec): Attacher | undefined
  /** Detaching by name alone, after a restart without a spec (DET-2). */
  attacherByName?(): Attacher | undefined
  provision?(request: ProvisionRequest, signal: AbortSignal): Promise<PersistentVolume>
  /** Deletes the storage behind a volume. The code `DeletedVolumeInUse` says that it must wait; the volume does not fail. */
  remove?(spec: VolumeSpec, signal: AbortSignal): Promise<void>
  recycle?(spec: VolumeSpec, signal: AbortSignal): Promise<void>
  expand?(request: ExpandRequest, signal: AbortSignal): Promise<bigint>
  requiresResize?(spec: VolumeSpec): boolean
}

export interface Attacher {
  /** Answers the device path ('' when the node finds it by itself). */
  attach(request: { readonly spec: VolumeSpec; readonly node: string }, signal: AbortSignal): Promise<string>
  detach(request: { readonly volumeName: string; readonly node: string }, signal: AbortSignal): Promise<void>
  /** Which of these are still attached to the node? */
  verify(
    request: { readonly specs: readonly VolumeSpec[]; readonly node: string },
    signal: AbortSignal,
  ): Promise<readonly boolean[]>
}

export interface ProvisionRequest {
  readonly claim: PersistentVolumeClaim
  readonly storageClass: StorageClass
  readonly volumeName: string
  readonly selectedNode?: string
}

/** Facts about a volume type that node and control plane need. An optional trait that is absent means no. */
export interface PluginTraits<K extends SourceKind = SourceKind> {
  /** May a PersistentVolume of this type have mount options? */
  readonly takesMountOptions: boolean
  /** Is `mount` called again on every sync of a mounted volume, because its contents come from the API (PLUG-1)? */
  readonly remountOnPodUpdate: boolean
  /** The ConfigMaps and Secrets in the pod's namespace whose contents the volume shows. The node watches them. */
  sourceObjects?(spec: VolumeSpec<K>): readonly SourceObject[]
  /** Do the contents change with time, as tokens do? Then the refresh of a volume comes every minute, not every ten. */
  changesByTime?(spec: VolumeSpec<K>): boolean
  /** A limit that the kernel does not enforce. The node measures the volume and evicts a pod that exceeds it. */
  sizeLimit?(spec: VolumeSpec<K>): SizeLimit | undefined
  /** Is a directory made at the volume's path when a container starts and nothing is there? */
  createsMissingDirectory?(spec: VolumeSpec<K>): boolean
}

export interface SourceObject {
  readonly kind: 'ConfigMap' | 'Secret'
  readonly name: string
}

export interface SizeLimit {
  readonly bytes: bigint
  /** What the evicted pod's status says. */
  readonly exceededMessage: string
}

export interface PluginDefinition<K extends SourceKind, NodeDeps, ClusterDeps = unknown> {
  readonly name: PluginName
  readonly source: K
  readonly traits: PluginTraits<K>
  /** Identity of the storage behind the spec; for attachable volumes enough to detach by. */
  volumeName(spec: VolumeSpec<K>): string
  /** Declines specs of its source that it cannot serve (flexVolume drivers, PV-only sources). */
  supports?(spec: VolumeSpec<K>): boolean
  node(deps: NodeDeps): NodePlugin
  cluster?(deps: ClusterDeps): ClusterPlugin
}

/** Checks the shape and infers the types; the plugin's file exports the result by default. */
export function definePlugin<K extends SourceKind, NodeDeps, ClusterDeps = unknown>(
  definition: PluginDefinition<K, NodeDeps, ClusterDeps>,
): PluginDefinition<K, NodeDeps, ClusterDeps> {
  return definition
}
