// Which key came first? A queue of keys from whose middle keys may be removed. Taking from the front costs the same
// however many keys were removed before: a Map would visit the place of each of them.

export interface FifoQueue {
  /** Adds at the end. A key that is in the queue already keeps its place. */
  push(key: string): void
  remove(key: string): void
  /** Puts a removed key before all pushed ones; several keep the order in which they were put back. */
  pushFront(key: string): void
  /** The first key that satisfies `matches`. */
  find(matches: (key: string) => boolean): string | undefined
  isEmpty(): boolean
}

export function createFifoQueue(): FifoQueue {
  const present = new Set<string>()
  const front = new Set<string>()
  /** From `head` on; keys that are not present any more are skipped. */
  let pushed: string[] = []
  let head = 0

  /** Removed keys are dropped at the front at once, and elsewhere when they are most of the list. */
  function compact(): void {
    while (head < pushed.length && !isPushed(pushed[head]!)) head++
    if (pushed.length - head > 2 * present.size + 64 || head > 10_000) {
      pushed = [...new Set(pushed.slice(head).filter(isPushed))]
      head = 0
    }
  }
  const isPushed = (key: string) => present.has(key) && !front.has(key)

  return {
    push(key) {
      if (present.has(key)) return
      present.add(key)
      pushed.push(key)
    },
    remove(key) {
      present.delete(key)
      front.delete(key)
    },
    pushFront(key) {
      if (present.has(key)) return
      present.add(key)
      front.add(key)
    },
    find(matches) {
      for (const key of front) if (matches(key)) return key
      compact()
      for (let at = head; at < pushed.length; at++) {
        const key = pushed[at]!
        if (isPushed(key) && matches(key)) return key
      }
      return undefined
    },
    isEmpty: () => present.size === 0,
  }
}
