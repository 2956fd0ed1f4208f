// Which syncs need which objects? While one is under way or has failed, it is tried again as soon as an object that it needs
// comes or changes: a back-off is for what cannot tell us when it is better.
import type { KindName } from '../../api/kinds.ts'
import { keyFor } from '../../api/meta.ts'
import { keyText } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import type { Caches } from './fresh-view.ts'

/** Without a name: any object of the kind. */
export interface Needed {
  readonly kind: KindName
  readonly namespace?: string | undefined
  readonly name?: string | undefined
}

export interface NeededObjects<Key extends ObjectKey> extends Disposable {
  /** In place of what the key needed before. */
  set(key: Key, needed: readonly Needed[]): void
  clear(key: Key): void
}

export function createNeededObjects<Key extends ObjectKey>(
  informers: Caches,
  wake: (key: Key) => void,
): NeededObjects<Key> {
  const stack = new DisposableStack()
  const heard = new Set<KindName>()
  /** By the text of the key. */
  const neededBy = new Map<string, readonly Needed[]>()
  /** By the text of what is needed: the keys that need it, by theirs. */
  const keysOf = new Map<string, Map<string, Key>>()
  const clear = (key: Key) => {
    const text = keyText(key)
    for (const needed of neededBy.get(text) ?? []) {
      const keys = keysOf.get(textOf(needed))
      if (keys?.delete(text) && keys.size === 0) keysOf.delete(textOf(needed))
    }
    neededBy.delete(text)
  }
  const hear = (kind: KindName) => {
    if (heard.has(kind)) return
    heard.add(kind)
    let isPresent = true
    const told = informers.of(kind).subscribe(({ key: name }) => {
      if (isPresent) return
      for (const text of [`${kind}/${name}`, kind]) keysOf.get(text)?.forEach(wake)
    })
    isPresent = false
    stack.use(told)
  }
  return {
    set(key, needed) {
      clear(key)
      if (needed.length === 0) return
      neededBy.set(keyText(key), needed)
      for (const each of needed) {
        hear(each.kind)
        keysOf.getOrInsertComputed(textOf(each), () => new Map()).set(keyText(key), key)
      }
    },
    clear,
    [Symbol.dispose]: () => stack.dispose(),
  }
}

const textOf = ({ kind, namespace, name }: Needed) => (name === undefined ? kind : `${kind}/${keyFor(namespace, name)}`)
