// Random clusters under faults: nothing forbidden happens, and everything settles. HAWSER_HEAVY=1 runs 200 seeds.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Node } from '../../src/api/types.ts'
import type { Client } from '../../src/client/client.ts'
import { roughWeather } from '../../src/sim/faults.ts'
import { runSimulation } from '../../src/sim/simulator.ts'
import type { SimulationOptions } from '../../src/sim/simulator.ts'

const heavy = process.env['HAWSER_HEAVY'] === '1'
const seeds = heavy ? 200 : 20
const base = Number(process.env['HAWSER_SEED'] ?? 1000)

async function check(options: SimulationOptions): Promise<void> {
  const { violations, trace } = await runSimulation(options)
  assert.deepEqual(violations, [], `hawser sim --seed ${options.seed}\n${trace.slice(-60).join('\n')}`)
}

test(`INV-1 INV-2 INV-3 NSP-5: ${seeds} seeds with crashes of controller, nodes and drivers at any step`, async () => {
  for (let seed = base; seed < base + seeds; seed++) await check({ seed, steps: 80, nodes: 3 })
})

test('the same with real agents, controllers and CSI jobs on model hosts', async () => {
  for (let seed = base; seed < base + (heavy ? 200 : 10); seed++)
    await check({ seed, steps: 80, nodes: 3, cast: 'real' })
})

test('the same on machines whose disks fill up, turn read-only and fail', async () => {
  const rates = { ...roughWeather, host: 0.3 }
  for (let seed = base; seed < base + (heavy ? 100 : 4); seed++)
    await check({ seed, steps: 80, nodes: 3, cast: 'real', rates })
})

test('larger clusters', async () => {
  for (let seed = 1; seed <= (heavy ? 20 : 2); seed++) await check({ seed, steps: 150, nodes: 8 })
})

test('every seed that ever failed', async () => {
  const past = JSON.parse(readFileSync(new URL('regressions.json', import.meta.url), 'utf8')) as (SimulationOptions & {
    found: string
  })[]
  for (const { found: _found, ...options } of past) await check(options)
})

test('a seed reproduces a run exactly, and another seed gives another run', async () => {
  for (const cast of ['model', 'real'] as const) {
    const [first, again, other] = [
      await runSimulation({ seed: 'same', steps: 40, cast }),
      await runSimulation({ seed: 'same', steps: 40, cast }),
      await runSimulation({ seed: 'other', steps: 40, cast }),
    ]
    assert.equal(again.hash, first.hash)
    assert.equal(again.lines, first.lines)
    assert.notEqual(other.hash, first.hash)
  }
})

test('FD-2 FD-4: an impatient controller among a storage that loses half its answers', async () => {
  const rates = { refused: 0.2, answerLost: 0.2, watchCut: 0.2, delayMs: 200, storage: 0.5 }
  await check({ seed: 7, steps: 60, nodes: 3, rates, attachment: { maxWaitForUnmountMs: 0 } })
})

test('the invariants can fail: a controller that cannot see what nodes use is caught', async () => {
  const blind = (node: Node): Node => ({ ...node, status: { ...node.status, volumesInUse: [] } })
  const sabotage = (client: Client): Client => ({
    ...client,
    get: async (kind, ref, signal) => blinded(kind, await client.get(kind, ref, signal)),
    list: async (kind, options, signal) => {
      const list = await client.list(kind, options, signal)
      return { ...list, items: list.items.map((item) => blinded(kind, item)) }
    },
    async *watch(kind, options, signal) {
      for await (const event of client.watch(kind, options, signal)) {
        yield event.type === 'bookmark' ? event : { ...event, object: blinded(kind, event.object) }
      }
    },
  })
  const blinded = <T>(kind: string, object: T): T => (kind === 'Node' ? (blind(object as Node) as T) : object)
  const caught: string[] = []
  for (let seed = 1; seed <= 5; seed++) caught.push(...(await runSimulation({ seed, steps: 80, sabotage })).violations)
  assert.ok(
    caught.some((text) => text.startsWith('no detach under a mount')),
    caught.join('\n'),
  )
})
