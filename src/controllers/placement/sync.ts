// What is a pod's next step? Choose a node, or see how far the binding of its volumes is.
import type { Node, Pod } from '../../api/generated/types.ts'
import { isDeleting, keyOf, refKey } from '../../api/meta.ts'
import type { Cache } from '../../client/informer.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import { isWithin } from '../../clock/clock.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Waiting } from '../shared/waiting.ts'
import type { CarryOut } from './carry-out.ts'
import type { ClusterView } from './cluster-view.ts'
import { progressOf, rejected } from './decision.ts'
import type { DecidedPod, Decision } from './decision.ts'
import type { Rejections } from './rejections.ts'
import { offerOfOwnNode, selectNode } from './select-node.ts'
import type { Selection } from './select-node.ts'
import type { NodeOffer } from './volume-filters.ts'

export interface SyncDeps {
  readonly clock: Clock
  readonly pods: Cache<Pod>
  readonly nodes: Cache<Node>
  readonly view: ClusterView
  readonly carryOut: CarryOut
  readonly bindTimeoutMs: number
  readonly decisions: Map<string, DecidedPod>
  readonly rejections: Rejections
  /** Volumes chosen for a pod and not yet written. */
  readonly spokenFor: Set<string>
  isMine(pod: Pod): boolean
}

export type Sync = (key: ObjectKey<'Pod'>, signal: AbortSignal) => Promise<readonly Waiting[]>

export function createSync(deps: SyncDeps): Sync {
  const { clock, view, carryOut, decisions, rejections } = deps
  return async (key, signal) => {
    const pod = deps.pods.get(refKey(key))
    if (pod === undefined || !deps.isMine(pod) || isDeleting(pod)) return []
    const uid = pod.metadata.uid ?? ''
    let decision = decisions.get(uid)?.decision
    if (decision === undefined) {
      const selection = select(deps, pod)
      if (selection.kind === 'nothing') return []
      if (selection.kind === 'none') {
        await carryOut.refuse(pod, selection.message, signal)
        return [{ reason: 'noNodeFits', message: selection.message }]
      }
      // Only nodes that rejected it are left. Another claim of the pod may still be on its way back from there.
      const { name } = selection.offer.node.metadata
      const pause = rejections.pause(uid, name)
      if (pause && isWithin(clock.now(), rejections.at(uid, name), pause.until))
        return [{ reason: 'noNodeFits', ...pause }]
      decision = await reserve(deps, pod, selection.offer, signal)
    }
    const progress =
      clock.now() >= decision.until ? rejected('context deadline exceeded', true) : progressOf(decision, view)
    switch (progress.kind) {
      case 'bound':
        if (pod.spec?.nodeName) decisions.delete(uid)
        else await carryOut.bindPod(pod, decision.node, signal)
        return []
      case 'waiting':
        return [{ reason: 'bindingVolumes', until: decision.until }]
      case 'rejected':
        decisions.delete(uid)
        if (progress.avoidNode)
          rejections.note(uid, { node: decision.node.metadata.name, at: clock.now(), message: progress.message })
        await carryOut.refuse(pod, progress.message, signal)
        throw new Error(progress.message) // comes back with back-off and chooses again
      default:
        return progress satisfies never
    }
  }
}

function select({ nodes, rejections, view }: SyncDeps, pod: Pod): Selection {
  const own = pod.spec?.nodeName
  if (own) return offerOfOwnNode(pod, own, nodes.get(own), view)
  const candidates = Array.from(nodes.items.values()).filter((node) => !isDeleting(node))
  return selectNode(pod, candidates, view, (node) => rejections.at(pod.metadata.uid ?? '', node))
}

/** Until the writes are in the caches, others must see the volumes as taken and the pod on its node. */
async function reserve(deps: SyncDeps, pod: Pod, offer: NodeOffer, signal: AbortSignal): Promise<Decision> {
  const { clock, decisions, spokenFor } = deps
  const uid = pod.metadata.uid ?? ''
  const decision: Decision = {
    node: offer.node,
    claims: [...offer.takes.map(({ claim }) => keyOf(claim)), ...offer.provisions.map(keyOf)],
    volumes: new Map(offer.takes.map(({ claim, volume }) => [keyOf(claim), volume.metadata.name])),
    until: clock.now() + deps.bindTimeoutMs,
  }
  const names = [...decision.volumes.values()]
  for (const name of names) spokenFor.add(name)
  decisions.set(uid, { pod, decision })
  try {
    await deps.carryOut.reserve(offer, signal)
  } catch (error) {
    decisions.delete(uid)
    throw error
  } finally {
    for (const name of names) spokenFor.delete(name)
  }
  return decision
}
