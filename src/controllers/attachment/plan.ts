// What should happen to this volume now, and what is it waiting for? Every decision of the attach/detach
// reconciler in one pure, total function over one volume's records (rules ADR-2 … ADR-5, MA-1 … MA-4, FD-1 … FD-6).
import type { NodeName } from '../../api/names.ts'
import type { AttachmentWaitReason } from '../../volume/wait-reasons.ts'
import type { ActualVolume, OnNode } from './actual.ts'
import type { DesiredVolume } from './desired.ts'

/** Why a volume may be taken from a node that still claims to use it. */
export type Force = 'timeout' | 'outOfService'

export type AttachmentAction =
  | { readonly kind: 'attach'; readonly node: NodeName }
  /** Without force the node's use is looked up live first. */
  | { readonly kind: 'detach'; readonly node: NodeName; readonly force: Force | undefined }
  | { readonly kind: 'startDetachTimer' | 'cancelDetachTimer'; readonly node: NodeName }
  | { readonly kind: 'reportMultiAttach'; readonly node: NodeName; readonly holders: readonly NodeName[] }

export interface AttachmentWaiting {
  readonly reason: AttachmentWaitReason
  readonly node: NodeName
  /** The node that holds the volume, for the reasons that have one. */
  readonly holder?: NodeName
  readonly until?: number
  /** The last error, for `backingOff`; the running operation, for `busy`. */
  readonly detail?: string
}

export interface NodeFacts {
  readonly exists: boolean
  readonly ready: boolean
  readonly outOfService: boolean
  /** The node says it uses the volume, or was told of it and has not spoken since. */
  readonly inUse: boolean
}

export interface AttachmentFacts {
  readonly now: number
  /** Nobody sets it: only time that has really passed makes a detach by force. */
  readonly steady: number
  /** May the volume be attached to several nodes (ID-6)? */
  readonly multiAttach: boolean
  readonly maxWaitForUnmountMs: number
  readonly forceDetachOnTimeout: boolean
  node(name: NodeName): NodeFacts
}

export interface AttachmentPlan {
  readonly actions: readonly AttachmentAction[]
  readonly waiting: readonly AttachmentWaiting[]
}

/** C-3: how long an unhealthy node may keep a volume that nobody wants there. */
export const defaultMaxWaitForUnmountMs = 6 * 60_000

/** C-2: pods that come together are told together, and nothing when the volume is freed in the same moment. */
const togetherMs = 100

/** Detaches come before attaches, so that a moved volume is freed first (ADR-1). */
export function planVolume(
  desired: DesiredVolume | undefined,
  actual: ActualVolume | undefined,
  facts: AttachmentFacts,
): AttachmentPlan {
  const actions: AttachmentAction[] = []
  const waiting: AttachmentWaiting[] = []
  for (const [node, onNode] of actual?.nodes ?? []) {
    if (!desired?.nodes.has(node)) planDetach(node, onNode, facts, actions, waiting)
  }
  if (desired) planAttaches(desired, actual, facts, actions, waiting)
  return { actions, waiting }
}

function planDetach(
  node: NodeName,
  onNode: OnNode,
  facts: AttachmentFacts,
  actions: AttachmentAction[],
  waiting: AttachmentWaiting[],
): void {
  const waitedMs = facts.steady - (onNode.detachWantedSince ?? facts.steady)
  if (onNode.detachWantedSince === undefined) actions.push({ kind: 'startDetachTimer', node })
  const { exists, ready, outOfService, inUse } = facts.node(node)
  if (!inUse) {
    actions.push({ kind: 'detach', node, force: undefined })
    return
  }
  // Force is for a node that cannot answer: the operator's taint, or unhealthy *now* and waited for long enough. The
  // timer runs from the moment the volume was no longer wanted, not from the moment the node fell ill (FD-2).
  if (exists && outOfService) actions.push({ kind: 'detach', node, force: 'outOfService' })
  else if (exists && ready) waiting.push({ reason: 'inUse', node })
  else if (!facts.forceDetachOnTimeout) waiting.push({ reason: 'forceDetachDisabled', node })
  else if (waitedMs > facts.maxWaitForUnmountMs) actions.push({ kind: 'detach', node, force: 'timeout' })
  else
    waiting.push({ reason: 'inUseOnUnhealthyNode', node, until: facts.now + facts.maxWaitForUnmountMs - waitedMs + 1 })
}

function planAttaches(
  desired: DesiredVolume,
  actual: ActualVolume | undefined,
  facts: AttachmentFacts,
  actions: AttachmentAction[],
  waiting: AttachmentWaiting[],
): void {
  let chosen: NodeName | undefined
  for (const [node, wish] of desired.nodes) {
    const onNode = actual?.nodes.get(node)
    if (onNode?.presence === 'attached') {
      if (onNode.detachWantedSince !== undefined) actions.push({ kind: 'cancelDetachTimer', node })
      continue
    }
    const obstacle = facts.multiAttach ? undefined : obstacleTo(node, desired, actual, chosen)
    if (!obstacle) {
      chosen = node
      actions.push({ kind: 'attach', node })
      continue
    }
    // The holders are named only when they hold it for certain; doubt is told by the reason to wait (MA-3).
    const holders = holdersOf(actual, 'attached', node)
    const toTell = holders.length > 0 && !wish.multiAttachReported
    const early = toTell && facts.now - wish.since < togetherMs
    waiting.push(early ? { ...obstacle, until: wish.since + togetherMs } : obstacle)
    if (toTell && !early) actions.push({ kind: 'reportMultiAttach', node, holders })
  }
}

/** What keeps an exclusive volume from being attached to this node. */
function obstacleTo(
  node: NodeName,
  desired: DesiredVolume,
  actual: ActualVolume | undefined,
  chosen: NodeName | undefined,
): AttachmentWaiting | undefined {
  const [holder] = holdersOf(actual, 'attached', node)
  if (holder !== undefined) return { reason: 'attachedElsewhere', node, holder }
  // Two doubtful nodes that are both wanted (left by someone else) must not wait for each other: the first may try.
  const tries = chosen === undefined && actual?.nodes.has(node) === true
  const [doubtful] = holdersOf(actual, 'uncertain', node).filter((other) => !(tries && desired.nodes.has(other)))
  if (doubtful !== undefined) return { reason: 'maybeAttachedElsewhere', node, holder: doubtful }
  if (chosen !== undefined) return { reason: 'anotherNodeFirst', node, holder: chosen }
  return undefined
}

function holdersOf(
  actual: ActualVolume | undefined,
  presence: OnNode['presence'],
  except: NodeName,
): readonly NodeName[] {
  if (!actual) return []
  return [...actual.nodes]
    .filter(([node, onNode]) => node !== except && onNode.presence === presence)
    .map(([node]) => node)
}
