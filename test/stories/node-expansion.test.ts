// How does a volume get its size on the node? EXN-1 … EXN-10 seen from outside: what the driver is asked, what the claim's
// status says afterwards, which events users read, and whether the pod starts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolumeClaimStatus } from '../../src/api/generated/types.ts'
import type { Answer } from '../kit/device-plugin.ts'
import { createDiskWorld, disk } from '../kit/node-with-disk.ts'
import { nodeName, pod } from '../kit/node.ts'

const Gi = 1n << 30n
const pending: PersistentVolumeClaimStatus = {
  allocatedResources: { storage: '15Gi' },
  allocatedResourceStatuses: { storage: 'NodeResizePending' },
  conditions: [{ type: 'FileSystemResizePending', status: 'True' }],
}
const grown = { attachable: false, request: '15Gi', volume: { capacity: { storage: '15Gi' } } }
const many = (answer: Answer) => Array.from({ length: 12 }, () => answer)

/** A pod meets a volume of 15Gi whose claim still shows 10Gi. */
async function mountGrown(
  status: PersistentVolumeClaimStatus,
  options: { readonly answers?: Answer[]; readonly readOnly?: boolean; readonly ms?: number } = {},
) {
  const world = await createDiskWorld(grown)
  await world.setClaim(status)
  const { agent } = await world.start()
  world.plugin.answers.set('expand', options.answers ?? [])
  const source = { claimName: 'c', ...(options.readOnly ? { readOnly: true } : {}) }
  await world.create(pod('p', [{ name: 'v', persistentVolumeClaim: source }]))
  await world.clock.advance(options.ms ?? 5_000)
  const { status: after } = await world.claimNow()
  const { asked } = world.plugin
  const seen = { asked, phase: await world.phase('p'), after, events: await world.events(), agent, world }
  return seen
}
const succeeded = `Normal FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume "pv" ${nodeName}`
const readOnlyText =
  'Warning FileSystemResizeFailed: MountVolume.NodeExpandVolume failed for volume "pv" requested read-only file system'

test('a pending expansion is finished by the mount, once, and told on pod and claim (EXN-2, EXN-4, EXN-7, EXN-9, EVT-7)', async () => {
  const { asked, phase, after, events, agent } = await mountGrown(pending)
  assert.deepEqual([asked, phase], [[15n * Gi], 'Running'])
  assert.deepEqual(
    [after?.capacity, after?.allocatedResourceStatuses?.['storage'], after?.conditions],
    [{ storage: '15Gi' }, undefined, undefined],
  )
  assert.deepEqual(events.filter((text) => text.includes('Resize')).sort(), [succeeded, succeeded])
  assert.equal(agent.actual.get(disk)?.sizeBytes, 15n * Gi, 'no second look asks the driver again (WA-33)')
  await agent.stop()
})

test('with the marks of a recovering resizer the allocated size counts, not the volume’s (EXN-4)', async () => {
  const { asked, agent } = await mountGrown({ ...pending, allocatedResources: { storage: '14Gi' } })
  assert.equal(asked[0], 14n * Gi)
  await agent.stop()
})

test('a resizer that has not handed over to the node: the driver is not asked, and the mount is not held up (EXN-5)', async () => {
  const notYet: PersistentVolumeClaimStatus = {
    ...pending,
    allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
  }
  const { asked, phase, after, agent } = await mountGrown(notYet)
  assert.deepEqual([asked, phase, after?.capacity], [[], 'Running', { storage: '10Gi' }])
  await agent.stop()
})

test('a pod that only reads is warned, with its claim, and starts (EXN-2)', async () => {
  const { asked, phase, events, agent } = await mountGrown(pending, { readOnly: true })
  assert.deepEqual([asked, phase], [[], 'Running'])
  assert.deepEqual(
    events.filter((text) => text.includes('Resize')),
    [readOnlyText, readOnlyText],
  )
  await agent.stop()
})

test('a claim that cannot be read blocks the mount, in these words (EXN-2)', async () => {
  const world = await createDiskWorld(grown)
  const { agent } = await world.start()
  const ref = { namespace: 'default', name: 'c' }
  const body = { metadata: { finalizers: null } }
  world.plugin.meanwhile.set('mount', async () => {
    await world.client.patch('PersistentVolumeClaim', ref, { type: 'merge', body })
    await world.client.remove('PersistentVolumeClaim', ref)
    world.plugin.meanwhile.clear()
  })
  await world.create(pod('p', world.volumes))
  await world.clock.advance(5_000)
  const text =
    'Warning FailedMount: MountVolume.Setup failed while expanding volume for volume "pv" : ' +
    'mountVolume.NodeExpandVolume get PVC failed : persistentvolumeclaims "c" not found'
  const events = await world.events()
  assert.ok(events.includes(text), events.join('\n'))
  assert.equal(await world.phase('p'), 'Pending')
  await agent.stop()
})

test('a final error is a condition and blocks the mount; the status stays in progress (EXN-8)', async () => {
  const { phase, after, events, agent } = await mountGrown(pending, { answers: many('none') })
  assert.equal(phase, 'Pending')
  assert.equal(after?.allocatedResourceStatuses?.['storage'], 'NodeResizeInProgress')
  const condition = after?.conditions?.find(({ type }) => type === 'NodeResizeError')
  assert.deepEqual(
    [condition?.status, condition?.message],
    ['True', 'failed to expand pvc with expand was told to fail'],
  )
  assert.ok(condition?.lastTransitionTime)
  const text =
    'Warning FailedMount: MountVolume.Setup failed while expanding volume for volume "pv" : expand was told to fail'
  assert.ok(events.includes(text), events.join('\n'))
  assert.equal(agent.actual.get(disk)?.expansion.failedFinally, true)
  await agent.stop()
})

test('an uncertain error says nothing in the claim (EXN-8)', async () => {
  const { phase, after, agent } = await mountGrown(pending, { answers: many('unknown') })
  assert.deepEqual(
    [phase, after?.allocatedResourceStatuses?.['storage'], after?.conditions?.map(({ type }) => type)],
    ['Pending', 'NodeResizeInProgress', ['FileSystemResizePending']],
  )
  await agent.stop()
})

test('an infeasible size is handed back; the next mount is not held up by it (EXN-8)', async () => {
  const { asked, phase, after, agent } = await mountGrown(pending, { answers: many('infeasible') })
  assert.deepEqual([asked.length, phase], [1, 'Running'])
  assert.equal(after?.allocatedResourceStatuses?.['storage'], 'NodeResizeInfeasible')
  await agent.stop()
})

test('refused while in use: the mount goes on, and this node does not ask again (EXN-8)', async () => {
  const { asked, phase, agent, world } = await mountGrown(pending, { answers: many('failedPrecondition') })
  assert.deepEqual([asked.length, phase], [1, 'Running'])
  await world.clock.advance(300_000)
  assert.deepEqual([asked.length, agent.actual.get(disk)?.expansion.refusedInUse], [1, true])
  await agent.stop()
})

test('the user changed the wish after a final failure: the next failure is recorded as infeasible (EXN-6)', async () => {
  // The user asks for 10Gi (again); the node was told 15Gi.
  const world = await createDiskWorld({ ...grown, request: '10Gi' })
  await world.setClaim(pending)
  const { agent } = await world.start()
  world.plugin.answers.set('expand', many('none'))
  await world.create(pod('p', world.volumes))
  const status = async () => (await world.claimNow()).status?.allocatedResourceStatuses?.['storage']
  await world.clock.advance(300)
  assert.deepEqual([world.plugin.asked.length, await status()], [1, 'NodeResizeInProgress'])
  await world.clock.advance(10_000)
  assert.deepEqual([world.plugin.asked.length, await status()], [2, 'NodeResizeInfeasible'])
  await agent.stop()
})

const legacy: readonly [string, Answer, string, string | undefined, number][] = [
  ['grows and is written', 'ok', 'Running', '15Gi', 1],
  ['not supported counts as done', 'notSupported', 'Running', '10Gi', 1],
  ['refused in use does not block', 'failedPrecondition', 'Running', '10Gi', 1],
]
for (const [name, told, phase, size, calls] of legacy) {
  test(`without marks the old way: ${name} (EXN-10, EXN-4)`, async () => {
    const seen = await mountGrown({}, { answers: many(told), ms: 60_000 })
    assert.deepEqual([seen.phase, seen.after?.capacity?.['storage'], seen.asked.length], [phase, size, calls])
    assert.equal(seen.events.filter((text) => text === succeeded).length, told === 'ok' ? 2 : 0)
    await seen.agent.stop()
  })
}

test('the old way, another error blocks the mount (EXN-10)', async () => {
  const seen = await mountGrown({}, { answers: many('none') })
  assert.deepEqual([seen.phase, seen.after?.capacity?.['storage']], ['Pending', '10Gi'])
  await seen.agent.stop()
})

test('a volume without a claim, or without a plugin that grows it, is not asked for (EXN-1)', async () => {
  const world = await createDiskWorld({ attachable: false })
  const { agent } = await world.start()
  await world.create(pod('p', [{ name: 'v', fc: { wwids: ['other'] } }]))
  await world.clock.advance(2_000)
  assert.deepEqual([await world.phase('p'), world.plugin.asked], ['Running', []])
  await agent.stop()
})

test('in use, a failure is told on the pod as VolumeResizeFailed and tried again with back-off (EXN-3, INV-11, EVT-8)', async () => {
  const world = await createDiskWorld({ attachable: false, request: '15Gi' })
  const { agent } = await world.start()
  await world.create(pod('p', world.volumes))
  await world.clock.advance(1_000)
  world.plugin.answers.set('expand', many('none'))
  await world.grow()
  await world.setClaim(pending)
  await world.clock.advance(4_000)
  const text =
    'Warning VolumeResizeFailed: NodeExpandVolume.NodeExpandVolume failed for volume "pv" : expand was told to fail'
  assert.ok((await world.events()).includes(text), (await world.events()).join('\n'))
  // At 0, .5, 1.5 and 3.5 s, and not more often (BO-2).
  assert.equal(world.plugin.asked.length, 4)
  assert.equal(await world.phase('p'), 'Running')
  await agent.stop()
})

test('of two pods the one that may write grows the volume; the reader is not warned (EXN-3)', async () => {
  const world = await createDiskWorld({ attachable: false })
  const { agent } = await world.start()
  await world.create(pod('reader', [{ name: 'v', persistentVolumeClaim: { claimName: 'c', readOnly: true } }]))
  await world.clock.advance(1_000)
  await world.create(pod('writer', world.volumes))
  await world.clock.advance(1_000)
  const before = (await world.events()).filter((text) => text === readOnlyText).length
  await world.grow()
  await world.setClaim(pending)
  await world.clock.advance(2_000)
  assert.deepEqual(world.plugin.asked, [15n * Gi])
  assert.equal((await world.claimNow()).status?.capacity?.['storage'], '15Gi')
  assert.equal((await world.events()).filter((text) => text === readOnlyText).length, before)
  await agent.stop()
})
