// Why is nothing happening? Every reason that a plan may give for waiting: closed unions, written down once.
// Plans return them, the history records them, `hawser why` explains them.

/** What a claim, a volume, a class or a pod that has no node yet waits for. */
export type ControllerWaitReason =
  /** No volume fits and no class could make one. */
  | 'noVolumeFits'
  /** The class named by the claim does not exist. */
  | 'classMissing'
  /** The class delays binding until a pod is placed, and there is no such pod. */
  | 'firstConsumer'
  /** The class delays binding, and pods of the claim are not placed yet. */
  | 'podUnscheduled'
  /** An external provisioner was asked and has not answered with a volume. */
  | 'externalProvisioner'
  /** A plugin of ours is making the volume. */
  | 'provisioning'
  /** No plugin can make volumes for this class. */
  | 'noProvisioner'
  /** Making the volume failed; it will be tried again. */
  | 'provisioningFailed'
  /** Dynamic provisioning is switched off. */
  | 'provisioningDisabled'
  /** The volume named by the claim does not exist. */
  | 'namedVolumeMissing'
  /** The volume named by the claim does not suit it. */
  | 'namedVolumeUnfit'
  /** The volume named by the claim belongs to another claim. */
  | 'namedVolumeTaken'
  /** The claim lost its volume; only the volume's return helps. */
  | 'volumeLost'
  /** The claim's volume points to another claim. */
  | 'misbound'
  /** Another pair is being written with this volume right now. */
  | 'volumeBusy'
  /** The volume is reserved for a claim that does not exist yet. */
  | 'reserved'
  /** The volume is released and kept: an administrator decides. */
  | 'retained'
  /** The volume is released; an external deleter must remove its storage. */
  | 'externalDeleter'
  /** The storage is being deleted or scrubbed. */
  | 'reclaiming'
  /** Reclaiming failed; it will be tried again if that can help. */
  | 'reclaimFailed'
  /** Pods still name the claim of the released volume. */
  | 'usedByPods'
  /** Something could not be written or read; it will be tried again. */
  | 'retrying'
  /** An external resizer must grow the volume. */
  | 'externalResizer'
  /** The object is being deleted and pods still use it. */
  | 'protectedByPods'
  /** The volume is being deleted and is still bound. */
  | 'protectedByClaim'
  /** The class is being deleted and claims or volumes still name it. */
  | 'protectedByReferences'
  /** A claim of that name exists and belongs to someone else. */
  | 'foreignClaim'
  /** The driver says that the volume is not well. */
  | 'volumeAbnormal'
  /** No node satisfies the pod. */
  | 'noNodeFits'
  /** The pod has a node in mind and waits for its claims to be bound. */
  | 'bindingVolumes'

/** What a volume waits for on its way to a node or from it. */
export type AttachmentWaitReason =
  /** The node is healthy and still uses the volume: it is never forced (FD-1, FD-3). */
  | 'inUse'
  /** The node is unhealthy or gone and was using the volume: taken by force at `until` (FD-2, FD-6). */
  | 'inUseOnUnhealthyNode'
  /** As before, but forced detach on timeout is switched off (FD-5). */
  | 'forceDetachDisabled'
  /** An exclusive volume sits on another node (MA-1). */
  | 'attachedElsewhere'
  /** An exclusive volume may sit on another node; two writers are worse than a wait (against WA-36). */
  | 'maybeAttachedElsewhere'
  /** Two nodes want an exclusive volume that sits nowhere; the first to ask is served first (TA-19). */
  | 'anotherNodeFirst'
  /** Another operation on this volume runs. */
  | 'busy'
  /** The operation failed lately and is tried again at `until`. */
  | 'backingOff'

/** What a volume waits for on a node. */
export type NodeWaitReason =
  /** The API server has not confirmed volumesInUse (NSP-2). */
  | 'notReportedInUse'
  /** The control plane has not put the volume into volumesAttached (VCA-2). */
  | 'notAttached'
  /** It is still mounted with another SELinux label, for a pod that is going (REC-4). */
  | 'labelMismatch'
  /** After a start nothing is undone before every pod source has spoken (REC-2). */
  | 'podListIncomplete'
  /** After a start nothing is undone before node.status told where the device is (RCS-7). */
  | 'devicePathUnread'
  /** A running pod's claims are not resolved yet; what was found on disk may be its volume (WA-8, DES-9). */
  | 'claimsUnresolved'
  /** Its pod is gone, but containers of it still run (KP-9). */
  | 'containersRunning'
  /** Another operation on the volume runs. */
  | 'busy'
  /** The last try failed; the next one comes at `until`. */
  | 'backingOff'

/** What a pod waits for on a node before its volumes are known: a claim, a volume or an object that cannot be read. */
export type PodWaitReason =
  | 'volumesUnresolved'
  /** No plugin of the node takes one of its volumes. */
  | 'pluginMissing'

/** Why a driver is not used at all, whatever it is needed for. */
export type DriverWaitReason =
  /** Nobody answers at its socket. */
  | 'driverUnreachable'
  /** The socket accepts calls, but the driver does not answer its first question (Probe). */
  | 'driverSilent'
  /** The driver says that it is not ready. */
  | 'driverUnready'
  /** The driver does not say what it can do. */
  | 'driverRefuses'
