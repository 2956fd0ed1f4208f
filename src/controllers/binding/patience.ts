// When is a new volume declared Available? At once. But when volumes come by the hundred and no claim wants any of them,
// those who make them go first: declaring each is one more write, and nobody waits for it. It comes a little later, or as
// soon as a claim wants a volume of that kind.
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/types.ts'
import type { Clock } from '../../clock/clock.ts'
import { shelfWanted } from './match.ts'
import { shelfKey, shelfOf } from './volume-index.ts'

export interface Patience {
  /** Until when a volume that came just now may wait; undefined if it may not. */
  until(volume: PersistentVolume, isWanted: () => boolean): number | undefined
  /** The volumes that wait no longer because this claim may want them. */
  end(claim: PersistentVolumeClaim): Iterable<string>
  /** It changed, is declared or is gone. */
  forget(volume: PersistentVolume): void
}

/** So many of a second never wait. */
const crowd = 100
const crowdMs = 1_000
const patienceMs = 1_500

export function createPatience(clock: Pick<Clock, 'now'>): Patience {
  const shelves = new Map<string, Set<string>>()
  let came = 0
  let since = clock.now()
  return {
    until(volume, isWanted) {
      const now = clock.now()
      if (now - since >= crowdMs) [came, since] = [0, now]
      came++
      if (came <= crowd || isWanted()) return undefined
      shelves.getOrInsertComputed(shelfKey(shelfOf(volume)), () => new Set()).add(volume.metadata.name)
      return now + patienceMs
    },
    end(claim) {
      if (shelves.size === 0) return []
      const shelf = shelfKey(shelfWanted(claim))
      const names = shelves.get(shelf)
      shelves.delete(shelf)
      return names ?? []
    },
    forget(volume) {
      if (shelves.size === 0) return
      const shelf = shelfKey(shelfOf(volume))
      const names = shelves.get(shelf)
      if (names?.delete(volume.metadata.name) === true && names.size === 0) shelves.delete(shelf)
    },
  }
}
