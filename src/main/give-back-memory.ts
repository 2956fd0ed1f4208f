// How does a server give memory back? Only where Node runs with --expose-gc, as bin/hawser starts it: a program that
// embeds us keeps its own house.

/**
 * A thorough collection stops everything, for about 2 ms per MB that stays: nobody notices at rest with a small heap.
 * Up to half of what is counted here does not stay.
 */
const largestHeapBytes = 160 * 1024 * 1024

export async function memoryGiver(): Promise<(() => void) | undefined> {
  const collect = globalThis.gc
  if (collect === undefined) return undefined
  const { giveBackMemory } = await import('../host/linux/own-memory.ts')
  return () => {
    if (process.memoryUsage().heapUsed <= largestHeapBytes) collect({ type: 'major', flavor: 'last-resort' })
    giveBackMemory()
  }
}
