// How do all objects get from one store into another, whole and unchanged? What is there already is not written again, so a
// copy that was interrupted goes on; count and digest of both sides tell whether it is complete.
import { createHash } from 'node:crypto'
import { kinds } from '../api/kinds.ts'
import { createStoredObjects, storeKey } from '../apiserver/objects/stored-objects.ts'
import type { Entry, Revision, Store } from '../store/store.ts'
import { home, inEpoch } from './cluster-mark.ts'

export type Item = Pick<Entry, 'key' | 'value'>

/** What tells one set of objects from another. */
export interface Contents {
  readonly count: number
  readonly digest: string
}

export function contentsOf(items: readonly Item[]): Contents {
  const hash = createHash('sha256')
  // Stores have orders of their own. No key and no JSON text holds a line feed or a NUL.
  for (const { key, value } of items.toSorted((a, b) => (a.key < b.key ? -1 : 1))) hash.update(`${key}\0${value}\n`)
  return { count: items.length, digest: hash.digest('hex') }
}

/** The objects in their new place: the same, but the cluster begins a new epoch, for revisions are counted anew there. */
export function inNewEpoch(entries: readonly Entry[], epoch: number): readonly Item[] {
  const stored = createStoredObjects()
  return entries.map((entry) => {
    if (entry.key !== homeKey) return entry
    const object = inEpoch(stored.decode(kinds.Namespace, entry), epoch)
    return { key: entry.key, value: stored.encode(kinds.Namespace, object) }
  })
}

const homeKey = storeKey(kinds.Namespace, { name: home })

export type CopyStep =
  | { readonly type: 'create'; readonly key: string; readonly value: string }
  | { readonly type: 'update'; readonly key: string; readonly value: string; readonly expected: Revision }
  | { readonly type: 'remove'; readonly key: string; readonly expected: Revision }

/** What makes the found entries the wanted ones. The namespace that names the cluster comes first. */
export function planCopy(wanted: readonly Item[], found: readonly Entry[]): readonly CopyStep[] {
  const there = new Map(found.map((entry) => [entry.key, entry]))
  const writes = wanted.flatMap(({ key, value }): CopyStep[] => {
    const entry = there.get(key)
    there.delete(key)
    if (entry === undefined) return [{ type: 'create', key, value }]
    return entry.value === value ? [] : [{ type: 'update', key, value, expected: entry.revision }]
  })
  const removals = [...there.values()].map(({ key, revision }): CopyStep => ({
    type: 'remove',
    key,
    expected: revision,
  }))
  const [first, others] = [writes.filter(({ key }) => key === homeKey), writes.filter(({ key }) => key !== homeKey)]
  return [...first, ...removals, ...others]
}

/** So many writes are under way at a time. */
const atOnce = 100

export async function carryOut(
  target: Store,
  steps: readonly CopyStep[],
  onWritten: (count: number) => void,
): Promise<void> {
  const [first, ...others] = steps
  if (first === undefined) return
  await perform(target, first)
  onWritten(1)
  for (let begin = 0; begin < others.length; begin += atOnce) {
    const some = others.slice(begin, begin + atOnce)
    await Promise.all(some.map((step) => perform(target, step)))
    onWritten(1 + begin + some.length)
  }
}

function perform(target: Store, step: CopyStep): Promise<Entry> {
  switch (step.type) {
    case 'create':
      return target.create(step.key, step.value)
    case 'update':
      return target.update(step.key, step.value, step.expected)
    case 'remove':
      return target.remove(step.key, step.expected)
    default:
      return step satisfies never
  }
}
