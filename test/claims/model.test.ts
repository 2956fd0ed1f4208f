// Do the invariants I-1 … I-10 survive any life that users, administrators and crashes can give a cluster?
// HAWSER_HEAVY=1 is 10,000 steps × 50 seeds, the second half of them in model-more.test.ts; HAWSER_MODEL_STEPS, _SEEDS and _SEED choose otherwise.
import { test } from 'node:test'
import { createModelWorld } from './model-world.ts'

const heavy = process.env['HAWSER_HEAVY'] === '1'
const steps = Number(process.env['HAWSER_MODEL_STEPS'] ?? (heavy ? 10_000 : 200))
const seeds = Number(process.env['HAWSER_MODEL_SEEDS'] ?? (heavy ? 25 : 6))
const only = process.env['HAWSER_MODEL_SEED']
const chosen = only === undefined ? Array.from({ length: seeds }, (_, at) => at + 1) : [Number(only)]

for (const seed of chosen) {
  test(`seed ${seed}, ${steps} steps with crashes (I-1, I-2, I-3, I-4, I-5, I-6, I-7, I-8, I-9)`, async () => {
    const world = await createModelWorld(seed)
    for (let step = 1; step <= steps; step++) {
      await world.step()
      if (step % 40 === 0) await world.quiet()
    }
    await world.quiet()
    await world.stop()
  })
}
