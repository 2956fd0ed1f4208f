// Which CSI driver serves a volume whose in-tree plugin is gone? Translated once, where a spec enters (MGR-12).
// File shares (azureFile) are not attached and are left alone here.
import type { CSIPersistentVolumeSource, PersistentVolume } from '../api/types.ts'
import type { SourceKind, VolumeSpec } from './spec.ts'

/** In-tree plugin name → CSI driver; always on. */
export const migratedPlugins: Readonly<Record<string, string>> = {
  'kubernetes.io/aws-ebs': 'ebs.csi.aws.com',
  'kubernetes.io/azure-disk': 'disk.csi.azure.com',
  'kubernetes.io/azure-file': 'file.csi.azure.com',
  'kubernetes.io/cinder': 'cinder.csi.openstack.org',
  'kubernetes.io/gce-pd': 'pd.csi.storage.gke.io',
  'kubernetes.io/portworx-volume': 'pxd.portworx.com',
  'kubernetes.io/vsphere-volume': 'csi.vsphere.vmware.com',
}

interface Translated {
  readonly source: CSIPersistentVolumeSource
  /** The last part of the made-up volume name of an inline volume. */
  readonly diskName: string
}

/** The same spec, or its CSI form. An inline volume gets a made-up PersistentVolume, which its attachment carries along. */
export function migrated(spec: VolumeSpec): VolumeSpec {
  const translated = translate(spec)
  if (!translated) return spec
  const { source, diskName } = translated
  const name = spec.from === 'pod' ? `${source.driver}-${diskName}` : spec.name
  const persistentVolume = spec.persistentVolume
    ? withSource(spec.persistentVolume, spec.source.kind, source)
    : inlineVolume(name, source)
  return { ...spec, name, source: { kind: 'csi', value: source }, persistentVolume }
}

/** An inline volume that was translated: its attachment must carry the whole spec, for there is no PersistentVolume object. */
export function isMigratedInline(spec: VolumeSpec): boolean {
  return spec.from === 'pod' && spec.persistentVolume !== undefined
}

function translate(spec: VolumeSpec): Translated | undefined {
  const { source } = spec
  switch (source.kind) {
    case 'gcePersistentDisk': {
      const { pdName, partition } = source.value
      const handle = `projects/UNSPECIFIED/${gcePlace(spec.persistentVolume)}/disks/${pdName}`
      const volumeAttributes = { partition: partition ? String(partition) : '' }
      return csi('pd.csi.storage.gke.io', handle, pdName, source.value, volumeAttributes)
    }
    case 'awsElasticBlockStore': {
      const { volumeID, partition } = source.value
      const handle = volumeID.slice(volumeID.lastIndexOf('/') + 1)
      return csi('ebs.csi.aws.com', handle, handle, source.value, { partition: partition ? String(partition) : '' })
    }
    case 'azureDisk': {
      const { diskURI, diskName, cachingMode, kind } = source.value
      const attributes = { ...(cachingMode ? { cachingMode } : {}), ...(kind ? { kind } : {}) }
      return csi('disk.csi.azure.com', diskURI, diskName, source.value, attributes)
    }
    case 'cinder': {
      const { volumeID } = source.value
      return csi('cinder.csi.openstack.org', volumeID, volumeID, source.value, {})
    }
    case 'portworxVolume': {
      const { volumeID } = source.value
      return csi('pxd.portworx.com', volumeID, volumeID, source.value, {})
    }
    case 'vsphereVolume': {
      const { volumePath } = source.value
      const attributes = { type: 'vSphere CNS Block Volume', initialvolumefilepath: volumePath }
      return csi('csi.vsphere.vmware.com', volumePath, volumePath, source.value, attributes)
    }
    default:
      return undefined
  }
}

function csi(
  driver: string,
  volumeHandle: string,
  diskName: string,
  old: { readonly fsType?: string; readonly readOnly?: boolean },
  volumeAttributes: Readonly<Record<string, string>>,
): Translated {
  const source: CSIPersistentVolumeSource = {
    driver,
    volumeHandle,
    ...(old.fsType ? { fsType: old.fsType } : {}),
    ...(old.readOnly ? { readOnly: true } : {}),
    ...(Object.keys(volumeAttributes).length > 0 ? { volumeAttributes } : {}),
  }
  return { source, diskName }
}

/** The zone or region a disk's labels name; a label with several zones means a regional disk. */
function gcePlace(volume: PersistentVolume | undefined): string {
  const labels = volume?.metadata.labels
  const zones = labels?.['topology.kubernetes.io/zone'] ?? labels?.['failure-domain.beta.kubernetes.io/zone']
  if (!zones) return 'zones/UNSPECIFIED'
  const [first = '', ...others] = zones.split('__')
  return others.length > 0 ? `regions/${first.slice(0, first.lastIndexOf('-'))}` : `zones/${first}`
}

function withSource(volume: PersistentVolume, kind: SourceKind, source: CSIPersistentVolumeSource): PersistentVolume {
  const { [kind as 'csi']: _dropped, ...rest } = volume.spec ?? {}
  return { ...volume, spec: { ...rest, csi: source } }
}

function inlineVolume(name: string, source: CSIPersistentVolumeSource): PersistentVolume {
  return {
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem', csi: source },
  }
}
