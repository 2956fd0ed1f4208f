// What should happen to this claim next? Every branch of claim sync (CLM-1 … CLM-22) as one total, pure function.
// The answer names its rule, so that each transition can be explained.
import { annotations } from '../../api/annotations.ts'
import { annotation, isDeleting } from '../../api/meta.ts'
import type { PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '../../api/types.ts'
import { classOf, hasNoClassDecision } from './default-class.ts'
import { belongsTo, unfitReason } from './match.ts'
import type { Match } from './match.ts'
import { migratedTo } from './migration.ts'
import type { Waiting } from './waiting.ts'

export interface PlannedEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

export type ClaimAction =
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
  readonly rule: string
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
    return failed('CLM-4', `VolumeBindingMode not set for StorageClass "${className}"`)
  const delayed = storageClass?.volumeBindingMode === 'WaitForFirstConsumer'
  const match = facts.findVolume(delayed)
  if (match.kind === 'reserved' || match.kind === 'free') return bind(facts, 'CLM-6', match.volume)
  if (hasNoClassDecision(claim) && facts.defaultClass !== undefined) {
    const className = facts.defaultClass.metadata.name
    return { rule: 'CLM-9', action: { kind: 'assignClass', className }, waiting: [] }
  }
  if (delayed && annotation(claim, annotations.selectedNode) === undefined) return planDelayed(facts)
  if (className !== '') return planProvisioning(facts, className)
  const message = 'no persistent volumes available for this claim and no storage class is set'
  return {
    rule: 'CLM-8c',
    action: { kind: 'markPending' },
    event: { type: 'Normal', reason: 'FailedBinding', message },
    waiting: [{ reason: 'noVolumeFits', rule: 'CLM-8c', message }],
  }
}

/** CLM-8a, CLM-10 */
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
    rule: 'CLM-8a',
    action: { kind: 'markPending' },
    event: { type: 'Normal', reason, message },
    waiting: [{ reason: names.length === 0 ? 'firstConsumer' : 'podUnscheduled', rule: 'CLM-10', message }],
  }
}

/** CLM-8b, PRV-1, PRV-2: who makes the volume? */
function planProvisioning(facts: ClaimFacts, className: string): ClaimPlan {
  const { storageClass } = facts
  const leave = (rule: string, waiting: Waiting, event?: PlannedEvent): ClaimPlan => ({
    rule,
    action: { kind: 'leave' },
    waiting: [waiting],
    ...(event === undefined ? {} : { event }),
  })
  if (!facts.provisioningEnabled) return leave('PRV-1', { reason: 'provisioningDisabled', rule: 'PRV-1' })
  if (storageClass === undefined) {
    const message = `storageclass.storage.k8s.io "${className}" not found`
    const on = `StorageClass/${className}`
    return leave('PRV-2', { reason: 'classMissing', rule: 'PRV-2', message, on }, provisioningFailed(message))
  }
  const { provisioner } = storageClass
  const driver = migratedTo(provisioner)
  if (driver === undefined && facts.canProvision(provisioner)) {
    // W-11: what nobody will use is not made.
    if (isDeleting(facts.claim)) return leave('W-11', { reason: 'provisioningDisabled', rule: 'W-11' })
    return {
      rule: 'PRV-8',
      action: { kind: 'provision', storageClass, plugin: provisioner },
      waiting: [{ reason: 'provisioning', rule: 'PRV-11', on: `StorageClass/${className}` }],
    }
  }
  if (driver !== undefined || !provisioner.startsWith('kubernetes.io/')) {
    const name = driver ?? provisioner
    const message = `Waiting for a volume to be created either by the external provisioner '${name}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.`
    return {
      rule: 'PRV-4',
      action: { kind: 'askProvisioner', provisioner: name },
      event: { type: 'Normal', reason: 'ExternalProvisioning', message },
      waiting: [{ reason: 'externalProvisioner', rule: 'PRV-5', message }],
    }
  }
  // NFS has a plugin here, for recycling; it only cannot provision.
  const message =
    provisioner === 'kubernetes.io/nfs'
      ? 'no provisionable volume plugin matched'
      : `no volume plugin matched name: ${provisioner}`
  return leave('PRV-2', { reason: 'noProvisioner', rule: 'PRV-2', message }, provisioningFailed(message))
}

export function provisioningFailed(message: string): PlannedEvent {
  return { type: 'Warning', reason: 'ProvisioningFailed', message }
}

/** Section 5.2: the user named the volume. */
function planNamed(facts: ClaimFacts, name: string): ClaimPlan {
  const { claim, namedVolume: volume } = facts
  const on = `PersistentVolume/${name}`
  if (volume === undefined) return pending('CLM-11', { reason: 'namedVolumeMissing', rule: 'CLM-11', on }, undefined)
  if (volume.spec.claimRef === undefined) {
    const unfit = unfitReason(volume, claim)
    if (unfit === undefined) return bind(facts, 'CLM-12', volume)
    const message = `Cannot bind to requested volume "${name}": ${unfit}`
    const event = { type: 'Warning', reason: 'VolumeMismatch', message } as const
    return pending('CLM-12', { reason: 'namedVolumeUnfit', rule: 'MAT-13', message, on }, event)
  }
  if (belongsTo(volume, claim)) return bind(facts, 'CLM-13', volume)
  const message = `volume "${name}" already bound to a different claim.`
  const event = { type: 'Warning', reason: 'FailedBinding', message } as const
  const waiting: Waiting = { reason: 'namedVolumeTaken', rule: 'CLM-14', message, on }
  if (annotation(claim, annotations.boundByController) === undefined) return pending('CLM-14', waiting, event)
  // Somebody removed the mark of a bind that we made: nothing may be changed, only tried again.
  return { rule: 'CLM-15', action: { kind: 'fail', message }, event, waiting: [{ ...waiting, rule: 'CLM-15' }] }
}

/** Section 5.3: the claim was bound once. */
function planBound(facts: ClaimFacts): ClaimPlan {
  const { claim, namedVolume: volume } = facts
  const lost = (rule: string, reason: string, message: string): ClaimPlan => ({
    rule,
    action: { kind: 'markLost' },
    event: { type: 'Warning', reason, message },
    waiting: [{ reason: reason === 'ClaimMisbound' ? 'misbound' : 'volumeLost', rule, message }],
  })
  if (!claim.spec.volumeName)
    return lost(
      'CLM-16',
      'ClaimLost',
      'Bound claim has lost reference to PersistentVolume. Data on the volume is lost!',
    )
  if (volume === undefined)
    return lost('CLM-17', 'ClaimLost', 'Bound claim has lost its PersistentVolume. Data on the volume is lost!')
  if (volume.spec.claimRef === undefined) return bind(facts, 'CLM-18', volume)
  if (volume.spec.claimRef.uid === claim.metadata.uid) return bind(facts, 'CLM-19', volume)
  return lost('CLM-20', 'ClaimMisbound', 'Two claims are bound to the same volume, this one is bound incorrectly')
}

function bind(facts: ClaimFacts, rule: string, volume: PersistentVolume): ClaimPlan {
  const { name } = volume.metadata
  if (!facts.isBusy(name)) return { rule, action: { kind: 'bind', volume }, waiting: [] }
  const waiting: Waiting = { reason: 'volumeBusy', rule: 'W-17', on: `PersistentVolume/${name}` }
  return { rule: 'W-17', action: { kind: 'waitForVolume', volume }, waiting: [waiting] }
}

function pending(rule: string, waiting: Waiting, event: PlannedEvent | undefined): ClaimPlan {
  return { rule, action: { kind: 'markPending' }, waiting: [waiting], ...(event === undefined ? {} : { event }) }
}

function failed(rule: string, message: string): ClaimPlan {
  return { rule, action: { kind: 'fail', message }, waiting: [{ reason: 'retrying', rule, message }] }
}
