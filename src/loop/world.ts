// What do we know, per key? Records that change only through events; the reducer sees one record and one event.
import { createListeners } from './listeners.ts'

export interface World<Key, Item, Event> {
  readonly items: ReadonlyMap<Key, Item>
  /** item = reduce(item, event); undefined means forgotten. Subscribers hear of the change at once. */
  apply(event: Event): void
  subscribe(listener: (key: Key, event: Event) => void): Disposable
}

export function createWorld<Key, Item, Event>(
  keyOf: (event: Event) => Key,
  reduce: (item: Item | undefined, event: Event) => Item | undefined,
): World<Key, Item, Event> {
  const items = new Map<Key, Item>()
  const listeners = createListeners<[key: Key, event: Event]>()
  return {
    items,
    apply(event) {
      const key = keyOf(event)
      const before = items.get(key)
      const after = reduce(before, event)
      if (after === before) return
      if (after === undefined) items.delete(key)
      else items.set(key, after)
      listeners.tell(key, event)
    },
    subscribe: listeners.listen,
  }
}
