// What is a snapshot content? A snapshot that exists in the storage system.
import { invalid, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { VolumeSnapshotContent } from '../generated/types.ts'
import { unchanged } from '../validation/metadata.ts'
import { exactlyOne, validateDeletionPolicy } from '../validation/snapshots.ts'
import { age } from './age.ts'
import { defineKind, reading, statusOf, statusVerbs } from './define-kind.ts'
import { ageColumn, column, nameColumn } from './printer.ts'

export const volumeSnapshotContentKind = defineKind<VolumeSnapshotContent>({
  kind: 'VolumeSnapshotContent',
  group: 'snapshot.storage.k8s.io',
  plural: 'volumesnapshotcontents',
  scope: 'Cluster',
  shortNames: ['vsc', 'vscs'],
  subresources: [statusOf('VolumeSnapshotContent')],
  message: 'snapshot.VolumeSnapshotContent',
  shape: {
    'snapshot.VolumeSnapshotContent': [
      'metadata: meta.ObjectMeta',
      'spec: snapshot.VolumeSnapshotContentSpec!',
      'status: snapshot.VolumeSnapshotContentStatus',
    ],
    'snapshot.VolumeSnapshotContentSpec': [
      'volumeSnapshotRef: core.ObjectReference!',
      'deletionPolicy: Delete|Retain!',
      'driver: string!',
      'volumeSnapshotClassName: string',
      'source: snapshot.VolumeSnapshotContentSource!',
      'sourceVolumeMode: Filesystem|Block',
    ],
    'snapshot.VolumeSnapshotContentSource': ['volumeHandle: string', 'snapshotHandle: string'],
    'snapshot.VolumeSnapshotContentStatus': [
      'snapshotHandle: string',
      'creationTime: int64',
      'restoreSize: int64',
      'readyToUse: bool',
      'error: snapshot.VolumeSnapshotError',
      'volumeGroupSnapshotHandle: string',
    ],
  },
  description: 'A snapshot that exists in the storage system.',
  validation: { whole: validateContent, change: validateContentUpdate },
  strategy: { updateNeedsVersion: true, statusKeepsMetadata: true, generation: 'fromCreate' },
  access: {
    controllers: { verbs: [...reading, 'create', 'update', 'patch', 'delete'], subresources: { status: statusVerbs } },
  },
  table: {
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
  },
})

function validateContent(content: VolumeSnapshotContent): readonly FieldError[] {
  const spec: Partial<VolumeSnapshotContent['spec']> | undefined = content.spec
  if (spec === undefined) return [required('spec')]
  const { volumeSnapshotRef: reference, source, deletionPolicy, driver } = spec
  return [
    ...(driver ? [] : [required('spec.driver')]),
    ...validateDeletionPolicy(deletionPolicy, 'spec.deletionPolicy'),
    ...(reference?.name && reference.namespace
      ? []
      : [
          invalid(
            'spec.volumeSnapshotRef',
            reference,
            'both spec.volumeSnapshotRef.name and spec.volumeSnapshotRef.namespace must be set',
          ),
        ]),
    ...(source === undefined
      ? [required('spec.source')]
      : exactlyOne(source.volumeHandle, source.snapshotHandle, 'spec.source', 'volumeHandle', 'snapshotHandle')),
  ]
}

function validateContentUpdate(next: VolumeSnapshotContent, previous: VolumeSnapshotContent): readonly FieldError[] {
  return [
    ...unchanged(next.spec?.source, previous.spec?.source, 'spec.source'),
    ...(previous.spec?.sourceVolumeMode === undefined
      ? []
      : unchanged(next.spec?.sourceVolumeMode, previous.spec.sourceVolumeMode, 'spec.sourceVolumeMode')),
  ]
}
