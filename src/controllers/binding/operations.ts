// Which object does a slow operation (provision, delete, recycle) belong to? Operations outlive the sync that starts
// them; when one ends, its object is synced again.
import type { Pending } from '../../loop/pending.ts'
import type { BindingKey } from './state.ts'

export interface Operations extends AsyncDisposable {
  /** Aborted when the controller stops, not when a sync ends. */
  readonly signal: AbortSignal
  /** The object may start an operation under this name now, or finds its own running. */
  expect(name: string, key: BindingKey): void
  /** An operation has ended: whose was it, and did its object ask for it again meanwhile? */
  ended(name: string): Expected | undefined
}

interface Expected {
  readonly key: BindingKey
  /** A sync that found the operation running saw something new that the operation may have missed. */
  readonly askedAgain: boolean
}

/** Operations are exclusive per uid: an object made anew under the same name is another one. */
export function operationName(kind: 'claim' | 'volume', uid: string | undefined): string {
  return `${kind} ${uid}`
}

export function createOperations(pending: Pending): Operations {
  const stopping = new AbortController()
  const expected = new Map<string, Expected>()
  return {
    signal: stopping.signal,
    expect: (name, key) => void expected.set(name, { key, askedAgain: pending.isPending([name]) }),
    ended(name) {
      const found = expected.get(name)
      expected.delete(name)
      return found
    },
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('binding is stopping'))
      await pending.idle()
    },
  }
}
