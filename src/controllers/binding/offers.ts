// Which waiting claim is woken when a volume becomes free? The oldest that fits, and no other until that one was synced:
// otherwise every free volume would wake every claim (WC-2).
import type { PersistentVolumeClaim } from '../../api/generated/types.ts'
import { isFree } from '../shared/volume-index.ts'
import type { BindingState } from './state.ts'

export interface OffersDeps extends Pick<BindingState, 'claims' | 'volumes' | 'unbound'> {
  /** False before every cache is full. */
  isReady(): boolean
  isFailing(claim: PersistentVolumeClaim): boolean
  /** Is some key writing this volume now? */
  isHeld(volumeName: string): boolean
  wake(claim: PersistentVolumeClaim): void
}

export interface Offers {
  /** Offers a volume, if it is free, to the oldest waiting claim that fits. */
  offer(volumeName: string): void
  /** The claim (`namespace/name`) was synced: what it did not take is offered to the next one. */
  settle(claim: string): void
}

export function createOffers(deps: OffersDeps): Offers {
  const { claims, volumes, unbound, isFailing } = deps
  /** Claim → the volume it was offered. */
  const offered = new Map<string, string>()
  const isTaken = (claim: string) => offered.has(claim) || isFailing(claims.get(claim)!)
  const offer = (volumeName: string) => {
    const volume = volumes.get(volumeName)
    // A claim that is synced while the volume is held cannot take it, and would lose its turn to a younger one.
    if (!deps.isReady() || volume === undefined || !isFree(volume) || deps.isHeld(volumeName)) return
    const best = unbound.bestFor(volume, isTaken)
    if (best === undefined) return
    offered.set(best, volumeName)
    unbound.step(best, 'out')
    deps.wake(claims.get(best)!)
  }
  return {
    offer,
    settle(claim) {
      const volumeName = offered.get(claim)
      offered.delete(claim)
      if (unbound.has(claim)) unbound.step(claim, 'back')
      else if (volumeName !== undefined) offer(volumeName)
    },
  }
}
