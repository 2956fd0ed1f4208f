// Which kind does a word mean? Plurals, singulars, short names and kinds, with or without a group, as kubectl takes them.
import type { KindInfo, KindName } from './kinds.ts'
import { kinds } from './kinds.ts'

/** In any case: `pvc`, `PersistentVolumeClaim`, `storageclasses.storage.k8s.io`. */
export function findKind(text: string): KindName | undefined {
  const [word = '', ...group] = text.toLowerCase().split('.')
  return entries().find(([, info]) => {
    // A view of another kind is meant only by who names its group.
    if (info.view !== undefined && group.length === 0) return false
    if (group.length > 0 && !`${info.group}`.startsWith(group.join('.'))) return false
    return namesOf(info).includes(word)
  })?.[0]
}

export function allKindNames(): readonly string[] {
  return [...new Set(entries().flatMap(([, info]) => namesOf(info)))]
}

function entries(): readonly (readonly [KindName, KindInfo])[] {
  return Object.entries(kinds) as [KindName, KindInfo][]
}

function namesOf(info: KindInfo): readonly string[] {
  return [info.plural, info.singular, info.kind.toLowerCase(), ...info.shortNames]
}
