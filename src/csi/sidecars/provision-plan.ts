// What must be done for a claim? Make its volume, let it go, or nothing; and what follows from a failure. Pure
// (SIDE-6, SIDE-16, XPR-2, XPR-7).
import { annotations } from '../../api/annotations.ts'
import type { PersistentVolumeClaim, StorageClass } from '../../api/generated/types.ts'
import { annotation, hasFinalizer, isDeleting } from '../../api/meta.ts'
import { provisionVerdict } from '../codes.ts'
import type { ProvisionVerdict } from '../codes.ts'
import { VolumeError } from '../../volume/effect.ts'
import { selectedNodeOf } from './provision-request.ts'

export const provisioningFinalizer = 'hawser.dev/provisioning'

export interface ProvisionFacts {
  readonly claim: PersistentVolumeClaim
  readonly storageClass: StorageClass | undefined
  /** The PersistentVolume of this claim exists. */
  readonly volumeExists: boolean
  /** The driver was asked and its answer is not recorded yet. */
  readonly isOrdered: boolean
  /** The driver's last answer was final: nothing is under way. */
  readonly isSettled: boolean
  readonly driver: string
  /** Whether a claim for which this node was selected, or none, is this instance's. */
  owns(selectedNode: string | undefined): boolean
}

export type ProvisionPlan =
  | { readonly kind: 'nothing' }
  /** Nothing is under way any more; `dropFinalizer` when the claim need not be held. */
  | { readonly kind: 'release'; readonly dropFinalizer: boolean }
  | { readonly kind: 'provision' }
  /** The last node had no room, and the next one is not selected yet: what the driver said still holds. */
  | { readonly kind: 'awaitNode' }

export function planProvision(facts: ProvisionFacts): ProvisionPlan {
  const { claim, storageClass } = facts
  if (facts.volumeExists || claim.spec?.volumeName) return release(claim)
  if (facts.isOrdered) return { kind: 'provision' }
  if (isDeleting(claim) && !hasFinalizer(claim, provisioningFinalizer)) return { kind: 'nothing' }
  if (isDeleting(claim) && facts.isSettled) return release(claim)
  const isWanted = storageClass !== undefined && isOurs(claim, storageClass, facts)
  if (isWanted) return { kind: 'provision' }
  return { kind: awaitsNode(claim, facts) ? 'awaitNode' : 'nothing' }
}

/** The binder is about to write the claim, too: waiting for that write saves both a conflict. */
function release(claim: PersistentVolumeClaim): ProvisionPlan {
  const isDone = Boolean(claim.spec?.volumeName) || isDeleting(claim)
  return { kind: 'release', dropFinalizer: isDone && hasFinalizer(claim, provisioningFinalizer) }
}

/** The driver refused the node that was selected, and nobody has selected another yet. */
const awaitsNode = (claim: PersistentVolumeClaim, { isSettled }: Pick<ProvisionFacts, 'isSettled'>) =>
  isSettled && selectedNodeOf(claim) === undefined

/** Could this claim be ours at all? A cheap test on every change. */
export function mayConcern(claim: PersistentVolumeClaim, driver: string): boolean {
  return provisionerOf(claim) === driver || annotation(claim, annotations.migratedTo) === driver
}

export function provisionerOf(claim: PersistentVolumeClaim): string | undefined {
  return annotation(claim, annotations.storageProvisioner) ?? annotation(claim, annotations.betaStorageProvisioner)
}

/** A claim of our driver without a volume; with delayed binding, one that has a node (XPR-2). */
function isOurs(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
  { driver, owns }: Pick<ProvisionFacts, 'driver' | 'owns'>,
): boolean {
  if (!mayConcern(claim, driver)) return false
  const node = selectedNodeOf(claim)
  if (storageClass.volumeBindingMode === 'WaitForFirstConsumer' && node === undefined) return false
  return owns(node)
}

/** The scheduler must choose another node before anything is asked of the driver. */
export class RescheduleError extends VolumeError {
  constructor(reason: string) {
    super('DriverMissing', reason, { effect: 'none' })
  }
}

export interface FailureFacts {
  readonly error: unknown
  readonly isOrdered: boolean
  readonly hasTopology: boolean
  readonly hasSelectedNode: boolean
  /** A person chose the node: the claim stays there and is tried again. */
  readonly keepsNode: boolean
}

/** Only an error of the driver can leave something under way; without a call every failure is final. */
export function planFailure(facts: FailureFacts): ProvisionVerdict {
  const { error, isOrdered, hasTopology, hasSelectedNode, keepsNode } = facts
  if (error instanceof RescheduleError) return keepsNode ? 'final' : 'reschedule'
  const mayMove = hasSelectedNode && !keepsNode
  return isOrdered ? provisionVerdict(error, { topology: hasTopology, selectedNode: mayMove }) : 'final'
}
