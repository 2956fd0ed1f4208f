// Who depends on whom? The graph of owner references, kept from the changes of the store. Pure bookkeeping.
import type { KindInfo } from '../../api/kinds.ts'
import { kindNames, kinds } from '../../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../../api/meta.ts'
import type { OwnerReference } from '../../api/generated/types.ts'
import { prefixOf } from '../objects/stored-objects.ts'

export interface Dependent {
  readonly key: string
  readonly info: KindInfo
  readonly ref: ObjectRef
  readonly owners: readonly OwnerReference[]
}

export interface OwnerGraph {
  /** Notes the object's present owners. */
  put(key: string, info: KindInfo, object: KubeObject): void
  drop(key: string): void
  dependentsOf(uid: string): readonly Dependent[]
  get(key: string): Dependent | undefined
}

export function createOwnerGraph(): OwnerGraph {
  const dependents = new Map<string, Dependent>()
  const byOwner = new Map<string, Set<string>>()

  function drop(key: string): void {
    for (const { uid } of dependents.get(key)?.owners ?? []) {
      const keys = byOwner.get(uid)
      keys?.delete(key)
      if (keys?.size === 0) byOwner.delete(uid)
    }
    dependents.delete(key)
  }

  return {
    put(key, info, object) {
      drop(key)
      const owners = object.metadata.ownerReferences ?? []
      if (owners.length === 0) return
      const { namespace, name } = object.metadata
      dependents.set(key, { key, info, ref: namespace ? { namespace, name } : { name }, owners })
      for (const { uid } of owners) {
        const keys = byOwner.get(uid) ?? new Set<string>()
        byOwner.set(uid, keys.add(key))
      }
    },
    drop,
    dependentsOf: (uid) => [...(byOwner.get(uid) ?? [])].flatMap((key) => dependents.get(key) ?? []),
    get: (key) => dependents.get(key),
  }
}

/** Which kind an entry of the store is of, from the beginning of its key. */
export function kindOfKey(key: string): KindInfo | undefined {
  const second = key.indexOf('/', 1)
  const third = key.indexOf('/', second + 1)
  return byPrefix.get(key.slice(0, third + 1))
}

const byPrefix: ReadonlyMap<string, KindInfo> = new Map(
  kindNames
    .map((name) => kinds[name])
    .filter(({ view }) => view === undefined)
    .map((info) => [prefixOf(info, undefined), info]),
)
