// What can a volume type do? One object per side, node and cluster; capabilities are optional members that take
// the spec and may decline it. All calls are idempotent and say the effect of a failure truthfully (effect.ts).
import type { PluginName, PodUid } from '../api/names.ts'
import type { PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '../api/types.ts'
import type { AccessMode } from '../api/access-modes.ts'
import type { SourceKind, VolumeSpec } from './spec.ts'

/** Tells the pod's user something while a call goes on (a Kubernetes Event). */
export type Notify = (event: {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}) => void

/** PLUG-7: everything SetUp is told. */
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
  /** KD-3, in bytes. */
  readonly sizeLimitBytes?: bigint
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
  /** FSG-6 */
  readonly fsUser?: number
}

export interface UnmountRequest {
  /** The spec's name, as in the path. */
  readonly volumeName: string
  readonly pod: PodUid
  readonly target: string
  /** What the agent knows of the volume; not there for an orphan. For when the plugin's own notes on disk are damaged. */
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

/** METRIC-1 */
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

/** CSI-71: something wrong with a volume, as its storage says. */
export interface HealthCondition {
  readonly status: 'Degraded' | 'Inaccessible' | 'DataLoss'
  readonly reason: string
  readonly message: string
}

export interface HealthRequest {
  readonly spec: VolumeSpec
  /** Where it is mounted for the pod, and on the node; '' where it is not, or not known to be. */
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
  /** PLUG-14: read-only to containers whatever their volumeMounts say. */
  readOnly?(spec: VolumeSpec): boolean
  /** Is this volume attached by the cluster side before this node may use it? */
  attachable?(spec: VolumeSpec): boolean
  /** Calls back when these answers may have become others: a driver says only now that it wants no attaching (KP-9). */
  watch?(listener: () => void): Disposable
  /** PLUG-4: was this volume refused because the node can hold no more of its kind? Then the pod can never start here. */
  exhausted?(spec: VolumeSpec, signal: AbortSignal): Promise<boolean>
  /** PLUG-1: can this volume be mounted with a SELinux label of its own? */
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
  /** What is wrong with the volume; an empty list says nothing is, undefined that the storage does not tell. */
  health?(request: HealthRequest, signal: AbortSignal): Promise<readonly HealthCondition[] | undefined>
  /** Must SetUp run again on this sync of a mounted volume? Overrides the trait where it depends on the spec. */
  remountRequired?(spec: VolumeSpec): boolean
  /** How many volumes of this plugin the node takes, by limit key. */
  attachLimits?(): ReadonlyMap<string, number>
}

export interface DeviceMounter {
  /** The global path for this spec. */
  path(spec: VolumeSpec): string
  /** Waits until the device is there; answers its path ('' when there is none). */
  waitForAttach?(
    request: { readonly spec: VolumeSpec; readonly devicePath: string; readonly pod: Pod },
    signal: AbortSignal,
  ): Promise<string>
  mount(request: DeviceMountRequest, signal: AbortSignal): Promise<void>
  /** Works from the path alone; the spec is for when the plugin's own notes on disk are damaged. */
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

export interface BlockMapper {
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

export interface UnmapRequest {
  readonly spec: VolumeSpec
  readonly pod: PodUid
  readonly volumeName: string
}

export interface ClusterPlugin {
  attacher?(spec: VolumeSpec): Attacher | undefined
  /** DET-2: detaching by name alone, after a restart without a spec. */
  attacherByName?(): Attacher | undefined
  provision?(request: ProvisionRequest, signal: AbortSignal): Promise<PersistentVolume>
  /** Deletes the storage behind a volume. */
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

export interface PluginTraits {
  readonly mountOptions: boolean
  /** PLUG-1: SetUp is called again on every sync of a mounted volume (contents come from the API). */
  readonly remountOnPodUpdate: boolean
  /** Persistent plugins: the access modes they can serve (PLUG-2). */
  readonly accessModes?: readonly AccessMode[]
}

export interface PluginDefinition<K extends SourceKind, NodeDeps, ClusterDeps = never> {
  readonly name: PluginName
  readonly source: K
  readonly traits: PluginTraits
  /** Identity of the storage behind the spec; for attachable volumes enough to detach by. */
  volumeName(spec: VolumeSpec<K>): string
  /** Declines specs of its source that it cannot serve (flexVolume drivers, PV-only sources). */
  supports?(spec: VolumeSpec<K>): boolean
  node(deps: NodeDeps): NodePlugin
  cluster?(deps: ClusterDeps): ClusterPlugin
}

/** Checks the shape and infers the types; the plugin's file exports the result by default. */
export function definePlugin<K extends SourceKind, NodeDeps, ClusterDeps = never>(
  definition: PluginDefinition<K, NodeDeps, ClusterDeps>,
): PluginDefinition<K, NodeDeps, ClusterDeps> {
  return definition
}
