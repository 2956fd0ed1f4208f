// Which nodes have turned out not to get a pod's volumes, and when may one of them be tried again? A provisioner that
// gives up says so only by removing the claim's node: without this memory the same node would be chosen for ever.
import { backoff } from '../../clock/backoff.ts'

export interface Rejections {
  note(podUid: string, rejection: Rejection): void
  /** Milliseconds since 1970; 0 for a node that did not reject this pod. */
  at(podUid: string, nodeName: string): number
  /** Set when this node has rejected the pod: not before `until`, because of `message`. */
  pause(podUid: string, nodeName: string): { readonly until: number; readonly message: string } | undefined
  forget(podUid: string): void
}

interface Rejection {
  readonly node: string
  readonly at: number
  readonly message: string
}

/** How long Kubernetes' scheduler leaves a pod alone that could not be bound. */
const pauseShape = { firstMs: 1_000, capMs: 10_000 }

export function createRejections(): Rejections {
  /** By uid of the pod. */
  const pods = new Map<string, { count: number; readonly nodes: Map<string, Rejection> }>()
  return {
    note(uid, rejection) {
      const pod = pods.getOrInsertComputed(uid, () => ({ count: 0, nodes: new Map() }))
      pod.count++
      pod.nodes.set(rejection.node, rejection)
    },
    at: (uid, node) => pods.get(uid)?.nodes.get(node)?.at ?? 0,
    pause(uid, node) {
      const pod = pods.get(uid)
      const last = pod?.nodes.get(node)
      return pod && last && { until: last.at + backoff(pod.count, pauseShape), message: last.message }
    },
    forget: (uid) => void pods.delete(uid),
  }
}
