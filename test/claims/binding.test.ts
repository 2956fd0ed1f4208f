// Do the binding controller's stories end as the specification's scenarios (T-*) say? On the tiny server, in no time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBindingController } from '../../src/controllers/binding/controller.ts'
import { createRegistry } from '../../src/volume/registry.ts'
import { createBench } from './harness.ts'
import { claim, pod, storageClass, volume } from './make.ts'

const binding = (deps: Parameters<Parameters<ReturnType<typeof createBench>['run']>[0]>[0]) => [
  createBindingController({ ...deps, plugins: createRegistry([]), options: { auditMs: 0 } }),
]

test('T-1 BND-1 BND-2: a free volume and a fitting claim are bound by four writes in order, with both marks', async () => {
  const bench = createBench()
  const run = bench.run(binding)
  await bench.server.create('PersistentVolume', volume())
  await run.settle()
  assert.equal(bench.server.peek('PersistentVolume', 'v')?.status?.phase, 'Available')
  bench.server.writes.length = 0
  const created = await bench.server.create('PersistentVolumeClaim', claim())
  await run.settle()
  assert.deepEqual(bench.server.writes, [
    'create PersistentVolumeClaim/ns/c',
    'update PersistentVolume/v',
    'update PersistentVolume/v/status',
    'update PersistentVolumeClaim/ns/c',
    'update PersistentVolumeClaim/ns/c/status',
  ])
  const bound = bench.server.peek('PersistentVolume', 'v')
  assert.deepEqual(
    [bound?.spec.claimRef?.uid, bound?.metadata.annotations, bound?.status?.phase],
    [created.metadata.uid, { 'pv.kubernetes.io/bound-by-controller': 'yes' }, 'Bound'],
  )
  const claimed = bench.server.peek('PersistentVolumeClaim', 'ns/c')
  assert.deepEqual(
    [claimed?.spec.volumeName, claimed?.metadata.annotations, claimed?.status],
    [
      'v',
      { 'pv.kubernetes.io/bound-by-controller': 'yes', 'pv.kubernetes.io/bind-completed': 'yes' },
      { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } },
    ],
  )
  assert.deepEqual(bench.events(), [])
  await run.stop()
})

test('W-2 CTL-8: a claim that waited is bound as soon as a volume becomes available, the oldest first', async () => {
  const bench = createBench()
  const run = bench.run(binding)
  for (const name of ['c1', 'c2', 'c3']) {
    await bench.server.create('PersistentVolumeClaim', claim({ name }))
    await run.settle()
  }
  await bench.server.create('PersistentVolume', volume({ name: 'v1' }))
  await bench.server.create('PersistentVolume', volume({ name: 'v2' }))
  await run.settle()
  const phases = ['c1', 'c2', 'c3'].map(
    (name) => bench.server.peek('PersistentVolumeClaim', `ns/${name}`)?.status?.phase,
  )
  assert.deepEqual(phases, ['Bound', 'Bound', 'Pending'])
  assert.deepEqual(run.waiting().get('PersistentVolumeClaim/ns/c3')?.[0]?.reason, 'noVolumeFits')
  await run.stop()
})

test('I-1: a hundred claims and fifty volumes end in fifty pairs', async () => {
  const bench = createBench()
  const run = bench.run(binding)
  for (let at = 0; at < 50; at++) await bench.server.create('PersistentVolume', volume({ name: `v${at}` }))
  for (let at = 0; at < 100; at++) await bench.server.create('PersistentVolumeClaim', claim({ name: `c${at}` }))
  await run.settle()
  const bound = bench.server.all('PersistentVolumeClaim').filter((each) => each.status?.phase === 'Bound')
  assert.equal(bound.length, 50)
  assert.equal(new Set(bound.map((each) => each.spec.volumeName)).size, 50)
  await run.stop()
})

test('T-31 CTL-5 CTL-6: a deleted claim releases its volume at once, a deleted volume makes its claim Lost at once', async () => {
  const bench = createBench()
  const run = bench.run(binding)
  for (const name of ['1', '2']) {
    await bench.server.create('PersistentVolume', volume({ name: `v${name}`, className: name }))
    await run.settle()
    await bench.server.create('PersistentVolumeClaim', claim({ name: `c${name}`, className: name }))
  }
  await run.settle()
  const strip = async (kind: 'PersistentVolume' | 'PersistentVolumeClaim', key: string) => {
    const object = bench.server.peek(kind, key)!
    const { finalizers: _gone, ...metadata } = object.metadata
    await bench.server.update(kind, { ...object, metadata } as never)
    await bench.server.remove(kind, { namespace: object.metadata.namespace ?? '', name: object.metadata.name })
  }
  await strip('PersistentVolumeClaim', 'ns/c1')
  await strip('PersistentVolume', 'v2')
  await run.settle()
  assert.equal(bench.server.peek('PersistentVolume', 'v1')?.status?.phase, 'Released')
  assert.equal(bench.server.peek('PersistentVolumeClaim', 'ns/c2')?.status?.phase, 'Lost')
  assert.deepEqual(bench.events(), [
    'Warning ClaimLost PersistentVolumeClaim/c2: Bound claim has lost its PersistentVolume. Data on the volume is lost!',
  ])
  await run.stop()
})

test('T-39 PRV-4 PRV-5: an external class gets both annotations and one event; the volume that appears is bound', async () => {
  const bench = createBench()
  const run = bench.run(binding)
  await bench.server.create('StorageClass', storageClass('fast'))
  const made = await bench.server.create('PersistentVolumeClaim', claim({ className: 'fast' }))
  await run.settle()
  const asked = bench.server.peek('PersistentVolumeClaim', 'ns/c')
  assert.deepEqual(asked?.metadata.annotations, {
    'volume.kubernetes.io/storage-provisioner': 'example.com/csi',
    'volume.beta.kubernetes.io/storage-provisioner': 'example.com/csi',
  })
  bench.server.writes.length = 0
  const provisioned = volume({ name: 'pvc-x', className: 'fast', claimRef: { name: 'c', uid: made.metadata.uid! } })
  await bench.server.create('PersistentVolume', provisioned)
  await run.settle()
  assert.deepEqual(bench.server.writes, [
    'create PersistentVolume/pvc-x',
    'update PersistentVolume/pvc-x/status',
    'update PersistentVolumeClaim/ns/c',
    'update PersistentVolumeClaim/ns/c/status',
  ])
  assert.equal(bench.events().length, 1)
  await run.stop()
})

test('CLM-10 W-2: a delayed claim says whom it waits for, and hears of pods', async () => {
  const bench = createBench()
  const run = bench.run(binding)
  await bench.server.create('StorageClass', storageClass('late', { volumeBindingMode: 'WaitForFirstConsumer' }))
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await run.settle()
  await bench.server.create('Pod', pod('p', { claims: ['c'] }))
  await run.settle()
  assert.deepEqual(bench.events(), [
    'Normal WaitForFirstConsumer PersistentVolumeClaim/c: waiting for first consumer to be created before binding',
    'Normal WaitForPodScheduled PersistentVolumeClaim/c: waiting for pod p to be scheduled',
  ])
  await run.stop()
})

test('CLM-9 T-43: a class that becomes the default is given to claims that made no choice, and to no others', async () => {
  const bench = createBench()
  const run = bench.run(binding)
  await bench.server.create('PersistentVolumeClaim', claim({ name: 'silent', className: null }))
  await bench.server.create('PersistentVolumeClaim', claim({ name: 'decided', className: '' }))
  await run.settle()
  await bench.server.create('StorageClass', storageClass('std', { isDefault: true }))
  await run.settle()
  const classes = ['silent', 'decided'].map(
    (name) => bench.server.peek('PersistentVolumeClaim', `ns/${name}`)?.spec.storageClassName,
  )
  assert.deepEqual(classes, ['std', ''])
  await run.stop()
})

test('T-26 T-29 VOL-11: of two volumes that carry the uid of a claim, the one it is not bound to is freed', async () => {
  const bench = createBench()
  const run = bench.run(binding)
  const made = await bench.server.create('PersistentVolumeClaim', claim())
  await run.settle()
  const uid = made.metadata.uid!
  const marked = { 'pv.kubernetes.io/bound-by-controller': 'yes' }
  await bench.server.create(
    'PersistentVolume',
    volume({ name: 'v1', claimRef: { name: 'c', uid }, annotations: marked }),
  )
  await bench.server.create(
    'PersistentVolume',
    volume({ name: 'v2', claimRef: { name: 'c', uid }, annotations: marked }),
  )
  await bench.server.create('PersistentVolume', volume({ name: 'v3', claimRef: { name: 'c', uid } }))
  await run.settle()
  const after = bench.server
    .all('PersistentVolume')
    .map((each) => [each.metadata.name, each.status?.phase, each.spec.claimRef?.uid === uid, each.spec.claimRef?.name])
  assert.deepEqual(after, [
    ['v1', 'Bound', true, 'c'],
    ['v2', 'Available', false, undefined],
    ['v3', 'Available', false, 'c'],
  ])
  await run.stop()
})
