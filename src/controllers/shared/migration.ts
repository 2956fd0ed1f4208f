// Which volume types moved from Kubernetes itself to CSI drivers, and what must objects say about it (MIG-1 … MIG-4)?
import { annotations, finalizers } from '../../api/annotations.ts'
import { annotation, withAnnotations } from '../../api/meta.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts'
import { migratedPlugins } from '../../volume/migration.ts'

/** The CSI driver that took over this in-tree provisioner, if any. */
export function migratedTo(provisioner: string): string | undefined {
  return migratedPlugins[provisioner]
}

/** The in-tree plugin of a volume's source and the driver that took it over, or undefined when it was never moved. */
export function migratedPlugin(
  volume: PersistentVolume,
): { readonly plugin: string; readonly driver: string } | undefined {
  for (const [source, plugin] of migratedSources) {
    const driver = migratedTo(plugin)
    if (volume.spec[source] !== undefined && driver !== undefined) return { plugin, driver }
  }
  return undefined
}

const migratedSources = [
  ['awsElasticBlockStore', 'kubernetes.io/aws-ebs'],
  ['gcePersistentDisk', 'kubernetes.io/gce-pd'],
  ['azureDisk', 'kubernetes.io/azure-disk'],
  ['azureFile', 'kubernetes.io/azure-file'],
  ['cinder', 'kubernetes.io/cinder'],
  ['vsphereVolume', 'kubernetes.io/vsphere-volume'],
  ['portworxVolume', 'kubernetes.io/portworx-volume'],
] as const

/** MIG-1 for claims. */
export function claimMigration(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  const provisioner =
    annotation(claim, annotations.storageProvisioner) ?? annotation(claim, annotations.betaStorageProvisioner)
  return withMigratedTo(claim, provisioner)
}

/** MIG-1 and MIG-3 for volumes, in one write. */
export function volumeMigration(volume: PersistentVolume): PersistentVolume {
  const provisioner = annotation(volume, annotations.provisionedBy)
  // Volumes that nobody provisioned are never touched (MIG-4).
  if (provisioner === undefined) return volume
  return withFinalizersFor(withMigratedTo(volume, provisioner), provisioner)
}

function withMigratedTo<T extends PersistentVolume | PersistentVolumeClaim>(
  object: T,
  provisioner: string | undefined,
): T {
  if (provisioner === undefined) return object
  const driver = migratedTo(provisioner)
  const said = annotation(object, annotations.migratedTo)
  if (driver !== undefined)
    return said === driver ? object : withAnnotations(object, { [annotations.migratedTo]: driver })
  return said ? withAnnotations(object, { [annotations.migratedTo]: undefined }) : object
}

function withFinalizersFor(volume: PersistentVolume, provisioner: string): PersistentVolume {
  const before = volume.metadata.finalizers ?? []
  const after = finalizersFor(volume, provisioner, before)
  if (after.length === before.length && after.every((each, at) => each === before[at])) return volume
  const { finalizers: _old, ...metadata } = volume.metadata
  return { ...volume, metadata: after.length === 0 ? metadata : { ...metadata, finalizers: after } }
}

function finalizersFor(volume: PersistentVolume, provisioner: string, before: readonly string[]): readonly string[] {
  if (migratedTo(provisioner) !== undefined) return before.filter((each) => each !== finalizers.volumeController)
  if (!provisioner.startsWith('kubernetes.io/')) return before
  const kept = before.filter((each) => each !== finalizers.externalProvisioner)
  if (volume.spec.persistentVolumeReclaimPolicy !== 'Delete')
    return kept.filter((each) => each !== finalizers.volumeController)
  // An object that is already going away takes no new finalizers: the server would refuse them.
  if (kept.includes(finalizers.volumeController) || volume.metadata.deletionTimestamp !== undefined) return kept
  return [...kept, finalizers.volumeController]
}
