// What do these jobs know, their own writes included? A client and caches that belong together: whatever the client
// writes is in the caches at once, so no job acts twice on a world older than its own deeds.
import type { KindMap, KindName } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import type { Client } from '../../client/client.ts'
import { createFreshCache } from '../../client/fresh-cache.ts'
import type { FreshCache } from '../../client/fresh-cache.ts'
import type { Cache, Informers } from '../../client/informer.ts'

export interface Caches {
  of<K extends KindName>(kind: K): Cache<KindMap[K]>
}

export interface FreshView extends Disposable {
  readonly client: Client
  readonly caches: Caches
}

export function createFreshView({
  client,
  informers,
}: {
  readonly client: Client
  readonly informers: Informers
}): FreshView {
  const caches = new Map<KindName, FreshCache<KubeObject>>()
  const fresh = (kind: KindName): FreshCache<KubeObject> => {
    const known = caches.get(kind)
    if (known) return known
    const made = createFreshCache<KubeObject>(informers.of(kind))
    caches.set(kind, made)
    return made
  }
  const heard = async <T extends KubeObject>(kind: KindName, write: Promise<T>): Promise<T> => {
    const object = await write
    caches.get(kind)?.wrote(object)
    return object
  }
  return {
    client: {
      ...client,
      create: (kind, ...rest) => heard(kind, client.create(kind, ...rest)),
      update: (kind, ...rest) => heard(kind, client.update(kind, ...rest)),
      patch: (kind, ...rest) => heard(kind, client.patch(kind, ...rest)),
    },
    caches: {
      // The map's key holds the kind, so the cache under it holds that kind's objects.
      of: <K extends KindName>(kind: K) => fresh(kind) as unknown as Cache<KindMap[K]>,
    },
    [Symbol.dispose]() {
      for (const cache of caches.values()) cache[Symbol.dispose]()
    },
  }
}
