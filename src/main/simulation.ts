// The simulator as the library offers it: its options are checked first.
import { isJsonObject } from '../api/json.ts'
import { UsageError } from '../installation/config.ts'
import { runSimulation } from '../sim/simulator.ts'
import type { SimulationOptions, SimulationResult } from '../sim/simulator.ts'
import { requireOptions, shown } from './checked-client.ts'

const options: { readonly [Name in keyof Required<SimulationOptions>]: true } = {
  seed: true,
  steps: true,
  nodes: true,
  rates: true,
  cast: true,
  attachment: true,
  history: true,
  sabotage: true,
}

export async function runCheckedSimulation(asked: SimulationOptions): Promise<SimulationResult> {
  if (!isJsonObject(asked)) throw new UsageError(`runSimulation takes an object of options, not ${shown(asked)}`)
  requireOptions('runSimulation', asked, options)
  const { seed, steps, nodes, cast } = asked
  if (typeof seed !== 'number' && typeof seed !== 'string')
    throw new UsageError(`runSimulation needs a seed, a number or a text, not ${shown(seed)}`, '{ seed: 1 }')
  for (const [name, value] of Object.entries({ steps, nodes }))
    if (value !== undefined && !(Number.isInteger(value) && Number(value) >= 1))
      throw new UsageError(`option ${name} must be a whole number from 1, not ${shown(value)}`)
  if (cast !== undefined && cast !== 'model' && cast !== 'real')
    throw new UsageError(`option cast must be "model" or "real", not ${shown(cast)}`)
  return await runSimulation(asked)
}
