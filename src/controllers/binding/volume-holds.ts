// Who is writing this volume right now? One pair at a time (W-17): a volume in flight is never given to a second claim,
// and whoever must wait for it is called when it is free.

export interface VolumeHolds {
  /** The key that holds the volume, if any. */
  holder(volumeName: string): string | undefined
  /** Takes the volume for a key; the caller has asked `holder` in the same turn. Dispose to let go. */
  hold(volumeName: string, key: string): Disposable
  /** Calls `wake(key)` when the volume is let go. */
  waitFor(volumeName: string, key: string): void
}

export function createVolumeHolds(wake: (key: string) => void, onRelease: (volumeName: string) => void): VolumeHolds {
  const holders = new Map<string, string>()
  const waiters = new Map<string, Set<string>>()
  return {
    holder: (volumeName) => holders.get(volumeName),
    waitFor: (volumeName, key) => void waiters.getOrInsertComputed(volumeName, () => new Set()).add(key),
    hold(volumeName, key) {
      if (holders.has(volumeName)) throw new Error(`volume ${volumeName} is already held by ${holders.get(volumeName)}`)
      holders.set(volumeName, key)
      return {
        [Symbol.dispose]() {
          holders.delete(volumeName)
          const waiting = waiters.get(volumeName)
          waiters.delete(volumeName)
          for (const each of waiting ?? []) wake(each)
          onRelease(volumeName)
        },
      }
    },
  }
}
