// Are snapshots right? The rules of the snapshot.storage.k8s.io custom resources: exactly one source, nothing of it
// changes. These kinds keep what they are given, so absent members are possible everywhere.
import { invalid, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent } from '../types.ts'
import { unchanged } from './metadata.ts'
import type { RulesByKind } from './validate.ts'

const policies = ['Delete', 'Retain']

export const snapshotKinds: RulesByKind = {
  VolumeSnapshot: { whole: validateSnapshot, change: validateSnapshotUpdate },
  VolumeSnapshotContent: { whole: validateContent, change: validateContentUpdate },
  VolumeSnapshotClass: { whole: validateSnapshotClass, change: validateSnapshotClassUpdate },
}

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

function validateContent(content: VolumeSnapshotContent): readonly FieldError[] {
  const spec: Partial<VolumeSnapshotContent['spec']> | undefined = content.spec
  if (spec === undefined) return [required('spec')]
  const { volumeSnapshotRef: reference, source, deletionPolicy, driver } = spec
  return [
    ...(driver ? [] : [required('spec.driver')]),
    ...validatePolicy(deletionPolicy, 'spec.deletionPolicy'),
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

function validateSnapshotClass(snapshotClass: VolumeSnapshotClass): readonly FieldError[] {
  return [
    ...(snapshotClass.driver ? [] : [required('driver')]),
    ...validatePolicy(snapshotClass.deletionPolicy, 'deletionPolicy'),
  ]
}

function validateSnapshotClassUpdate(next: VolumeSnapshotClass, previous: VolumeSnapshotClass): readonly FieldError[] {
  return (['driver', 'deletionPolicy', 'parameters'] as const).flatMap((name) =>
    unchanged(next[name], previous[name], name),
  )
}

function validatePolicy(policy: string | undefined, path: string): readonly FieldError[] {
  if (!policy) return [required(path)]
  return policies.includes(policy) ? [] : [notSupported(path, policy, policies)]
}

function exactlyOne(
  left: string | undefined,
  right: string | undefined,
  path: string,
  leftName: string,
  rightName: string,
): readonly FieldError[] {
  if ((left === undefined) !== (right === undefined)) return []
  return [
    invalid(path, { [leftName]: left, [rightName]: right }, `exactly one of ${leftName} and ${rightName} must be set`),
  ]
}
