// Which messages and fields does the recorded table of Kubernetes lack? Custom resources, our own kinds, and what is newer.
// Read by tools/gen-api.ts.

/** Messages that the table lacks: `name: type`, as there; a trailing `!` marks a required field. No field numbers: JSON only. */
export const jsonOnly: Readonly<Record<string, readonly string[]>> = {
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
  'snapshot.VolumeSnapshotClass': [
    'metadata: meta.ObjectMeta',
    'driver: string!',
    'parameters: map<string,string>',
    'deletionPolicy: string!',
  ],
  'snapshot.VolumeSnapshotContent': [
    'metadata: meta.ObjectMeta',
    'spec: snapshot.VolumeSnapshotContentSpec!',
    'status: snapshot.VolumeSnapshotContentStatus',
  ],
  'snapshot.VolumeSnapshotContentSpec': [
    'volumeSnapshotRef: core.ObjectReference!',
    'deletionPolicy: string!',
    'driver: string!',
    'volumeSnapshotClassName: string',
    'source: snapshot.VolumeSnapshotContentSource!',
    'sourceVolumeMode: string',
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
  'hawser.Operation': ['metadata: meta.ObjectMeta', 'spec: hawser.OperationSpec!', 'status: hawser.OperationStatus'],
  'hawser.OperationSpec': [
    'actor: string!',
    'operation: string!',
    'objects: *core.ObjectReference',
    'volume: string',
    'pod: string',
    'node: string',
  ],
  'hawser.OperationStatus': [
    'phase: string!',
    'step: string',
    'startedAt: meta.MicroTime',
    'finishedAt: meta.MicroTime',
    'error: hawser.OperationError',
    'nextTry: meta.MicroTime',
    'attempts: int32',
    'waiting: *hawser.OperationWaiting',
  ],
  'hawser.OperationError': ['code: string', 'message: string!', 'effect: string'],
  'hawser.OperationWaiting': [
    'reason: string!',
    'message: string',
    'pod: string',
    'node: string',
    'since: meta.MicroTime',
    'until: meta.MicroTime',
  ],
}

/** Messages and fields with numbers that the table lacks. Health of volumes (CSI-71) is newer than the table. */
export const extra: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'policy.Eviction': { '1': 'metadata: meta.ObjectMeta', '2': 'deleteOptions: meta.DeleteOptions' },
  'core.PodStatus': { '22': 'volumeHealth: *core.PodVolumeHealth' },
  'core.PodVolumeHealth': {
    '1': 'name: string!',
    '2': 'healthConditions: *core.VolumeHealthCondition',
    '3': 'lastTransitionTime: meta.Time',
  },
  'core.VolumeHealthCondition': { '1': 'status: string!', '2': 'reason: string!', '3': 'message: string' },
  'storage.CSINode': { '3': 'status: storage.CSINodeStatus' },
  'storage.CSINodeStatus': { '1': 'storageHealth: *storage.StorageHealth' },
  'storage.StorageHealth': { '1': 'name: string!', '2': 'healthConditions: *storage.StorageHealthCondition' },
  'storage.StorageHealthCondition': {
    '1': 'status: string!',
    '2': 'reason: string!',
    '3': 'message: string',
    '4': 'accessMode: string',
    '5': 'volumeMode: string',
    '6': 'lastTransitionTime: meta.Time',
  },
}
