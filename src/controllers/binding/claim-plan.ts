// What should happen to this claim next? Every branch of claim sync (CLM-1 … CLM-22) as one total, pure function.
import { annotations } from '../../api/annotations.ts'
import { annotation, isDeleting } from '../../api/meta.ts'
import type { PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '../../api/generated/types.ts'
import { classOf, hasNoClassDecision } from '../../api/storage-class.ts'
import { belongsTo, unfitReason } from '../shared/match.ts'
import type { Match } from '../shared/match.ts'
import { migratedTo } from '../shared/migration.ts'
import type { PlannedEvent } from '../shared/event-throttle.ts'
import type { Waiting } from '../shared/waiting.ts'

type ClaimAction =
  /** The four writes, each only where something changes. */
  | { readonly kind: 'bind'; readonly volume: PersistentVolume }
  /** The best volume is being written by someone else: look again when it is free. */
  | { readonly kind: 'waitForVolume'; readonly volume: PersistentVolume }
  | { readonly kind: 'assignClass'; readonly className: string }
  | { readonly kind: 'markPending' }
  | { readonly kind: 'markLost' }
  | { readonly kind: 'askProvisioner'; readonly provisioner: string }
  | { readonly kind: 'provision'; readonly storageClass: StorageClass; readonly plugin: string }
  /** Nothing to write. */
  | { readonly kind: 'leave' }
  /** Nothing can be done, and trying again may help (CLM-4, CLM-15). */
  | { readonly kind: 'fail'; readonly message: string }

export interface ClaimPlan {
  readonly action: ClaimAction
  readonly event?: PlannedEvent
  readonly waiting: readonly Waiting[]
}

export interface ClaimFacts {
  readonly claim: PersistentVolumeClaim
  /** The class object of that name, if it exists. */
  readonly storageClass: StorageClass | undefined
  /** The volume that the claim names, if it exists. */
  readonly namedVolume: PersistentVolume | undefined
  readonly defaultClass: StorageClass | undefined
  readonly provisioningEnabled: boolean
  /** The best volume; asked at most once and only where a rule wants it. */
  findVolume(delayed: boolean): Match
  /** A volume that is being written right now must be waited for. */
  isBusy(volumeName: string): boolean
  /** Pods that use the claim, are not over and have no node (CLM-10). */
  unscheduledPods(): readonly Pod[]
  /** Can one of our plugins of this name make volumes? */
  canProvision(pluginName: string): boolean
}

export function planClaim(facts: ClaimFacts): ClaimPlan {
  const { claim } = facts
  // CLM-2: the mark decides, never the phase.
  if (annotation(claim, annotations.bindCompleted) !== undefined) return planBound(facts)
  return claim.spec.volumeName ? planNamed(facts, claim.spec.volumeName) : planUnbound(facts)
}

function planUnbound(facts: ClaimFacts): ClaimPlan {
  const { claim, storageClass } = facts
  const className = classOf(claim)
  // CLM-4: a class name without an object is a label for static volumes.
  if (storageClass !== undefined && storageClass.volumeBindingMode === undefined)
    return failed(`VolumeBindingMode not set for StorageClass "${className}"`)
  const delayed = storageClass?.volumeBindingMode === 'WaitForFirstConsumer'
  const match = facts.findVolume(delayed)
  if (match.kind === 'reserved' || match.kind === 'free') return bind(facts, match.volume)
  if (hasNoClassDecision(claim) && facts.defaultClass !== undefined) {
    const className = facts.defaultClass.metadata.name
    return { action: { kind: 'assignClass', className }, waiting: [] }
  }
  if (delayed && annotation(claim, annotations.selectedNode) === undefined) return planDelayed(facts)
  if (className !== '') return planProvisioning(facts, className)
  const message = 'no persistent volumes available for this claim and no storage class is set'
  return {
    action: { kind: 'markPending' },
    event: { type: 'Normal', reason: 'FailedBinding', message },
    waiting: [{ reason: 'noVolumeFits', message }],
  }
}

/** Delayed binding: the claim waits for a pod, or for its pods to be placed (CLM-8a, CLM-10). */
function planDelayed(facts: ClaimFacts): ClaimPlan {
  const names = facts
    .unscheduledPods()
    .map((pod) => pod.metadata.name)
    .sort()
  const [reason, message] =
    names.length === 0
      ? (['WaitForFirstConsumer', 'waiting for first consumer to be created before binding'] as const)
      : ([
          'WaitForPodScheduled',
          names.length === 1
            ? `waiting for pod ${names[0]} to be scheduled`
            : `waiting for pods ${names.join(',')} to be scheduled`,
        ] as const)
  return {
    action: { kind: 'markPending' },
    event: { type: 'Normal', reason, message },
    waiting: [{ reason: names.length === 0 ? 'firstConsumer' : 'podUnscheduled', message }],
  }
}

/** Who makes the volume (CLM-8b, PRV-1, PRV-2)? */
function planProvisioning(facts: ClaimFacts, className: string): ClaimPlan {
  const { storageClass } = facts
  const leave = (waiting: Waiting, event?: PlannedEvent): ClaimPlan => ({
    action: { kind: 'leave' },
    waiting: [waiting],
    ...(event === undefined ? {} : { event }),
  })
  if (!facts.provisioningEnabled) return leave({ reason: 'provisioningDisabled' })
  if (storageClass === undefined) {
    const message = `storageclass.storage.k8s.io "${className}" not found`
    return leave({ reason: 'classMissing', message }, provisioningFailed(message))
  }
  const { provisioner } = storageClass
  const driver = migratedTo(provisioner)
  if (driver === undefined && facts.canProvision(provisioner)) {
    // WC-11: what nobody will use is not made.
    if (isDeleting(facts.claim)) return leave({ reason: 'provisioningDisabled' })
    return {
      action: { kind: 'provision', storageClass, plugin: provisioner },
      waiting: [{ reason: 'provisioning' }],
    }
  }
  if (driver !== undefined || !provisioner.startsWith('kubernetes.io/')) {
    const name = driver ?? provisioner
    const message = `Waiting for a volume to be created either by the external provisioner '${name}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.`
    return {
      action: { kind: 'askProvisioner', provisioner: name },
      event: { type: 'Normal', reason: 'ExternalProvisioning', message },
      waiting: [{ reason: 'externalProvisioner', message }],
    }
  }
  // NFS has a plugin here, for recycling; it only cannot provision.
  const message =
    provisioner === 'kubernetes.io/nfs'
      ? 'no provisionable volume plugin matched'
      : `no volume plugin matched name: ${provisioner}`
  return leave({ reason: 'noProvisioner', message }, provisioningFailed(message))
}

export function provisioningFailed(message: string): PlannedEvent {
  return { type: 'Warning', reason: 'ProvisioningFailed', message }
}

/** Section 5.2: the user named the volume. */
function planNamed(facts: ClaimFacts, name: string): ClaimPlan {
  const { claim, namedVolume: volume } = facts
  if (volume === undefined) return pending({ reason: 'namedVolumeMissing' }, undefined)
  if (volume.spec.claimRef === undefined) {
    const unfit = unfitReason(volume, claim)
    if (unfit === undefined) return bind(facts, volume)
    const message = `Cannot bind to requested volume "${name}": ${unfit}`
    const event = { type: 'Warning', reason: 'VolumeMismatch', message } as const
    return pending({ reason: 'namedVolumeUnfit', message }, event)
  }
  if (belongsTo(volume, claim)) return bind(facts, volume)
  const message = `volume "${name}" already bound to a different claim.`
  const event = { type: 'Warning', reason: 'FailedBinding', message } as const
  const waiting: Waiting = { reason: 'namedVolumeTaken', message }
  if (annotation(claim, annotations.boundByController) === undefined) return pending(waiting, event)
  // Somebody removed the mark of a bind that we made: nothing may be changed, only tried again.
  return { action: { kind: 'fail', message }, event, waiting: [waiting] }
}

/** Section 5.3: the claim was bound once. */
function planBound(facts: ClaimFacts): ClaimPlan {
  const { claim, namedVolume: volume } = facts
  const lost = (reason: string, message: string): ClaimPlan => ({
    action: { kind: 'markLost' },
    event: { type: 'Warning', reason, message },
    waiting: [{ reason: reason === 'ClaimMisbound' ? 'misbound' : 'volumeLost', message }],
  })
  if (!claim.spec.volumeName)
    return lost('ClaimLost', 'Bound claim has lost reference to PersistentVolume. Data on the volume is lost!')
  if (volume === undefined)
    return lost('ClaimLost', 'Bound claim has lost its PersistentVolume. Data on the volume is lost!')
  if (volume.spec.claimRef === undefined) return bind(facts, volume)
  if (volume.spec.claimRef.uid === claim.metadata.uid) return bind(facts, volume)
  return lost('ClaimMisbound', 'Two claims are bound to the same volume, this one is bound incorrectly')
}

function bind(facts: ClaimFacts, volume: PersistentVolume): ClaimPlan {
  const { name } = volume.metadata
  if (!facts.isBusy(name)) return { action: { kind: 'bind', volume }, waiting: [] }
  const waiting: Waiting = { reason: 'volumeBusy' }
  return { action: { kind: 'waitForVolume', volume }, waiting: [waiting] }
}

function pending(waiting: Waiting, event: PlannedEvent | undefined): ClaimPlan {
  return { action: { kind: 'markPending' }, waiting: [waiting], ...(event === undefined ? {} : { event }) }
}

function failed(message: string): ClaimPlan {
  return { action: { kind: 'fail', message }, waiting: [{ reason: 'retrying', message }] }
}
