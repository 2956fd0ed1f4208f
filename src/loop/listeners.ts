// Who hears of a change? A set of functions that are called in the order in which they came.

export interface Listeners<Args extends readonly unknown[]> {
  tell(...args: Args): void
  /** Disposing ends it. */
  listen(listener: (...args: Args) => void): Disposable
  /** How many listen now. */
  readonly size: number
}

export function createListeners<Args extends readonly unknown[]>(): Listeners<Args> {
  const listeners = new Set<(...args: Args) => void>()
  return {
    tell(...args) {
      // A copy: whoever comes while others are told hears only of what happens later.
      for (const listener of [...listeners]) listener(...args)
    },
    listen(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    get size() {
      return listeners.size
    },
  }
}
