// Which claims does a pod bring, and can it be placed at all (SCH-2, SCH-3, EPH-6)? Pure.
import { annotations } from '../../api/annotations.ts'
import { annotation, isControlledBy, isDeleting } from '../../api/meta.ts'
import { compareQuantities } from '../../api/quantity.ts'
import type { PersistentVolumeClaim, Pod } from '../../api/generated/types.ts'
import { classOf } from '../../api/storage-class.ts'
import { requestOf } from '../shared/match.ts'
import { claimsOf } from '../../api/pod-claims.ts'
import type { ClusterView } from './cluster-view.ts'

export type PodVolumes =
  | {
      readonly kind: 'ready'
      readonly bound: readonly PersistentVolumeClaim[]
      /** Sorted by request, smallest first (SCH-6). */
      readonly delayed: readonly PersistentVolumeClaim[]
    }
  /** No node can help; the reason is the user's text. */
  | { readonly kind: 'refused'; readonly reason: string }

export function volumesOfPod(pod: Pod, view: ClusterView): PodVolumes {
  const bound: PersistentVolumeClaim[] = []
  const delayed: PersistentVolumeClaim[] = []
  let immediate = false
  for (const use of claimsOf(pod)) {
    const claim = view.claim(use.key)
    const name = JSON.stringify(use.claimName)
    if (claim === undefined) {
      return refused(
        use.ephemeral
          ? `waiting for ephemeral volume controller to create the persistentvolumeclaim ${name}`
          : `persistentvolumeclaim ${name} not found`,
      )
    }
    if (claim.status?.phase === 'Lost')
      return refused(
        `persistentvolumeclaim ${name} bound to non-existent persistentvolume ${JSON.stringify(claim.spec.volumeName ?? '')}`,
      )
    if (isDeleting(claim)) return refused(`persistentvolumeclaim ${name} is being deleted`)
    if (use.ephemeral && !isControlledBy(claim, pod)) {
      const { namespace } = pod.metadata
      return refused(
        `PVC ${namespace}/${use.claimName} was not created for pod ${namespace}/${pod.metadata.name} (pod is not owner)`,
      )
    }
    if (isFullyBound(claim)) bound.push(claim)
    else if (isDelayed(claim, view)) delayed.push(claim)
    else immediate = true
  }
  if (immediate) return refused('pod has unbound immediate PersistentVolumeClaims')
  return { kind: 'ready', bound, delayed: delayed.sort(bySize) }
}

/** SCH-3: the pointer and the mark; the phase is written last and is not asked. */
export function isFullyBound(claim: PersistentVolumeClaim): boolean {
  return Boolean(claim.spec.volumeName) && annotation(claim, annotations.bindCompleted) !== undefined
}

function isDelayed(claim: PersistentVolumeClaim, view: ClusterView): boolean {
  if (claim.spec.volumeName) return false
  return view.storageClass(classOf(claim))?.volumeBindingMode === 'WaitForFirstConsumer'
}

function bySize(left: PersistentVolumeClaim, right: PersistentVolumeClaim): number {
  const order = compareQuantities(requestOf(left), requestOf(right))
  return order !== 0 ? order : left.metadata.name < right.metadata.name ? -1 : 1
}

function refused(reason: string): PodVolumes {
  return { kind: 'refused', reason }
}
