// Which claims does a pod use, and does it still use them? Named claims and generic ephemeral ones alike (W-28).
import { isControlledBy, isDeleting, keyFor } from '../api/meta.ts'
import type { PersistentVolumeClaim, Pod } from '../api/types.ts'

export interface PodClaim {
  readonly volume: string
  /** namespace/name */
  readonly key: string
  readonly claimName: string
  /** A generic ephemeral volume: the claim counts only if this pod owns it (EPH-5). */
  readonly ephemeral: boolean
}

export function claimsOf(pod: Pod): readonly PodClaim[] {
  const { namespace, name } = pod.metadata
  return (pod.spec?.volumes ?? []).flatMap((volume): PodClaim[] => {
    const claimName =
      volume.persistentVolumeClaim?.claimName ?? (volume.ephemeral ? `${name}-${volume.name}` : undefined)
    if (claimName === undefined) return []
    const key = keyFor(namespace, claimName)
    return [{ volume: volume.name, key, claimName, ephemeral: volume.ephemeral !== undefined }]
  })
}

export function claimKeysOf(pod: Pod): readonly string[] {
  return claimsOf(pod).map(({ key }) => key)
}

/** CLM-10: Failed or Succeeded, or being deleted with nothing running any more. */
export function isTerminated(pod: Pod): boolean {
  const phase = pod.status?.phase
  if (phase === 'Failed' || phase === 'Succeeded') return true
  return isDeleting(pod) && !anyContainerRuns(pod)
}

function anyContainerRuns(pod: Pod): boolean {
  const { initContainerStatuses, containerStatuses, ephemeralContainerStatuses } = pod.status ?? {}
  const all = [...(initContainerStatuses ?? []), ...(containerStatuses ?? []), ...(ephemeralContainerStatuses ?? [])]
  return all.some((status) => status.state?.running !== undefined)
}

/** EPH-5: an ephemeral claim is the pod's only if the pod made it. */
export function isUsable(claim: PersistentVolumeClaim, use: PodClaim, pod: Pod): boolean {
  return !use.ephemeral || isControlledBy(claim, pod)
}
