// Which keys have a meaning? Well-known annotations, labels, finalizers and names of the volume world;
// the specification's vocabulary (claims 1.1 and 1.2), spelt once.

/** Annotations, by what they say. */
export const annotations = {
  /** On a claim: it has been bound once; presence counts, not the value. */
  bindCompleted: 'pv.kubernetes.io/bind-completed',
  /** On a volume or claim: a controller, not a user, wrote the pointer to the other. */
  boundByController: 'pv.kubernetes.io/bound-by-controller',
  /** On a volume: who provisioned it and must delete it. */
  provisionedBy: 'pv.kubernetes.io/provisioned-by',
  migratedTo: 'pv.kubernetes.io/migrated-to',
  /** On a claim: provisioning is asked from this provisioner. */
  storageProvisioner: 'volume.kubernetes.io/storage-provisioner',
  betaStorageProvisioner: 'volume.beta.kubernetes.io/storage-provisioner',
  /** On a claim: delayed provisioning may start for this node. */
  selectedNode: 'volume.kubernetes.io/selected-node',
  /** On a claim: a person chose this node, so it is not given back when it has no room. */
  chosenNode: 'hawser.dev/chosen-node',
  alphaSelectedNode: 'volume.alpha.kubernetes.io/selected-node',
  /** Overrides spec.storageClassName when present, even when empty. */
  betaStorageClass: 'volume.beta.kubernetes.io/storage-class',
  isDefaultClass: 'storageclass.kubernetes.io/is-default-class',
  betaIsDefaultClass: 'storageclass.beta.kubernetes.io/is-default-class',
  isDefaultSnapshotClass: 'snapshot.storage.kubernetes.io/is-default-class',
  preResizeCapacity: 'volume.alpha.kubernetes.io/pre-resize-capacity',
  storageResizer: 'volume.kubernetes.io/storage-resizer',
  nodeExpansionNotRequired: 'volume.kubernetes.io/node-expansion-not-required',
  deletionSecretName: 'volume.kubernetes.io/provisioner-deletion-secret-name',
  deletionSecretNamespace: 'volume.kubernetes.io/provisioner-deletion-secret-namespace',
  modifySecretName: 'volume.kubernetes.io/controller-modify-secret-name',
  modifySecretNamespace: 'volume.kubernetes.io/controller-modify-secret-namespace',
  createdBy: 'kubernetes.io/createdby',
  migratedPlugins: 'storage.alpha.kubernetes.io/migrated-plugins',
  mountOptions: 'volume.beta.kubernetes.io/mount-options',
  /** On a volume: the group that owns its files. */
  volumeGroupId: 'pv.beta.kubernetes.io/gid',
  csiProvisionerIdentity: 'storage.kubernetes.io/csiProvisionerIdentity',
  /** On a node: node id per CSI driver, as JSON. */
  csiNodeId: 'csi.volume.kubernetes.io/nodeid',
  /** On a node: its volumes are attached by the controller, not by the kubelet. */
  controllerManagedAttach: 'volumes.kubernetes.io/controller-managed-attach-detach',
  /** On a node: `host:port` of its own server, and the SHA-256 of the certificate it is known by. */
  /** On a CSIDriver: the driver publishes plain directories, so an empty one without a mount is no mistake. */
  publishesDirectories: 'hawser.dev/publishes-directories',
  nodeServer: 'hawser.dev/node-server',
  /** `server`: the server does the jobs of the drivers on this node. */
  csiJobs: 'hawser.dev/csi-jobs',
  nodeServerCertificate: 'hawser.dev/node-server-certificate',
  /** On the lease of a node: where its agent runs. */
  agentPlace: 'hawser.dev/agent-place',
  /** On namespace kube-system: when an older store was accepted last, in milliseconds since 1970. */
  clusterEpoch: 'hawser.dev/cluster-epoch',
  keepTerminatedPodVolumes: 'volumes.kubernetes.io/keep-terminated-pod-volumes',
  configSource: 'kubernetes.io/config.source',
  configMirror: 'kubernetes.io/config.mirror',
  lastApplied: 'kubectl.kubernetes.io/last-applied-configuration',
  initialEventsEnd: 'k8s.io/initial-events-end',
  serviceAccountName: 'kubernetes.io/service-account.name',
  serviceAccountUid: 'kubernetes.io/service-account.uid',
} as const

/** Labels that controllers and the scheduler read. */
export const labels = {
  hostname: 'kubernetes.io/hostname',
  operatingSystem: 'kubernetes.io/os',
  architecture: 'kubernetes.io/arch',
  zone: 'topology.kubernetes.io/zone',
  region: 'topology.kubernetes.io/region',
  betaZone: 'failure-domain.beta.kubernetes.io/zone',
  betaRegion: 'failure-domain.beta.kubernetes.io/region',
  namespaceName: 'kubernetes.io/metadata.name',
} as const

export const finalizers = {
  claimProtection: 'kubernetes.io/pvc-protection',
  volumeProtection: 'kubernetes.io/pv-protection',
  attributesClassProtection: 'kubernetes.io/vac-protection',
  externalProvisioner: 'external-provisioner.volume.kubernetes.io/finalizer',
  /** In-tree provisioner with policy Delete. */
  volumeController: 'kubernetes.io/pv-controller',
  cloningProtection: 'provisioner.storage.kubernetes.io/cloning-protection',
  snapshotAsSource: 'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection',
  snapshotAsSourceProtection: 'snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection',
  snapshotBound: 'snapshot.storage.kubernetes.io/volumesnapshot-bound-protection',
  snapshotContentBound: 'snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection',
  claimAsSnapshotSource: 'snapshot.storage.kubernetes.io/pvc-as-source-protection',
  foregroundDeletion: 'foregroundDeletion',
  orphan: 'orphan',
  /** In Namespace spec.finalizers. */
  kubernetes: 'kubernetes',
} as const

/** Taints that keep volumes from moving or force them to. */
export const taints = {
  outOfService: 'node.kubernetes.io/out-of-service',
  unschedulable: 'node.kubernetes.io/unschedulable',
  notReady: 'node.kubernetes.io/not-ready',
  unreachable: 'node.kubernetes.io/unreachable',
} as const

/** Provisioner of classes whose volumes are made by hand. */
export const noProvisioner = 'kubernetes.io/no-provisioner'

/** Conditions of a claim while it grows. */
export const resizeConditions = [
  'Resizing',
  'FileSystemResizePending',
  'ControllerResizeError',
  'NodeResizeError',
] as const
