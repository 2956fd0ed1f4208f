// What does `kubectl get` show for snapshots (as the external snapshotter's definitions say) and for our own kind?
// Cells that the object does not answer are null; kubectl prints them empty.
import type { OperationRecord, VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent } from '../../api/types.ts'
import { age, duration } from './age.ts'
import { ageColumn, column, nameColumn, type Printer, wideColumn } from './printer.ts'

export const snapshotPrinter: Printer<VolumeSnapshot> = {
  columns: [
    nameColumn,
    column('ReadyToUse', 'Whether a volume can be made from the snapshot.', 'boolean'),
    column('SourcePVC', 'The claim whose volume was taken.'),
    column('SourceSnapshotContent', 'The existing content that was adopted.'),
    column('RestoreSize', 'The least size of a volume made from it.'),
    column('SnapshotClass', 'The class of the snapshot.'),
    column('SnapshotContent', 'The content that the snapshot is bound to.'),
    column('CreationTime', 'The time since the snapshot was taken.', 'date'),
    { ...ageColumn, type: 'date' },
  ],
  cells: (snapshot, now) => [
    snapshot.metadata.name,
    snapshot.status?.readyToUse ?? null,
    snapshot.spec.source.persistentVolumeClaimName ?? null,
    snapshot.spec.source.volumeSnapshotContentName ?? null,
    snapshot.status?.restoreSize ?? null,
    snapshot.spec.volumeSnapshotClassName ?? null,
    snapshot.status?.boundVolumeSnapshotContentName ?? null,
    snapshot.status?.creationTime === undefined ? null : age(snapshot.status.creationTime, now),
    age(snapshot.metadata.creationTimestamp, now),
  ],
}

export const snapshotContentPrinter: Printer<VolumeSnapshotContent> = {
  columns: [
    nameColumn,
    column('ReadyToUse', 'Whether a volume can be made from the snapshot.', 'boolean'),
    column('RestoreSize', 'The least size, in bytes, of a volume made from it.', 'integer'),
    column('DeletionPolicy', 'What happens to the snapshot when this object is deleted.'),
    column('Driver', 'The driver that holds the snapshot.'),
    column('VolumeSnapshotClass', 'The class of the snapshot.'),
    column('VolumeSnapshot', 'The snapshot object that this content is bound to.'),
    column('VolumeSnapshotNamespace', 'The namespace of that object.'),
    { ...ageColumn, type: 'date' },
  ],
  cells: (content, now) => [
    content.metadata.name,
    content.status?.readyToUse ?? null,
    content.status?.restoreSize ?? null,
    content.spec.deletionPolicy,
    content.spec.driver,
    content.spec.volumeSnapshotClassName ?? null,
    content.spec.volumeSnapshotRef.name ?? null,
    content.spec.volumeSnapshotRef.namespace ?? null,
    age(content.metadata.creationTimestamp, now),
  ],
}

export const snapshotClassPrinter: Printer<VolumeSnapshotClass> = {
  columns: [
    nameColumn,
    column('Driver', 'The driver that takes the snapshots.'),
    column('DeletionPolicy', 'What happens to a snapshot when its object is deleted.'),
    { ...ageColumn, type: 'date' },
  ],
  cells: (snapshotClass, now) => [
    snapshotClass.metadata.name,
    snapshotClass.driver,
    snapshotClass.deletionPolicy,
    age(snapshotClass.metadata.creationTimestamp, now),
  ],
}

export const operationPrinter: Printer<OperationRecord> = {
  columns: [
    nameColumn,
    column('Operation', 'What was done.'),
    column('Volume', 'The volume it was done to.'),
    column('Phase', 'How far it got.'),
    column('Took', 'How long it took, or has taken so far.'),
    ageColumn,
    wideColumn('Node', 'Where it was done.'),
    wideColumn('Pod', 'The pod it was done for.'),
    wideColumn('Actor', 'Who did it.'),
    wideColumn('Error', 'What went wrong.'),
  ],
  cells: (operation, now) => [
    operation.metadata.name,
    operation.spec.operation,
    operation.spec.volume ?? '',
    operation.status?.phase ?? '',
    tookCell(operation, now),
    age(operation.metadata.creationTimestamp, now),
    operation.spec.node ?? '<none>',
    operation.spec.pod ?? '<none>',
    operation.spec.actor,
    operation.status?.error?.message ?? '<none>',
  ],
}

function tookCell(operation: OperationRecord, now: number): string {
  const { startedAt, finishedAt } = operation.status ?? {}
  if (startedAt === undefined) return '<unknown>'
  const end = finishedAt === undefined ? now : Date.parse(finishedAt)
  return duration(end - Date.parse(startedAt))
}
