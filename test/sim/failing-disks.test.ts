// The random clusters of real-agents.test.ts on failing disks. HAWSER_HEAVY=1 runs 100 seeds, from HAWSER_SEED on.
import { test } from 'node:test'
import { roughWeather } from '../../src/sim/faults.ts'
import { base, check, heavy } from './check.ts'

test('random clusters on machines whose disks fill up, turn read-only and fail', async () => {
  const rates = { ...roughWeather, host: 0.3 }
  for (let seed = base; seed < base + (heavy ? 100 : 4); seed++)
    await check({ seed, steps: 80, nodes: 3, cast: 'real', rates })
})
