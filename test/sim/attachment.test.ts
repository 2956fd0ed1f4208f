// Random clusters under faults: nothing forbidden happens, and everything settles. HAWSER_HEAVY=1 runs 200 seeds.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Node } from '../../src/api/generated/types.ts'
import type { Client } from '../../src/client/client.ts'
import { createCluster } from '../../src/sim/cluster.ts'
import { runSimulation } from '../../src/sim/simulator.ts'
import type { SimulationOptions } from '../../src/sim/simulator.ts'
import { addBoundClaim, podFor } from '../../src/sim/workload.ts'
import { base, check, heavy } from './check.ts'

const seeds = heavy ? 200 : 10

test(`${seeds} seeds with crashes of controller, nodes and drivers at any step (INV-1, INV-2, INV-3, NSP-5)`, async () => {
  for (let seed = base; seed < base + seeds; seed++) await check({ seed, steps: 80, nodes: 3 })
})

test('larger clusters', async () => {
  for (let seed = 1; seed <= (heavy ? 20 : 1); seed++) await check({ seed, steps: 150, nodes: 8 })
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

test('an impatient controller among a storage that loses half its answers (FD-2, FD-4)', async () => {
  const rates = { refused: 0.2, answerLost: 0.2, watchCut: 0.2, delayMs: 200, storage: 0.5 }
  await check({ seed: 7, steps: 60, nodes: 3, rates, attachment: { maxWaitForUnmountMs: 0 } })
})

/** A controller that is shown other Nodes than there are. */
function showing(shown: (node: Node) => Node): (client: Client) => Client {
  const change = <T>(kind: string, object: T): T => (kind === 'Node' ? (shown(object as Node) as T) : object)
  return (client) => ({
    ...client,
    get: async (kind, ref, signal) => change(kind, await client.get(kind, ref, signal)),
    list: async (kind, options, signal) => {
      const list = await client.list(kind, options, signal)
      return { ...list, items: list.items.map((item) => change(kind, item)) }
    },
    async *watch(kind, options, signal) {
      for await (const event of client.watch(kind, options, signal)) {
        yield event.type === 'bookmark' ? event : { ...event, object: change(kind, event.object) }
      }
    },
  })
}

test('the invariants can fail: a controller that cannot see what nodes use is caught', async () => {
  const sabotage = showing((node) => ({ ...node, status: { ...node.status, volumesInUse: [] } }))
  const caught: string[] = []
  for (let seed = 1; seed <= 5; seed++) caught.push(...(await runSimulation({ seed, steps: 80, sabotage })).violations)
  assert.ok(
    caught.some((text) => text.startsWith('no detach under a mount')),
    caught.join('\n'),
  )
})

test('the invariants can fail: force on a node that is Ready is caught, though its disk fails or has just failed (FD-3)', async () => {
  const notReady: Node['status'] = { conditions: [{ type: 'Ready', status: 'False' }] }
  const sabotage = showing((node) => ({ ...node, status: { ...node.status, ...notReady } }))
  const attachment = { maxWaitForUnmountMs: 0 }
  for (const healed of [false, true]) {
    await using cluster = await createCluster({ seed: 1, nodes: 1, cast: 'real', sabotage, attachment })
    cluster.faults.calm = true
    await cluster.start()
    await addBoundClaim(cluster, '1')
    await cluster.admin.create('Pod', podFor('p', 'n1', ['c1']))
    await cluster.clock.advance(180_000) // long enough for the time before its first Ready not to count any more
    cluster.troubleHost('n1', true)
    if (healed) cluster.troubleHost('n1', false)
    await cluster.admin.remove('Pod', { namespace: 'default', name: 'p' }, { gracePeriodSeconds: 0 })
    await cluster.clock.advance(10_000)
    assert.match(cluster.violations.join('\n'), /^force only on lost nodes: /, `disk well again: ${healed}`)
  }
})
