// Do the invariants I-1 … I-10 survive any life that users, administrators and crashes can give a cluster?
// HAWSER_MODEL_STEPS and HAWSER_MODEL_SEEDS make it heavy (10,000 × 50); HAWSER_MODEL_SEED repeats one run.
import { test } from 'node:test'
import { createModelWorld } from './model-world.ts'

const steps = Number(process.env['HAWSER_MODEL_STEPS'] ?? 200)
const seeds = Number(process.env['HAWSER_MODEL_SEEDS'] ?? 6)
const only = process.env['HAWSER_MODEL_SEED']
const chosen = only === undefined ? Array.from({ length: seeds }, (_, at) => at + 1) : [Number(only)]

for (const seed of chosen) {
  test(`I-1 I-2 I-3 I-4 I-5 I-6 I-7 I-8 I-9: seed ${seed}, ${steps} steps with crashes`, async () => {
    const world = await createModelWorld(seed)
    for (let step = 1; step <= steps; step++) {
      await world.step()
      if (step % 40 === 0) await world.quiet()
    }
    await world.quiet()
    await world.stop()
  })
}
