// When does a node refuse a pod for its volumes? VM-5, TA-60: the storage attaches no more volumes here, and no wait helps.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDiskWorld } from '../kit/node-with-disk.ts'
import { pod } from '../kit/node.ts'

test('a node that can attach no more rejects the pod when its wait ends, and lets its volumes go (VM-5, TA-60)', async () => {
  const world = await createDiskWorld()
  const { agent } = await world.start()
  await world.clock.advance(100)
  world.plugin.exhausted = true
  await world.create(pod('p', world.volumes))
  await world.clock.advance(120_000)
  assert.equal(await world.phase('p'), 'Pending')
  await world.clock.advance(10_000)
  const text =
    'Node has reached its volume attachment limit, rejecting pod. ' +
    'unmounted volumes=[v], unattached volumes=[v], failed to process volumes=[]: context deadline exceeded'
  const { status } = await world.client.get('Pod', { namespace: 'default', name: 'p' })
  assert.deepEqual(
    [status?.phase, status?.reason, status?.message],
    ['Failed', 'VolumeAttachmentLimitExceeded', `Pod was rejected: ${text}`],
  )
  const warnings = (await world.events()).filter((each) => each.startsWith('Warning'))
  assert.deepEqual(warnings, [`Warning VolumeAttachmentLimitExceeded: ${text}`])
  assert.deepEqual([agent.desired.size, await world.inUse()], [0, []])
  await agent.stop()
})

test('a volume that is merely not attached yet rejects nobody (VM-5)', async () => {
  const world = await createDiskWorld()
  const { agent } = await world.start()
  await world.clock.advance(100)
  await world.create(pod('p', world.volumes))
  await world.clock.advance(130_000)
  await world.attach()
  await world.clock.advance(2_000)
  assert.equal(await world.phase('p'), 'Running')
  await agent.stop()
})
