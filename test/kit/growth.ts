// Does work grow with its input, or with the square of it? Measured in processor time of this process, which a busy
// machine disturbs less than the clock, at three sizes; the best of several runs counts.
import assert from 'node:assert/strict'
import { StatusError } from '../../src/api/status-error.ts'
import { MalformedJson } from '../../src/apiserver/http/codec.ts'

export interface Work {
  readonly name: string
  /** Smallest to largest. */
  readonly sizes: readonly [number, number, number]
  /** Makes the input of a size; the function that it answers is measured. */
  prepare(size: number): () => unknown
  /** For work that is refused above a limit: up to there it may grow as it likes, within this time. */
  readonly boundMs?: number
}

/** Below this, a measurement says nothing. */
const floorMs = 2
/** How much slower than n·log n is still called n·log n: caches, collections of garbage. A square is 100 times slower. */
const margin = 3
const runs = 3

/** Fails when the work grows faster than n·log n and takes longer than its bound. */
export function assertGrowth(work: Work): void {
  const [small] = work.sizes
  // The first runs pay for compiling, which must not make the small size look dear.
  const warm = work.prepare(small)
  for (let run = 0; run < 5; run++) warm()
  const base = Math.max(floorMs, bestMs(work.prepare(small)))
  for (const size of work.sizes.slice(1)) {
    const ms = bestMs(work.prepare(size))
    const growth = (size * Math.log2(size)) / (small * Math.log2(small))
    const allowedMs = Math.max(base * margin * growth, work.boundMs ?? 0)
    const shown = `${work.name}: ${size} took ${ms.toFixed(0)} ms, ${small} took at most ${base.toFixed(1)} ms`
    assert.ok(ms <= allowedMs, `${shown}; allowed are ${allowedMs.toFixed(0)} ms`)
  }
}

function bestMs(run: () => unknown): number {
  let best = Number.POSITIVE_INFINITY
  for (let count = 0; count < runs; count++) {
    const start = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(start)
    best = Math.min(best, (user + system) / 1000)
    // Long runs are steady, and a failure need not take minutes.
    if (best > 100) break
  }
  return best
}

export const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at))

export const mapOf = (count: number): Record<string, string> =>
  Object.fromEntries(times(count, (at) => [`key-${at}`, 'v']))

/** A refusal is an answer too. */
export function answered(run: () => unknown): () => unknown {
  return () => {
    try {
      return run()
    } catch (error) {
      if (error instanceof StatusError || error instanceof MalformedJson) return error
      throw error
    }
  }
}
