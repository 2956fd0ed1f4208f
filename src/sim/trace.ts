// What happened, in order? One line per event, and a hash over all lines: two runs with one seed must agree in it.
import { createHash } from 'node:crypto'
import type { Clock } from '../clock/clock.ts'

export interface Trace {
  line(what: string, fields?: Readonly<Record<string, string | number | boolean | undefined>>): void
  /** The hash over everything so far. */
  hash(): string
  readonly count: number
  /** The last lines, oldest first. */
  tail(): readonly string[]
}

export function createTrace(clock: Clock, keep: number = 400): Trace {
  const start = clock.now()
  const sum = createHash('sha256')
  const lines: string[] = []
  let count = 0
  return {
    line(what, fields = {}) {
      const rest = Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [` ${name}=${value}`]))
      const text = `${((clock.now() - start) / 1000).toFixed(3)} ${what}${rest.join('')}`
      sum.update(text).update('\n')
      lines.push(text)
      if (lines.length > 2 * keep) lines.splice(0, lines.length - keep)
      count++
    },
    hash: () => sum.copy().digest('hex'),
    get count() {
      return count
    },
    tail: () => lines.slice(-keep),
  }
}
