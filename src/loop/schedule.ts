// When is which key due? Many times on one timer of the clock: a loop with 100,000 planned looks holds a single one.
import type { Clock } from '../clock/clock.ts'

export interface Schedule<Key> extends Disposable {
  /** The key is due at this time; a later call for the same key replaces the time. */
  set(key: Key, time: number): void
  clear(key: Key): void
  timeOf(key: Key): number | undefined
}

interface Entry<Key> {
  readonly key: Key
  readonly time: number
}

export function createSchedule<Key>(clock: Clock, due: (key: Key) => void): Schedule<Key> {
  const times = new Map<Key, Entry<Key>>()
  // A binary heap by time. Replaced and cleared entries stay in it until they surface (`times` knows the valid ones).
  let heap: Entry<Key>[] = []
  let timer: { readonly time: number; readonly handle: Disposable } | undefined

  const arm = () => {
    while (heap[0] && times.get(heap[0].key) !== heap[0]) pop(heap)
    const next = heap[0]?.time
    if (timer && next !== undefined && timer.time <= next) return
    timer?.handle[Symbol.dispose]()
    timer = next === undefined ? undefined : { time: next, handle: clock.at(next, fire) }
  }
  const fire = () => {
    timer = undefined
    const now = clock.now()
    for (let first = heap[0]; first && first.time <= now; first = heap[0]) {
      pop(heap)
      if (times.get(first.key) !== first) continue
      times.delete(first.key)
      due(first.key)
    }
    arm()
  }
  return {
    set(key, time) {
      const entry = { key, time }
      times.set(key, entry)
      push(heap, entry)
      if (heap.length > 2 * times.size + 64) heap = [...times.values()].toSorted((a, b) => a.time - b.time)
      if (!timer || time < timer.time) arm()
    },
    clear: (key) => void times.delete(key),
    timeOf: (key) => times.get(key)?.time,
    [Symbol.dispose]() {
      timer?.handle[Symbol.dispose]()
      timer = undefined
      times.clear()
      heap = []
    },
  }
}

function push<Key>(heap: Entry<Key>[], entry: Entry<Key>): void {
  let index = heap.push(entry) - 1
  while (index > 0) {
    const parent = (index - 1) >> 1
    if (heap[parent]!.time <= entry.time) break
    heap[index] = heap[parent]!
    index = parent
  }
  heap[index] = entry
}

function pop<Key>(heap: Entry<Key>[]): void {
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return
  let index = 0
  for (let child = 1; child < heap.length; child = 2 * index + 1) {
    if (child + 1 < heap.length && heap[child + 1]!.time < heap[child]!.time) child++
    if (last.time <= heap[child]!.time) break
    heap[index] = heap[child]!
    index = child
  }
  heap[index] = last
}
