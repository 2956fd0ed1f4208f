// What does the server fill in when a user leaves it out? Each kind's definition says it; applying it twice changes nothing.
import { kinds } from '../kinds.ts'
import type { KindMap, KindName } from '../kinds.ts'

export function applyDefaults<K extends KindName>(kind: K, object: KindMap[K]): KindMap[K] {
  return (kinds[kind].defaults?.(object) ?? object) as KindMap[K] // the definition of this kind
}
