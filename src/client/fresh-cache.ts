// What do we know, our own writes included? A view of an informer that never forgets what this process wrote.
//
// 1. The answer to an own write is visible at once; the watch's echo of it (same version) tells nothing new.
// 2. Versions compare as whole numbers (CTL-3): an older object is dropped silently, an equal or newer one is taken.
// 3. A write the informer has already gone past is dropped: the object may have been removed since.
// 4. Once the informer has heard of the write's version, the informer alone speaks for that object.
import { keyOf } from '../api/meta.ts'
import type { KubeObject } from '../api/meta.ts'
import { createCache } from './informer.ts'
import type { Cache, Informer } from './informer.ts'
import { versionOf } from './versions.ts'

export interface FreshCache<T> extends Cache<T>, Disposable {
  readonly synced: Promise<void>
  readonly isSynced: boolean
  /** Takes the answer to an own write (or a live read). True if it was news. */
  wrote(object: T): boolean
  /** True while listeners are being told of an own write, false while they hear the watch. */
  readonly isOwnWrite: boolean
}

export function createFreshCache<T extends KubeObject>(informer: Informer<T>): FreshCache<T> {
  const cache = createCache<T>()
  let isOwnWrite = false

  const put = (object: T) => {
    const known = cache.get(keyOf(object))
    if (known === undefined) {
      cache.put(object)
      return true
    }
    const { resourceVersion, uid } = known.metadata
    // Nearly always the echo of an own write: no numbers are needed to see that.
    if (resourceVersion === object.metadata.resourceVersion && uid === object.metadata.uid) return false
    if (versionOf(known) > versionOf(object)) return false
    cache.put(object)
    return true
  }
  const subscription = informer.subscribe((change) => {
    if (change.kind !== 'removed') {
      put(change.object)
      return
    }
    const known = cache.get(change.key)
    // A removal of the old object must not remove the new one of that name, already written by us.
    if (known !== undefined && known.metadata.uid === change.previous.metadata.uid)
      cache.remove(change.key, change.previous)
  })
  return {
    items: cache.items,
    get: cache.get,
    index: cache.index,
    subscribe: cache.subscribe,
    synced: informer.synced,
    get isSynced() {
      return informer.isSynced
    },
    get isOwnWrite() {
      return isOwnWrite
    },
    wrote(object) {
      if (versionOf(object) <= informer.version) return false
      isOwnWrite = true
      try {
        return put(object)
      } finally {
        isOwnWrite = false
      }
    },
    [Symbol.dispose]: () => subscription[Symbol.dispose](),
  }
}
