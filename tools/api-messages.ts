// Which messages and fields does the recorded table of Kubernetes lack, though Kubernetes has them? What is newer than the table.
// The messages of custom resources and of our own kinds are in their definitions (src/api/kinds). Read by tools/gen-api.ts.

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
