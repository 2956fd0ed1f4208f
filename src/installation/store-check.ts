// Is every object of a store sound, and would kube-apiserver accept it on the same etcd? Pure: from what was found, a count for
// each kind and a sentence for each object that is not.
import { sentence } from '../api/field-errors.ts'
import type { KindInfo } from '../api/kinds.ts'
import type { KubeObject } from '../api/meta.ts'
import { validateStored } from '../api/validation/validate.ts'
import { builtInGroups } from '../apiserver/objects/registry-layout.ts'
import { createStoredObjects, prefixOf, storeKey } from '../apiserver/objects/stored-objects.ts'
import type { FoundKey } from '../store/etcd/inspect.ts'
import { storedKinds } from './backup.ts'
import type { Contents } from './migration.ts'
import { contentsOf } from './migration.ts'

/** Who serves a kind when kube-apiserver goes on with the etcd: itself, a custom resource, or nobody. */
type Successor = 'kube-apiserver' | 'custom resource' | 'nobody'

interface CheckedKind {
  readonly resource: string
  readonly count: number
  readonly successor: Successor
}

export interface StoreReport extends Contents {
  readonly kinds: readonly CheckedKind[]
  readonly problems: readonly { readonly object: string; readonly problem: string }[]
  /** Keys of other programs, or of kinds that Hawser does not serve. */
  readonly foreign: number
}

type Entry = Extract<FoundKey, { kind: 'entry' }>

export function checkStore(found: readonly FoundKey[]): StoreReport {
  const entries = found.filter((key) => key.kind === 'entry')
  const counts = new Map<KindInfo, number>()
  const problems: { readonly object: string; readonly problem: string }[] = []
  const stored = createStoredObjects()
  for (const entry of entries) {
    const info = kindOf(entry.key)
    if (info) counts.set(info, (counts.get(info) ?? 0) + 1)
    const problem = info ? problemOf(entry, info, stored.decode) : 'no kind keeps its objects there'
    if (problem !== undefined) problems.push({ object: nameOf(entry.key, info), problem })
  }
  for (const key of found) if (key.kind === 'unreadable') problems.push({ object: key.path, problem: key.problem })
  const rows = [...counts].map(([info, count]) => ({ resource: resourceOf(info), count, successor: successorOf(info) }))
  return {
    ...contentsOf(entries),
    kinds: rows.toSorted((a, b) => (a.resource < b.resource ? -1 : 1)),
    problems,
    foreign: found.filter(({ kind }) => kind === 'foreign').length,
  }
}

type Decode = ReturnType<typeof createStoredObjects>['decode']

function problemOf(entry: Entry, info: KindInfo, decode: Decode): string | undefined {
  let object: KubeObject
  try {
    object = decode(info, { ...entry, createRevision: entry.revision })
  } catch (error) {
    return `it cannot be read: ${(error as Error).message}`
  }
  const { name = '', namespace, uid } = object.metadata
  const said = storeKey(info, { name, ...(namespace === undefined ? {} : { namespace }) })
  if (said !== entry.key) return `it says that it is ${nameOf(said, info)}`
  if (uid === undefined) return 'metadata.uid: Required value'
  const errors = validateStored(info.name, object as never) // read as this kind
  return errors.length === 0 ? undefined : errors.map(sentence).join('; ')
}

function kindOf(key: string): KindInfo | undefined {
  return storedKinds().find((info) => key.startsWith(prefixOf(info, undefined)))
}

function nameOf(key: string, info: KindInfo | undefined): string {
  return info ? `${resourceOf(info)}/${key.slice(prefixOf(info, undefined).length)}` : key
}

function resourceOf({ group, plural }: KindInfo): string {
  return group === '' ? plural : `${plural}.${group}`
}

function successorOf({ group }: KindInfo): Successor {
  if (group === 'hawser.dev') return 'nobody'
  return builtInGroups.includes(group) ? 'kube-apiserver' : 'custom resource'
}
