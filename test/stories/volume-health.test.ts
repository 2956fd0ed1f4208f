// Do pods tell what their storage says of its health? CSI-71, VM-13, MNT-16 on one node with a volume whose answers the test
// chooses.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HealthCondition } from '../../src/volume/plugin.ts'
import { createDiskWorld } from '../kit/node-with-disk.ts'
import { pod, root } from '../kit/node.ts'

const ill = (reason: string, message = ''): HealthCondition => ({ status: 'Degraded', reason, message })

async function worldWithPod() {
  const world = await createDiskWorld()
  const { agent, crash } = await world.start()
  const uid = await world.create(pod('p', world.volumes))
  await world.clock.advance(1_000)
  const told = async () => (await world.client.get('Pod', { namespace: 'default', name: 'p' })).status?.volumeHealth
  const minute = async () => {
    await world.clock.advance(61_000)
    return await told()
  }
  return { ...world, agent, crash, uid, told, minute }
}

test('what is wrong stands in the pod; well again leaves an empty entry; words alone are no news (CSI-71)', async () => {
  const world = await worldWithPod()
  await world.attach()
  await world.clock.advance(1_000)
  world.plugin.health = []
  assert.equal(await world.minute(), undefined, 'a volume that was never ill is not worth a word')
  assert.deepEqual(world.plugin.healthAsked, [`${root}/pods/${world.uid}/volumes/example.com~device/pv /global/pv`])
  world.plugin.health = [ill('Slow', 'one disk of two'), { status: 'DataLoss', reason: 'Scrub', message: 'block 7' }]
  const [first] = (await world.minute()) ?? []
  assert.deepEqual([first?.name, first?.healthConditions], ['v', world.plugin.health])
  world.plugin.health = world.plugin.health.map((each) => ({ ...each, message: 'other words' })).toReversed()
  assert.deepEqual((await world.minute())?.[0], first)
  world.plugin.health = 'fails'
  assert.deepEqual((await world.minute())?.[0], first, 'a question that fails leaves what was known')
  world.plugin.health = []
  const [last] = (await world.minute()) ?? []
  assert.deepEqual([last?.name, last?.healthConditions], ['v', undefined])
  assert.notEqual(last?.lastTransitionTime, first?.lastTransitionTime)
  await world.agent.stop()
})

test('asked once a mount was tried, and not before; without paths while there are none (VM-13, MNT-16)', async () => {
  const world = await worldWithPod()
  world.plugin.health = [ill('Cut')]
  await world.minute()
  assert.deepEqual(world.plugin.healthAsked, [], 'not attached: the storage may know nothing of it here')
  world.plugin.answers.set(
    'mountDevice',
    Array.from({ length: 50 }, () => 'none' as const),
  )
  await world.attach()
  await world.clock.advance(1_000)
  assert.deepEqual((await world.minute())?.[0]?.healthConditions, [{ status: 'Degraded', reason: 'Cut' }])
  assert.equal(world.plugin.healthAsked.at(0), ' ')
  await world.agent.stop()
})

test('what was told before a restart of the agent stays, until the storage says otherwise', async () => {
  const world = await worldWithPod()
  await world.attach()
  await world.clock.advance(1_000)
  world.plugin.health = [ill('Slow')]
  const before = await world.minute()
  world.crash()
  world.plugin.health = 'fails'
  const { agent } = await world.start()
  await world.clock.advance(5_000)
  assert.deepEqual(await world.minute(), before)
  await agent.stop()
})
