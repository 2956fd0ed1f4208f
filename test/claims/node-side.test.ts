// What does the node's side of a claim look like from the claim (PCP-7, RWP-4, RWP-5, NEX, XRS-8)? The node's own
// functions on the tiny server, with a plugin that answers as told.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { podUid } from '../../src/api/names.ts'
import type { PersistentVolumeClaim } from '../../src/api/generated/types.ts'
import { createRecorder } from '../../src/client/recorder.ts'
import { controllerAccessMode } from '../../src/csi/values.ts'
import { resizeTarget } from '../../src/csi/sidecars/resize-plan.ts'
import { expandInUse, expandOnMount } from '../../src/node/operations/expand.ts'
import { checkSinglePodWriter } from '../../src/node/operations/steps.ts'
import { resolveVolume } from '../../src/node/volumes/claims.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { VolumeError } from '../../src/volume/effect.ts'
import { specOfPersistentVolume } from '../../src/volume/spec.ts'
import { createVirtualCluster } from '../kit/virtual-cluster.ts'
import { claim, pod, volume } from '../kit/objects.ts'

const signal = new AbortController().signal
const csi = { csi: { driver: 'd', volumeHandle: 'h' } }

test('a node refuses a claim that is terminating and unprotected, or not Bound, and takes it otherwise (PCP-7)', async () => {
  const outcome = async (phase: 'Pending' | 'Bound', deleting: boolean, finalizers: string[]) => {
    const { server } = await createVirtualCluster()
    const made = await server.create('PersistentVolumeClaim', claim({ volumeName: 'v' }))
    await server.create('PersistentVolume', volume({ claimRef: { name: 'c', uid: made.metadata.uid! } }))
    const held = finalizers.length > 0 ? finalizers : ['example.com/other']
    const named = await server.update('PersistentVolumeClaim', {
      ...made,
      metadata: { ...made.metadata, finalizers: held },
    })
    await server.update('PersistentVolumeClaim', { ...named, status: { phase } }, { subresource: 'status' })
    if (deleting) await server.remove('PersistentVolumeClaim', { namespace: 'ns', name: 'c' })
    const user = pod('p', { claims: ['c'], node: 'n' })
    return resolveVolume(server, user, user.spec!.volumes![0]!, signal).then(
      () => 'taken',
      (error: Error) => error.message,
    )
  }
  const guard = ['kubernetes.io/pvc-protection']
  assert.equal(await outcome('Bound', false, guard), 'taken')
  assert.equal(await outcome('Bound', true, guard), 'taken')
  assert.match(await outcome('Bound', true, []), /PVC is being deleted/)
  assert.match(await outcome('Pending', false, guard), /PVC is not bound/)
})

test('a single-pod volume that another pod has, surely or perhaps, is not mounted (RWP-4)', () => {
  const spec = specOfPersistentVolume(volume({ modes: ['ReadWriteOncePod'] }), false)
  const usedBy = (uid: string) => ({ pods: new Map([[podUid(uid), {}]]) }) as never
  const text = /volume uses the ReadWriteOncePod access mode and is already in use by another pod/
  assert.throws(() => checkSinglePodWriter(spec, podUid('a'), usedBy('b')), text)
  checkSinglePodWriter(spec, podUid('a'), usedBy('a'))
  checkSinglePodWriter(specOfPersistentVolume(volume(), false), podUid('a'), usedBy('b'))
})

test('the driver hears of single writers only if it knows the difference (RWP-5)', () => {
  const modes = (multiWriter: boolean) =>
    [['ReadWriteOncePod'], ['ReadWriteOnce']].map((each) => controllerAccessMode(each, multiWriter))
  assert.deepEqual(modes(true), ['SINGLE_NODE_SINGLE_WRITER', 'SINGLE_NODE_MULTI_WRITER'])
  assert.deepEqual(modes(false), ['SINGLE_NODE_WRITER', 'SINGLE_NODE_WRITER'])
})

test('13.4: a driver that grows only on the node takes the request where others keep what was allocated (XRS-8)', () => {
  const facts = {
    volumeBytes: 5n,
    requestedBytes: 4n,
    allocatedBytes: 6n,
    status: 'NodeResizeInfeasible',
    lastWasFinal: false,
    fileSystemResizePending: false,
  }
  assert.deepEqual([resizeTarget({ ...facts, trivial: true }), resizeTarget({ ...facts, trivial: false })], [4n, 6n])
})

/** Mounts a volume of 2Gi whose claim shows 1Gi, with a plugin that answers as told. */
async function mount(
  status: PersistentVolumeClaim['status'],
  options: {
    readonly error?: VolumeError
    readonly readOnly?: boolean
    readonly spec?: Partial<PersistentVolumeClaim['spec']>
  } = {},
) {
  const { server, clock, events } = await createVirtualCluster()
  const owner = await server.create(
    'PersistentVolumeClaim',
    claim({ volumeName: 'v', request: '2Gi', spec: options.spec ?? {} }),
  )
  await server.update(
    'PersistentVolumeClaim',
    { ...owner, status: { phase: 'Bound', capacity: { storage: '1Gi' }, ...status } },
    { subresource: 'status' },
  )
  const grown = volume({ size: '2Gi', claimRef: { name: 'c', uid: owner.metadata.uid! }, spec: csi })
  const asked: bigint[] = []
  const expand = async ({ newBytes }: { newBytes: bigint }) => {
    asked.push(newBytes)
    if (options.error) throw options.error
    return newBytes
  }
  const recorder = createRecorder({ client: server, clock, log: silentLog, component: 'kubelet' })
  const user = pod('p', { claims: ['c'], node: 'n' })
  const spec = specOfPersistentVolume(grown, options.readOnly === true)
  const work = {
    mount: { spec, pod: user, uid: podUid('u'), readOnly: options.readOnly === true },
    desired: { volume: 'x/v' },
    remount: false,
    actual: () => undefined,
  }
  const deps = { client: server, recorder, clock, node: 'n', registry: { find: () => ({ plugin: { expand } }) } }
  const failure = await expandOnMount(
    work as never,
    deps as never,
    { path: '/p', stagingPath: '', devicePath: '' },
    { step: () => assert.fail('no steps'), emit: () => {} },
    signal,
  ).then(
    () => undefined,
    (error: Error) => error.message,
  )
  await recorder.flush()
  return { asked, failure, status: server.peek('PersistentVolumeClaim', 'ns/c')?.status, events: events() }
}

const pending = {
  allocatedResources: { storage: '2Gi' },
  allocatedResourceStatuses: { storage: 'NodeResizePending' as const },
}
const conditions = [{ type: 'FileSystemResizePending', status: 'True' as const }]

test('the node expands when it is its turn; the legacy path when nobody keeps status; else not (NEX-1)', async () => {
  assert.deepEqual((await mount({ ...pending })).asked, [2n ** 31n])
  assert.deepEqual((await mount({})).asked, [2n ** 31n])
  const notYet = { ...pending, allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' as const } }
  assert.deepEqual((await mount(notYet)).asked, [])
})

test('success is told on pod and claim and written; a read-only mount is told and does not block (NEX-3)', async () => {
  const done = await mount({ ...pending, conditions })
  assert.deepEqual(
    [done.status?.capacity, done.status?.allocatedResourceStatuses, done.status?.conditions],
    [{ storage: '2Gi' }, undefined, undefined],
  )
  assert.equal(done.events.filter((line) => line.startsWith('Normal FileSystemResizeSuccessful')).length, 2)
  const reader = await mount(pending, { readOnly: true })
  assert.deepEqual([reader.asked, reader.failure], [[], undefined])
  assert.ok(reader.events.every((line) => line.startsWith('Warning FileSystemResizeFailed')))
})

test('a final error is a condition, an infeasible one hands back; a refusal while in use does not block the mount (NEX-4)', async () => {
  const failed = await mount(pending, { error: new VolumeError('DriverFailed', 'broken', { effect: 'none' }) })
  assert.equal(
    failed.status?.conditions?.find(({ type }) => type === 'NodeResizeError')?.message,
    'failed to expand pvc with broken',
  )
  assert.equal(failed.failure, 'broken')
  const infeasible = await mount(pending, {
    error: new VolumeError('DriverFailed', 'never', { effect: 'none', tags: ['infeasible'] }),
  })
  assert.equal(infeasible.status?.allocatedResourceStatuses?.['storage'], 'NodeResizeInfeasible')
  const busy = await mount(pending, {
    error: new VolumeError('DriverFailed', 'in use', { effect: 'none', tags: ['failedPrecondition'] }),
  })
  assert.equal(busy.failure, undefined)
})

test('a shared claim that already has its size is still expanded on this node, unless that is not required (NEX-2, C-17)', async () => {
  const asked = async (modes: 'ReadWriteMany' | 'ReadWriteOnce', annotations: Record<string, string> = {}) => {
    const { server } = await createVirtualCluster()
    const owner = await server.create('PersistentVolumeClaim', claim({ volumeName: 'v', modes: [modes], annotations }))
    const full = { phase: 'Bound' as const, capacity: { storage: '2Gi' }, allocatedResources: { storage: '2Gi' } }
    await server.update('PersistentVolumeClaim', { ...owner, status: full }, { subresource: 'status' })
    const spec = specOfPersistentVolume(
      volume({ size: '2Gi', claimRef: { name: 'c', uid: owner.metadata.uid! }, spec: csi }),
      false,
    )
    let calls = 0
    const expand = async ({ newBytes }: { newBytes: bigint }) => (calls++, newBytes)
    const actual = () => ({ sizeBytes: 2n ** 30n, device: { path: '' }, devicePath: '' })
    const desired = { volume: 'x/v', plugin: 'kubernetes.io/csi', sizeBytes: 2n ** 31n }
    const work = { mount: { spec, pod: pod('p'), uid: podUid('u'), readOnly: false }, desired, remount: false, actual }
    const deps = {
      client: server,
      recorder: { event: () => {} },
      node: 'n',
      root: '/r',
      registry: { find: () => ({ plugin: { expand } }) },
    }
    const step = async (_name: string, call: () => unknown) => call()
    await expandInUse.run(work as never, deps as never, { step: step as never, emit: () => {} }, signal)
    return calls
  }
  const notRequired = { 'volume.kubernetes.io/node-expansion-not-required': 'true' }
  assert.deepEqual(
    [await asked('ReadWriteMany'), await asked('ReadWriteMany', notRequired), await asked('ReadWriteOnce')],
    [1, 0, 0],
  )
})
