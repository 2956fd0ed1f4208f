// The other half of dynamic claims: what provisioner, resizer and modifier do, seen from the API (XPR, XRS, MOD).
// The real server, controllers and CSI jobs on virtual time; the model driver answers, or does not.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isNotFound } from '../../src/api/status-error.ts'
import type { PersistentVolumeClaim } from '../../src/api/generated/types.ts'
import type { ChooseFault } from '../../src/csi/faults.ts'
import { modelDriverName } from '../../src/csi/model/driver.ts'
import { CsiError } from '../../src/csi/codes.ts'
import { ownershipFrom } from '../../src/csi/sidecars/ownership.ts'
import { createModifier } from '../../src/csi/sidecars/modifier.ts'
import { planTopology } from '../../src/csi/sidecars/topology.ts'
import { createVirtualCluster } from '../kit/virtual-cluster.ts'
import { claim, node, storageClass, volume } from '../kit/objects.ts'
import { createCsiWorld, furnish, modelClaim } from '../kit/csi-cluster.ts'
import type { WorldOptions } from '../kit/csi-cluster.ts'
import { assertWhy } from '../kit/assert-why.ts'

const ref = { namespace: 'default', name: 'c' }
const selectedKey = 'volume.kubernetes.io/selected-node'

async function open(options: WorldOptions & { readonly waits?: boolean } = {}) {
  const world = await createCsiWorld(options)
  await furnish(world, { ...(options.waits === undefined ? {} : { waits: options.waits }) })
  let life = world.start()
  await world.clock.advance(100)
  const claimNow = () => world.client.get('PersistentVolumeClaim', ref)
  const volumesNow = async () => (await world.client.list('PersistentVolume')).items
  return {
    ...world,
    claimNow,
    volumesNow,
    make: async (spec: Partial<PersistentVolumeClaim['spec']> = {}, annotations: Record<string, string> = {}) => {
      const wish = modelClaim('c', annotations)
      const made = await world.client.create('PersistentVolumeClaim', { ...wish, spec: { ...wish.spec, ...spec } })
      await world.clock.advance(2_000)
      return made
    },
    grow: async (storage: string) => {
      const body = { spec: { resources: { requests: { storage } } } }
      await world.client.patch('PersistentVolumeClaim', ref, { type: 'merge', body })
      await world.clock.advance(2_000)
    },
    restart: async () => {
      await life.stop()
      life = world.start()
      await world.clock.advance(2_000)
    },
    count: (rpc: string) => world.calls.filter((call) => call === rpc).length,
    reasons: async () => (await world.events()).map((line) => line.split(':')[0]),
    stop: () => life.stop(),
  }
}

const failing =
  (rpc: string, status: Parameters<typeof refused>[1], times = Infinity): ChooseFault =>
  (name, earlier) =>
    refused(name === rpc && earlier < times, status)
const refused = (
  when: boolean,
  status: 'INVALID_ARGUMENT' | 'UNAVAILABLE' | 'INTERNAL' | 'OUT_OF_RANGE' | 'FAILED_PRECONDITION',
) => (when ? ({ kind: 'refused', status } as const) : undefined)

test('the volume is named after the claim’s uid and says who made it, for whom, and how to delete it (XPR-1, XPR-2, XPR-3, XPR-5, XPR-6)', async () => {
  const world = await open()
  const { metadata } = await world.make()
  const [made] = await world.volumesNow()
  assert.equal(made?.metadata.name, `pvc-${metadata.uid}`)
  const { claimRef, storageClassName, persistentVolumeReclaimPolicy, accessModes, volumeMode, capacity, csi } =
    made!.spec
  assert.deepEqual(
    [claimRef?.uid, storageClassName, persistentVolumeReclaimPolicy, accessModes, volumeMode, capacity],
    [metadata.uid, 'model', 'Delete', ['ReadWriteOnce'], 'Filesystem', { storage: '1Gi' }],
  )
  assert.equal(csi?.driver, modelDriverName)
  assert.equal(made?.metadata.annotations?.['pv.kubernetes.io/provisioned-by'], modelDriverName)
  assert.equal(made?.metadata.annotations?.['pv.kubernetes.io/bound-by-controller'], undefined)
  assert.ok(made?.metadata.finalizers?.includes('external-provisioner.volume.kubernetes.io/finalizer'))
  const events = await world.events()
  assert.ok(events.includes('Normal Provisioning: External provisioner is provisioning volume for claim "default/c"'))
  assert.ok(events.includes(`Normal ProvisioningSucceeded: Successfully provisioned volume pvc-${metadata.uid}`))
  await world.stop()
})

test('a class that waits is provisioned only for a selected node (XPR-2)', async () => {
  const world = await open({ waits: true })
  await world.make()
  assert.equal(world.count('CreateVolume'), 0)
  await world.client.patch('PersistentVolumeClaim', ref, {
    type: 'merge',
    body: { metadata: { annotations: { [selectedKey]: 'n1' } } },
  })
  await world.clock.advance(2_000)
  assert.equal((await world.claimNow()).status?.phase, 'Bound')
  await world.stop()
})

test('the selected node’s topology is preferred; without one the nodes’ topologies are rotated by the claim’s name (XPR-13)', () => {
  const nodes = ['a', 'b', 'c'].map((zone) => node(`n-${zone}`, { zone }))
  const csiNodes = nodes.map(({ metadata: { name } }) => ({
    metadata: { name },
    spec: { drivers: [{ name: 'd', nodeID: name, topologyKeys: ['zone'] }] },
  }))
  const first = (claimName: string, selectedNode: string | undefined) => {
    const plan = planTopology({
      driver: 'd',
      claimName,
      storageClass: storageClass('x'),
      selectedNode,
      nodes,
      csiNodes,
      strict: false,
    })
    return plan.kind === 'required' ? plan.requirements.preferred[0]?.segments['zone'] : plan.kind
  }
  assert.equal(first('c', 'n-b'), 'b')
  assert.equal(new Set(['x-0', 'x-1', 'x-2'].map((name) => first(name, undefined))).size, 3)
})

test('a selector is refused; a foreign data source is left to its populator (XPR-4)', async () => {
  const picky = await open()
  await picky.make({ selector: { matchLabels: { a: 'b' } } })
  assert.match((await picky.events()).join('\n'), /Warning ProvisioningFailed: .*claim Selector is not supported/)
  assert.equal(picky.count('CreateVolume'), 0)
  await assertWhy(picky, 'pvc/c', 'selectorUnsupported')
  await picky.stop()
  const foreign = await open()
  await foreign.make({ dataSourceRef: { apiGroup: 'example.com', kind: 'Recipe', name: 'x' } })
  assert.equal(foreign.count('CreateVolume'), 0)
  await assertWhy(foreign, 'pvc/c', 'askedProvisioner')
  await foreign.stop()
})

test('an answer that may be under way is asked for again, from one second on; an infeasible one at the slow rate (XPR-7, XPR-9)', async () => {
  const world = await open({ faults: failing('CreateVolume', 'UNAVAILABLE', 2) })
  await world.make()
  assert.equal(world.count('CreateVolume'), 2)
  await assertWhy(world, 'pvc/c', 'driverSaysUnavailable')
  await world.clock.advance(3_000)
  assert.equal((await world.claimNow()).status?.phase, 'Bound')
  await world.stop()
  const hopeless = await open({ faults: failing('CreateVolume', 'INVALID_ARGUMENT') })
  await hopeless.make()
  await hopeless.clock.advance(120_000)
  assert.equal(hopeless.count('CreateVolume'), 1)
  await assertWhy(hopeless, 'pvc/c', 'badParameters')
  assert.match(
    (await hopeless.events()).join('\n'),
    /Volume provisioning failed with infeasible error. Retries will be delayed./,
  )
  await hopeless.clock.advance(300_000)
  assert.equal(hopeless.count('CreateVolume'), 2)
  await hopeless.stop()
})

test('deleted only when released, with policy Delete and no attachment; storage, object, finalizer (XPR-10, RCL-10)', async () => {
  const world = await open()
  await world.make()
  const [made] = await world.volumesNow()
  const spec = { attacher: 'other', nodeName: 'n1', source: { persistentVolumeName: made!.metadata.name } }
  await world.client.create('VolumeAttachment', { metadata: { name: 'va' }, spec })
  await world.client.remove('PersistentVolumeClaim', ref)
  await world.clock.advance(10_000)
  assert.equal(world.count('DeleteVolume'), 0)
  assert.match((await world.events()).join('\n'), /Warning VolumeFailedDelete: .*still attached to node n1/)
  await world.clock.advance(1_000) // the history writes behind the work
  await assertWhy(world, `pv/${made!.metadata.name}`, 'stillAttached')
  await world.client.remove('VolumeAttachment', { name: 'va' })
  await world.clock.advance(300_000)
  assert.equal(world.count('DeleteVolume'), 1)
  await assert.rejects(world.client.get('PersistentVolume', { name: made!.metadata.name }), isNotFound)
  await world.stop()
})

test('policy Retain takes the finalizer off, Delete puts it back while bound (XPR-11)', async () => {
  const world = await open()
  await world.make()
  const [made] = await world.volumesNow()
  const hasFinalizer = async (policy: string) => {
    await world.client.patch(
      'PersistentVolume',
      { name: made!.metadata.name },
      { type: 'merge', body: { spec: { persistentVolumeReclaimPolicy: policy } } },
    )
    await world.clock.advance(2_000)
    const now = await world.client.get('PersistentVolume', { name: made!.metadata.name })
    return now.metadata.finalizers?.includes('external-provisioner.volume.kubernetes.io/finalizer') ?? false
  }
  assert.deepEqual([await hasFinalizer('Retain'), await hasFinalizer('Delete')], [false, true])
  await world.stop()
})

test('the source of a clone is protected while the copy is made (XPR-12)', async () => {
  let blocked = true
  const world = await open({
    faults: (rpc, earlier) => refused(rpc === 'CreateVolume' && earlier > 0 && blocked, 'UNAVAILABLE'),
  })
  await world.make()
  const copy = modelClaim('copy')
  await world.client.create('PersistentVolumeClaim', {
    ...copy,
    spec: { ...copy.spec, dataSource: { kind: 'PersistentVolumeClaim', name: 'c' } },
  })
  await world.clock.advance(2_000)
  const guard = 'provisioner.storage.kubernetes.io/cloning-protection'
  assert.ok((await world.claimNow()).metadata.finalizers?.includes(guard))
  await assertWhy(world, 'pvc/copy', 'driverSaysUnavailable')
  blocked = false
  await world.clock.advance(60_000)
  assert.equal(
    (await world.client.get('PersistentVolumeClaim', { namespace: 'default', name: 'copy' })).status?.phase,
    'Bound',
  )
  assert.ok(!(await world.claimNow()).metadata.finalizers?.includes(guard))
  await world.stop()
})

test('a larger request: status, storage, volume, then the node is asked; or it is finished (XRS-1, XRS-2, XRS-4, XRS-5)', async () => {
  const world = await open()
  await world.make()
  await world.grow('2Gi')
  const { status } = await world.claimNow()
  const [grown] = await world.volumesNow()
  assert.deepEqual(grown?.spec.capacity, { storage: '2Gi' })
  assert.deepEqual(status?.allocatedResources, { storage: '2Gi' })
  const reasons = await world.reasons()
  assert.ok(reasons.includes('Normal Resizing'))
  assert.ok(reasons.includes('Normal FileSystemResizeRequired') || reasons.includes('Normal VolumeResizeSuccessful'))
  const pending = status?.conditions?.find(({ type }) => type === 'FileSystemResizePending')
  if (pending)
    assert.equal(
      pending.message,
      'Waiting for user to (re-)start a pod to finish file system resize of volume on node.',
    )
  await world.stop()
})

test('an infeasible size is told, kept slow, and a smaller wish is tried at once (XRS-6, EXP-7)', async () => {
  const world = await open({ faults: failing('ControllerExpandVolume', 'OUT_OF_RANGE', 1) })
  await world.make()
  await world.grow('9Gi')
  const { status } = await world.claimNow()
  assert.equal(status?.allocatedResourceStatuses?.['storage'], 'ControllerResizeInfeasible')
  await assertWhy(world, 'pvc/c', 'outOfRange')
  assert.match(
    status?.conditions?.find(({ type }) => type === 'ControllerResizeError')?.message ?? '',
    /^failed to expand pvc with /,
  )
  await world.clock.advance(60_000)
  assert.equal(world.count('ControllerExpandVolume'), 1)
  await world.grow('2Gi')
  assert.equal(world.count('ControllerExpandVolume'), 2)
  assert.deepEqual((await world.volumesNow())[0]?.spec.capacity, { storage: '2Gi' })
  await world.stop()
})

test('a driver that grows only unused volumes is asked again when the pod has gone (XRS-6)', async () => {
  const world = await open({ faults: failing('ControllerExpandVolume', 'FAILED_PRECONDITION', 1) })
  await world.make()
  const containers = [{ name: 'c', image: 'x', volumeMounts: [{ name: 'd', mountPath: '/d' }] }]
  const volumes = [{ name: 'd', persistentVolumeClaim: { claimName: 'c' } }]
  await world.client.create('Pod', {
    metadata: { name: 'p', namespace: 'default' },
    spec: { nodeName: 'n1', containers, volumes },
  })
  await world.grow('2Gi')
  await world.clock.advance(60_000)
  assert.equal(world.count('ControllerExpandVolume'), 1)
  await assertWhy(world, 'pvc/c', 'growsOnlyUnused')
  await world.client.remove('Pod', { namespace: 'default', name: 'p' }, { gracePeriodSeconds: 0 })
  await world.clock.advance(60_000)
  assert.equal(world.count('ControllerExpandVolume'), 2)
  await world.stop()
})

/** The modifier alone, with a driver that answers as told: the model driver has no attributes to modify. */
async function modifier(name: string, answers: (CsiError | undefined)[] = []) {
  const bench = await createVirtualCluster()
  const { server, clock } = bench
  const asked: unknown[] = []
  const modify = async ({ mutableParameters }: { mutableParameters: unknown }) => {
    asked.push(mutableParameters)
    const answer = answers.shift()
    if (answer !== undefined) throw answer
  }
  const owner = await server.create(
    'PersistentVolumeClaim',
    claim({ volumeName: 'v', spec: { volumeAttributesClassName: name } }),
  )
  const source = { csi: { driver: modelDriverName, volumeHandle: 'h' } }
  await server.create('PersistentVolume', volume({ claimRef: { name: 'c', uid: owner.metadata.uid! }, spec: source }))
  await server.update('PersistentVolumeClaim', { ...owner, status: { phase: 'Bound' } }, { subresource: 'status' })
  const attributes = { metadata: { name: 'fast' }, driverName: modelDriverName, parameters: { iops: '9' } }
  await server.create('VolumeAttributesClass', attributes)
  const run = bench.run((deps) => {
    const driver = { name: modelDriverName, controller: () => ({ modify }) }
    const job = createModifier({
      ...deps,
      recorder: deps.recorder('external-resizer'),
      driver,
      active: () => true,
      owns: () => ownershipFrom(deps.informers, modelDriverName, undefined),
    } as never)
    return [
      {
        name: 'modifier',
        waiting: () => new Map(),
        idle: async () => {},
        [Symbol.asyncDispose]: () => job[Symbol.asyncDispose](),
      },
    ]
  })
  await run.settle()
  const statusNow = () => server.peek('PersistentVolumeClaim', 'ns/c')?.status
  const want = async (volumeAttributesClassName: string) => {
    const now = server.peek('PersistentVolumeClaim', 'ns/c')!
    await server.update('PersistentVolumeClaim', { ...now, spec: { ...now.spec, volumeAttributesClassName } })
    await run.settle()
  }
  return { ...bench, clock, run, asked, statusNow, want }
}

const refusedWith = (status: 'INVALID_ARGUMENT' | 'UNAVAILABLE') =>
  new CsiError(status, 'no', { rpc: 'ControllerModifyVolume' })

test('a class that does not exist is told and waited for (MOD-1)', async () => {
  const { run, statusNow, events, server } = await modifier('missing')
  assert.deepEqual(statusNow()?.modifyVolumeStatus, { targetVolumeAttributesClassName: 'missing', status: 'Pending' })
  assert.match(events().join('\n'), /Warning VolumeModifyFailed .*VAC "missing" does not exist./)
  await server.create('VolumeAttributesClass', {
    metadata: { name: 'missing' },
    driverName: modelDriverName,
    parameters: { iops: '1' },
  })
  await run.settle()
  assert.equal(statusNow()?.currentVolumeAttributesClassName, 'missing')
  await run.stop()
})

test('the driver is asked, the volume is written before the claim, and both say so (MOD-2)', async () => {
  const { run, statusNow, server, asked, events } = await modifier('fast')
  assert.deepEqual(asked, [{ iops: '9' }])
  assert.equal(server.peek('PersistentVolume', 'v')?.spec.volumeAttributesClassName, 'fast')
  assert.deepEqual(
    [statusNow()?.currentVolumeAttributesClassName, statusNow()?.modifyVolumeStatus],
    ['fast', undefined],
  )
  const order = server.writes.filter((write) => write.startsWith('update')).slice(-2)
  assert.deepEqual(order, ['update PersistentVolume/v', 'update PersistentVolumeClaim/ns/c/status'])
  const reasons = events().map((line) => line.split(' ').slice(0, 2).join(' '))
  assert.deepEqual(reasons, ['Normal VolumeModify', 'Normal VolumeModifySuccessful'])
  await run.stop()
})

test('an uncertain change is finished with its old target, whatever the claim requests by now (MOD-3)', async () => {
  const { run, server, asked, want, clock, statusNow } = await modifier('fast', [refusedWith('UNAVAILABLE')])
  await server.create('VolumeAttributesClass', {
    metadata: { name: 'slow' },
    driverName: modelDriverName,
    parameters: { iops: '1' },
  })
  await want('slow')
  await clock.advance(5_000)
  assert.deepEqual(asked.slice(0, 2), [{ iops: '9' }, { iops: '9' }])
  assert.notEqual(statusNow()?.currentVolumeAttributesClassName, undefined)
  await run.stop()
})

test('an infeasible class is told and tried slowly; wanting nothing again cancels (MOD-3, MOD-4)', async () => {
  const { run, statusNow, asked, want, clock, events } = await modifier('fast', [refusedWith('INVALID_ARGUMENT')])
  assert.equal(statusNow()?.modifyVolumeStatus?.status, 'Infeasible')
  assert.ok(statusNow()?.conditions?.some(({ type }) => type === 'ModifyVolumeError'))
  await clock.advance(60_000)
  assert.equal(asked.length, 1)
  await want('')
  assert.ok(!statusNow()?.conditions?.some(({ type }) => type === 'ModifyingVolume'))
  assert.match(events().join('\n'), /Normal VolumeModifyCanceled/)
  await run.stop()
})
