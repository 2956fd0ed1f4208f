// A node has been chosen and the claims are on their way: is everything bound, must we wait, or choose again (SCH-12)?
import { annotations } from '../../api/annotations.ts'
import { annotation, keyOf } from '../../api/meta.ts'
import type { Node, PersistentVolumeClaim, Pod } from '../../api/generated/types.ts'
import { isReachable } from '../shared/match.ts'
import type { ClusterView } from './cluster-view.ts'
import { isFullyBound } from './pod-volumes.ts'

export type Progress =
  | { readonly kind: 'bound' }
  | { readonly kind: 'waiting' }
  /** Fail and choose again: a node that did not get its volumes is avoided, one whose volume was taken away is not. */
  | { readonly kind: 'rejected'; readonly message: string; readonly avoidNode: boolean }

export interface Decision {
  readonly node: Node
  /** namespace/name of the claims that were not bound when the node was chosen. */
  readonly claims: readonly string[]
  /** Claim → volume that we wrote for it. */
  readonly volumes: ReadonlyMap<string, string>
  readonly until: number
}

/** A pod with a node in mind. It counts on that node until the informer shows it there. */
export interface DecidedPod {
  readonly pod: Pod
  readonly decision: Decision
}

export function progressOf(decision: Decision, view: ClusterView): Progress {
  for (const key of decision.claims) {
    const claim = view.claim(key)
    if (claim === undefined) return rejected(`could not find pvc "${key}"`)
    const state = progressOfClaim(claim, decision, view)
    if (state.kind !== 'bound') return state
  }
  return { kind: 'bound' }
}

function progressOfClaim(claim: PersistentVolumeClaim, decision: Decision, view: ClusterView): Progress {
  const key = keyOf(claim)
  const waiting: Progress = { kind: 'waiting' }
  if (isFullyBound(claim)) {
    const volume = view.volume(claim.spec.volumeName ?? '')
    if (volume === undefined) return waiting // not seen yet
    return isReachable(volume, decision.node)
      ? { kind: 'bound' }
      : rejected(`pv "${volume.metadata.name}" node affinity doesn't match node "${decision.node.metadata.name}"`)
  }
  const written = decision.volumes.get(key)
  if (written !== undefined) {
    const volume = view.volume(written)
    if (volume === undefined) return rejected(`could not find pv "${written}"`)
    if (!volume.spec.claimRef?.uid) return rejected(`ClaimRef got reset for pv "${written}"`)
    return waiting
  }
  if (annotation(claim, annotations.selectedNode) !== decision.node.metadata.name)
    return rejected(`provisioning failed for PVC "${claim.metadata.name}"`, true)
  return waiting
}

export function rejected(message: string, avoidNode = false): Progress {
  return { kind: 'rejected', message: `binding volumes: ${message}`, avoidNode }
}
