// Which cause is behind a reason to wait or an error's code? Tables over closed unions; no text is ever read.
// The unions repeat those of the plans (the CLI may not import them); reasons.test.ts proves that they are the same.
import type { Cause } from './causes.ts'

export type ControllerReason =
  | 'noVolumeFits'
  | 'classMissing'
  | 'firstConsumer'
  | 'podUnscheduled'
  | 'externalProvisioner'
  | 'provisioning'
  | 'noProvisioner'
  | 'provisioningFailed'
  | 'provisioningDisabled'
  | 'namedVolumeMissing'
  | 'namedVolumeUnfit'
  | 'namedVolumeTaken'
  | 'volumeLost'
  | 'misbound'
  | 'volumeBusy'
  | 'reserved'
  | 'retained'
  | 'externalDeleter'
  | 'reclaiming'
  | 'reclaimFailed'
  | 'usedByPods'
  | 'retrying'
  | 'externalResizer'
  | 'protectedByPods'
  | 'protectedByClaim'
  | 'protectedByReferences'
  | 'foreignClaim'
  | 'noNodeFits'
  | 'bindingVolumes'

export type AttachmentReason =
  | 'inUse'
  | 'inUseOnUnhealthyNode'
  | 'forceDetachDisabled'
  | 'attachedElsewhere'
  | 'maybeAttachedElsewhere'
  | 'anotherNodeFirst'
  | 'busy'
  | 'backingOff'

export type NodeReason =
  | 'notReportedInUse'
  | 'notAttached'
  | 'podListIncomplete'
  | 'devicePathUnread'
  | 'claimsUnresolved'
  | 'busy'
  | 'backingOff'

export const controllerReasons: Readonly<Record<ControllerReason, Cause>> = {
  noVolumeFits: 'noVolumeFits',
  classMissing: 'classMissing',
  firstConsumer: 'firstConsumer',
  podUnscheduled: 'podUnscheduled',
  externalProvisioner: 'askedProvisioner',
  provisioning: 'provisioning',
  noProvisioner: 'noProvisioner',
  provisioningFailed: 'provisioningFailed',
  provisioningDisabled: 'provisioningDisabled',
  namedVolumeMissing: 'namedVolumeMissing',
  namedVolumeUnfit: 'namedVolumeUnfit',
  namedVolumeTaken: 'namedVolumeTaken',
  volumeLost: 'volumeLost',
  misbound: 'misbound',
  volumeBusy: 'volumeBusy',
  reserved: 'reserved',
  retained: 'retained',
  externalDeleter: 'askedDeleter',
  reclaiming: 'reclaiming',
  reclaimFailed: 'reclaimFailed',
  usedByPods: 'usedByPods',
  retrying: 'retrying',
  externalResizer: 'askedResizer',
  protectedByPods: 'claimProtected',
  protectedByClaim: 'volumeProtected',
  protectedByReferences: 'classProtected',
  foreignClaim: 'foreignClaim',
  noNodeFits: 'noNodeFits',
  bindingVolumes: 'volumesBeingBound',
}

export const attachmentReasons: Readonly<Record<AttachmentReason, Cause>> = {
  inUse: 'inUse',
  inUseOnUnhealthyNode: 'inUseOnUnhealthyNode',
  forceDetachDisabled: 'forceDetachDisabled',
  attachedElsewhere: 'attachedElsewhere',
  maybeAttachedElsewhere: 'maybeAttachedElsewhere',
  anotherNodeFirst: 'anotherNodeFirst',
  busy: 'busy',
  backingOff: 'attachFailed',
}

export const nodeReasons: Readonly<Record<NodeReason | 'volumesUnresolved', Cause>> = {
  notReportedInUse: 'notReportedInUse',
  notAttached: 'notAttached',
  podListIncomplete: 'podListIncomplete',
  devicePathUnread: 'devicePathUnread',
  claimsUnresolved: 'claimsUnresolved',
  volumesUnresolved: 'volumesUnresolved',
  busy: 'busy',
  backingOff: 'mountFailed',
}

/** Codes of VolumeErrors: CSI status names, errno names of the host, and our own. */
export const codeCauses: Readonly<Record<string, Cause>> = {
  UNAVAILABLE: 'driverUnavailable',
  DEADLINE_EXCEEDED: 'driverTimeout',
  CANCELLED: 'driverTimeout',
  ABORTED: 'driverBusy',
  RESOURCE_EXHAUSTED: 'outOfCapacity',
  INVALID_ARGUMENT: 'badParameters',
  OUT_OF_RANGE: 'outOfRange',
  NOT_FOUND: 'storageGone',
  ALREADY_EXISTS: 'alreadyExists',
  PERMISSION_DENIED: 'driverForbids',
  UNAUTHENTICATED: 'driverForbids',
  FAILED_PRECONDITION: 'preconditionFailed',
  UNIMPLEMENTED: 'notSupported',
  INTERNAL: 'driverError',
  UNKNOWN: 'driverError',
  DATA_LOSS: 'driverError',
  EBUSY: 'deviceBusy',
  TIMEOUT: 'storageHangs',
  HUNG: 'storageHangs',
  ESTALE: 'mountIsStale',
  ENOTCONN: 'mountIsStale',
  EHOSTDOWN: 'mountIsStale',
  EIO: 'ioError',
  ENOSPC: 'noSpaceOnNode',
  EDQUOT: 'noSpaceOnNode',
  EPERM: 'permissionDenied',
  EACCES: 'permissionDenied',
  EROFS: 'readOnlyStorage',
  NOPROGRAM: 'programMissing',
  AnswerRefused: 'answerRefused',
  AttacherSilent: 'attacherSilent',
  ClaimUnresolved: 'volumesUnresolved',
  ClassMissing: 'classMissing',
  DeviceInUse: 'deviceBusy',
  DeviceReferenced: 'deviceBusy',
  DriverMissing: 'driverNotOnNode',
  GroupNotApplied: 'ownershipFailed',
  OwnershipFailed: 'ownershipFailed',
  MountOptions: 'mountOptionsRefused',
  NoBlockMapper: 'notSupported',
  NoDeviceMounter: 'notSupported',
  NotSupported: 'notSupported',
  NoPluginMatched: 'pluginMissing',
  PluginAmbiguous: 'pluginMissing',
  NodeAffinity: 'nodeAffinityConflict',
  NodeUnknown: 'nodeUnknownToDriver',
  NotAttached: 'notAttached',
  NotReported: 'notReportedInUse',
  SavedDataBroken: 'savedStateBroken',
  SavedDataMissing: 'savedStateBroken',
  SecretUnread: 'secretMissing',
  SecretNameInvalid: 'secretMissing',
  SelectorUnsupported: 'selectorUnsupported',
  SinglePodWriter: 'singlePodWriter',
  SnapshotMissing: 'sourceNotReady',
  SnapshotNotReady: 'sourceNotReady',
  SourceUnbound: 'sourceNotReady',
  SourceDeleting: 'sourceNotReady',
  SnapshotMisbound: 'sourceUnusable',
  SourceForeign: 'sourceUnusable',
  SourceModeDiffers: 'sourceUnusable',
  SourceWithoutClass: 'sourceUnusable',
  StillAttached: 'stillAttached',
  TopologyMissing: 'topologyMissing',
  TopologyRefused: 'topologyMissing',
  VolumeInUse: 'inUse',
  VolumeMissing: 'namedVolumeMissing',
  WrongFilesystem: 'wrongFilesystem',
}

export function causeOfCode(code: string | undefined, otherwise: Cause): Cause {
  return (code === undefined ? undefined : codeCauses[code]) ?? otherwise
}
