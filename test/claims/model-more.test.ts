// The second half of the heavy seeds of model.test.ts, in a file of its own so that both halves run side by side.
// HAWSER_HEAVY=1 runs seeds 26 to 50; HAWSER_MODEL_STEPS, _SEEDS and _SEED choose otherwise.
import { test } from 'node:test'
import { createModelWorld } from './model-world.ts'

const heavy = process.env['HAWSER_HEAVY'] === '1'
const steps = Number(process.env['HAWSER_MODEL_STEPS'] ?? (heavy ? 10_000 : 200))
const seeds = Number(process.env['HAWSER_MODEL_SEEDS'] ?? (heavy ? 25 : 0))
const only = process.env['HAWSER_MODEL_SEED']
const chosen = only === undefined ? Array.from({ length: seeds }, (_, at) => at + 26) : []

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
