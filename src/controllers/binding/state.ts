// What does the binding controller know between two syncs? Caches, the indexes over them, and the claims that wait.
import type { PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '../../api/generated/types.ts'
import { claimKeysOf, isTerminated } from '../../api/pod-claims.ts'
import { createFreshCache } from '../../client/fresh-cache.ts'
import type { FreshCache } from '../../client/fresh-cache.ts'
import type { Index, Informer, Informers } from '../../client/informer.ts'
import { objectKey } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import { createVolumeIndex } from '../shared/volume-index.ts'
import type { VolumeIndex } from '../shared/volume-index.ts'
import { createWaitingClaims } from './waiting-claims.ts'
import type { WaitingClaims } from './waiting-claims.ts'

export type BindingKey = ObjectKey<'PersistentVolumeClaim' | 'PersistentVolume'>

export interface BindingState {
  /** Our own writes are in the caches of claims and volumes at once. */
  readonly claims: FreshCache<PersistentVolumeClaim>
  readonly volumes: FreshCache<PersistentVolume>
  readonly classes: Informer<StorageClass>
  readonly pods: Informer<Pod>
  readonly claimsByVolume: Index<PersistentVolumeClaim>
  readonly index: VolumeIndex
  readonly unbound: WaitingClaims
  /** Pods that name this claim (`namespace/name`) and have not ended. */
  usersOf(claim: string): readonly Pod[]
}

export function createBindingState(informers: Informers, stack: AsyncDisposableStack): BindingState {
  const claims = stack.use(createFreshCache(informers.of('PersistentVolumeClaim')))
  const pods = informers.of('Pod')
  const podsByClaim = pods.index(claimKeysOf)
  return {
    claims,
    volumes: stack.use(createFreshCache(informers.of('PersistentVolume'))),
    classes: informers.of('StorageClass'),
    pods,
    claimsByVolume: claims.index((claim) => (claim.spec.volumeName ? [claim.spec.volumeName] : [])),
    index: createVolumeIndex(),
    unbound: createWaitingClaims(),
    usersOf: (claim) => Array.from(podsByClaim.get(claim)).filter((pod) => !isTerminated(pod)),
  }
}

export function claimKey(claim: PersistentVolumeClaim): BindingKey {
  return objectKey('PersistentVolumeClaim', claim)
}

export function volumeKey(name: string): BindingKey {
  return { kind: 'PersistentVolume', name }
}
