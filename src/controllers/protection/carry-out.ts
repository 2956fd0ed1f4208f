// How is a protection plan carried out? By one write per object. A claim's finalizer goes only after the server itself,
// not only our cache, shows no pod that uses the claim (PCP-3, I-8).
import { finalizers } from '../../api/annotations.ts'
import type { PersistentVolume, PersistentVolumeClaim, Pod, VolumeAttributesClass } from '../../api/generated/types.ts'
import type { KindMap } from '../../api/kinds.ts'
import { isDeleting, keyOf, withCondition, withFinalizer, withoutFinalizer } from '../../api/meta.ts'
import { claimKeysOf } from '../../api/pod-claims.ts'
import type { Index, Informer } from '../../client/informer.ts'
import { objectKey } from '../../client/object-loop.ts'
import { timestamp } from '../../clock/clock.ts'
import type { ControllerDeps } from '../shared/controller.ts'
import type { Waiting } from '../shared/waiting.ts'
import { podReferences, podUses, unusedCondition } from './plan.ts'
import type { ProtectionPlan } from './plan.ts'
import { createPodLists } from './pod-lists.ts'
import type { PodLists } from './pod-lists.ts'

export interface CarryOut {
  claim(claim: PersistentVolumeClaim, plan: ProtectionPlan, signal: AbortSignal): Promise<readonly Waiting[]>
  volume(volume: PersistentVolume, plan: ProtectionPlan, signal: AbortSignal): Promise<readonly Waiting[]>
  attributesClass(
    attributes: VolumeAttributesClass,
    plan: ProtectionPlan,
    signal: AbortSignal,
  ): Promise<readonly Waiting[]>
  /** Writes the `Unused` condition of a bound claim; answers the claim as it is now. */
  writeUnused(claim: PersistentVolumeClaim, signal: AbortSignal): Promise<PersistentVolumeClaim>
}

type Protected = 'PersistentVolumeClaim' | 'PersistentVolume' | 'VolumeAttributesClass'

const guards: Readonly<Record<Protected, string>> = {
  PersistentVolumeClaim: finalizers.claimProtection,
  PersistentVolume: finalizers.volumeProtection,
  VolumeAttributesClass: finalizers.attributesClassProtection,
}

export function createCarryOut(deps: ControllerDeps, pods: Informer<Pod>): CarryOut {
  const users: Users = { podsByClaim: pods.index(claimKeysOf), podLists: createPodLists(deps.client) }
  /** The write carries the version that was judged: a change in between ends in a conflict (PVP-3). */
  const perform = async <K extends Protected>(
    kind: K,
    object: KindMap[K],
    plan: ProtectionPlan,
    signal: AbortSignal,
  ): Promise<readonly Waiting[]> => {
    switch (plan.kind) {
      case 'add':
        await put(deps, kind, withFinalizer(object, guards[kind]), 'protect', signal)
        return []
      case 'remove':
        await put(deps, kind, withoutFinalizer(object, guards[kind]), 'stop protecting', signal)
        return []
      case 'keep':
        return [{ reason: plan.reason }]
      case 'leave':
      case 'removeIfUnused':
        return []
      default:
        return plan satisfies never
    }
  }
  return {
    volume: (volume, plan, signal) => perform('PersistentVolume', volume, plan, signal),
    attributesClass: (attributes, plan, signal) => perform('VolumeAttributesClass', attributes, plan, signal),
    async claim(claim, plan, signal) {
      if (plan.kind !== 'removeIfUnused') return perform('PersistentVolumeClaim', claim, plan, signal)
      const used = (await findUser(users, claim, podUses, signal)) !== undefined
      return perform(
        'PersistentVolumeClaim',
        claim,
        used ? { kind: 'keep', reason: 'protectedByPods' } : { kind: 'remove' },
        signal,
      )
    },
    async writeUnused(claim, signal) {
      if (claim.status?.phase !== 'Bound' || isDeleting(claim)) return claim
      const used = (await findUser(users, claim, podReferences, signal)) !== undefined
      const condition = unusedCondition(claim, used, timestamp(deps.clock.now()))
      if (condition === undefined) return claim
      const status = { ...claim.status, conditions: withCondition(claim.status.conditions, condition) }
      return deps.client.update('PersistentVolumeClaim', { ...claim, status }, { subresource: 'status' }, signal)
    },
  }
}

async function put<K extends Protected>(
  { client, onTransition }: ControllerDeps,
  kind: K,
  object: KindMap[K],
  what: string,
  signal: AbortSignal,
): Promise<void> {
  await client.update(kind, object, {}, signal)
  onTransition?.({ controller: 'protection', object: objectKey(kind, object), what })
}

interface Users {
  readonly podsByClaim: Index<Pod>
  readonly podLists: PodLists
}

/** The index answers yes at once; its no must be confirmed by a list of the server not older than the claim (PCP-3). */
async function findUser(
  { podsByClaim, podLists }: Users,
  claim: PersistentVolumeClaim,
  uses: (pod: Pod, claim: PersistentVolumeClaim) => boolean,
  signal: AbortSignal,
): Promise<Pod | undefined> {
  for (const pod of podsByClaim.get(keyOf(claim))) if (uses(pod, claim)) return pod
  const live = await podLists.since(claim, signal)
  return live.find((pod) => uses(pod, claim))
}
