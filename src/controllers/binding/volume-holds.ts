// Who is writing this volume right now? One pair at a time: a volume that is being written is never given to a second
// claim, and a key that must wait for it is woken when it is free (WC-17).
import { keyText } from '../../client/object-loop.ts'
import type { BindingKey } from './state.ts'

export interface VolumeHolds {
  /** The key that holds the volume, if any. */
  holder(volumeName: string): BindingKey | undefined
  /** Takes the volume for a key; the caller has asked `holder` in the same turn. Dispose to release it. */
  hold(volumeName: string, key: BindingKey): Disposable
  /** Calls `wake(key)` when the volume is released. */
  waitFor(volumeName: string, key: BindingKey): void
}

export function createVolumeHolds(
  wake: (key: BindingKey) => void,
  onRelease: (volumeName: string) => void,
): VolumeHolds {
  const holders = new Map<string, BindingKey>()
  const waiters = new Map<string, Map<string, BindingKey>>()
  return {
    holder: (volumeName) => holders.get(volumeName),
    waitFor: (volumeName, key) => void waiters.getOrInsertComputed(volumeName, () => new Map()).set(keyText(key), key),
    hold(volumeName, key) {
      const holder = holders.get(volumeName)
      if (holder !== undefined) throw new Error(`volume ${volumeName} is already held by ${keyText(holder)}`)
      holders.set(volumeName, key)
      return {
        [Symbol.dispose]() {
          holders.delete(volumeName)
          const waiting = waiters.get(volumeName)
          waiters.delete(volumeName)
          for (const each of waiting?.values() ?? []) wake(each)
          onRelease(volumeName)
        },
      }
    },
  }
}
