// Which CSI driver serves a volume whose in-tree plugin is gone? Translated once, where a spec enters (MGR-12).
// What no driver can serve is an error of that volume alone.
import type { CSIPersistentVolumeSource, PersistentVolume } from '../api/generated/types.ts'
import { VolumeError } from './effect.ts'
import type { SourceKind, VolumeSources, VolumeSpec } from './spec.ts'

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
  /** The made-up name of an inline volume; it names the place where the volume is staged. */
  readonly inlineName: string
  readonly inlineMode: 'ReadWriteOnce' | 'ReadOnlyMany' | 'ReadWriteMany'
}

/**
 * The same spec, or its CSI form. An inline volume gets a made-up PersistentVolume, which its attachment carries along.
 * The namespace is the pod's; only file shares of a pod need it.
 */
export function migrated(spec: VolumeSpec, namespace = ''): VolumeSpec {
  const translated = translate(spec, namespace)
  if (!translated) return spec
  const { source, inlineName, inlineMode } = translated
  const name = spec.from === 'pod' ? inlineName : spec.name
  const persistentVolume = spec.persistentVolume
    ? withSource(spec.persistentVolume, spec.source.kind, source)
    : { metadata: { name }, spec: { accessModes: [inlineMode], volumeMode: 'Filesystem' as const, csi: source } }
  return { ...spec, name, source: { kind: 'csi', value: source }, persistentVolume }
}

/** An inline volume that was translated: its attachment must carry the whole spec, for there is no PersistentVolume object. */
export function isMigratedInline(spec: VolumeSpec): boolean {
  return spec.from === 'pod' && spec.persistentVolume !== undefined
}

function translate(spec: VolumeSpec, namespace: string): Translated | undefined {
  const { source } = spec
  switch (source.kind) {
    case 'gcePersistentDisk': {
      const { pdName, partition, readOnly } = source.value
      const handle = `projects/UNSPECIFIED/${gcePlace(spec.persistentVolume)}/disks/${pdName}`
      const attributes = { partition: partition ? String(partition) : '' }
      const translated = csi('pd.csi.storage.gke.io', handle, source.value, attributes)
      const inlineMode = readOnly ? 'ReadOnlyMany' : 'ReadWriteOnce'
      return { ...translated, inlineName: `pd.csi.storage.gke.io-${pdName}`, inlineMode }
    }
    case 'awsElasticBlockStore': {
      const attributes = { partition: String(source.value.partition ?? 0) }
      return csi('ebs.csi.aws.com', ebsVolume(source.value.volumeID), source.value, attributes)
    }
    case 'azureDisk': {
      const { diskURI, cachingMode, fsType, kind } = source.value
      if (kind !== undefined && kind !== 'Managed')
        throw untranslatable(`kind(${kind}) is not supported in csi migration`)
      const attributes = { kind: 'Managed', ...(cachingMode ? { cachingmode: cachingMode } : {}) }
      const translated = csi(
        'disk.csi.azure.com',
        diskURI,
        source.value,
        fsType ? { ...attributes, fstype: fsType } : attributes,
      )
      return { ...translated, inlineName: diskURI }
    }
    case 'azureFile':
      return azureShare(spec, source.value, namespace)
    case 'cinder':
      return csi('cinder.csi.openstack.org', source.value.volumeID, source.value, {})
    case 'portworxVolume': {
      const { volumeID, fsType, readOnly } = source.value
      const translated = csi('pxd.portworx.com', volumeID, fsType === undefined ? {} : { fsType }, {})
      return { ...translated, inlineMode: readOnly ? 'ReadOnlyMany' : 'ReadWriteOnce' }
    }
    case 'vsphereVolume': {
      const { volumePath, storagePolicyName } = source.value
      const attributes: Record<string, string> = storagePolicyName ? { storagepolicyname: storagePolicyName } : {}
      return csi('csi.vsphere.vmware.com', volumePath, source.value, attributes)
    }
    default:
      return undefined
  }
}

/** A disk for one node, staged under its driver's name and its own. */
function csi(
  driver: string,
  volumeHandle: string,
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
  return { source, inlineName: `${driver}-${volumeHandle}`, inlineMode: 'ReadWriteOnce' }
}

/** The share's handle carries all that its driver needs: resource group, account, share, volume and the secret's namespace. */
function azureShare(spec: VolumeSpec, old: VolumeSources['azureFile'], podNamespace: string): Translated {
  const { secretName, shareName } = old
  const { metadata, spec: volume } = spec.persistentVolume ?? { metadata: undefined, spec: undefined }
  const own = 'secretNamespace' in old ? old.secretNamespace : undefined
  const namespace = spec.from === 'pod' ? podNamespace || 'default' : (own ?? volume?.claimRef?.namespace)
  if (!namespace) throw untranslatable('could not find a secret namespace in PersistentVolumeSource or ClaimRef')
  const account = /^azure-storage-account-(.+)-secret$/.exec(secretName)?.[1] ?? secretName
  const group = metadata?.annotations?.['kubernetes.io/azure-file-resource-group'] ?? ''
  const handle = [group, account, shareName, spec.name, namespace].join('#')
  const translated = csi('file.csi.azure.com', handle, old, { sharename: shareName })
  return {
    source: { ...translated.source, nodeStageSecretRef: { name: secretName, namespace } },
    inlineName: handle,
    inlineMode: 'ReadWriteMany',
  }
}

/** `vol-1`, or `aws://<zone>/vol-1` as it was once written. */
function ebsVolume(volumeID: string): string {
  if (!volumeID.startsWith('aws://')) return volumeID
  const [, id] = /^aws:\/\/[^/]*\/+(vol-[^/]*)\/*$/.exec(volumeID) ?? []
  if (id === undefined) throw untranslatable(`Invalid format for AWS volume (${volumeID})`)
  return id
}

/** The zone or region a disk's labels name; a label with several zones means a regional disk. */
function gcePlace(volume: PersistentVolume | undefined): string {
  const labels = volume?.metadata.labels
  const zones = labels?.['failure-domain.beta.kubernetes.io/zone'] || labels?.['topology.kubernetes.io/zone']
  if (!zones) return 'zones/UNSPECIFIED'
  const [first = '', ...others] = zones.split('__')
  return others.length > 0 ? `regions/${first.slice(0, first.lastIndexOf('-'))}` : `zones/${first}`
}

function withSource(volume: PersistentVolume, kind: SourceKind, source: CSIPersistentVolumeSource): PersistentVolume {
  const { [kind as 'csi']: _dropped, ...rest } = volume.spec ?? {}
  return { ...volume, spec: { ...rest, csi: source } }
}

function untranslatable(message: string): VolumeError {
  return new VolumeError('NoPluginMatched', message, { effect: 'untried' })
}
