// Which unbound claims must be woken when a volume becomes free, a class appears or a default changes (WC-2)?
// Claims without a volume, by what they want; oldest first.
import { annotations } from '../../api/annotations.ts'
import { annotation, keyOf } from '../../api/meta.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts'
import { parseQuantity } from '../../api/quantity.ts'
import { classOf, hasNoClassDecision } from '../../api/storage-class.ts'
import { couldTake, bucketWanted } from '../shared/match.ts'
import { bucketKey, bucketOf } from '../shared/volume-index.ts'
import type { FifoQueue } from './fifo-queue.ts'
import { createFifoQueue } from './fifo-queue.ts'

export interface WaitingClaims {
  put(claim: PersistentVolumeClaim): void
  remove(key: string): void
  has(key: string): boolean
  ofClass(className: string): Iterable<string>
  withoutClass(): Iterable<string>
  /** The oldest claim in the queue that could take this free volume and is not passed over. */
  bestFor(volume: PersistentVolume, passOver: (key: string) => boolean): string | undefined
  /** The claim was offered a volume: it leaves the queue until it has decided, so that no search visits it. */
  step(key: string, where: 'out' | 'back'): void
}

export function createWaitingClaims(): WaitingClaims {
  const known = new Map<string, PersistentVolumeClaim>()
  const buckets = new Map<string, FifoQueue>()
  const classes = new Map<string, Set<string>>()
  const classless = new Set<string>()

  const remove = (key: string) => {
    const claim = known.get(key)
    if (claim === undefined) return
    known.delete(key)
    classless.delete(key)
    const bucket = bucketKey(bucketWanted(claim))
    const queue = buckets.get(bucket)
    queue?.remove(key)
    if (queue?.isEmpty()) buckets.delete(bucket)
    classes.get(classOf(claim))?.delete(key)
    if (classes.get(classOf(claim))?.size === 0) classes.delete(classOf(claim))
  }
  return {
    remove,
    put(claim) {
      const key = keyOf(claim)
      const before = known.get(key)
      if (!isUnbound(claim)) return remove(key)
      // An update that changes nothing of interest keeps the claim's place in the queue.
      if (before !== undefined && before.metadata.uid === claim.metadata.uid && sameWish(before, claim)) {
        known.set(key, claim)
        return
      }
      remove(key)
      known.set(key, claim)
      buckets.getOrInsertComputed(bucketKey(bucketWanted(claim)), createFifoQueue).push(key)
      classes.getOrInsertComputed(classOf(claim), () => new Set()).add(key)
      if (hasNoClassDecision(claim)) classless.add(key)
    },
    has: (key) => known.has(key),
    ofClass: (className) => [...(classes.get(className) ?? [])],
    withoutClass: () => [...classless],
    bestFor(volume, passOver) {
      const size = parseQuantity(volume.spec.capacity?.['storage'] ?? '0')
      const fits = (key: string) => !passOver(key) && couldTakeSafely({ size, volume }, known.get(key)!)
      return buckets.get(bucketKey(bucketOf(volume)))?.find(fits)
    },
    step(key, where) {
      const claim = known.get(key)
      if (claim === undefined) return
      const queue = buckets.getOrInsertComputed(bucketKey(bucketWanted(claim)), createFifoQueue)
      if (where === 'out') queue.remove(key)
      else queue.pushFront(key)
    },
  }
}

function isUnbound(claim: PersistentVolumeClaim): boolean {
  return !claim.spec.volumeName && annotation(claim, annotations.bindCompleted) === undefined
}

function sameWish(before: PersistentVolumeClaim, after: PersistentVolumeClaim): boolean {
  return (
    bucketKey(bucketWanted(before)) === bucketKey(bucketWanted(after)) &&
    hasNoClassDecision(before) === hasNoClassDecision(after)
  )
}

/** A claim with a broken selector waits for nothing; its own look says so (MAT-11). */
function couldTakeSafely(...[entry, claim]: Parameters<typeof couldTake>): boolean {
  try {
    return couldTake(entry, claim)
  } catch {
    return false
  }
}
