// What do pods see of an object that is immutable? What it was when the first of them came, for as long as one of them has it:
// nobody asks for it again, so that even its end, or another object of its name, changes nothing under them.

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
        // Somebody else may have come first while we read.
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
