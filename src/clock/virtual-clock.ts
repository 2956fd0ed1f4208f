// Time that moves only when asked. Two runs with the same calls see the same order of wake-ups:
// timers fire by time, then by the order in which they were set.
import type { Clock } from './clock.ts'
import { waitsOver } from './clock.ts'

export interface VirtualClock extends Clock {
  /** Sets the clock forward or back, as an administrator does: timers that are set keep their remaining time. */
  jump(ms: number): void
  /** Lets everything that is ready run, without moving time. */
  settle(): Promise<void>
  /** Moves time forward, firing each timer at its own moment and letting its consequences run before the next. */
  advance(ms: number): Promise<void>
  /** Moves to the next timer and fires it; false when there is none (or none before `until`). */
  step(until?: number): Promise<boolean>
  /** When the next timer fires, if any. */
  next(): number | undefined
}

interface Timer {
  readonly time: number
  readonly order: number
  readonly wake: () => void
  cancelled: boolean
}

export function createVirtualClock(start: number = Date.UTC(2026, 0, 1)): VirtualClock {
  /** Steady; what the clock shows may have been set apart from it. */
  let current = start
  let ahead = 0
  let counter = 0
  const timers: Timer[] = []
  const now = () => current + ahead

  const at: Clock['at'] = (time, wake) => {
    const timer: Timer = { time: Math.max(time - ahead, current), order: counter++, wake, cancelled: false }
    push(timers, timer)
    return {
      [Symbol.dispose]() {
        timer.cancelled = true
      },
    }
  }
  const first = () => {
    while (timers[0]?.cancelled) pop(timers)
    return timers[0]?.time
  }
  const next = () => {
    const time = first()
    return time === undefined ? undefined : time + ahead
  }
  const jump = (ms: number) => void (ahead += ms)
  const step = async (until = Infinity) => {
    await settle()
    const time = first()
    if (time === undefined || time + ahead > until) return false
    const timer = pop(timers)!
    current = Math.max(current, timer.time)
    timer.wake()
    await settle()
    return true
  }
  const advance = async (ms: number) => {
    const end = current + ms
    while (await step(end + ahead));
    current = end
    await settle()
  }
  return { now, steady: () => current, at, ...waitsOver(at, now), jump, settle, advance, step, next }
}

/** All microtasks, and whatever they queued as immediate work, have run once this resolves. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

// A binary heap: simulations hold ten thousands of timers.
function before(a: Timer, b: Timer): boolean {
  return a.time < b.time || (a.time === b.time && a.order < b.order)
}

function push(heap: Timer[], timer: Timer): void {
  let index = heap.push(timer) - 1
  while (index > 0) {
    const parent = (index - 1) >> 1
    if (!before(timer, heap[parent]!)) break
    heap[index] = heap[parent]!
    index = parent
  }
  heap[index] = timer
}

function pop(heap: Timer[]): Timer | undefined {
  const first = heap[0]
  const last = heap.pop()
  if (heap.length === 0 || last === undefined) return first
  let index = 0
  for (;;) {
    let child = 2 * index + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++
    if (!before(heap[child]!, last)) break
    heap[index] = heap[child]!
    index = child
  }
  heap[index] = last
  return first
}
