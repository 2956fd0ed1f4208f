// Can a call that was handed to a thread be taken back? Yes, while the thread is still inside the one before it. One word
// of shared memory says where the thread is: 0 between two calls, a positive number is the call it makes, a negative one
// tells it to pass over everything handed to it below that number.

export interface ThreadSide {
  /** False for a call that was taken back: somebody else makes it. */
  begin(id: number): boolean
  end(): void
}

export function threadSide(word: Int32Array): ThreadSide {
  let makeFrom = 0
  return {
    begin(id) {
      if (id < makeFrom) return false
      Atomics.store(word, 0, id)
      return true
    },
    end() {
      const found = Atomics.exchange(word, 0, 0)
      if (found < 0) makeFrom = -found
    },
  }
}

/** Invariant: after `true` no call below `next`, other than `current`, is ever made by this thread. */
export function takeBackBehind(word: Int32Array, current: number, next: number): boolean {
  return Atomics.compareExchange(word, 0, current, -next) === current
}
