// What happens when a driver answers late, twice, never, or with any status? Each call of a volume's life, with each
// status, before and after the driver did its work: no leak, no double attach, and a claim that ends up right.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isNotFound } from '../../src/api/status-error.ts'
import { statusCodes } from '../../src/csi/codes.ts'
import type { StatusName } from '../../src/csi/codes.ts'
import type { Fault } from '../../src/csi/faults.ts'
import { assertWhy } from '../kit/assert-why.ts'
import { createCsiWorld, furnish, modelClaim } from '../kit/csi-cluster.ts'
import type { CsiWorld } from '../kit/csi-cluster.ts'

const claimRef = { namespace: 'default', name: 'c' }
const statuses = Object.keys(statusCodes) as StatusName[]

/** Moves time on until the condition holds; virtual minutes cost nothing. */
async function eventually(world: CsiWorld, what: string, holds: () => Promise<boolean>, minutes = 30): Promise<void> {
  for (let second = 0; second < minutes * 12; second++) {
    if (await holds()) return
    await world.clock.advance(5_000)
  }
  assert.fail(`${what} did not happen; events: ${(await world.events()).join(' | ')}; calls: ${world.calls.join(' ')}`)
}

const absent = (get: Promise<unknown>) =>
  get.then(
    () => false,
    (error: unknown) => isNotFound(error) || Promise.reject(error as Error),
  )

/** A claim is made, bound, attached, detached, grown and deleted; at the end the storage is empty. */
async function liveOnce(world: CsiWorld): Promise<void> {
  const { client } = world
  await furnish(world)
  const life = world.start()
  await client.create('PersistentVolumeClaim', modelClaim('c'))
  await eventually(
    world,
    'bound',
    async () => (await client.get('PersistentVolumeClaim', claimRef)).status?.phase === 'Bound',
  )
  const volumeName = (await client.get('PersistentVolumeClaim', claimRef)).spec?.volumeName ?? ''
  const attachment = { name: 'va' }
  await client.create('VolumeAttachment', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: attachment,
    spec: { attacher: 'model.hawser.dev', nodeName: 'n1', source: { persistentVolumeName: volumeName } },
  })
  await eventually(
    world,
    'attached',
    async () => (await client.get('VolumeAttachment', attachment)).status?.attached === true,
  )
  assert.deepEqual(attachmentsOf(world), ['node-id'], 'attached once, to the right node')
  await client.remove('VolumeAttachment', attachment)
  await eventually(world, 'detached', () => absent(client.get('VolumeAttachment', attachment)))
  assert.deepEqual(attachmentsOf(world), [])
  const grow = { type: 'merge' as const, body: { spec: { resources: { requests: { storage: '2Gi' } } } } }
  await client.patch('PersistentVolumeClaim', claimRef, grow)
  await eventually(world, 'grown at the controller', async () => {
    const volume = await client.get('PersistentVolume', { name: volumeName })
    return volume.spec?.capacity?.['storage'] === '2Gi'
  })
  await client.remove('PersistentVolumeClaim', claimRef)
  await eventually(world, 'volume gone', () => absent(client.get('PersistentVolume', { name: volumeName })))
  await life.stop()
  assert.deepEqual([...world.storage.allocated], [], 'no storage is left')
  assert.deepEqual([...world.storage.records.volumeMap.keys()], [], 'no record is left')
}

const attachmentsOf = (world: CsiWorld) =>
  [...world.storage.records.volumeMap.values()].flatMap(({ attachments }) => Object.keys(attachments))

const calls = [
  'CreateVolume',
  'ControllerPublishVolume',
  'ControllerUnpublishVolume',
  'ControllerExpandVolume',
  'DeleteVolume',
]

for (const rpc of calls) {
  test(`${rpc} failing twice with any status, before or after its work, leaks nothing (SIDE-16, SIDE-28, SIDE-64)`, async () => {
    for (const status of statuses) {
      for (const kind of ['refused', 'answerLost'] as const) {
        const fault: Fault = { kind, status }
        const world = await createCsiWorld({
          faults: (name, earlier) => (name === rpc && earlier < 2 ? fault : undefined),
        })
        await liveOnce(world).catch((error: unknown) => {
          throw new Error(`with ${kind} ${status}`, { cause: error })
        })
      }
    }
  })
}

test('every call answered late, twice or never once: the life goes on', async () => {
  const faults: Fault[] = [
    { kind: 'twice' },
    { kind: 'late', ms: 3_000 },
    { kind: 'late', ms: 60_000 },
    { kind: 'silent' },
  ]
  for (const fault of faults) {
    const world = await createCsiWorld({
      faults: (name, earlier) => (calls.includes(name) && earlier === 0 ? fault : undefined),
    })
    await liveOnce(world).catch((error: unknown) => {
      throw new Error(`with ${fault.kind}`, { cause: error })
    })
  }
})

test('a claim deleted while CreateVolume may be running: the call is repeated, the volume found and deleted (TP-38)', async () => {
  const world = await createCsiWorld({
    faults: (name, earlier) =>
      name === 'CreateVolume' && earlier < 3 ? { kind: 'answerLost', status: 'DEADLINE_EXCEEDED' } : undefined,
  })
  const { client } = world
  await furnish(world)
  const life = world.start()
  await client.create('PersistentVolumeClaim', modelClaim('c'))
  await eventually(world, 'first try', async () => world.calls.includes('CreateVolume'))
  await client.remove('PersistentVolumeClaim', claimRef)
  await eventually(world, 'claim gone', () => absent(client.get('PersistentVolumeClaim', claimRef)))
  await eventually(world, 'storage empty', async () => world.storage.allocated.size === 0)
  await life.stop()
  assert.ok(world.calls.includes('DeleteVolume'))
  assert.deepEqual((await client.list('PersistentVolume')).items, [])
})

test('a process that dies between CreateVolume and the volume’s object leaves nothing behind, even if the claim is deleted meanwhile (decision 8)', async () => {
  const world = await createCsiWorld()
  const { client } = world
  await furnish(world)
  // The first life ends while the driver works: its answer never arrives.
  world.setFaults((name) => (name === 'CreateVolume' ? { kind: 'silent' } : undefined))
  const first = world.start()
  await client.create('PersistentVolumeClaim', modelClaim('c'))
  await world.clock.advance(1_000)
  assert.equal(world.storage.allocated.size, 1, 'the driver made the volume')
  await first.stop()
  await client.remove('PersistentVolumeClaim', claimRef)
  assert.ok(await client.get('PersistentVolumeClaim', claimRef), 'the claim is held by our finalizer')
  await assertWhy(world, 'pvc/c', 'finalizersHold') // nobody is there to finish it
  world.setFaults(() => undefined)
  const second = world.start()
  await eventually(world, 'claim gone', () => absent(client.get('PersistentVolumeClaim', claimRef)))
  await eventually(world, 'storage empty', async () => world.storage.allocated.size === 0)
  await second.stop()
})

test('a publish that timed out is undone although attached was never true (TP-40)', async () => {
  const world = await createCsiWorld({
    faults: (name) => (name === 'ControllerPublishVolume' ? { kind: 'silent' } : undefined),
  })
  const { client } = world
  await furnish(world)
  const life = world.start()
  await client.create('PersistentVolumeClaim', modelClaim('c'))
  await eventually(
    world,
    'bound',
    async () => (await client.get('PersistentVolumeClaim', claimRef)).status?.phase === 'Bound',
  )
  const source = { persistentVolumeName: (await client.get('PersistentVolumeClaim', claimRef)).spec?.volumeName ?? '' }
  const object = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: { name: 'va' },
    spec: { attacher: 'model.hawser.dev', nodeName: 'n1', source },
  }
  await client.create('VolumeAttachment', object)
  await eventually(
    world,
    'attach error',
    async () => (await client.get('VolumeAttachment', { name: 'va' })).status?.attachError?.errorCode === 4,
  )
  assert.deepEqual(attachmentsOf(world), ['node-id'])
  await world.clock.advance(400)
  await assertWhy(world, 'va/va', 'driverTimeout')
  await client.remove('VolumeAttachment', { name: 'va' })
  await eventually(world, 'detached', () => absent(client.get('VolumeAttachment', { name: 'va' })))
  assert.deepEqual(attachmentsOf(world), [])
  await life.stop()
})

test('RESOURCE_EXHAUSTED with a selected node and topology takes the selection back; without them it is final (TP-39)', async () => {
  const world = await createCsiWorld({
    topologyKey: 'zone',
    faults: (name) => (name === 'CreateVolume' ? { kind: 'refused', status: 'RESOURCE_EXHAUSTED' } : undefined),
  })
  const { client } = world
  await furnish(world, { waits: true })
  const life = world.start()
  await client.create('PersistentVolumeClaim', modelClaim('c', { 'volume.kubernetes.io/selected-node': 'n1' }))
  await eventually(world, 'selection taken back', async () => {
    const claim = await client.get('PersistentVolumeClaim', claimRef)
    return claim.metadata.annotations?.['volume.kubernetes.io/selected-node'] === undefined
  })
  await assertWhy(world, 'pvc/c', 'outOfCapacity') // no pod is there for which a node could be chosen again
  await life.stop()
})

test('OUT_OF_RANGE is infeasible, and a later smaller request is honoured (TP-41)', async () => {
  const world = await createCsiWorld()
  const { client } = world
  await furnish(world)
  const life = world.start()
  await client.create('PersistentVolumeClaim', modelClaim('c'))
  await eventually(
    world,
    'bound',
    async () => (await client.get('PersistentVolumeClaim', claimRef)).status?.phase === 'Bound',
  )
  world.setFaults((name) =>
    name === 'ControllerExpandVolume' ? { kind: 'refused', status: 'OUT_OF_RANGE' } : undefined,
  )
  const ask = (storage: string) =>
    client.patch('PersistentVolumeClaim', claimRef, {
      type: 'merge',
      body: { spec: { resources: { requests: { storage } } } },
    })
  await ask('100Gi')
  await eventually(
    world,
    'infeasible',
    async () =>
      (await client.get('PersistentVolumeClaim', claimRef)).status?.allocatedResourceStatuses?.['storage'] ===
      'ControllerResizeInfeasible',
  )
  await world.clock.advance(400)
  await assertWhy(world, 'pvc/c', 'outOfRange')
  const tried = world.calls.filter((name) => name === 'ControllerExpandVolume').length
  await world.clock.advance(60_000)
  assert.equal(world.calls.filter((name) => name === 'ControllerExpandVolume').length, tried, 'retried slowly')
  world.setFaults(() => undefined)
  await ask('2Gi')
  await eventually(world, 'grown', async () => {
    const claim = await client.get('PersistentVolumeClaim', claimRef)
    return claim.status?.allocatedResourceStatuses?.['storage'] === 'NodeResizePending'
  })
  const volume = await client.get('PersistentVolume', {
    name: (await client.get('PersistentVolumeClaim', claimRef)).spec?.volumeName ?? '',
  })
  assert.equal(volume.spec?.capacity?.['storage'], '2Gi')
  await life.stop()
})
