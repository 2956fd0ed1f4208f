// Which seeds are run, and what must hold after each? HAWSER_HEAVY=1 runs more of them; HAWSER_SEED is the first.
import assert from 'node:assert/strict'
import { runSimulation } from '../../src/sim/simulator.ts'
import type { SimulationOptions } from '../../src/sim/simulator.ts'

export const heavy = process.env['HAWSER_HEAVY'] === '1'
export const base = Number(process.env['HAWSER_SEED'] ?? 1000)

export async function check(options: SimulationOptions): Promise<void> {
  const { violations, trace } = await runSimulation(options)
  assert.deepEqual(violations, [], `hawser sim --seed ${options.seed}\n${trace.slice(-60).join('\n')}`)
}
