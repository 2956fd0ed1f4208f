// May this object's protection finalizer be put on or taken off (PCP, PVP, VCP)? Pure decisions for claims, volumes
// and volume attributes classes.
import { finalizers } from '../../api/annotations.ts'
import { findCondition, hasFinalizer, isControlledBy, isDeleting } from '../../api/meta.ts'
import type { KubeObject } from '../../api/meta.ts'
import type { PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimCondition, Pod } from '../../api/types.ts'
import { claimsOf, isTerminated } from '../pod-claims.ts'

export type ProtectionPlan =
  | { readonly kind: 'add' | 'leave'; readonly rule: string }
  /** Remove if nothing uses the object: the caller asks, cheaply first, then the server itself. */
  | { readonly kind: 'removeIfUnused'; readonly rule: string }
  | { readonly kind: 'remove'; readonly rule: string }
  | { readonly kind: 'keep'; readonly rule: string }

/** PCP-1 */
export function planClaimProtection(claim: PersistentVolumeClaim): ProtectionPlan {
  return planByUse(claim, finalizers.claimProtection, 'PCP-1')
}

/** VCP-1 */
export function planClassProtection(attributesClass: KubeObject): ProtectionPlan {
  return planByUse(attributesClass, finalizers.attributesClassProtection, 'VCP-1')
}

/** PVP-1, PVP-2, PVP-3 */
export function planVolumeProtection(volume: PersistentVolume): ProtectionPlan {
  const has = hasFinalizer(volume, finalizers.volumeProtection)
  if (!isDeleting(volume)) return has ? { kind: 'leave', rule: 'PVP-1' } : { kind: 'add', rule: 'PVP-1' }
  if (!has) return { kind: 'leave', rule: 'PVP-3' }
  return volume.status?.phase === 'Bound' ? { kind: 'keep', rule: 'PVP-2' } : { kind: 'remove', rule: 'PVP-3' }
}

function planByUse(object: KubeObject, finalizer: string, rule: string): ProtectionPlan {
  const has = hasFinalizer(object, finalizer)
  if (!isDeleting(object)) return has ? { kind: 'leave', rule } : { kind: 'add', rule }
  return has ? { kind: 'removeIfUnused', rule } : { kind: 'leave', rule }
}

/** PCP-2: a placed pod uses the claim as long as the pod object exists, finished or not. */
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

/** PCP-5: a pod that is not over names the claim, placed or not. */
export function podReferences(pod: Pod, claim: PersistentVolumeClaim): boolean {
  return !isTerminated(pod) && claimsOf(pod).some((use) => use.claimName === claim.metadata.name)
}

/** PCP-5: the condition as it should be, or undefined when nothing has to be written. */
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

/** VCP-1: everything that names an attributes class. Nearly always nothing, and asked at every change. */
export function classesNamedBy(object: PersistentVolume | PersistentVolumeClaim): readonly string[] {
  const wanted = object.spec.volumeAttributesClassName
  const status = (object as PersistentVolumeClaim).status
  const current = status?.currentVolumeAttributesClassName
  const target = status?.modifyVolumeStatus?.targetVolumeAttributesClassName
  if (!wanted && !current && !target) return none
  return [...new Set([wanted, current, target].filter((name): name is string => Boolean(name)))]
}

const none: readonly string[] = []
