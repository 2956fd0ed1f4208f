// Do a volume's attributes follow its claim's class? ControllerModifyVolume on virtual time, with every way in which the
// driver can answer it, a restart in between, and classes that come late (SIDE-39, MOD-1 … MOD-4).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertHealthy, assertWhy } from '../kit/assert-why.ts'
import { createCsiWorld, eventually, furnish, modelClaim } from '../kit/csi-cluster.ts'
import type { CsiWorld } from '../kit/csi-cluster.ts'

const ref = { namespace: 'default', name: 'c' }
const claimOf = ({ client }: CsiWorld) => client.get('PersistentVolumeClaim', ref)
const statusOf = async (world: CsiWorld) => (await claimOf(world)).status

async function makeClass({ client }: CsiWorld, name: string, parameters: Record<string, string>, driverName?: string) {
  await client.create('VolumeAttributesClass', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttributesClass',
    metadata: { name },
    driverName: driverName ?? 'model.hawser.dev',
    parameters,
  })
}

const want = ({ client }: CsiWorld, name: string | null) =>
  client.patch('PersistentVolumeClaim', ref, {
    type: 'merge',
    body: { spec: { volumeAttributesClassName: name } },
  })

async function boundClaim(volumeAttributesClassName?: string) {
  const world = await createCsiWorld({ model: { modifies: ['tier'] } })
  await furnish(world)
  await makeClass(world, 'silver', { tier: 'silver' })
  await makeClass(world, 'gold', { tier: 'gold' })
  await makeClass(world, 'odd', { colour: 'blue' })
  const life = world.start()
  const made = modelClaim('c')
  const spec = { ...made.spec, ...(volumeAttributesClassName && { volumeAttributesClassName }) }
  await world.client.create('PersistentVolumeClaim', { ...made, spec })
  await eventually(world, 'bound', async () => (await statusOf(world))?.phase === 'Bound')
  const volumeName = (await claimOf(world)).spec?.volumeName ?? ''
  const handle = (await world.client.get('PersistentVolume', { name: volumeName })).spec?.csi?.volumeHandle ?? ''
  const tier = () => world.storage.attributes.get(handle)?.['tier']
  return { world, life, volumeName, tier }
}

const modifies = ({ calls }: CsiWorld) => calls.filter((rpc) => rpc === 'ControllerModifyVolume').length
const current = async (world: CsiWorld) => (await statusOf(world))?.currentVolumeAttributesClassName
const under = async (world: CsiWorld) => (await statusOf(world))?.modifyVolumeStatus

test('a claim born with a class has its attributes from the first call (SIDE-8)', async () => {
  const { world, life, volumeName, tier } = await boundClaim('silver')
  assert.equal(tier(), 'silver')
  assert.equal(
    (await world.client.get('PersistentVolume', { name: volumeName })).spec?.volumeAttributesClassName,
    'silver',
  )
  await world.clock.advance(60_000)
  assert.equal(modifies(world), 0, 'nothing is left to modify')
  await life.stop()
})

test('the volume, its object and the claim follow, and the story is told (MOD-2)', async () => {
  const { world, life, volumeName, tier } = await boundClaim('silver')
  await want(world, 'gold')
  await eventually(world, 'gold', async () => (await current(world)) === 'gold')
  assert.equal(tier(), 'gold')
  assert.equal(
    (await world.client.get('PersistentVolume', { name: volumeName })).spec?.volumeAttributesClassName,
    'gold',
  )
  const status = await statusOf(world)
  assert.equal(status?.modifyVolumeStatus, undefined)
  assert.deepEqual(status?.conditions ?? [], [])
  await world.clock.advance(5_000)
  await assertHealthy(world, 'pvc/c')
  const events = (await world.events()).filter((text) => text.includes('VolumeModify'))
  assert.deepEqual(events.toSorted(), [
    'Normal VolumeModify: external resizer is modifying volume c with vac gold',
    'Normal VolumeModifySuccessful: external resizer modified volume c with vac gold successfully',
  ])
  await life.stop()
})

test('a class that is missing is waited for (MOD-1); another driver’s is infeasible, and the driver is not asked (E4)', async () => {
  const { world, life, tier } = await boundClaim('silver')
  await makeClass(world, 'foreign', { tier: 'x' }, 'other.example')
  for (const [name, text, cause, status] of [
    ['later', 'VAC "later" does not exist.', 'attributesClassMissing', 'Pending'],
    ['foreign', 'VAC "foreign" is for driver other.example.', 'attributesClassForeign', 'Infeasible'],
  ] as const) {
    await want(world, name)
    await eventually(world, 'pending', async () => (await under(world))?.targetVolumeAttributesClassName === name)
    assert.deepEqual(await under(world), { targetVolumeAttributesClassName: name, status })
    await world.clock.advance(5_000)
    assert.ok((await world.events()).includes(`Warning VolumeModifyFailed: ${text}`))
    await assertWhy(world, 'pvc/c', cause)
  }
  assert.equal(modifies(world), 0)
  const told = (await statusOf(world))?.conditions?.find(({ type }) => type === 'ModifyVolumeError')
  assert.equal(told?.message, 'failed to modify volume with VAC "foreign" is for driver other.example.')
  await want(world, 'later')
  await makeClass(world, 'later', { tier: 'bronze' })
  await eventually(world, 'modified', async () => (await current(world)) === 'later')
  assert.equal(tier(), 'bronze')
  await life.stop()
})

test('attributes the driver refuses are infeasible, tried slowly, and may be given up for others at once (MOD-3)', async () => {
  const { world, life, tier } = await boundClaim('silver')
  await want(world, 'odd')
  await eventually(world, 'refused', async () => (await under(world))?.status === 'Infeasible')
  const tries = modifies(world)
  await world.clock.advance(250_000)
  assert.equal(modifies(world), tries, 'not again within five minutes')
  const { blocked } = await assertWhy(world, 'pvc/c', 'badParameters')
  assert.match(blocked?.error?.message ?? '', /^unknown/)
  assert.ok(blocked?.nextTry, 'the slow next try is named')
  const condition = (await statusOf(world))?.conditions?.find(({ type }) => type === 'ModifyVolumeError')
  assert.match(
    condition?.message ?? '',
    /failed to modify volume with rpc error: code = InvalidArgument desc = unknown/,
  )
  assert.equal(await current(world), 'silver')
  await want(world, 'gold')
  await eventually(world, 'gold', async () => (await current(world)) === 'gold')
  assert.equal(tier(), 'gold')
  assert.deepEqual((await statusOf(world))?.conditions ?? [], [])
  await life.stop()
})

for (const [status, cause] of [
  ['DEADLINE_EXCEEDED', 'driverTimeout'],
  ['ABORTED', 'driverBusy'],
  ['UNAVAILABLE', 'driverSaysUnavailable'],
] as const) {
  test(`after ${status} the old target is finished first, whatever the claim wants, even by a new process (MOD-3)`, async () => {
    const { world, life } = await boundClaim('silver')
    world.setFaults((rpc) => (rpc === 'ControllerModifyVolume' ? { kind: 'refused', status } : undefined))
    await want(world, 'gold')
    await eventually(world, 'tried', async () => modifies(world) > 1)
    await want(world, 'odd')
    await world.clock.advance(60_000)
    assert.deepEqual(await under(world), { targetVolumeAttributesClassName: 'gold', status: 'InProgress' })
    await assertWhy(world, 'pvc/c', cause)
    await life.stop()
    world.setFaults(() => undefined)
    const next = world.start()
    await eventually(world, 'gold first', async () => (await current(world)) === 'gold')
    await eventually(world, 'then the other', async () => (await under(world))?.status === 'Infeasible')
    await next.stop()
  })
}

test('after a final answer the claim may choose anew (MOD-3)', async () => {
  const { world, life, tier } = await boundClaim('silver')
  world.setFaults((rpc) => (rpc === 'ControllerModifyVolume' ? { kind: 'refused', status: 'INTERNAL' } : undefined))
  await want(world, 'gold')
  await eventually(world, 'tried', async () =>
    ((await statusOf(world))?.conditions ?? []).some(({ type }) => type === 'ModifyVolumeError'),
  )
  await world.clock.advance(500)
  await assertWhy(world, 'pvc/c', 'driverError')
  world.setFaults(() => undefined)
  await makeClass(world, 'bronze', { tier: 'bronze' })
  await want(world, 'bronze')
  await eventually(world, 'bronze', async () => (await current(world)) === 'bronze')
  assert.equal(tier(), 'bronze')
  await life.stop()
})

test('a claim that wants no class any more is left as it is, and that is said (MOD-4)', async () => {
  const { world, life } = await boundClaim()
  await life.stop()
  const claim = await claimOf(world)
  const modifyVolumeStatus = { targetVolumeAttributesClassName: 'gold', status: 'Pending' as const }
  const conditions = [{ type: 'ModifyingVolume', status: 'True' as const }]
  const status = { ...claim.status, modifyVolumeStatus, conditions }
  await world.client.update('PersistentVolumeClaim', { ...claim, status }, { subresource: 'status' })
  const next = world.start()
  await eventually(world, 'condition gone', async () => ((await statusOf(world))?.conditions ?? []).length === 0)
  await world.clock.advance(5_000)
  assert.ok((await world.events()).some((text) => text.startsWith('Normal VolumeModifyCanceled')))
  assert.equal(modifies(world), 0)
  await next.stop()
})
