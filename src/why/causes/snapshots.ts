// Why is a snapshot not taken, or not gone? Causes between creating a VolumeSnapshot and restoring it.
import type { CauseTable } from './cause.ts'

export const snapshotCauses = {
  snapshotSourceMissing: {
    title: 'The source claim of the snapshot does not exist',
    sentence: 'snapshot {snapshot} names claim {claim}, which does not exist',
    meaning: 'A snapshot names a claim of its own namespace. The name has a typo, or the claim was deleted.',
    ends: 'The claim is created.',
    hints: [['hawser get pvc', 'list the claims']],
  },
  snapshotSourceUnbound: {
    title: 'The source claim of the snapshot is not bound',
    sentence: 'snapshot {snapshot} names claim {claim}, which is not bound',
    meaning: 'A snapshot can be taken when the claim has a volume.',
    ends: 'The claim is bound; the snapshot is then taken automatically.',
    hints: [['hawser why pvc/{claim}', 'what the claim waits for']],
  },
  snapshotClassMissing: {
    title: 'The VolumeSnapshotClass does not exist',
    sentence: 'snapshot {snapshot} has no VolumeSnapshotClass[: {class} does not exist][: {detail}]',
    meaning:
      'A snapshot names a VolumeSnapshotClass, or gets the default class of the driver of its volume: the one with the annotation snapshot.storage.kubernetes.io/is-default-class. There is none.',
    ends: 'The class is created; or the snapshot is deleted and taken again with a class that exists.',
    hints: [
      ['hawser get volumesnapshotclass', 'list those that exist, with their drivers'],
      ['hawser delete volumesnapshot {snapshot}', 'then take it again with a class of the driver'],
    ],
  },
  snapshotClassForeign: {
    title: 'The VolumeSnapshotClass belongs to another driver',
    sentence: 'snapshot {snapshot} names VolumeSnapshotClass {class}, which is not of driver {driver} of the volume',
    meaning: 'Only the driver of a volume can take a snapshot of it, and a VolumeSnapshotClass is for one driver.',
    ends: 'Nothing. Delete the snapshot and take it again with a class of the driver.',
    hints: [
      ['hawser delete volumesnapshot {snapshot}', 'then take it again with a class of the driver'],
      ['hawser get volumesnapshotclass', 'list the classes with their drivers'],
    ],
  },
  snapshotRunning: {
    title: 'The snapshot is being taken',
    sentence: 'driver {driver} is taking snapshot {snapshot} right now',
    meaning: 'CreateSnapshot is in progress, or the driver is still copying; then it is asked again every two seconds.',
    ends: 'The driver reports that the snapshot is ready.',
    hints: [['hawser get operations', 'how long it has been running']],
  },
  snapshotFailed: {
    title: 'Taking or deleting the snapshot failed',
    sentence: 'driver {driver} could not take or delete snapshot {snapshot}; it is retried automatically',
    meaning: 'The driver refused; its error message is shown.',
    ends: 'A retry succeeds.',
    hints: [['hawser describe volumesnapshot/{snapshot}', 'status.error has the last error']],
  },
  snapshotUnknown: {
    title: 'The driver does not know the snapshot',
    sentence: 'driver {driver} does not know the snapshot that the content of {snapshot} names',
    meaning:
      'A VolumeSnapshotContent that was written by hand names a snapshot of the storage by its handle. The driver lists none with that handle.',
    ends: 'The snapshot appears in the storage; or delete the content and create it with the right handle.',
    hints: [
      ['hawser get volumesnapshotcontent -o yaml', 'see spec.source.snapshotHandle'],
      ['hawser driver rpc {socket} Controller/ListSnapshots', 'list the snapshots of the driver'],
    ],
  },
  snapshotInUse: {
    title: 'The snapshot is not deleted while a claim is restored from it',
    sentence: 'snapshot {snapshot} is being deleted, but a claim is being restored from it',
    meaning: 'The source stays until the copy is complete.',
    ends: 'The claim is bound, or deleted.',
    hints: [['hawser get pvc', 'see which claim is pending']],
  },
} as const satisfies CauseTable
