// May this object's protection finalizer be put on or taken off (PCP, PVP, VCP)? Pure decisions for claims, volumes
// and volume attributes classes.
import { finalizers } from '../../api/annotations.ts'
import { findCondition, hasFinalizer, isControlledBy, isDeleting } from '../../api/meta.ts'
import type { KubeObject } from '../../api/meta.ts'
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimCondition,
  Pod,
} from '../../api/generated/types.ts'
import { claimsOf, isTerminated } from '../../api/pod-claims.ts'

export type ProtectionPlan =
  | { readonly kind: 'add' | 'leave' | 'remove' }
  /** Remove if no pod uses the claim: carry-out asks the cache first, then the server itself. */
  | { readonly kind: 'removeIfUnused' }
  | { readonly kind: 'keep'; readonly reason: 'protectedByClaim' | 'protectedByPods' | 'protectedByReferences' }

/** A claim is protected from its creation on; a deleted one until no pod uses it (PCP-1, PCP-2). */
export function planClaimProtection(claim: PersistentVolumeClaim): ProtectionPlan {
  return plan(claim, finalizers.claimProtection, { kind: 'removeIfUnused' })
}

/** A deleted attributes class is kept until no claim and no volume names it (VCP-1). */
export function planClassProtection(attributesClass: KubeObject, isUsed: boolean): ProtectionPlan {
  const release: ProtectionPlan = isUsed ? { kind: 'keep', reason: 'protectedByReferences' } : { kind: 'remove' }
  return plan(attributesClass, finalizers.attributesClassProtection, release)
}

/** A deleted volume is kept while it is bound (PVP-1, PVP-2, PVP-3). */
export function planVolumeProtection(volume: PersistentVolume): ProtectionPlan {
  const isBound = volume.status?.phase === 'Bound'
  const release: ProtectionPlan = isBound ? { kind: 'keep', reason: 'protectedByClaim' } : { kind: 'remove' }
  return plan(volume, finalizers.volumeProtection, release)
}

/** `release` decides about a protected object that is being deleted. */
function plan(object: KubeObject, finalizer: string, release: ProtectionPlan): ProtectionPlan {
  const isProtected = hasFinalizer(object, finalizer)
  if (!isDeleting(object)) return { kind: isProtected ? 'leave' : 'add' }
  return isProtected ? release : { kind: 'leave' }
}

/** A placed pod uses the claim as long as the pod object exists, finished or not (PCP-2). */
export function podUses(pod: Pod, claim: PersistentVolumeClaim): boolean {
  if (!pod.spec?.nodeName || pod.metadata.namespace !== claim.metadata.namespace) return false
  return claimsOf(pod).some((use) => {
    if (use.claimName !== claim.metadata.name) return false
    return !use.ephemeral || (isControlledBy(claim, pod) && !isShutDown(pod))
  })
}

/** Deleted with grace period zero: the kubelet is done with it. */
function isShutDown(pod: Pod): boolean {
  return isDeleting(pod) && pod.metadata.deletionGracePeriodSeconds === 0
}

/** A pod that has not ended names the claim, placed or not (PCP-5). */
export function podReferences(pod: Pod, claim: PersistentVolumeClaim): boolean {
  return !isTerminated(pod) && claimsOf(pod).some((use) => use.claimName === claim.metadata.name)
}

/** The `Unused` condition as it should be, or undefined when nothing has to be written (PCP-5). */
export function unusedCondition(
  claim: PersistentVolumeClaim,
  used: boolean,
  now: string,
): PersistentVolumeClaimCondition | undefined {
  if (isDeleting(claim) || claim.status?.phase !== 'Bound') return undefined
  const status = used ? 'False' : 'True'
  if (findCondition(claim.status.conditions, 'Unused')?.status === status) return undefined
  return {
    type: 'Unused',
    status,
    lastTransitionTime: now,
    reason: used ? 'PodUsingPVC' : 'NoPodsUsingPVC',
    message: used ? 'A pod is currently referencing this PVC' : 'No pods are currently referencing this PVC',
  }
}

/** The attributes classes that an object names (VCP-1). Nearly always none, and asked at every change. */
export function classesNamedBy(object: PersistentVolume | PersistentVolumeClaim): readonly string[] {
  const wanted = object.spec.volumeAttributesClassName
  const status = (object as PersistentVolumeClaim).status
  const current = status?.currentVolumeAttributesClassName
  const target = status?.modifyVolumeStatus?.targetVolumeAttributesClassName
  if (!wanted && !current && !target) return []
  return [...new Set([wanted, current, target].filter((name): name is string => Boolean(name)))]
}
