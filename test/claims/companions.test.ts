// Protection, ephemeral claims and expansion: do they keep what is in use, make what is missing, grow what may grow?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pluginName } from '../../src/api/names.ts'
import { serviceUnavailable } from '../../src/api/status-error.ts'
import type { PersistentVolumeClaim, Pod } from '../../src/api/generated/types.ts'
import type { CallInfo } from '../../src/client/in-process.ts'
import { createEphemeralController } from '../../src/controllers/ephemeral/controller.ts'
import { createExpansionController } from '../../src/controllers/expansion/controller.ts'
import { createProtectionController } from '../../src/controllers/protection/controller.ts'
import type { ClusterPlugin } from '../../src/volume/plugin.ts'
import { createRegistry } from '../../src/volume/registry.ts'
import { createVirtualCluster } from '../kit/virtual-cluster.ts'
import { assertWhy } from '../kit/assert-why.ts'
import { claim, pod, volume } from '../kit/objects.ts'

const guard = 'kubernetes.io/pvc-protection'

async function protection(
  faults?: { before?: (call: CallInfo) => void; delayMs?: (call: CallInfo) => number },
  unusedCondition = false,
) {
  const bench = await createVirtualCluster()
  const run = bench.run((deps) => [createProtectionController({ ...deps, options: { unusedCondition } })], faults)
  return { ...bench, run, claimNow: () => bench.server.peek('PersistentVolumeClaim', 'ns/c') }
}

test('a finalizer that somebody took off comes back (PCP-1, PVP-1, API-10)', async () => {
  const { server, run, claimNow } = await protection()
  const made = await server.create('PersistentVolumeClaim', claim())
  const other = await server.create('PersistentVolume', volume())
  await run.settle()
  await server.update('PersistentVolumeClaim', { ...made, metadata: { ...made.metadata, finalizers: [] } })
  await server.update('PersistentVolume', { ...other, metadata: { ...other.metadata, finalizers: [] } })
  await run.settle()
  assert.deepEqual(claimNow()?.metadata.finalizers, [guard])
  assert.deepEqual(server.peek('PersistentVolume', 'v')?.metadata.finalizers, ['kubernetes.io/pv-protection'])
  await run.stop()
})

const removeNow = { gracePeriodSeconds: 0 }
const template = {
  metadata: { labels: { a: 'b' }, annotations: { x: 'y' }, name: '' },
  spec: { accessModes: ['ReadWriteOnce' as const], resources: { requests: { storage: '1Gi' } } },
}
const users: readonly [string, Pod, boolean][] = [
  ['a running pod', pod('p', { claims: ['c'], node: 'n' }), true],
  [
    'a finished pod, until its object is gone (TC-55)',
    pod('p', { claims: ['c'], node: 'n', status: { phase: 'Succeeded' } }),
    true,
  ],
  ['not a pod without a node (TC-55)', pod('p', { claims: ['c'] }), false],
  [
    'not a pod whose ephemeral claim is another’s (TC-55, EPH-5)',
    pod('c', { node: 'n', spec: { volumes: [{ name: 'x', ephemeral: { volumeClaimTemplate: template } }] } }),
    false,
  ],
]
for (const [name, user, keeps] of users) {
  test(`${name} ${keeps ? 'keeps' : 'does not keep'} the claim (PCP-2, I-8, TC-55)`, async () => {
    const { server, run, claimNow, asked } = await protection()
    await server.create('Pod', user)
    await server.create('PersistentVolumeClaim', claim())
    await run.settle()
    await server.remove('PersistentVolumeClaim', { namespace: 'ns', name: 'c' })
    await run.settle()
    assert.equal(claimNow() !== undefined, keeps)
    if (keeps) {
      assert.equal(run.waiting().get('PersistentVolumeClaim/ns/c')?.[0]?.reason, 'protectedByPods')
      await assertWhy(await asked(), 'pvc/ns/c', 'claimProtected')
      await server.remove('Pod', { namespace: 'ns', name: user.metadata.name }, removeNow)
      await run.settle()
      assert.equal(claimNow(), undefined)
    }
    await run.stop()
  })
}

test('a pod that only the server knows keeps the claim (PCP-3, TC-55, WC-30)', async () => {
  const { server, run, claimNow, asked } = await protection({
    before({ verb, kind }) {
      if (verb === 'watch' && kind === 'Pod') throw serviceUnavailable('cut off')
    },
  })
  await server.create('PersistentVolumeClaim', claim())
  await run.settle()
  await server.create('Pod', pod('p', { claims: ['c'], node: 'n' }))
  await server.remove('PersistentVolumeClaim', { namespace: 'ns', name: 'c' })
  await run.settle()
  assert.deepEqual(claimNow()?.metadata.finalizers, [guard])
  await assertWhy(await asked(), 'pvc/ns/c', 'claimProtected')
  await run.stop()
})

test('a failed list keeps the claim, and is tried again (PCP-3, TC-55)', async () => {
  let refusals = 0
  const { server, run, claimNow, clock, asked } = await protection({
    before({ verb, kind }) {
      if (verb === 'list' && kind === 'Pod' && refusals-- > 0) throw serviceUnavailable('not now')
    },
  })
  await server.create('PersistentVolumeClaim', claim())
  await run.settle()
  refusals = 2
  await server.remove('PersistentVolumeClaim', { namespace: 'ns', name: 'c' })
  await run.settle()
  assert.notEqual(claimNow(), undefined)
  await assertWhy(await asked(), 'pvc/ns/c', 'retrying')
  await clock.advance(50)
  assert.equal(claimNow(), undefined)
  await run.stop()
})

test('a pod deleted and created anew releases what only the old one used (PCP-4, TC-55, WC-15)', async () => {
  const { server, run, claimNow } = await protection()
  await server.create('PersistentVolumeClaim', claim())
  await server.create('Pod', pod('p', { claims: ['c'], node: 'n' }))
  await run.settle()
  await server.remove('PersistentVolumeClaim', { namespace: 'ns', name: 'c' })
  await run.settle()
  await server.remove('Pod', { namespace: 'ns', name: 'p' }, removeNow)
  await server.create('Pod', pod('p', { node: 'n' }))
  await run.settle()
  assert.equal(claimNow(), undefined)
  await run.stop()
})

test('a terminating volume stays while it is bound, and goes when it is not (PVP-2, PVP-3, I-8, RCL-10)', async () => {
  const { server, run, asked } = await protection()
  const made = await server.create('PersistentVolume', volume())
  await server.update('PersistentVolume', { ...made, status: { phase: 'Bound' } }, { subresource: 'status' })
  await server.remove('PersistentVolume', { name: 'v' })
  await run.settle()
  const kept = server.peek('PersistentVolume', 'v')!
  assert.equal(run.waiting().get('PersistentVolume/v')?.[0]?.reason, 'protectedByClaim')
  await assertWhy(await asked(), 'pv/v', 'volumeProtected')
  await server.update('PersistentVolume', { ...kept, status: { phase: 'Released' } }, { subresource: 'status' })
  await run.settle()
  assert.equal(server.peek('PersistentVolume', 'v'), undefined)
  await run.stop()
})

test('an attributes class stays while spec, status or a running change names it (VCP-1, VCP-2, TC-59)', async () => {
  const { server, run, asked } = await protection()
  await server.create('VolumeAttributesClass', { metadata: { name: 'fast' }, driverName: 'd', parameters: { a: 'b' } })
  await run.settle()
  assert.deepEqual(server.peek('VolumeAttributesClass', 'fast')?.metadata.finalizers, ['kubernetes.io/vac-protection'])
  const made = await server.create('PersistentVolumeClaim', claim())
  const named = await server.update(
    'PersistentVolumeClaim',
    { ...made, status: { currentVolumeAttributesClassName: 'fast' } },
    { subresource: 'status' },
  )
  await server.remove('VolumeAttributesClass', { name: 'fast' })
  await run.settle()
  const { blocked } = await assertWhy(await asked(), 'vac/fast', 'classProtected')
  assert.match(blocked?.sentence ?? '', /still used by pvc\/c$/)
  const changing = { modifyVolumeStatus: { targetVolumeAttributesClassName: 'fast', status: 'InProgress' as const } }
  const last = await server.update('PersistentVolumeClaim', { ...named, status: changing }, { subresource: 'status' })
  await run.settle()
  assert.notEqual(server.peek('VolumeAttributesClass', 'fast'), undefined)
  await assertWhy(await asked(), 'vac/fast', 'classProtected')
  await server.update('PersistentVolumeClaim', { ...last, status: {} }, { subresource: 'status' })
  await run.settle()
  assert.equal(server.peek('VolumeAttributesClass', 'fast'), undefined)
  await run.stop()
})

test('Unused follows the pods of a bound claim, and of no other (PCP-5, PCP-6, TC-56)', async () => {
  const { server, run, claimNow } = await protection(undefined, true)
  const made = await server.create('PersistentVolumeClaim', claim())
  await run.settle()
  assert.equal(claimNow()?.status?.conditions, undefined)
  await server.update('PersistentVolumeClaim', { ...made, status: { phase: 'Bound' } }, { subresource: 'status' })
  const seen: string[] = []
  const look = async () => {
    await run.settle()
    const [condition] = claimNow()?.status?.conditions ?? []
    seen.push(`${condition?.status} ${condition?.reason}`)
  }
  await look()
  const using = await server.create('Pod', pod('p', { claims: ['c'] }))
  await look()
  await server.update('Pod', { ...using, status: { phase: 'Succeeded' } }, { subresource: 'status' })
  await look()
  assert.deepEqual(seen, ['True NoPodsUsingPVC', 'False PodUsingPVC', 'True NoPodsUsingPVC'])
  await run.stop()
})

const withScratch = (name: string, ...names: string[]) =>
  pod(name, { spec: { volumes: names.map((each) => ({ name: each, ephemeral: { volumeClaimTemplate: template } })) } })

async function ephemeral(faults?: { before?: (call: CallInfo) => void }, ...pods: readonly Pod[]) {
  const bench = await createVirtualCluster()
  for (const each of pods) await bench.server.create('Pod', each)
  return { ...bench, run: bench.run((deps) => [createEphemeralController(deps)], faults) }
}

test('each ephemeral volume gets its claim, owned by the pod (EPH-1, EPH-2, TC-57, MET-6)', async () => {
  const { server, run } = await ephemeral()
  const owner = await server.create('Pod', withScratch('p', 'x', 'y'))
  await run.settle()
  assert.deepEqual(
    server.all('PersistentVolumeClaim').map((each) => each.metadata.name),
    ['p-x', 'p-y'],
  )
  const made = server.peek('PersistentVolumeClaim', 'ns/p-x')
  const reference = {
    apiVersion: 'v1',
    kind: 'Pod',
    name: 'p',
    uid: owner.metadata.uid,
    controller: true,
    blockOwnerDeletion: true,
  }
  assert.deepEqual(
    [made?.metadata.labels, made?.metadata.annotations, made?.spec, made?.metadata.ownerReferences],
    [{ a: 'b' }, { x: 'y' }, { ...template.spec, volumeMode: 'Filesystem' }, [reference]],
  )
  assert.match(await run.metrics.text(), /ephemeral_volume_controller_create_total 2/)
  await run.stop()
})

test('a foreign claim stops the pod’s later volumes, with an event on the pod, until it is gone (EPH-3, TC-57, WC-36)', async () => {
  const { server, run, events, clock, asked } = await ephemeral()
  await server.create('PersistentVolumeClaim', claim({ name: 'p-x' }))
  await server.create('Pod', withScratch('p', 'x', 'y'))
  await run.settle()
  assert.equal(server.peek('PersistentVolumeClaim', 'ns/p-y'), undefined)
  assert.deepEqual(events(), [
    'Warning FailedBinding Pod/p: ephemeral volume x: PVC ns/p-x was not created for pod ns/p (pod is not owner)',
  ])
  await assertWhy(await asked(), 'pod/ns/p', 'foreignClaim')
  const foreign = server.peek('PersistentVolumeClaim', 'ns/p-x')!
  await server.update('PersistentVolumeClaim', { ...foreign, metadata: { ...foreign.metadata, finalizers: [] } })
  await server.remove('PersistentVolumeClaim', { namespace: 'ns', name: 'p-x' })
  await clock.advance(1_000)
  assert.equal(server.all('PersistentVolumeClaim').length, 2)
  await run.stop()
})

test('a refused claim is told and counted; a terminating pod gets nothing (EPH-4, EPH-1, MET-6, TC-57)', async () => {
  const faults = {
    before({ verb, kind }: CallInfo) {
      if (verb === 'create' && kind === 'PersistentVolumeClaim') throw serviceUnavailable('quota')
    },
  }
  const terminating = pod('gone', { node: 'n', spec: withScratch('gone', 'x').spec!, deleting: true })
  const { server, run, events, asked } = await ephemeral(faults, terminating)
  assert.ok(server.peek('Pod', 'ns/gone')?.metadata.deletionTimestamp)
  await server.create('Pod', withScratch('p', 'x'))
  await run.settle()
  assert.deepEqual([...new Set(events())], ['Warning FailedBinding Pod/p: ephemeral volume x: create PVC p-x: quota'])
  assert.match(await run.metrics.text(), /ephemeral_volume_controller_create_failures_total [1-9]/)
  await assertWhy(await asked(), 'pod/ns/p', 'claimNotMade')
  await run.stop()
})

async function expansion(plugin?: ClusterPlugin, sourceKind = 'flexVolume') {
  const bench = await createVirtualCluster()
  const registered = {
    name: pluginName('kubernetes.io/disk'),
    traits: { takesMountOptions: false, remountOnPodUpdate: false },
    volumeName: () => 'x',
    supports: (spec: { source: { kind: string } }) => spec.source.kind === sourceKind,
    plugin: plugin ?? {},
  }
  const plugins = createRegistry<ClusterPlugin>([registered])
  const run = bench.run((deps) => [createExpansionController({ ...deps, plugins })])
  const pair = async (spec: Parameters<typeof volume>[0] = {}, status: PersistentVolumeClaim['status'] = {}) => {
    const made = await bench.server.create('PersistentVolumeClaim', claim({ volumeName: 'v', request: '2Gi' }))
    await bench.server.create('PersistentVolume', volume({ claimRef: { name: 'c', uid: made.metadata.uid! }, ...spec }))
    const bound = { phase: 'Bound' as const, capacity: { storage: '1Gi' }, ...status }
    await bench.server.update('PersistentVolumeClaim', { ...made, status: bound }, { subresource: 'status' })
    await run.settle()
  }
  return { ...bench, run, pair, claimNow: () => bench.server.peek('PersistentVolumeClaim', 'ns/c') }
}

test('a larger request on a CSI volume is announced once and left to the external resizer (EXP-1, EXP-4)', async () => {
  const { pair, run, events, asked } = await expansion()
  await pair({ spec: { csi: { driver: 'd', volumeHandle: 'h' } } })
  assert.deepEqual(events(), [
    'Normal ExternalExpanding PersistentVolumeClaim/c: waiting for an external controller to expand this PVC',
  ])
  assert.equal(run.waiting().get('PersistentVolumeClaim/ns/c')?.[0]?.reason, 'externalResizer')
  await assertWhy(await asked(), 'pvc/ns/c', 'driverAbsent')
  await run.stop()
})

test('a volume that is grown without its claim is announced to nobody (EXP-1)', async () => {
  const { pair, run, events, server } = await expansion()
  await pair({ spec: { csi: { driver: 'd', volumeHandle: 'h' } } }, { capacity: { storage: '2Gi' } })
  const half = { 'volume.alpha.kubernetes.io/pre-resize-capacity': '2Gi' }
  const body = { metadata: { annotations: half }, spec: { capacity: { storage: '4Gi' } } }
  await server.patch('PersistentVolume', { name: 'v' }, { type: 'merge', body })
  await run.settle()
  assert.deepEqual(events(), [])
  await run.stop()
})

test('nothing happens when the claim has what it asks for (EXP-2)', async () => {
  const { pair, run, events } = await expansion()
  await pair({}, { capacity: { storage: '2Gi' } })
  assert.deepEqual(events(), [])
  await run.stop()
})

test('a migrated volume names its resizer (EXP-3)', async () => {
  const { pair, run, events, claimNow } = await expansion()
  await pair({ spec: { awsElasticBlockStore: { volumeID: 'x' } } })
  assert.equal(claimNow()?.metadata.annotations?.['volume.kubernetes.io/storage-resizer'], 'ebs.csi.aws.com')
  assert.match(
    events().join(),
    /CSI migration enabled for kubernetes.io\/aws-ebs; waiting for external resizer to expand the pvc/,
  )
  await run.stop()
})

test('a FlexVolume whose driver is not here grows on paper, and the node is told to finish (MGR-8, FLEX-12)', async () => {
  const { pair, run, claimNow, server, events } = await expansion({}, 'nfs')
  await pair({ spec: { flexVolume: { driver: 'x/y' } } })
  assert.deepEqual(server.peek('PersistentVolume', 'v')?.spec.capacity, { storage: '2Gi' })
  assert.deepEqual(claimNow()?.status?.allocatedResourceStatuses, { storage: 'NodeResizePending' })
  assert.deepEqual(
    events().filter((text) => text.startsWith('Warning')),
    [],
  )
  await run.stop()
})

test('our plugin grows the volume; the volume is written before the claim; the node finishes (EXP-5, EXP-6, EXC-1, EXC-3, I-9, WC-32, WC-33, C-18)', async () => {
  const { pair, run, claimNow, server, events } = await expansion({
    expand: async ({ newBytes }) => newBytes,
    requiresResize: () => true,
  })
  await pair({ spec: { flexVolume: { driver: 'x' } } })
  const grown = server.peek('PersistentVolume', 'v')
  assert.deepEqual(
    [grown?.spec.capacity, grown?.metadata.annotations],
    [{ storage: '2Gi' }, { 'volume.alpha.kubernetes.io/pre-resize-capacity': '1Gi' }],
  )
  const { status } = claimNow()!
  assert.deepEqual(
    [
      status?.capacity,
      status?.allocatedResources,
      status?.allocatedResourceStatuses,
      status?.conditions?.map(({ type }) => type),
    ],
    [{ storage: '1Gi' }, { storage: '2Gi' }, { storage: 'NodeResizePending' }, ['Resizing', 'FileSystemResizePending']],
  )
  const order = server.writes.filter((write) => /v$|status$/.test(write)).slice(-3)
  assert.deepEqual(order, [
    'update PersistentVolumeClaim/ns/c/status',
    'patch PersistentVolume/v',
    'update PersistentVolumeClaim/ns/c/status',
  ])
  assert.doesNotMatch(events().join(), /VolumeResizeSuccessful/)
  // The node is done: capacity reached, so the controller tidies up.
  const { allocatedResourceStatuses: _gone, conditions: _none, ...rest } = status!
  await server.update(
    'PersistentVolumeClaim',
    { ...claimNow()!, status: { ...rest, capacity: { storage: '2Gi' } } },
    { subresource: 'status' },
  )
  await run.settle()
  assert.equal(
    server.peek('PersistentVolume', 'v')?.metadata.annotations?.['volume.alpha.kubernetes.io/pre-resize-capacity'],
    undefined,
  )
  await run.stop()
})

test('without a node step the claim is finished at once; a failure is told and tried again (EXP-5, EXP-7, EXC-1, EVT-9, EXEC-12)', async () => {
  let failures = 1
  const expand = async ({ newBytes }: { newBytes: bigint }) => {
    if (failures-- > 0) throw new Error('no space')
    return newBytes
  }
  const { pair, run, claimNow, events, clock, asked } = await expansion({ expand, requiresResize: () => false })
  await pair({ spec: { flexVolume: { driver: 'x' } } })
  assert.equal(claimNow()?.status?.allocatedResourceStatuses?.['storage'], 'ControllerResizeInProgress')
  await assertWhy(await asked(), 'pvc/ns/c', 'expansionFailed')
  await clock.advance(10)
  const { status } = claimNow()!
  assert.deepEqual(
    [status?.capacity, status?.allocatedResources, status?.allocatedResourceStatuses, status?.conditions],
    [{ storage: '2Gi' }, { storage: '2Gi' }, undefined, undefined],
  )
  assert.match(events().join('\n'), /Warning VolumeResizeFailed .*no space\n/)
  assert.match(events().join(), /VolumeResizeSuccessful .*ExpandVolume succeeded for volume ns\/c/)
  await run.stop()
})

test('claims that go at the same time share one list of the server’s pods (WC-8, PCP-3)', async () => {
  let lists = 0
  const { server, run, clock } = await protection({
    before({ verb, kind }) {
      if (verb === 'list' && kind === 'Pod') lists++
    },
    delayMs: ({ verb }) => (verb === 'list' ? 5 : 0),
  })
  await clock.advance(10)
  const names = Array.from({ length: 12 }, (_, at) => `c${at}`)
  for (const name of names) await server.create('PersistentVolumeClaim', claim({ name }))
  await run.settle()
  lists = 0
  await Promise.all(names.map((name) => server.remove('PersistentVolumeClaim', { namespace: 'ns', name })))
  await clock.advance(50)
  assert.deepEqual(server.all('PersistentVolumeClaim'), [])
  assert.ok(lists <= 4, `${lists} lists for 12 claims`)
  await run.stop()
})
