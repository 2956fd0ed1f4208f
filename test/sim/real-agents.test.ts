// The random clusters of attachment.test.ts with real agents. HAWSER_HEAVY=1 runs 100 seeds, from HAWSER_SEED on.
import { test } from 'node:test'
import { base, check, heavy } from './check.ts'

test('random clusters with real agents, controllers and CSI jobs on model hosts', async () => {
  for (let seed = base; seed < base + (heavy ? 100 : 5); seed++)
    await check({ seed, steps: 80, nodes: 3, cast: 'real' })
})
