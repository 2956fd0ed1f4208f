// Which unbound claims would like to hear that a volume became free, a class appeared or a default changed (W-2)?
// Claims without a volume, by what they want; oldest first.
import { annotations } from '../../api/annotations.ts'
import { annotation, keyOf } from '../../api/meta.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/types.ts'
import { parseQuantity } from '../../api/quantity.ts'
import { classOf, hasNoClassDecision } from './default-class.ts'
import { couldTake, shelfWanted } from './match.ts'
import { shelfKey, shelfOf } from './volume-index.ts'
import type { Line } from './line.ts'
import { createLine } from './line.ts'

export interface WaitingClaims {
  put(claim: PersistentVolumeClaim): void
  remove(key: string): void
  has(key: string): boolean
  ofClass(className: string): Iterable<string>
  withoutClass(): Iterable<string>
  /** The oldest claim in line that could take this free volume and is not passed over. */
  bestFor(volume: PersistentVolume, passOver: (key: string) => boolean): string | undefined
  /** The claim thinks about a volume: it leaves the line, so that nobody has to pass over it. */
  step(key: string, where: 'out' | 'back'): void
}

export function createWaitingClaims(): WaitingClaims {
  const known = new Map<string, PersistentVolumeClaim>()
  const shelves = new Map<string, Line>()
  const classes = new Map<string, Set<string>>()
  const classless = new Set<string>()

  const remove = (key: string) => {
    const claim = known.get(key)
    if (claim === undefined) return
    known.delete(key)
    classless.delete(key)
    const shelf = shelfKey(shelfWanted(claim))
    const line = shelves.get(shelf)
    line?.leave(key)
    if (line?.isEmpty()) shelves.delete(shelf)
    classes.get(classOf(claim))?.delete(key)
    if (classes.get(classOf(claim))?.size === 0) classes.delete(classOf(claim))
  }
  return {
    remove,
    put(claim) {
      const key = keyOf(claim)
      const before = known.get(key)
      if (!isUnbound(claim)) return remove(key)
      // An update that changes nothing of interest keeps the claim's place in the line.
      if (before !== undefined && before.metadata.uid === claim.metadata.uid && sameWish(before, claim)) {
        known.set(key, claim)
        return
      }
      remove(key)
      known.set(key, claim)
      shelves.getOrInsertComputed(shelfKey(shelfWanted(claim)), createLine).join(key)
      classes.getOrInsertComputed(classOf(claim), () => new Set()).add(key)
      if (hasNoClassDecision(claim)) classless.add(key)
    },
    has: (key) => known.has(key),
    ofClass: (className) => [...(classes.get(className) ?? [])],
    withoutClass: () => [...classless],
    bestFor(volume, passOver) {
      const size = parseQuantity(volume.spec.capacity?.['storage'] ?? '0')
      const fits = (key: string) => !passOver(key) && couldTakeSafely({ size, volume }, known.get(key)!)
      return shelves.get(shelfKey(shelfOf(volume)))?.first(fits)
    },
    step(key, where) {
      const claim = known.get(key)
      if (claim === undefined) return
      const line = shelves.getOrInsertComputed(shelfKey(shelfWanted(claim)), createLine)
      if (where === 'out') line.leave(key)
      else line.comeBack(key)
    },
  }
}

function isUnbound(claim: PersistentVolumeClaim): boolean {
  return !claim.spec.volumeName && annotation(claim, annotations.bindCompleted) === undefined
}

function sameWish(before: PersistentVolumeClaim, after: PersistentVolumeClaim): boolean {
  return (
    shelfKey(shelfWanted(before)) === shelfKey(shelfWanted(after)) &&
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
