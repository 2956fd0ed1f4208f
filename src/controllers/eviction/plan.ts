// Must a pod leave its node because of NoExecute taints, and when? Pure; the tolerations are those of Kubernetes.
import { toleratesTaint } from '../../api/node-selector.ts'
import type { Node, Pod, Taint } from '../../api/generated/types.ts'
import { isDeleting } from '../../api/meta.ts'
import { hasEnded } from '../../api/pod-claims.ts'

export type EvictionPlan =
  /** No such taint, tolerated for ever, or the pod goes already. */
  | { readonly kind: 'stay' }
  /** Tolerated for a while. */
  | { readonly kind: 'leaveAt'; readonly at: number }
  | { readonly kind: 'leave'; readonly taint: Taint }

/**
 * `seenSince`: since when we know that these taints and this pod are together. A taint that says when it was added is believed, so
 * that a restart of ours prolongs nothing. A pod that has ended holds nothing on the node and keeps its logs.
 */
export function planEviction(pod: Pod, node: Node | undefined, seenSince: number, now: number): EvictionPlan {
  const taints = noExecuteTaints(node)
  if (taints.length === 0 || isDeleting(pod) || hasEnded(pod)) return { kind: 'stay' }
  const ends: { readonly at: number; readonly taint: Taint }[] = []
  for (const taint of taints) {
    // As in Kubernetes the first toleration that matches a taint counts, and of all taints the shortest time.
    const toleration = pod.spec?.tolerations?.find((each) => toleratesTaint(each, taint))
    if (toleration === undefined) return { kind: 'leave', taint }
    const seconds = toleration.tolerationSeconds
    if (seconds !== undefined) ends.push({ at: addedAt(taint, seenSince) + Math.max(0, seconds) * 1_000, taint })
  }
  const first = ends.toSorted((a, b) => a.at - b.at)[0]
  if (first === undefined) return { kind: 'stay' }
  return first.at <= now ? { kind: 'leave', taint: first.taint } : { kind: 'leaveAt', at: first.at }
}

export function noExecuteTaints(node: Node | undefined): readonly Taint[] {
  return (node?.spec?.taints ?? []).filter(({ effect }) => effect === 'NoExecute')
}

function addedAt({ timeAdded }: Taint, seenSince: number): number {
  const told = timeAdded === undefined ? Number.NaN : Date.parse(timeAdded)
  return Number.isNaN(told) ? seenSince : told
}
