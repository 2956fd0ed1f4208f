// On which node should this pod run? The first node in a total order that nothing speaks against; or why there is none,
// in the sentence that users know from `kubectl describe pod`.
import { factsOfNode, matchesTerm } from '../../api/node-selector.ts'
import { compareAmounts, parseQuantity } from '../../api/quantity.ts'
import type { Node, Pod } from '../../api/generated/types.ts'
import { requestOf } from '../shared/match.ts'
import type { ClusterView } from './cluster-view.ts'
import { refusalsOfNode } from './node-filters.ts'
import { volumesOfPod } from './pod-volumes.ts'
import { offerOfNode, reasons, singlePodConflict } from './volume-filters.ts'
import type { NodeOffer } from './volume-filters.ts'

export type Selection =
  | { readonly kind: 'node'; readonly offer: NodeOffer }
  | { readonly kind: 'none'; readonly message: string }
  /** A pod with a node whose claims are bound, or not ours to bind. */
  | { readonly kind: 'nothing' }

/** `rejectedAt`: when this node last turned out not to get the pod's volumes; 0 for a node that was not tried. */
export function selectNode(
  pod: Pod,
  nodes: readonly Node[],
  view: ClusterView,
  rejectedAt: (nodeName: string) => number,
): Selection {
  const none = (why: string): Selection => ({ kind: 'none', message: `0/${nodes.length} nodes are available: ${why}.` })
  if (nodes.length === 0) return { kind: 'none', message: 'no nodes available to schedule pods' }
  const volumes = volumesOfPod(pod, view)
  if (volumes.kind === 'refused') return none(volumes.reason)
  const counts = new Map<string, number>()
  const offers: NodeOffer[] = []
  const isShared = singlePodConflict(pod, view)
  for (const node of nodes) {
    const own = refusalsOfNode(pod, node, view.podsOn(node.metadata.name))
    const offer = offerOfNode({ pod, ...volumes }, node, view)
    // The node's own reasons come first and hide those about volumes, as the first failing filter does upstream.
    const refusals = own.length > 0 ? own : [...(isShared ? [reasons.singlePod] : []), ...offer.refusals]
    if (refusals.length === 0) offers.push(offer)
    for (const reason of refusals) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  }
  const best = offers.sort(byPreference(pod, view, rejectedAt))[0]
  if (best !== undefined) return { kind: 'node', offer: best }
  const lines = Array.from(counts, ([reason, count]) => `${count} ${reason}`).sort()
  return none(lines.join(', '))
}

/** The claims of a pod that is on a node already: nobody asks whether the node suits the pod, only whether it can have them. */
export function offerOfOwnNode(pod: Pod, nodeName: string, node: Node | undefined, view: ClusterView): Selection {
  const volumes = volumesOfPod(pod, view)
  // Missing and lost claims are told by others; a claim with immediate binding finds its volume without us.
  if (volumes.kind === 'refused' || volumes.delayed.length === 0) return { kind: 'nothing' }
  const none = (why: string): Selection => ({ kind: 'none', message: `node ${JSON.stringify(nodeName)} ${why}` })
  if (node === undefined) return none('does not exist')
  const offer = offerOfNode({ pod, ...volumes }, node, view)
  return offer.refusals.length === 0
    ? { kind: 'node', offer }
    : none(`cannot have the pod's volumes: ${offer.refusals.join(', ')}`)
}

/**
 * 1. Nodes that have not rejected the pod's volumes, then the one whose rejection is oldest: each gets its turn.
 * 2. Volumes that are there beat volumes that must be made. 3. Among volumes that are there, the tightest fit (WC-31).
 * 4. Preferred node affinity. 5. Fewest pods. 6. The name, so that equal clusters decide equally.
 */
function byPreference(pod: Pod, view: ClusterView, rejectedAt: (nodeName: string) => number) {
  const podsOn = new Map<string, number>()
  const count = (name: string) => podsOn.getOrInsertComputed(name, () => Array.from(view.podsOn(name)).length)
  return (left: NodeOffer, right: NodeOffer): number => {
    const [leftName, rightName] = [left.node.metadata.name, right.node.metadata.name]
    return (
      rejectedAt(leftName) - rejectedAt(rightName) ||
      left.provisions.length - right.provisions.length ||
      wasteOrder(left, right) ||
      preference(pod, right.node) - preference(pod, left.node) ||
      count(leftName) - count(rightName) ||
      (leftName < rightName ? -1 : 1)
    )
  }
}

function wasteOrder(left: NodeOffer, right: NodeOffer): number {
  const waste = (offer: NodeOffer) => ({
    format: 'BinarySI' as const,
    nanos: offer.takes.reduce(
      (sum, { claim, volume }) =>
        sum + parseQuantity(volume.spec.capacity?.['storage'] ?? '0').nanos - parseQuantity(requestOf(claim)).nanos,
      0n,
    ),
  })
  return compareAmounts(waste(left), waste(right))
}

function preference(pod: Pod, node: Node): number {
  const terms = pod.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  const facts = factsOfNode(node)
  return terms.reduce((sum, { weight, preference: term }) => sum + (matchesTerm(term, facts) ? weight : 0), 0)
}
