// Why is a snapshot not taken, or not gone? Causes between the wish for a snapshot and one that can be restored.
import type { CauseTable } from './cause.ts'

export const snapshotCauses = {
  snapshotSourceMissing: {
    title: 'The claim to take a snapshot of does not exist',
    sentence: 'snapshot {snapshot} is to be taken of claim {claim}, which does not exist',
    meaning: 'A snapshot names a claim of its own namespace. A typing error, or the claim was deleted.',
    ends: 'The claim appears.',
    hints: [['hawser get pvc', 'see which claims there are']],
  },
  snapshotSourceUnbound: {
    title: 'The claim to take a snapshot of has no volume yet',
    sentence: 'snapshot {snapshot} is to be taken of claim {claim}, which is not bound',
    meaning: 'There is nothing to copy before the claim has its volume.',
    ends: 'The claim is bound; the snapshot follows by itself.',
    hints: [['hawser why pvc/{claim}', 'what the claim waits for']],
  },
  snapshotClassMissing: {
    title: 'The class of snapshots does not exist',
    sentence: 'snapshot {snapshot} finds no class[: {class} does not exist]',
    meaning:
      'A snapshot names a VolumeSnapshotClass, or takes the one with the annotation snapshot.storage.kubernetes.io/is-default-class. There is none.',
    ends: 'The class appears.',
    hints: [['hawser get volumesnapshotclass', 'see which there are']],
  },
  snapshotRunning: {
    title: 'The snapshot is being taken',
    sentence: 'driver {driver} is taking snapshot {snapshot} right now',
    meaning: 'CreateSnapshot is under way, or the driver is still copying: then it is asked again every two seconds.',
    ends: 'The driver says that it is ready.',
    hints: [['hawser get operations', 'how long it has been running']],
  },
  snapshotFailed: {
    title: 'Taking or deleting the snapshot failed',
    sentence: 'driver {driver} could not take or delete snapshot {snapshot}; it will be tried again',
    meaning: 'The driver said no; its words are shown.',
    ends: 'A later try succeeds.',
    hints: [['hawser describe volumesnapshot/{snapshot}', 'status.error has the last word']],
  },
  snapshotInUse: {
    title: 'The snapshot is kept while a claim is filled from it',
    sentence: 'snapshot {snapshot} is being deleted, and a claim is being filled from it',
    meaning: 'A source stays until the copy is complete.',
    ends: 'The claim is bound, or deleted.',
    hints: [['hawser get pvc', 'see which claim is pending']],
  },
} as const satisfies CauseTable
