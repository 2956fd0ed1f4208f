// Which claims does a pod use, and does it still use them? Named claims and generic ephemeral ones alike (WC-28).
import { isDeleting, keyFor } from './meta.ts'
import type { Pod, Volume } from './generated/types.ts'

export interface PodClaim {
  readonly volume: string
  /** namespace/name */
  readonly key: string
  readonly claimName: string
  /** A generic ephemeral volume: the claim counts only if this pod owns it (EPH-5). */
  readonly ephemeral: boolean
}

/** The claim behind a volume of a pod; undefined for other volumes. */
export function claimNameOf(pod: Pod, volume: Volume): string | undefined {
  if (volume.persistentVolumeClaim) return volume.persistentVolumeClaim.claimName
  return volume.ephemeral ? `${pod.metadata.name}-${volume.name}` : undefined
}

export function claimsOf(pod: Pod): readonly PodClaim[] {
  return (pod.spec?.volumes ?? []).flatMap((volume): PodClaim[] => {
    const claimName = claimNameOf(pod, volume)
    if (claimName === undefined) return []
    const key = keyFor(pod.metadata.namespace, claimName)
    return [{ volume: volume.name, key, claimName, ephemeral: volume.ephemeral !== undefined }]
  })
}

export function claimKeysOf(pod: Pod): readonly string[] {
  return claimsOf(pod).map(({ key }) => key)
}

/** The pod has ended: Failed or Succeeded, or being deleted with nothing running any more (CLM-10, ID-7). */
export function isTerminated(pod: Pod): boolean {
  return hasEnded(pod) || (isDeleting(pod) && !anyContainerRuns(pod))
}

/** The pod is Failed or Succeeded. */
export function hasEnded(pod: Pod): boolean {
  return pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded'
}

function anyContainerRuns(pod: Pod): boolean {
  const { initContainerStatuses, containerStatuses, ephemeralContainerStatuses } = pod.status ?? {}
  const all = [...(initContainerStatuses ?? []), ...(containerStatuses ?? []), ...(ephemeralContainerStatuses ?? [])]
  return all.some((status) => status.state?.running !== undefined)
}
