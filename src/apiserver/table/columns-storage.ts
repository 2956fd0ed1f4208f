// What does `kubectl get` show for volumes, claims, classes, attachments and drivers?
// Names, order, priority and cell texts are those of Kubernetes 1.35 (recorded: scenarios 370–373).
import { shortModes } from '../../api/access-modes.ts'
import type {
  CSIDriver,
  CSINode,
  CSIStorageCapacity,
  ObjectMeta,
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
  VolumeAttachment,
  VolumeAttributesClass,
} from '../../api/types.ts'
import { age } from './age.ts'
import { ageColumn, column, nameColumn, type Printer, wideColumn } from './printer.ts'

export const volumePrinter: Printer<PersistentVolume> = {
  columns: [
    nameColumn,
    column('Capacity', 'The size of the volume.'),
    column('Access Modes', 'How the volume may be mounted.'),
    column('Reclaim Policy', 'What happens to the volume when its claim is gone.'),
    column('Status', 'The phase of the volume.'),
    column('Claim', 'The claim that the volume is bound to or reserved for.'),
    column('StorageClass', 'The class of the volume.'),
    column('VolumeAttributesClass', 'The class of mutable attributes.'),
    column('Reason', 'Why the volume is in this phase.'),
    ageColumn,
    wideColumn('VolumeMode', 'Filesystem or Block.'),
  ],
  cells(volume, now) {
    const { spec, status, metadata } = volume
    const claim = spec?.claimRef
    return [
      metadata.name,
      spec?.capacity?.['storage'] ?? '0',
      accessModesCell(spec?.accessModes),
      spec?.persistentVolumeReclaimPolicy ?? '',
      metadata.deletionTimestamp !== undefined ? 'Terminating' : (status?.phase ?? ''),
      claim === undefined ? '' : `${claim.namespace ?? ''}/${claim.name ?? ''}`,
      className(metadata, spec?.storageClassName),
      spec?.volumeAttributesClassName ?? '<unset>',
      status?.reason ?? '',
      age(metadata.creationTimestamp, now),
      spec?.volumeMode ?? '<unset>',
    ]
  },
}

export const claimPrinter: Printer<PersistentVolumeClaim> = {
  columns: [
    nameColumn,
    column('Status', 'The phase of the claim.'),
    column('Volume', 'The volume that the claim is bound to.'),
    column('Capacity', 'The size of that volume.'),
    column('Access Modes', 'How that volume may be mounted.'),
    column('StorageClass', 'The class the claim asks for.'),
    column('VolumeAttributesClass', 'The class of mutable attributes the claim asks for.'),
    ageColumn,
    wideColumn('VolumeMode', 'Filesystem or Block.'),
  ],
  cells(claim, now) {
    const { spec, status, metadata } = claim
    const named = (spec?.volumeName ?? '') !== ''
    return [
      metadata.name,
      metadata.deletionTimestamp !== undefined ? 'Terminating' : (status?.phase ?? ''),
      spec?.volumeName ?? '',
      named ? (status?.capacity?.['storage'] ?? '0') : '',
      named ? accessModesCell(status?.accessModes) : '',
      className(metadata, spec?.storageClassName),
      spec?.volumeAttributesClassName ?? '<unset>',
      age(metadata.creationTimestamp, now),
      spec?.volumeMode ?? '<unset>',
    ]
  },
}

function accessModesCell(modes: readonly string[] | undefined): string {
  return Object.entries(shortModes)
    .flatMap(([mode, short]) => (modes?.includes(mode) === true ? [short] : []))
    .join(',')
}

// The beta annotation still outranks the field, as everywhere in Kubernetes.
function className(metadata: ObjectMeta, field: string | undefined): string {
  return metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ?? field ?? ''
}

export const storageClassPrinter: Printer<StorageClass> = {
  columns: [
    nameColumn,
    column('Provisioner', 'Who makes the volumes.'),
    column('ReclaimPolicy', 'The reclaim policy of the volumes made.'),
    column('VolumeBindingMode', 'When claims are bound.'),
    column('AllowVolumeExpansion', 'Whether claims may grow.'),
    ageColumn,
  ],
  cells: (storageClass, now) => [
    isDefault(storageClass) ? `${storageClass.metadata.name} (default)` : storageClass.metadata.name,
    storageClass.provisioner,
    storageClass.reclaimPolicy ?? 'Delete',
    storageClass.volumeBindingMode ?? 'Immediate',
    storageClass.allowVolumeExpansion ?? false,
    age(storageClass.metadata.creationTimestamp, now),
  ],
}

function isDefault(storageClass: StorageClass): boolean {
  const annotations = storageClass.metadata.annotations ?? {}
  return (
    annotations['storageclass.kubernetes.io/is-default-class'] === 'true' ||
    annotations['storageclass.beta.kubernetes.io/is-default-class'] === 'true'
  )
}

export const attributesClassPrinter: Printer<VolumeAttributesClass> = {
  columns: [nameColumn, column('DriverName', 'The driver that knows the parameters.'), ageColumn],
  cells: (attributesClass, now) => [
    attributesClass.metadata.name,
    attributesClass.driverName,
    age(attributesClass.metadata.creationTimestamp, now),
  ],
}

export const attachmentPrinter: Printer<VolumeAttachment> = {
  columns: [
    nameColumn,
    { ...column('Attacher', 'The driver that attaches.'), format: 'name' },
    column('PV', 'The volume to attach.'),
    column('Node', 'The node to attach it to.'),
    column('Attached', 'Whether the driver said it is attached.', 'boolean'),
    ageColumn,
  ],
  cells: (attachment, now) => [
    attachment.metadata.name,
    attachment.spec.attacher,
    attachment.spec.source.persistentVolumeName ?? '',
    attachment.spec.nodeName,
    attachment.status?.attached ?? false,
    age(attachment.metadata.creationTimestamp, now),
  ],
}

export const driverPrinter: Printer<CSIDriver> = {
  columns: [
    nameColumn,
    column('AttachRequired', 'Whether volumes must be attached before they are mounted.', 'boolean'),
    column('PodInfoOnMount', 'Whether the driver is told about the pod.', 'boolean'),
    column('StorageCapacity', 'Whether the driver publishes its free capacity.', 'boolean'),
    column('TokenRequests', 'The audiences of the tokens the driver gets.'),
    column('RequiresRepublish', 'Whether volumes are published again and again.', 'boolean'),
    column('Modes', 'The volume life cycles that the driver supports.'),
    ageColumn,
  ],
  cells: (driver, now) => [
    driver.metadata.name,
    driver.spec.attachRequired ?? true,
    driver.spec.podInfoOnMount ?? false,
    driver.spec.storageCapacity ?? false,
    driver.spec.tokenRequests?.map((request) => request.audience).join(',') ?? '<unset>',
    driver.spec.requiresRepublish ?? false,
    (driver.spec.volumeLifecycleModes ?? []).join(',') || '<none>',
    age(driver.metadata.creationTimestamp, now),
  ],
}

export const csiNodePrinter: Printer<CSINode> = {
  columns: [nameColumn, column('Drivers', 'The number of drivers on the node.', 'integer'), ageColumn],
  cells: (node, now) => [
    node.metadata.name,
    (node.spec.drivers ?? []).length,
    age(node.metadata.creationTimestamp, now),
  ],
}

export const capacityPrinter: Printer<CSIStorageCapacity> = {
  columns: [
    nameColumn,
    column('StorageClassName', 'The class this capacity is for.'),
    column('Capacity', 'How much is free.'),
  ],
  cells: (capacity) => [capacity.metadata.name, capacity.storageClassName, capacity.capacity ?? '<unset>'],
}
