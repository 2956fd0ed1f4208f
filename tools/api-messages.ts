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
  // Of services only what the one service here has.
  'core.Service': {
    '1': 'metadata: meta.ObjectMeta',
    '2': 'spec: core.ServiceSpec',
  },
  'core.ServiceSpec': {
    '1': 'ports: *core.ServicePort',
    '2': 'selector: map<string,string>',
    '3': 'clusterIP: string',
    '4': 'type: string',
    '7': 'sessionAffinity: string',
    '17': 'ipFamilyPolicy: string',
    '18': 'clusterIPs: *string',
    '19': 'ipFamilies: *string',
    '22': 'internalTrafficPolicy: string',
  },
  'core.ServicePort': {
    '1': 'name: string',
    '2': 'protocol: string',
    '3': 'port: int32!',
    '4': 'targetPort: intstr.IntOrString',
  },
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
