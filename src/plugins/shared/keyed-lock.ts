// How do two calls about the same thing wait for each other? One queue per key, gone when empty.

export interface KeyedLock {
  run<T>(key: string, work: () => Promise<T>): Promise<T>
}

export function createKeyedLock(): KeyedLock {
  const tails = new Map<string, Promise<unknown>>()
  return {
    async run(key, work) {
      const before = tails.get(key)
      const own = (async () => {
        await before?.catch(() => undefined)
        return work()
      })()
      tails.set(key, own)
      try {
        return await own
      } finally {
        if (tails.get(key) === own) tails.delete(key)
      }
    },
  }
}
