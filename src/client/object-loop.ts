// How is work driven per API object? A key loop whose keys are values: kind, namespace and name of one object.
// The key loop compares keys by text; this file alone makes that text, and nobody parses it.
import type { ObjectReference } from '../api/generated/types.ts'
import type { KindName } from '../api/kinds.ts'
import { refKey, refOf } from '../api/meta.ts'
import type { KubeObject, ObjectRef } from '../api/meta.ts'
import { createKeyLoop } from '../loop/key-loop.ts'
import type { KeyLoop, KeyLoopOptions } from '../loop/key-loop.ts'

export interface ObjectKey<Kind extends KindName = KindName> extends ObjectRef {
  readonly kind: Kind
  /** Set where an object that was made anew under the same name is another object. */
  readonly uid?: string
}

export function objectKey<Kind extends KindName>(kind: Kind, object: KubeObject): ObjectKey<Kind> {
  return { kind, ...refOf(object) }
}

/** The object as other objects refer to it; with its uid where that is known. */
export function referenceTo({ kind, namespace, name, uid: own }: ObjectKey, uid = own): ObjectReference {
  return { kind, ...(namespace === undefined ? {} : { namespace }), name, ...(uid === undefined ? {} : { uid }) }
}

/** `Kind/namespace/name`: the identity of a key, for maps and for people. */
export function keyText(key: ObjectKey): string {
  const text = `${key.kind}/${refKey(key)}`
  return key.uid === undefined ? text : `${text} ${key.uid}`
}

export interface ObjectLoop<Key extends ObjectKey>
  extends Pick<KeyLoop<Key>, 'wake' | 'wakeAt' | 'forget' | 'idle'>, AsyncDisposable {
  /** The last look at this key failed, and it was not looked at since. */
  isFailing(key: Key): boolean
  readonly depth: number
  readonly running: number
}

const sweepAtLeast = 1_024

export function createObjectLoop<Key extends ObjectKey>(options: KeyLoopOptions<Key>): ObjectLoop<Key> {
  const { look, onError, ...rest } = options
  const keys = new Map<string, Key>()
  let sweepAt = sweepAtLeast
  const loop = createKeyLoop<string>({
    ...rest,
    look: (text, signal) => look(keys.get(text)!, signal),
    ...(onError && { onError: (text, error, retryAt) => onError(keys.get(text)!, error, retryAt) }),
  })
  /** Keys that the loop knows nothing of any more are dropped when the map has doubled: constant cost per wake. */
  const sweep = () => {
    for (const text of keys.keys()) if (!loop.has(text)) keys.delete(text)
    sweepAt = Math.max(sweepAtLeast, 2 * keys.size)
  }
  const textOf = (key: Key): string => {
    const text = keyText(key)
    if (!keys.has(text)) {
      if (keys.size >= sweepAt) sweep()
      keys.set(text, key)
    }
    return text
  }
  return {
    wake: (key) => loop.wake(textOf(key)),
    wakeAt: (key, time) => loop.wakeAt(textOf(key), time),
    forget: (key) => loop.forget(keyText(key)),
    idle: loop.idle,
    isFailing: (key) => loop.failing.has(keyText(key)),
    get depth() {
      return loop.depth
    },
    get running() {
      return loop.running
    },
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  }
}
