// What is a volume snapshot? The wish to keep a volume as it is; its source never changes.
import { invalid, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { VolumeSnapshot } from '../generated/types.ts'
import { unchanged } from '../validation/metadata.ts'
import { exactlyOne } from '../validation/snapshots.ts'
import { age } from './age.ts'
import { defineKind, reading, statusOf, statusVerbs } from './define-kind.ts'
import { ageColumn, column, nameColumn } from './printer.ts'

export const volumeSnapshotKind = defineKind<VolumeSnapshot>({
  kind: 'VolumeSnapshot',
  group: 'snapshot.storage.k8s.io',
  plural: 'volumesnapshots',
  scope: 'Namespaced',
  shortNames: ['vs'],
  subresources: [statusOf('VolumeSnapshot')],
  message: 'snapshot.VolumeSnapshot',
  shape: {
    'snapshot.VolumeSnapshot': [
      'metadata: meta.ObjectMeta',
      'spec: snapshot.VolumeSnapshotSpec!',
      'status: snapshot.VolumeSnapshotStatus',
    ],
    'snapshot.VolumeSnapshotSpec': ['source: snapshot.VolumeSnapshotSource!', 'volumeSnapshotClassName: string'],
    'snapshot.VolumeSnapshotSource': ['persistentVolumeClaimName: string', 'volumeSnapshotContentName: string'],
    'snapshot.VolumeSnapshotStatus': [
      'boundVolumeSnapshotContentName: string',
      'creationTime: meta.Time',
      'readyToUse: bool',
      'restoreSize: resource.Quantity',
      'error: snapshot.VolumeSnapshotError',
      'volumeGroupSnapshotName: string',
    ],
    'snapshot.VolumeSnapshotError': ['time: meta.Time', 'message: string'],
  },
  description: 'The wish to keep the content of a volume as it is at one moment.',
  fieldDescriptions: {
    'VolumeSnapshotSpec.source': 'The claim to take, or the existing content to adopt.',
  },
  validation: { whole: validateSnapshot, change: validateSnapshotUpdate },
  strategy: { updateNeedsVersion: true, statusKeepsMetadata: true, generation: 'fromCreate' },
  access: { controllers: { verbs: [...reading, 'update', 'patch'], subresources: { status: statusVerbs } } },
  table: {
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
  },
})

function validateSnapshot(snapshot: VolumeSnapshot): readonly FieldError[] {
  const spec: Partial<VolumeSnapshot['spec']> | undefined = snapshot.spec
  if (spec === undefined) return [required('spec')]
  if (spec.source === undefined) return [required('spec.source')]
  const { persistentVolumeClaimName: claim, volumeSnapshotContentName: content } = spec.source
  return [
    ...exactlyOne(claim, content, 'spec.source', 'persistentVolumeClaimName', 'volumeSnapshotContentName'),
    ...(spec.volumeSnapshotClassName === ''
      ? [invalid('spec.volumeSnapshotClassName', '', 'volumeSnapshotClassName must not be the empty string when set')]
      : []),
  ]
}

function validateSnapshotUpdate(next: VolumeSnapshot, previous: VolumeSnapshot): readonly FieldError[] {
  return unchanged(next.spec?.source, previous.spec?.source, 'spec.source')
}
