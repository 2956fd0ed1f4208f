// What do pods see of an immutable object? It is read once and kept while any pod uses it, so that neither its deletion nor a
// new object of the same name changes the files of running pods.

import type { KindMap, KindName } from '../../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../../api/meta.ts'
import { refKey } from '../../api/meta.ts'
import type { Client } from '../../client/client.ts'

export type Reader = Pick<Client, 'get'>

export interface KeptObjects {
  /** Reads for this holder; an immutable object is kept until its last holder is released. */
  readerFor(holder: string): Reader
  release(holder: string): void
}

export function createKeptObjects(client: Reader): KeptObjects {
  const kept = new Map<string, { readonly object: KubeObject; readonly holders: Set<string> }>()
  return {
    readerFor: (holder) => ({
      async get<K extends KindName>(kind: K, ref: ObjectRef, signal?: AbortSignal) {
        const key = `${kind}/${refKey(ref)}`
        const found = kept.get(key)?.object ?? (await client.get(kind, ref, signal))
        // Another reader may have been first.
        const { object, holders } = kept.get(key) ?? { object: found, holders: new Set<string>() }
        if ('immutable' in object && object.immutable === true) kept.set(key, { object, holders: holders.add(holder) })
        return object as KindMap[K] // the key holds the kind
      },
    }),
    release(holder) {
      for (const [key, { holders }] of kept) if (holders.delete(holder) && holders.size === 0) kept.delete(key)
    },
  }
}
