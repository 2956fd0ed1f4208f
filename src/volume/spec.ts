// Which volume is meant? The wire says "one of many optional fields"; inside there is one tagged union,
// made here from a pod's volume or from a PersistentVolume.
import type {
  AWSElasticBlockStoreVolumeSource,
  AzureDiskVolumeSource,
  AzureFilePersistentVolumeSource,
  AzureFileVolumeSource,
  CephFSPersistentVolumeSource,
  CephFSVolumeSource,
  CinderPersistentVolumeSource,
  CinderVolumeSource,
  ConfigMapVolumeSource,
  CSIPersistentVolumeSource,
  CSIVolumeSource,
  DownwardAPIVolumeSource,
  EmptyDirVolumeSource,
  FCVolumeSource,
  FlexPersistentVolumeSource,
  FlexVolumeSource,
  GCEPersistentDiskVolumeSource,
  GitRepoVolumeSource,
  HostPathVolumeSource,
  ImageVolumeSource,
  ISCSIPersistentVolumeSource,
  ISCSIVolumeSource,
  LocalVolumeSource,
  NFSVolumeSource,
  PersistentVolume,
  PortworxVolumeSource,
  ProjectedVolumeSource,
  RBDPersistentVolumeSource,
  RBDVolumeSource,
  SecretVolumeSource,
  Volume,
  VsphereVirtualDiskVolumeSource,
} from '../api/generated/types.ts'
import { VolumeError } from './effect.ts'

/** Every source that a volume can have after claims are resolved. */
export interface VolumeSources {
  readonly emptyDir: EmptyDirVolumeSource
  readonly hostPath: HostPathVolumeSource
  readonly configMap: ConfigMapVolumeSource
  readonly secret: SecretVolumeSource
  readonly downwardAPI: DownwardAPIVolumeSource
  readonly projected: ProjectedVolumeSource
  readonly local: LocalVolumeSource
  readonly nfs: NFSVolumeSource
  readonly iscsi: ISCSIVolumeSource | ISCSIPersistentVolumeSource
  readonly fc: FCVolumeSource
  readonly flexVolume: FlexVolumeSource | FlexPersistentVolumeSource
  readonly csi: CSIVolumeSource | CSIPersistentVolumeSource
  readonly image: ImageVolumeSource
  readonly gitRepo: GitRepoVolumeSource
  // Sources without a plugin here: they are understood, so that the answer is "no volume plugin matched".
  readonly awsElasticBlockStore: AWSElasticBlockStoreVolumeSource
  readonly azureDisk: AzureDiskVolumeSource
  readonly azureFile: AzureFileVolumeSource | AzureFilePersistentVolumeSource
  readonly cephfs: CephFSVolumeSource | CephFSPersistentVolumeSource
  readonly cinder: CinderVolumeSource | CinderPersistentVolumeSource
  readonly gcePersistentDisk: GCEPersistentDiskVolumeSource
  readonly portworxVolume: PortworxVolumeSource
  readonly rbd: RBDVolumeSource | RBDPersistentVolumeSource
  readonly vsphereVolume: VsphereVirtualDiskVolumeSource
}

export type SourceKind = keyof VolumeSources
export type VolumeSource = { [K in SourceKind]: { readonly kind: K; readonly value: VolumeSources[K] } }[SourceKind]
type VolumeMode = 'Filesystem' | 'Block'

export interface VolumeSpec<K extends SourceKind = SourceKind> {
  /** The inner name (ID-4): the PersistentVolume's name, or the pod's volume name. */
  readonly name: string
  readonly from: 'pod' | 'persistentVolume'
  readonly mode: VolumeMode
  /** The source's own flag for inline volumes, the claim reference's flag for persistent ones (PLUG-13). */
  readonly readOnly: boolean
  readonly source: Extract<VolumeSource, { kind: K }>
  /** The whole object when the volume is persistent: capacity, access modes, mount options, affinity, claim. */
  readonly persistentVolume?: PersistentVolume
}

const sourceKinds: { readonly [K in SourceKind]: true } = {
  emptyDir: true,
  hostPath: true,
  configMap: true,
  secret: true,
  downwardAPI: true,
  projected: true,
  local: true,
  nfs: true,
  iscsi: true,
  fc: true,
  flexVolume: true,
  csi: true,
  image: true,
  gitRepo: true,
  awsElasticBlockStore: true,
  azureDisk: true,
  azureFile: true,
  cephfs: true,
  cinder: true,
  gcePersistentDisk: true,
  portworxVolume: true,
  rbd: true,
  vsphereVolume: true,
}

/** An inline volume of a pod. Claims and generic ephemeral volumes must be resolved to their PersistentVolume first. */
export function specOfPodVolume(volume: Volume): VolumeSpec {
  const spec = inlineSpec(volume)
  if (!spec) throw noSource(volume.name)
  return spec
}

/** The same, or undefined for a claim, a generic ephemeral volume or an unknown source. */
export function inlineSpec(volume: Volume): VolumeSpec | undefined {
  const source = sourceIn(volume)
  if (!source) return undefined
  const { readOnly } = source.value as { readonly readOnly?: boolean }
  return { name: volume.name, from: 'pod', mode: 'Filesystem', readOnly: readOnly === true, source }
}

/** A PersistentVolume; `readOnly` comes from the pod's claim reference. */
export function specOfPersistentVolume(persistentVolume: PersistentVolume, readOnly: boolean): VolumeSpec {
  const name = persistentVolume.metadata.name ?? ''
  const source = sourceIn(persistentVolume.spec ?? {})
  if (!source) throw noSource(name)
  const mode = persistentVolume.spec?.volumeMode
  if (mode === undefined) {
    // The API server always fills the field in; without it we must not guess between mount and map (ID-8).
    throw new VolumeError('VolumeModeMissing', `cannot get volumeMode for volume: ${name}`, { effect: 'none' })
  }
  return {
    name,
    from: 'persistentVolume',
    mode: mode === 'Block' ? 'Block' : 'Filesystem',
    readOnly,
    source,
    persistentVolume,
  }
}

/** Narrows a spec to one kind of source. */
export function hasSource<K extends SourceKind>(spec: VolumeSpec, kind: K): spec is VolumeSpec & VolumeSpec<K> {
  return spec.source.kind === kind
}

const sourceNames = Object.keys(sourceKinds)

function sourceIn(holder: object): VolumeSource | undefined {
  const fields = holder as Readonly<Record<string, unknown>>
  for (const kind of sourceNames) {
    const value = fields[kind]
    // The kind is a key of VolumeSources and the API validated the value's shape.
    if (value !== undefined && value !== null) return { kind, value } as VolumeSource
  }
  return undefined
}

/** An unknown source gets the same error as one that no plugin serves. */
function noSource(name: string): VolumeError {
  const text = `failed to get Plugin from volumeSpec for volume "${name}" err=no volume plugin matched`
  return new VolumeError('NoPluginMatched', text, { effect: 'none' })
}
