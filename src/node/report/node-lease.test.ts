import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations as wellKnown } from '../../api/annotations.ts'
import type { NodeName } from '../../api/names.ts'
import { createRandom } from '../../clock/random.ts'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { createTestApi } from '../../../test/kit/api.ts'
import { createNodeLease } from './node-lease.ts'

const { signal } = new AbortController()
const node = 'n1' as NodeName // as the agent got it
const ref = { namespace: 'kube-node-lease', name: 'n1' }

async function setUp() {
  const clock = createVirtualClock()
  const api = await createTestApi({ clock, random: createRandom(1) })
  const { client } = api
  return {
    clock,
    client,
    agent: (place: string) => createNodeLease({ client, clock, node, place }),
    place: async () => (await client.get('Lease', ref, signal)).metadata.annotations?.[wellKnown.agentPlace],
    take: (place: string) =>
      client.patch(
        'Lease',
        ref,
        { type: 'merge', body: { metadata: { annotations: { [wellKnown.agentPlace]: place } } } },
        {},
        signal,
      ),
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}

test('an agent that was cut off leaves its node to the agent that has taken it since', async () => {
  await using cluster = await setUp()
  const [first, second] = [cluster.agent('/a on one'), cluster.agent('/a on two')]
  await first.renew(signal)
  await first.renew(signal)
  await cluster.clock.advance(60_000)
  await cluster.take('/a on two')
  await second.renew(signal)
  for (let times = 0; times < 2; times++) {
    await assert.rejects(
      first.renew(signal),
      /node n1 is run by another agent, with \/a on two: this one \(\/a on one\)/,
    )
    assert.equal(first.isLost(), true)
    assert.equal(await cluster.place(), '/a on two')
    await second.renew(signal)
  }
  assert.equal(second.isLost(), false)
  await cluster.take('/a on one')
  await first.renew(signal)
  assert.equal(first.isLost(), false, 'it was given back')
})

test('a lease that somebody edited, or deleted, is renewed', async () => {
  await using cluster = await setUp()
  const agent = cluster.agent('/a on one')
  await agent.renew(signal)
  const labels = { looked: 'at' }
  await cluster.client.patch('Lease', ref, { type: 'merge', body: { metadata: { labels } } }, {}, signal)
  await agent.renew(signal)
  await cluster.client.remove('Lease', ref, {}, signal)
  await agent.renew(signal)
  await Promise.all([agent.renew(signal), agent.renew(signal)])
  assert.equal(await cluster.place(), '/a on one')
})
