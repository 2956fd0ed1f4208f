// Does `why` name the right cause when a driver really fails? The real server, controllers and CSI jobs on virtual time; the
// driver answers each call with each status, and what `explain` makes of the API afterwards is compared with what was injected.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cause } from '../../src/why/causes.ts'
import { explain } from '../../src/why/explain.ts'
import type { Explanation } from '../../src/why/explain.ts'
import type { WhySubject } from '../../src/why/facts.ts'
import { gatherFacts } from '../../src/why/gather.ts'
import type { StatusName } from '../../src/csi/codes.ts'
import type { Fault } from '../../src/csi/faults.ts'
import { createCsiWorld, furnish, modelClaim } from '../kit/csi-cluster.ts'
import type { CsiWorld } from '../kit/csi-cluster.ts'

const ofClaim: WhySubject = { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'c' }
const ofAttachment: WhySubject = { kind: 'VolumeAttachment', name: 'va' }

const expected: readonly (readonly [StatusName, Cause])[] = [
  ['UNAVAILABLE', 'driverSaysUnavailable'],
  ['DEADLINE_EXCEEDED', 'driverTimeout'],
  ['ABORTED', 'driverBusy'],
  ['RESOURCE_EXHAUSTED', 'outOfCapacity'],
  ['INVALID_ARGUMENT', 'badParameters'],
  ['OUT_OF_RANGE', 'outOfRange'],
  ['ALREADY_EXISTS', 'alreadyExists'],
  ['PERMISSION_DENIED', 'driverForbids'],
  ['UNAUTHENTICATED', 'driverForbids'],
  ['FAILED_PRECONDITION', 'preconditionFailed'],
  ['UNIMPLEMENTED', 'notSupported'],
  ['INTERNAL', 'driverError'],
  ['UNKNOWN', 'driverError'],
]

async function why({ client, clock }: CsiWorld, subject: WhySubject): Promise<Explanation> {
  return explain(await gatherFacts(client, subject, clock.now()))
}

/** A world in which one call always goes wrong, with the objects that the call needs. */
async function withFault(rpc: string, fault: Fault, run: (world: CsiWorld) => Promise<void>): Promise<void> {
  const world = await createCsiWorld({ faults: (name) => (name === rpc ? fault : undefined) })
  await furnish(world)
  const life = world.start()
  try {
    await world.client.create('PersistentVolumeClaim', modelClaim('c'))
    await world.clock.advance(20_000)
    await run(world)
  } finally {
    await life.stop()
  }
}

async function attach(world: CsiWorld): Promise<void> {
  const claim = await world.client.get('PersistentVolumeClaim', { namespace: 'default', name: 'c' })
  await world.client.create('VolumeAttachment', {
    metadata: { name: 'va' },
    spec: {
      attacher: 'model.hawser.dev',
      nodeName: 'n1',
      source: { persistentVolumeName: claim.spec?.volumeName ?? '' },
    },
  })
  await world.clock.advance(20_000)
}

for (const [status, cause] of expected) {
  test(`CreateVolume answers ${status}: ${cause}`, () =>
    withFault('CreateVolume', { kind: 'refused', status }, async (world) => {
      const { verdict, blocked } = await why(world, ofClaim)
      assert.deepEqual([verdict, blocked?.cause, blocked?.error?.code], ['waiting', cause, status])
      assert.equal(blocked?.error?.message, 'injected: the call was refused')
      assert.equal(blocked?.actor, 'csi model.hawser.dev')
      assert.ok(
        blocked?.nextTry !== undefined && Date.parse(blocked.nextTry) > world.clock.now(),
        'the next try is named',
      )
    }))

  test(`ControllerPublishVolume answers ${status}: ${cause}`, () =>
    withFault('ControllerPublishVolume', { kind: 'refused', status }, async (world) => {
      await attach(world)
      const { blocked } = await why(world, ofAttachment)
      const told = cause === 'outOfCapacity' ? 'attachLimit' : cause
      assert.deepEqual(
        [blocked?.cause, blocked?.error?.code, blocked?.step.inside],
        [told, status, 'ControllerPublishVolume'],
      )
    }))
}

test('ControllerUnpublishVolume fails: the attachment says so while it is being deleted', () =>
  withFault('ControllerUnpublishVolume', { kind: 'refused', status: 'INTERNAL' }, async (world) => {
    await attach(world)
    await world.client.remove('VolumeAttachment', { name: 'va' })
    await world.clock.advance(20_000)
    const { blocked } = await why(world, ofAttachment)
    assert.deepEqual([blocked?.cause, blocked?.step.inside], ['driverError', 'ControllerUnpublishVolume'])
  }))

test('DeleteVolume fails: the released volume says so', () =>
  withFault('DeleteVolume', { kind: 'refused', status: 'UNAVAILABLE' }, async (world) => {
    const claim = await world.client.get('PersistentVolumeClaim', { namespace: 'default', name: 'c' })
    await world.client.remove('PersistentVolumeClaim', { namespace: 'default', name: 'c' })
    await world.clock.advance(20_000)
    const { blocked } = await why(world, { kind: 'PersistentVolume', name: claim.spec?.volumeName ?? '' })
    assert.deepEqual([blocked?.cause, blocked?.error?.code], ['driverSaysUnavailable', 'UNAVAILABLE'])
  }))

test('ControllerExpandVolume fails: the claim says so', () =>
  withFault('ControllerExpandVolume', { kind: 'refused', status: 'OUT_OF_RANGE' }, async (world) => {
    const body = { spec: { resources: { requests: { storage: '2Gi' } } } }
    await world.client.patch('PersistentVolumeClaim', { namespace: 'default', name: 'c' }, { type: 'merge', body })
    await world.clock.advance(20_000)
    const { blocked } = await why(world, ofClaim)
    assert.deepEqual([blocked?.cause, blocked?.error?.code], ['outOfRange', 'OUT_OF_RANGE'])
  }))

test('a claim is deleted while its volume may be half made: it waits for the driver, and says so', () =>
  withFault('CreateVolume', { kind: 'answerLost', status: 'DEADLINE_EXCEEDED' }, async (world) => {
    await world.client.remove('PersistentVolumeClaim', { namespace: 'default', name: 'c' })
    await world.clock.advance(5_000)
    const { blocked } = await why(world, ofClaim)
    assert.deepEqual([blocked?.cause, blocked?.step.name], ['driverTimeout', 'it is deleted'])
  }))

test('a driver that never answers is waited for, and then said to be too slow', async () => {
  const world = await createCsiWorld({ faults: (name) => (name === 'CreateVolume' ? { kind: 'silent' } : undefined) })
  await furnish(world)
  const life = world.start()
  await world.client.create('PersistentVolumeClaim', modelClaim('c'))
  await world.clock.advance(5_000)
  const early = await why(world, ofClaim)
  assert.deepEqual([early.verdict, early.blocked?.cause], ['working', 'provisioning'])
  await world.clock.advance(120_000)
  const late = await why(world, ofClaim)
  assert.deepEqual([late.verdict, late.blocked?.cause], ['waiting', 'driverTimeout'])
  await life.stop()
})

test('once the driver is well again nothing is wrong, and the history tells what was done', () =>
  withFault('CreateVolume', { kind: 'refused', status: 'UNAVAILABLE' }, async (world) => {
    world.setFaults(() => undefined)
    await world.clock.advance(120_000)
    const { verdict, blocked, history } = await why(world, ofClaim)
    assert.deepEqual([verdict, blocked], ['healthy', undefined])
    assert.deepEqual(history.map(({ operation, phase }) => [operation, phase]).toSorted(), [
      ['bind', 'Succeeded'],
      ['provision', 'Succeeded'],
    ])
  }))

test('what waits without any failure: classes, drivers and pods that are not there', async () => {
  const world = await createCsiWorld()
  await furnish(world, { waits: true })
  const life = world.start()
  const wish = (name: string, storageClassName: string) => ({
    metadata: { name, namespace: 'default' },
    spec: { ...modelClaim(name).spec, storageClassName },
  })
  await world.client.create('StorageClass', { metadata: { name: 'absent' }, provisioner: 'absent.example.com' })
  await world.client.create('PersistentVolumeClaim', wish('delayed', 'model'))
  await world.client.create('PersistentVolumeClaim', wish('unmade', 'nowhere'))
  await world.client.create('PersistentVolumeClaim', wish('driverless', 'absent'))
  await world.client.create('PersistentVolumeClaim', wish('static', ''))
  await world.clock.advance(5_000)
  const causes = await Promise.all(
    ['delayed', 'unmade', 'driverless', 'static'].map(async (name) => {
      const { blocked } = await why(world, { ...ofClaim, name })
      return [name, blocked?.cause]
    }),
  )
  assert.deepEqual(Object.fromEntries(causes), {
    delayed: 'firstConsumer',
    unmade: 'classMissing',
    driverless: 'provisionerAbsent',
    static: 'noVolumeFits',
  })
  await life.stop()
})
