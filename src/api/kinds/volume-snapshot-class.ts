// What is a snapshot class? It names the driver that takes snapshots; nothing of it changes.
import { required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { VolumeSnapshotClass } from '../generated/types.ts'
import { unchanged } from '../validation/metadata.ts'
import { validateDeletionPolicy } from '../validation/snapshots.ts'
import { age } from './age.ts'
import { defineKind, reading } from './define-kind.ts'
import { ageColumn, column, nameColumn } from './printer.ts'

export const volumeSnapshotClassKind = defineKind<VolumeSnapshotClass>({
  kind: 'VolumeSnapshotClass',
  group: 'snapshot.storage.k8s.io',
  plural: 'volumesnapshotclasses',
  scope: 'Cluster',
  shortNames: ['vsclass', 'vsclasses'],
  message: 'snapshot.VolumeSnapshotClass',
  shape: {
    'snapshot.VolumeSnapshotClass': [
      'metadata: meta.ObjectMeta',
      'driver: string!',
      'parameters: map<string,string>',
      'deletionPolicy: Delete|Retain!',
    ],
  },
  description: 'A kind of snapshot, and the driver that takes it.',
  validation: { whole: validateSnapshotClass, change: validateSnapshotClassUpdate },
  strategy: { updateNeedsVersion: true, generation: 'fromCreate' },
  access: { controllers: { verbs: reading } },
  table: {
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
  },
})

function validateSnapshotClass(snapshotClass: VolumeSnapshotClass): readonly FieldError[] {
  return [
    ...(snapshotClass.driver ? [] : [required('driver')]),
    ...validateDeletionPolicy(snapshotClass.deletionPolicy, 'deletionPolicy'),
  ]
}

function validateSnapshotClassUpdate(next: VolumeSnapshotClass, previous: VolumeSnapshotClass): readonly FieldError[] {
  return (['driver', 'deletionPolicy', 'parameters'] as const).flatMap((name) =>
    unchanged(next[name], previous[name], name),
  )
}
