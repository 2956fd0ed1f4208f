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

/** `time` is what was asked for; `queuedAt` is the time of the key's entry in the heap, never later than `time`. */
interface Plan {
  time: number | undefined
  queuedAt: number
}

/**
 * Putting a time off or clearing it only changes the plan: the heap's entry surfaces at its old time and is put back
 * or dropped then. So waking a key and planning its next look touch no other key, however many there are.
 */
export function createSchedule<Key>(clock: Clock, due: (key: Key) => void): Schedule<Key> {
  const plans = new Map<Key, Plan>()
  const heap: Entry<Key>[] = []
  let timer: { readonly time: number; readonly handle: Disposable } | undefined

  const arm = () => {
    const next = heap[0]?.time
    if (timer && timer.time === next) return
    timer?.handle[Symbol.dispose]()
    timer = next === undefined ? undefined : { time: next, handle: clock.at(next, fire) }
  }
  const fire = () => {
    const planned = timer?.time ?? 0
    timer = undefined
    const now = clock.now()
    // A timer waits as long as it was told to. When it is not yet time, the clock was set back: what is planned goes along.
    if (now < planned) moveBack(planned - now)
    for (let first = heap[0]; first && first.time <= now; first = heap[0]) {
      pop(heap)
      surface(first, now)
    }
    arm()
  }
  const moveBack = (ms: number) => {
    for (const [index, { key, time }] of heap.entries()) heap[index] = { key, time: time - ms }
    for (const plan of plans.values()) {
      plan.queuedAt -= ms
      if (plan.time !== undefined) plan.time -= ms
    }
  }
  const surface = (entry: Entry<Key>, now: number) => {
    const plan = plans.get(entry.key)
    if (!plan || plan.queuedAt !== entry.time) return
    if (plan.time !== undefined && plan.time > now) {
      plan.queuedAt = plan.time
      push(heap, { key: entry.key, time: plan.time })
      return
    }
    plans.delete(entry.key)
    if (plan.time !== undefined) due(entry.key)
  }
  return {
    set(key, time) {
      const plan = plans.get(key)
      if (plan && plan.queuedAt <= time) {
        plan.time = time
        return
      }
      if (plan) Object.assign(plan, { time, queuedAt: time })
      else plans.set(key, { time, queuedAt: time })
      push(heap, { key, time })
      if (!timer || time < timer.time) arm()
    },
    clear(key) {
      const plan = plans.get(key)
      if (plan) plan.time = undefined
    },
    timeOf: (key) => plans.get(key)?.time,
    [Symbol.dispose]() {
      timer?.handle[Symbol.dispose]()
      timer = undefined
      plans.clear()
      heap.length = 0
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
