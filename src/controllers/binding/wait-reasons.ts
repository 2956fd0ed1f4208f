// Why is nothing happening? Every reason a claim, a volume or a pod may wait for, as one closed union.
// `hawser why` and the console speak these; nobody greps logs.

export type WaitReason =
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
  /** No node satisfies the pod. */
  | 'noNodeFits'
  /** The pod has a node in mind and waits for its claims to be bound. */
  | 'bindingVolumes'

export interface Waiting {
  readonly reason: WaitReason
  /** The rule of the specification that made it wait. */
  readonly rule: string
  readonly message?: string
  /** The object whose change would help, as Kind/key. */
  readonly on?: string
  /** When it will be looked at again, if time alone can help (milliseconds since 1970). */
  readonly until?: number
}

/** Something changed in the API because of a rule; history and `hawser why` are made of these. */
export interface Transition {
  readonly controller: string
  readonly object: string
  readonly rule: string
  readonly what: string
}

export interface WaitingList {
  set(key: string, waiting: readonly Waiting[]): void
  readonly all: ReadonlyMap<string, readonly Waiting[]>
}

/** `onChange` hears every list that is set, also one that did not change. */
export function createWaitingList(onChange?: (key: string, waiting: readonly Waiting[]) => void): WaitingList {
  const all = new Map<string, readonly Waiting[]>()
  return {
    all,
    set(key, waiting) {
      if (waiting.length === 0) all.delete(key)
      else all.set(key, waiting)
      onChange?.(key, waiting)
    },
  }
}
