// What do nodes say of themselves? One record per node: health, taint, which volumes it uses (rules AD-8, AD-9, ADA-8).
// The record outlives the Node object: a deleted object is no proof that the machine is dead.
import type { Node } from '../../api/generated/types.ts'
import { nodeName } from '../../api/names.ts'
import type { NodeName, UniqueVolumeName } from '../../api/names.ts'
import type { World } from '../../loop/world.ts'
import { createWorld } from '../../loop/world.ts'
import type { OnNode } from './actual.ts'
import type { NodeFacts } from './plan.ts'

export interface NodeRecord {
  readonly exists: boolean
  readonly uid: string
  /** Attach and detach are ours on this node (C-15). Once set it stays, as long as we know the node (AD-8). */
  readonly managed: boolean
  readonly ready: boolean
  readonly outOfService: boolean
  readonly inUse: ReadonlySet<string>
  /** The object vanished without telling its last state: it may use anything that is attached. */
  readonly inUseUnknown: boolean
  /** What it uses is what an earlier object of this name said; this one has not spoken yet. */
  readonly carried: boolean
  /** Counts what we heard of this node. */
  readonly version: number
}

export type NodeEvent =
  /** `fresh`: we have just started and know nothing of the time before. */
  | { readonly kind: 'nodeSeen'; readonly name: NodeName; readonly node: Node; readonly fresh?: boolean }
  /** `last` is the final state, if the deletion told it. */
  | { readonly kind: 'nodeGone'; readonly name: NodeName; readonly last: Node | undefined }
  | { readonly kind: 'nodeForgotten'; readonly name: NodeName }

export type NodeWorld = World<NodeName, NodeRecord, NodeEvent>

export function createNodeWorld(): NodeWorld {
  return createWorld<NodeName, NodeRecord, NodeEvent>((event) => event.name, reduceNode)
}

export const managedAnnotation = 'volumes.kubernetes.io/controller-managed-attach-detach'
/** What the node controller writes into the Ready condition of a node that never reported anything itself. */
const neverSpoken = 'NodeStatusNeverUpdated'
export const outOfServiceTaint = 'node.kubernetes.io/out-of-service'

export function reduceNode(item: NodeRecord | undefined, event: NodeEvent): NodeRecord | undefined {
  switch (event.kind) {
    case 'nodeSeen':
      return seen(item, event.node, true, event.fresh === true)
    case 'nodeGone':
      if (event.last) return seen(item, event.last, false, false)
      if (!item) return undefined
      return {
        ...item,
        exists: false,
        ready: false,
        outOfService: false,
        inUseUnknown: true,
        version: item.version + 1,
      }
    case 'nodeForgotten':
      return undefined
    default:
      return event satisfies never
  }
}

export function nameOf(node: Node): NodeName {
  return nodeName(node.metadata.name)
}

/** What the plan asks about a node. One we never heard of may use anything: its machine may be alive (AD-9). */
export function factsOf(
  record: NodeRecord | undefined,
  volume: UniqueVolumeName,
  onNode: OnNode | undefined,
): NodeFacts {
  if (!record) return { exists: false, ready: false, outOfService: false, inUse: true }
  const { exists, ready, outOfService, inUse, inUseUnknown, version } = record
  // Told of the volume, and not a word since: it may be mounting it right now (ADA-3).
  const silent = onNode?.nodeVersion === version
  return { exists, ready, outOfService, inUse: inUse.has(volume) || inUseUnknown || silent }
}

function seen(item: NodeRecord | undefined, node: Node, exists: boolean, fresh: boolean): NodeRecord {
  const { annotations, uid } = node.metadata
  const condition = node.status?.conditions?.find(({ type }) => type === 'Ready')
  // A Node object that was made anew says nothing of what its machine still has mounted, until the machine itself has
  // spoken: its first status brings the Ready condition and what it uses in one write. Until then the old words count. A
  // list of what it uses, even an empty one, is its own word too.
  const spoken = condition !== undefined && condition.reason !== neverSpoken
  const silent = !spoken && node.status?.volumesInUse === undefined
  const remade = silent && item !== undefined && (item.uid !== uid || item.carried)
  const listed = node.status?.volumesInUse ?? []
  return {
    exists,
    uid: uid ?? '',
    managed: (item?.managed ?? false) || annotations?.[managedAnnotation] !== undefined,
    // A missing object or a missing condition counts as unhealthy (ADR-2 step 5); any effect and value of the taint counts.
    ready: exists && condition?.status === 'True',
    outOfService: exists && (node.spec?.taints ?? []).some((taint) => taint.key === outOfServiceTaint),
    inUse: sameOrNew(item?.inUse, remade ? [...item.inUse.union(new Set(listed))] : listed),
    inUseUnknown: silent && (fresh || (remade && item.inUseUnknown)),
    carried: silent && (fresh || remade),
    version: (item?.version ?? 0) + 1,
  }
}

/** The same set when the list names the same volumes, so that an unchanged list costs no memory and wakes nobody. */
function sameOrNew(known: ReadonlySet<string> | undefined, list: readonly string[]): ReadonlySet<string> {
  if (known && known.size === list.length && list.every((volume) => known.has(volume))) return known
  return new Set(list)
}
