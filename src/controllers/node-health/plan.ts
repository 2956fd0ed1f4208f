// Has a node fallen silent? Decided from its lease alone: an agent renews it every few seconds.
import { findCondition } from '../../api/meta.ts'
import type { Lease, Node, NodeCondition } from '../../api/generated/types.ts'

export type HealthPlan =
  | { readonly kind: 'nothing' }
  /** Heard of lately; to be looked at again when the lease is over. */
  | { readonly kind: 'lookAgain'; readonly afterMs: number }
  | { readonly kind: 'markUnknown'; readonly condition: NodeCondition }

/** As Kubernetes: forty seconds without a word. */
const silentAfterMs = 40_000

/** `silentMs` is how long ago the lease was last heard renewed. A node without a lease is somebody else's business: nothing is said about it. */
export function planHealth(node: Node, lease: Lease | undefined, silentMs: number, timestamp: string): HealthPlan {
  if (lease === undefined || Number.isNaN(silentMs)) return { kind: 'nothing' }
  const leftMs = Math.max(silentAfterMs, (lease.spec?.leaseDurationSeconds ?? 0) * 1_000) - silentMs
  if (leftMs > 0) return { kind: 'lookAgain', afterMs: leftMs }
  const known = findCondition(node.status?.conditions, 'Ready')
  if (known?.status === 'Unknown') return { kind: 'nothing' }
  const condition: NodeCondition = {
    type: 'Ready',
    status: 'Unknown',
    reason: 'NodeStatusUnknown',
    message: 'Kubelet stopped posting node status.',
    lastTransitionTime: timestamp,
    ...(known?.lastHeartbeatTime === undefined ? {} : { lastHeartbeatTime: known.lastHeartbeatTime }),
  }
  return { kind: 'markUnknown', condition }
}
