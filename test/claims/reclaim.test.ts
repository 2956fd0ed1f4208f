// What becomes of storage? Provisioning by our own plugins, deleting, recycling, and the checks before anything is lost.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pluginName } from '../../src/api/names.ts'
import { conflict, serviceUnavailable } from '../../src/api/status-error.ts'
import { kinds } from '../../src/api/kinds.ts'
import type { PersistentVolume } from '../../src/api/generated/types.ts'
import type { CallInfo } from '../../src/client/in-process.ts'
import { createBindingController } from '../../src/controllers/binding/controller.ts'
import type { BindingOptions } from '../../src/controllers/binding/controller.ts'
import { recyclerPod } from '../../src/controllers/binding/recycle.ts'
import { VolumeError } from '../../src/volume/effect.ts'
import type { ClusterPlugin } from '../../src/volume/plugin.ts'
import { createRegistry } from '../../src/volume/registry.ts'
import { createVirtualCluster } from '../kit/virtual-cluster.ts'
import { assertWhy } from '../kit/assert-why.ts'
import { claim, pod, storageClass, volume, withoutServerFields } from '../kit/objects.ts'

const disk = pluginName('kubernetes.io/disk')

function createStorage(overrides: Partial<ClusterPlugin> = {}, mountOptions = false) {
  const calls: string[] = []
  const plugin: ClusterPlugin = {
    async provision({ volumeName, selectedNode }) {
      calls.push(`provision ${selectedNode ?? '-'}`)
      return withoutServerFields(volume({ name: volumeName, policy: 'Delete', spec: { flexVolume: { driver: 'x' } } }))
    },
    remove: async () => void calls.push('remove'),
    ...overrides,
  }
  const registered = {
    name: disk,
    traits: { takesMountOptions: mountOptions, remountOnPodUpdate: false },
    volumeName: () => 'x',
    supports: (spec: { source: { kind: string } }) => spec.source.kind === 'flexVolume',
    plugin,
  }
  return { calls, plugins: createRegistry<ClusterPlugin>([registered]) }
}

async function start(
  plugins: ReturnType<typeof createStorage>['plugins'],
  faults?: { readonly before?: (call: CallInfo) => void; readonly delayMs?: (call: CallInfo) => number },
  options: BindingOptions = {},
) {
  const bench = await createVirtualCluster()
  const run = bench.run(
    (deps) => [createBindingController({ ...deps, plugins, options: { auditMs: 0, ...options } })],
    faults,
  )
  return { ...bench, run }
}

const onDisk = (rest = {}) => storageClass('disk', { provisioner: disk, ...rest })

async function dropClaim({ server }: Awaited<ReturnType<typeof start>>, name = 'c') {
  const found = server.peek('PersistentVolumeClaim', `ns/${name}`)!
  const { finalizers: _none, ...metadata } = found.metadata
  await server.update('PersistentVolumeClaim', { ...found, metadata })
  await server.remove('PersistentVolumeClaim', { namespace: 'ns', name })
}

test('an in-tree class makes the volume, with marks and finalizer, and it is bound (TC-34, PRV-9, PRV-12, PRV-13)', async () => {
  const storage = createStorage()
  const bench = await start(storage.plugins)
  await bench.server.create('StorageClass', onDisk())
  const { metadata } = await bench.server.create('PersistentVolumeClaim', claim({ className: 'disk' }))
  await bench.run.settle()
  const made = bench.server.peek('PersistentVolume', `pvc-${metadata.uid}`)
  assert.deepEqual(
    [made?.metadata.annotations, made?.metadata.finalizers, made?.spec.storageClassName, made?.status?.phase],
    [
      { 'pv.kubernetes.io/bound-by-controller': 'yes', 'pv.kubernetes.io/provisioned-by': disk },
      ['kubernetes.io/pv-controller', 'kubernetes.io/pv-protection'],
      'disk',
      'Bound',
    ],
  )
  assert.equal(
    bench.server.peek('PersistentVolumeClaim', 'ns/c')?.metadata.annotations?.[
      'volume.kubernetes.io/storage-provisioner'
    ],
    disk,
  )
  assert.deepEqual(bench.events(), [
    `Normal ProvisioningSucceeded PersistentVolumeClaim/c: Successfully provisioned volume pvc-${metadata.uid} using ${disk}`,
  ])
  assert.match(
    await bench.run.metrics.text(),
    /volume_operation_total_seconds_count\{plugin_name="kubernetes.io\/disk",operation_name="provision"\} 1/,
  )
  await bench.run.stop()
})

test('a fitting volume is taken and the plugin is not called (TC-36)', async () => {
  const storage = createStorage()
  const bench = await start(storage.plugins)
  await bench.server.create('StorageClass', onDisk())
  await bench.server.create('PersistentVolume', volume({ className: 'disk' }))
  await bench.run.settle()
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'disk' }))
  await bench.run.settle()
  assert.deepEqual(storage.calls, [])
  await bench.run.stop()
})

test('a volume that appeared just before the operation stops it (TC-37, PRV-9)', async () => {
  const storage = createStorage()
  const bench = await start(storage.plugins, {
    delayMs({ verb, kind, ref }) {
      if (verb !== 'get' || kind !== 'PersistentVolume' || bench.server.all('PersistentVolume').length > 0) return 0
      void bench.server.create(
        'PersistentVolume',
        volume({ name: ref!.name, className: 'disk', claimRef: { name: 'c' } }),
      )
      return 1
    },
  })
  await bench.server.create('StorageClass', onDisk())
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'disk' }))
  await bench.clock.advance(1)
  assert.deepEqual(storage.calls, [])
  assert.equal(bench.server.peek('PersistentVolumeClaim', 'ns/c')?.status?.phase, 'Bound')
  await bench.run.stop()
})

test('the first save fails, the second works, ten seconds later (TC-38, PRV-13, PRV-3, CTL-9)', async () => {
  const storage = createStorage()
  let refusals = 1
  const bench = await start(storage.plugins, {
    before({ verb, kind }) {
      if (verb === 'create' && kind === 'PersistentVolume' && refusals-- > 0) throw serviceUnavailable('not now')
    },
  })
  await bench.server.create('StorageClass', onDisk())
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'disk' }))
  await bench.run.settle()
  assert.equal(bench.server.all('PersistentVolume').length, 0)
  await assertWhy(await bench.asked(), 'pvc/ns/c', 'provisioning')
  await bench.clock.advance(10_001)
  assert.equal(bench.server.peek('PersistentVolumeClaim', 'ns/c')?.status?.phase, 'Bound')
  assert.deepEqual(storage.calls, ['provision -'])
  await bench.run.stop()
})

test('five failed saves delete the storage again; what cannot be deleted is said aloud (TC-38, PRV-14)', async () => {
  const refuse = {
    before({ verb, kind }: CallInfo) {
      if (verb === 'create' && kind === 'PersistentVolume') throw serviceUnavailable('never')
    },
  }
  for (const broken of [false, true]) {
    let deletions = 0
    const remove = async () => {
      deletions++
      if (broken) throw new Error('stuck')
    }
    const bench = await start(createStorage({ remove }).plugins, refuse)
    await bench.server.create('StorageClass', onDisk())
    await bench.server.create('PersistentVolumeClaim', claim({ className: 'disk' }))
    for (let round = 0; round < (broken ? 8 : 4); round++) await bench.clock.advance(10_000)
    await bench.clock.advance(100) // it backs off now
    assert.equal(deletions >= (broken ? 5 : 1), true)
    const reasons = bench.events().map((line) => line.split(' ').slice(0, 2).join(' '))
    assert.ok(reasons.includes('Warning ProvisioningFailed'))
    assert.equal(reasons.includes('Warning ProvisioningCleanupFailed'), broken)
    await assertWhy(await bench.asked(), 'pvc/ns/c', 'provisioningFailed')
    await bench.run.stop()
  }
})

test('data sources and mount options that the plugin cannot serve are refused (TC-40, PRV-8, PRV-10)', async () => {
  const cases = [
    {
      spec: { dataSource: { kind: 'PersistentVolumeClaim', name: 'x' } },
      options: {},
      text: /Only CSI plugin can provision a claim with a datasource/,
    },
    {
      spec: {},
      options: { mountOptions: ['ro', 'x'] },
      text: /Mount options are not supported by the provisioner but StorageClass "disk" has mount options \[ro x\]/,
    },
  ]
  for (const { spec, options, text } of cases) {
    const storage = createStorage()
    const bench = await start(storage.plugins)
    await bench.server.create('StorageClass', onDisk(options))
    await bench.server.create('PersistentVolumeClaim', claim({ className: 'disk', spec }))
    await bench.run.settle()
    assert.match(bench.events().join(), text)
    await assertWhy(await bench.asked(), 'pvc/ns/c', 'provisioningFailed')
    assert.deepEqual(storage.calls, [])
    await bench.run.stop()
  }
})

test('a failure, or a node that is gone, takes the selected node away (PRV-11, PRV-10, WC-9, MET-3)', async () => {
  const selected = { 'volume.kubernetes.io/selected-node': 'n1' }
  for (const nodeExists of [true, false]) {
    const storage = createStorage({
      provision: async () => {
        throw new Error('full')
      },
    })
    const bench = await start(storage.plugins)
    if (nodeExists) await bench.server.create('Node', { metadata: { name: 'n1' } })
    await bench.server.create('StorageClass', onDisk({ volumeBindingMode: 'WaitForFirstConsumer' }))
    await bench.server.create('PersistentVolumeClaim', claim({ className: 'disk', annotations: selected }))
    await bench.run.settle()
    const annotations = bench.server.peek('PersistentVolumeClaim', 'ns/c')?.metadata.annotations ?? {}
    assert.equal(annotations['volume.kubernetes.io/selected-node'], undefined)
    const text = nodeExists
      ? /Failed to provision volume with StorageClass "disk": full/
      : /Failed to get target node: nodes "n1" not found/
    assert.match(bench.events().join(), text)
    assert.match(
      await bench.run.metrics.text(),
      nodeExists
        ? /volume_operation_errors_total\{plugin_name="kubernetes.io\/disk",operation_name="provision"\} 1/
        : /./,
    )
    await bench.run.stop()
  }
})

test('the claim is gone: storage, our finalizer and the object follow; the latency is told (TC-44, TC-48, RCL-4, RCL-6, RCL-10)', async () => {
  const storage = createStorage()
  const bench = await start(storage.plugins)
  await bench.server.create('StorageClass', onDisk())
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'disk' }))
  await bench.run.settle()
  await dropClaim(bench)
  await bench.run.settle()
  assert.deepEqual(storage.calls, ['provision -', 'remove'])
  const [left] = bench.server.all('PersistentVolume')
  assert.deepEqual(left?.metadata.finalizers, ['kubernetes.io/pv-protection'])
  const { finalizers: _none, ...metadata } = left!.metadata
  await bench.server.update('PersistentVolume', { ...left!, metadata })
  await bench.run.settle()
  assert.deepEqual(bench.server.all('PersistentVolume'), [])
  assert.match(await bench.run.metrics.text(), /operation_name="delete"\} 1/)
  await bench.run.stop()
})

test('a failing delete shows Failed, is tried again after 500 ms, and ends well (TC-44, RCL-6, CTL-9)', async () => {
  let failures = 2
  const storage = createStorage({
    remove: async () => {
      if (failures-- > 0) throw new Error('device busy')
    },
  })
  const bench = await start(storage.plugins)
  await bench.server.create('StorageClass', onDisk())
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'disk' }))
  await bench.run.settle()
  await dropClaim(bench)
  await bench.run.settle()
  const failed = bench.server.all('PersistentVolume')[0]
  assert.deepEqual([failed?.status?.phase, failed?.status?.message], ['Failed', 'device busy'])
  await assertWhy(await bench.asked(), `pv/${failed?.metadata.name}`, 'reclaimFailed')
  await bench.clock.advance(502)
  await bench.clock.advance(1_002)
  assert.notEqual(bench.server.all('PersistentVolume')[0]?.metadata.deletionTimestamp, undefined)
  assert.deepEqual(bench.events().filter((line) => line.includes('VolumeFailedDelete')).length, 1)
  await bench.run.stop()
})

test('"in use" is told without changing the phase (RCL-6)', async () => {
  const storage = createStorage({
    remove: async () => {
      throw new VolumeError('DeletedVolumeInUse', 'still mapped', { effect: 'none' })
    },
  })
  const bench = await start(storage.plugins)
  await bench.server.create('StorageClass', onDisk())
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'disk' }))
  await bench.run.settle()
  await dropClaim(bench)
  await bench.run.settle()
  assert.equal(bench.server.all('PersistentVolume')[0]?.status?.phase, 'Released')
  assert.match(bench.events().join('\n'), /Normal VolumeDelete .*still mapped/)
  await assertWhy(await bench.asked(), `pv/${bench.server.all('PersistentVolume')[0]?.metadata.name}`, 'reclaimFailed')
  await bench.run.stop()
})

/** A volume that our cache takes for released although its claim lives: the watch of claims is cut off. */
async function withBlindCache(check: (bench: Awaited<ReturnType<typeof start>>, calls: string[]) => Promise<void>) {
  const storage = createStorage()
  let blind = false
  const bench = await start(storage.plugins, {
    before({ verb, kind }) {
      if (blind && kind === 'PersistentVolumeClaim' && (verb === 'watch' || verb === 'list'))
        throw serviceUnavailable('cut off')
    },
  })
  await bench.server.create('StorageClass', onDisk())
  await bench.run.settle()
  blind = true
  await check(bench, storage.calls)
  await bench.run.stop()
}

test('a claim that only the server knows keeps its volume (TC-28, VOL-4, WC-14, I-2)', async () => {
  const storage = createStorage()
  const hidden: string[] = []
  const bench = await start(storage.plugins, {
    before({ verb, kind }) {
      if (verb === 'watch' && kind === 'PersistentVolumeClaim') throw conflict(kinds.PersistentVolumeClaim, 'cut off')
    },
  })
  await bench.run.settle()
  const made = await bench.server.create('PersistentVolumeClaim', claim({ volumeName: 'v' }))
  const owned = volume({
    policy: 'Delete',
    claimRef: { name: 'c', uid: made.metadata.uid! },
    spec: { flexVolume: { driver: 'x' } },
  })
  await bench.server.create('PersistentVolume', owned)
  await bench.run.settle()
  assert.equal(bench.server.peek('PersistentVolume', 'v')?.status?.phase, 'Bound')
  assert.deepEqual([storage.calls, hidden], [[], []])
  await bench.run.stop()
})

test('a released volume whose claim is back is not deleted, whatever our cache says (TC-44, RCL-6, WC-14, I-2)', async () => {
  await withBlindCache(async (bench, calls) => {
    const made = await bench.server.create('PersistentVolumeClaim', claim({ volumeName: 'v' }))
    const lost: PersistentVolume = volume({
      policy: 'Delete',
      claimRef: { name: 'c', uid: made.metadata.uid! },
      spec: { flexVolume: { driver: 'x' } },
    })
    const created = await bench.server.create('PersistentVolume', lost)
    await bench.server.update(
      'PersistentVolume',
      { ...created, status: { phase: 'Released' } },
      { subresource: 'status' },
    )
    await bench.run.settle()
    await bench.clock.advance(5_000)
    assert.deepEqual(calls, [])
    assert.notEqual(bench.server.peek('PersistentVolume', 'v'), undefined)
  })
})

const recyclable = (rest = {}) =>
  volume({
    policy: 'Recycle',
    phase: 'Bound',
    claimRef: { name: 'c', uid: 'gone' },
    annotations: { 'pv.kubernetes.io/bound-by-controller': 'yes' },
    ...rest,
  })

async function setPodPhase({ server }: Awaited<ReturnType<typeof start>>, phase: 'Succeeded' | 'Failed') {
  const [scrubber] = server.all('Pod')
  await server.update('Pod', { ...scrubber!, status: { phase } }, { subresource: 'status' })
}

test('a scrubber pod succeeds, the volume is free again, the pod is gone (TC-49, RCL-8, RCL-9)', async () => {
  const bench = await start(createStorage().plugins)
  await bench.server.create('PersistentVolume', recyclable())
  await bench.run.settle()
  const [scrubber] = bench.server.all('Pod')
  assert.deepEqual([scrubber?.metadata.name, scrubber?.spec?.activeDeadlineSeconds], ['recycler-for-v', 60])
  await setPodPhase(bench, 'Succeeded')
  await bench.run.settle()
  const free = bench.server.peek('PersistentVolume', 'v')
  assert.deepEqual([free?.status?.phase, free?.spec.claimRef, bench.server.all('Pod')], ['Available', undefined, []])
  assert.match(bench.events().join(), /Normal VolumeRecycled PersistentVolume\/v: Volume recycled/)
  await bench.run.stop()
})

test('a failed scrubber shows Failed; a user’s reservation survives a success (TC-49, RCL-8, BND-7)', async () => {
  const bench = await start(createStorage().plugins)
  await bench.server.create('PersistentVolume', recyclable({ annotations: {} }))
  await bench.run.settle()
  await setPodPhase(bench, 'Failed')
  await bench.run.settle()
  assert.equal(bench.server.peek('PersistentVolume', 'v')?.status?.phase, 'Failed')
  await assertWhy(await bench.asked(), 'pv/v', 'reclaimFailed')
  await bench.clock.advance(600)
  await setPodPhase(bench, 'Succeeded')
  await bench.run.settle()
  const free = bench.server.peek('PersistentVolume', 'v')
  assert.deepEqual([free?.status?.phase, free?.spec.claimRef], ['Available', { namespace: 'ns', name: 'c' }])
  await bench.run.stop()
})

test('pods that still name the claim block it; when they are gone it goes on (TC-49, RCL-7)', async () => {
  const bench = await start(createStorage().plugins)
  await bench.server.create('Pod', pod('p', { claims: ['c'] }))
  await bench.run.settle()
  await bench.server.create('PersistentVolume', recyclable())
  await bench.run.settle()
  assert.deepEqual(bench.events(), ['Normal VolumeFailedRecycle PersistentVolume/v: Volume is used by pods: ns/p'])
  assert.equal(bench.server.peek('PersistentVolume', 'v')?.status?.phase, 'Released')
  await assertWhy(await bench.asked(), 'pv/v', 'usedByPods')
  await bench.server.remove('Pod', { namespace: 'ns', name: 'p' })
  await bench.run.settle()
  assert.deepEqual(
    bench.server.all('Pod').map((each) => each.metadata.name),
    ['recycler-for-v'],
  )
  await bench.run.stop()
})

const onNode = {
  required: {
    nodeSelectorTerms: [
      { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In' as const, values: ['n'] }] },
    ],
  },
}

test('no recycler for the type (TC-49, RCL-8)', async () => {
  const bench = await start(createStorage().plugins)
  await bench.server.create('PersistentVolume', recyclable({ spec: { local: { path: '/x' }, nodeAffinity: onNode } }))
  await bench.run.settle()
  assert.match(
    bench.events().join(),
    /Warning VolumeFailedRecycle PersistentVolume\/v: No recycler plugin found for the volume!/,
  )
  await assertWhy(await bench.asked(), 'pv/v', 'volumeFailed')
  await bench.run.stop()
})

test('an old scrubber is never trusted; each recycle builds its own pod (RCL-9, MGR-13, WC-22)', async () => {
  const bench = await start(createStorage().plugins)
  await bench.server.create('Pod', { ...recyclerPod(recyclable({ name: 'v', size: '9Gi' })) })
  await bench.server.create('PersistentVolume', recyclable())
  await bench.run.settle()
  assert.equal(
    bench.server.peek('PersistentVolume', 'v')?.status?.message,
    'Recycle failed: old recycler pod found, will retry later',
  )
  assert.deepEqual(bench.server.all('Pod'), [])
  const big = recyclerPod(volume({ size: '20Gi' }))
  const nfs = recyclerPod(volume({ size: '1Gi', spec: { nfs: { server: 's', path: '/p' } } }))
  assert.deepEqual([big.spec?.activeDeadlineSeconds, nfs.spec?.activeDeadlineSeconds], [600, 300])
  await bench.run.stop()
})

test('volumes and claims are counted at scrape; attempts to give a class are counted (MET-1, MET-4, WC-38)', async () => {
  const bench = await start(createStorage().plugins)
  await bench.server.create('PersistentVolume', volume({ className: 'gold' }))
  await bench.server.create(
    'PersistentVolume',
    volume({ name: 'x', spec: { csi: { driver: 'd', volumeHandle: 'h' } } }),
  )
  await bench.server.create('PersistentVolumeClaim', claim({ className: null, request: '9Gi' }))
  await bench.server.create('StorageClass', storageClass('std', { isDefault: true }))
  await bench.run.settle()
  const text = await bench.run.metrics.text()
  for (const line of [
    'pv_collector_total_pv_count{plugin_name="kubernetes.io/csi:d",volume_mode="Filesystem"} 1',
    'pv_collector_total_pv_count{plugin_name="N/A",volume_mode="Filesystem"} 1',
    'pv_collector_unbound_pv_count{storage_class="gold"} 1',
    'pv_collector_unbound_pvc_count{namespace="ns",storage_class="std",volume_attributes_class=""} 1',
    'retroactive_storageclass_total 1',
  ])
    assert.ok(text.includes(line), line)
  assert.ok(!text.includes('pv_collector_bound_pv_count{'))
  await bench.run.stop()
})

test('a claim that is deleted before it is bound leaves no latency behind (TC-32, MET-2, WC-40)', async () => {
  const bench = await start(createStorage().plugins)
  await bench.server.create('StorageClass', storageClass('ext'))
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'ext' }))
  await bench.run.settle()
  await dropClaim(bench)
  await bench.run.settle()
  await bench.server.create('PersistentVolume', volume({ className: 'ext' }))
  await bench.run.settle()
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'ext' }))
  await bench.run.settle()
  assert.ok(!(await bench.run.metrics.text()).includes('operation_name="provision"} '))
  await bench.run.stop()
})

test('what is remembered of a failing volume goes with the volume (WC-24)', async () => {
  const storage = createStorage({
    remove: async () => {
      throw new Error('device busy')
    },
  })
  const bench = await start(storage.plugins)
  await bench.server.create('StorageClass', onDisk())
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'disk' }))
  await bench.run.settle()
  await dropClaim(bench)
  await bench.run.settle()
  const { name } = bench.server.all('PersistentVolume')[0]!.metadata
  await bench.server.remove('PersistentVolume', { name })
  const failed = bench.server.peek('PersistentVolume', name)!
  const { finalizers: _none, ...metadata } = failed.metadata
  await bench.server.update('PersistentVolume', { ...failed, metadata })
  await bench.run.settle()
  assert.deepEqual([...bench.run.waiting().keys()], [])
  await bench.clock.advance(1_000_000)
  assert.equal(bench.clock.next(), undefined, 'no timer is left')
  await bench.run.stop()
})
