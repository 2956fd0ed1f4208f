// Does waking one key cost the same among a thousand and among a hundred thousand? Does an idle loop use no CPU?
import { setTimeout as sleep } from 'node:timers/promises'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createKeyLoop } from '../../src/loop/key-loop.ts'
import type { KeyLoop } from '../../src/loop/key-loop.ts'
import { createWorld } from '../../src/loop/world.ts'

export interface LoopFigures {
  readonly smallMicros: number
  readonly largeMicros: number
  readonly ratio: number
  readonly idleCpuMs: number
  readonly idleSeconds: number
}

/** The machine is shared: a figure beyond the goal is measured again, twice at most, and every figure is printed. */
export async function run(): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const figures = await measure()
    process.stdout.write(`${JSON.stringify({ bench: 'loop', ...figures })}\n`)
    if (figures.ratio < 1.5) return
    if (attempt === 3) {
      throw new Error(`waking one of 100,000 keys costs ${figures.ratio} times as much as one of 1,000`)
    }
  }
}

export async function measure(): Promise<LoopFigures> {
  await using small = await filled(1_000)
  await using large = await filled(100_000)
  // Turns about, best of several: the machine is shared and noisy.
  const times = { small: Infinity, large: Infinity }
  for (let round = 0; round < 12; round++) {
    times.small = Math.min(times.small, await wakes(small.loop, 1_000))
    times.large = Math.min(times.large, await wakes(large.loop, 100_000))
  }
  const idleSeconds = 2
  const before = process.cpuUsage()
  await sleep(idleSeconds * 1_000)
  const { user, system } = process.cpuUsage(before)
  return {
    smallMicros: round(times.small),
    largeMicros: round(times.large),
    ratio: round(times.large / times.small),
    idleCpuMs: round((user + system) / 1_000),
    idleSeconds,
  }
}

interface Filled extends AsyncDisposable {
  readonly loop: KeyLoop<string>
}

/** A loop whose every key was looked at once and has a record in a world and a time of its next look far away. */
async function filled(count: number): Promise<Filled> {
  const clock = createSystemClock()
  const world = createWorld<string, number, { key: string }>(
    ({ key }) => key,
    (item) => (item ?? 0) + 1,
  )
  const loop = createKeyLoop<string>({
    name: 'bench',
    clock,
    workers: 8,
    async look() {
      return { again: clock.now() + 3_600_000 + world.items.size }
    },
  })
  world.subscribe((key) => loop.wake(key))
  for (let i = 0; i < count; i++) world.apply({ key: `volume-${i}` })
  await loop.idle()
  return { loop, [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose]() }
}

/** Microseconds from wake to looked: the same number of keys in both loops, spread evenly over all of them, woken in turn. */
async function wakes(loop: KeyLoop<string>, count: number): Promise<number> {
  const keys = Array.from({ length: 250 }, (_, i) => `volume-${Math.floor((i * count) / 250)}`)
  const rounds = 20
  const start = performance.now()
  for (let i = 0; i < rounds; i++) {
    for (const key of keys) {
      loop.wake(key)
      await loop.idle()
    }
  }
  return ((performance.now() - start) * 1_000) / (rounds * keys.length)
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
