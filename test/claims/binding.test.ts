// Do the binding controller's stories end as the specification's scenarios (TC-*) say? On virtual time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBindingController } from '../../src/controllers/binding/controller.ts'
import { createRegistry } from '../../src/volume/registry.ts'
import { createVirtualCluster } from '../kit/virtual-cluster.ts'
import type { VirtualCluster } from '../kit/virtual-cluster.ts'
import { assertWhy } from '../kit/assert-why.ts'
import { claim, pod, storageClass, volume } from '../kit/objects.ts'

const binding = (deps: Parameters<Parameters<VirtualCluster['run']>[0]>[0]) => [
  createBindingController({ ...deps, plugins: createRegistry([]), options: { auditMs: 0 } }),
]

test('a free volume and a fitting claim are bound by four writes in order, with both marks (TC-1, BND-1, BND-2)', async () => {
  const bench = await createVirtualCluster()
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

test('a claim that waited is bound as soon as a volume becomes available, the oldest first (WC-2, CTL-8)', async () => {
  const bench = await createVirtualCluster()
  const run = bench.run(binding)
  for (const name of ['c1', 'c2', 'c3']) {
    await bench.server.create('PersistentVolumeClaim', claim({ name }))
    await bench.clock.advance(1_000)
  }
  await bench.server.create('PersistentVolume', volume({ name: 'v1' }))
  await bench.server.create('PersistentVolume', volume({ name: 'v2' }))
  await run.settle()
  const phases = ['c1', 'c2', 'c3'].map(
    (name) => bench.server.peek('PersistentVolumeClaim', `ns/${name}`)?.status?.phase,
  )
  assert.deepEqual(phases, ['Bound', 'Bound', 'Pending'])
  assert.deepEqual(run.waiting().get('PersistentVolumeClaim/ns/c3')?.[0]?.reason, 'noVolumeFits')
  await assertWhy(await bench.asked(), 'pvc/ns/c3', 'noVolumeFits')
  await run.stop()
})

test('a hundred claims and fifty volumes end in fifty pairs (I-1)', async () => {
  const bench = await createVirtualCluster()
  const run = bench.run(binding)
  for (let at = 0; at < 50; at++) await bench.server.create('PersistentVolume', volume({ name: `v${at}` }))
  for (let at = 0; at < 100; at++) await bench.server.create('PersistentVolumeClaim', claim({ name: `c${at}` }))
  await run.settle()
  const bound = bench.server.all('PersistentVolumeClaim').filter((each) => each.status?.phase === 'Bound')
  assert.equal(bound.length, 50)
  assert.equal(new Set(bound.map((each) => each.spec.volumeName)).size, 50)
  await run.stop()
})

test('a deleted claim releases its volume at once, a deleted volume makes its claim Lost at once (TC-31, CTL-5, CTL-6)', async () => {
  const bench = await createVirtualCluster()
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
  await assertWhy(await bench.asked(), 'pvc/ns/c2', 'volumeLost')
  await assertWhy(await bench.asked(), 'pv/v1', 'retained')
  assert.deepEqual(bench.events(), [
    'Warning ClaimLost PersistentVolumeClaim/c2: Bound claim has lost its PersistentVolume. Data on the volume is lost!',
  ])
  await run.stop()
})

test('an external class gets both annotations and one event; the volume that appears is bound (TC-39, PRV-4, PRV-5)', async () => {
  const bench = await createVirtualCluster()
  const run = bench.run(binding)
  await bench.server.create('StorageClass', storageClass('fast'))
  const made = await bench.server.create('PersistentVolumeClaim', claim({ className: 'fast' }))
  await run.settle()
  const asked = bench.server.peek('PersistentVolumeClaim', 'ns/c')
  assert.deepEqual(asked?.metadata.annotations, {
    'volume.kubernetes.io/storage-provisioner': 'csi.example.com',
    'volume.beta.kubernetes.io/storage-provisioner': 'csi.example.com',
  })
  await assertWhy(await bench.asked(), 'pvc/ns/c', 'provisionerAbsent')
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

test('a delayed claim says whom it waits for, and hears of pods (CLM-10, WC-2)', async () => {
  const bench = await createVirtualCluster()
  const run = bench.run(binding)
  await bench.server.create('StorageClass', storageClass('late', { volumeBindingMode: 'WaitForFirstConsumer' }))
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await run.settle()
  await assertWhy(await bench.asked(), 'pvc/ns/c', 'firstConsumer')
  await bench.server.create('Pod', pod('p', { claims: ['c'] }))
  await run.settle()
  await assertWhy(await bench.asked(), 'pvc/ns/c', 'noNodes')
  assert.deepEqual(bench.events(), [
    'Normal WaitForFirstConsumer PersistentVolumeClaim/c: waiting for first consumer to be created before binding',
    'Normal WaitForPodScheduled PersistentVolumeClaim/c: waiting for pod p to be scheduled',
  ])
  await run.stop()
})

test('a class that becomes the default is given to claims that made no choice, and to no others (CLM-9, TC-43)', async () => {
  const bench = await createVirtualCluster()
  const run = bench.run(binding)
  await bench.server.create('PersistentVolumeClaim', claim({ name: 'silent', className: null }))
  await bench.server.create('PersistentVolumeClaim', claim({ name: 'decided', className: '' }))
  await run.settle()
  await assertWhy(await bench.asked(), 'pvc/ns/silent', 'noDefaultClass')
  await bench.server.create('StorageClass', storageClass('std', { isDefault: true }))
  await run.settle()
  const classes = ['silent', 'decided'].map(
    (name) => bench.server.peek('PersistentVolumeClaim', `ns/${name}`)?.spec.storageClassName,
  )
  assert.deepEqual(classes, ['std', ''])
  await run.stop()
})

test('of two volumes that carry the uid of a claim, the one it is not bound to is freed (TC-26, TC-29, VOL-11)', async () => {
  const bench = await createVirtualCluster()
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

test('after a crash behind any of the four writes, one look of the next process completes the pair (TC-6, BND-3, BND-4, I-6)', async () => {
  for (let survived = 1; survived <= 4; survived++) {
    const bench = await createVirtualCluster()
    let writes = 0
    const dying = bench.run(binding, {
      before: ({ verb }) => {
        if (verb === 'update' && writes >= survived) throw new Error('crashed')
      },
      after: ({ verb, kind }) => {
        if (verb === 'update' && kind !== 'Event' && ++writes >= survived) throw new Error('crashed')
      },
    })
    const made = await bench.server.create('PersistentVolume', volume())
    await bench.server.update(
      'PersistentVolume',
      { ...made, status: { phase: 'Available' } },
      { subresource: 'status' },
    )
    await bench.server.create('PersistentVolumeClaim', claim())
    await dying.settle()
    await dying.stop()
    bench.server.writes.length = 0
    const next = bench.run(binding)
    await next.settle()
    const [pv, pvc] = [bench.server.peek('PersistentVolume', 'v'), bench.server.peek('PersistentVolumeClaim', 'ns/c')]
    assert.deepEqual([pv?.status?.phase, pvc?.status?.phase, pvc?.spec.volumeName], ['Bound', 'Bound', 'v'])
    assert.equal(bench.server.writes.length, 4 - survived, `the writes that were missing after ${survived}`)
    await next.stop()
  }
})

test('what was there before the start is looked at once, and then nothing ticks (CTL-1, CTL-2, CTL-4, WC-1)', async () => {
  const bench = await createVirtualCluster()
  await bench.server.create('PersistentVolume', volume())
  await bench.server.create('PersistentVolumeClaim', claim())
  const run = bench.run(binding)
  await run.settle()
  assert.equal(bench.server.peek('PersistentVolumeClaim', 'ns/c')?.status?.phase, 'Bound')
  bench.server.writes.length = 0
  assert.equal(bench.clock.next(), undefined)
  assert.deepEqual(bench.server.writes, [])
  await run.stop()
})

test('a repair that fails stops the look with its error; the key comes back (CTL-7, CLM-1, VOL-1)', async () => {
  const bench = await createVirtualCluster()
  let refusals = 1
  const run = bench.run(binding, {
    before: ({ verb, kind }) => {
      if (verb === 'update' && kind === 'PersistentVolumeClaim' && refusals-- > 0) throw new Error('not now')
    },
  })
  await bench.server.create('StorageClass', storageClass('x', { provisioner: 'kubernetes.io/aws-ebs' }))
  const annotations = { 'volume.kubernetes.io/storage-provisioner': 'kubernetes.io/aws-ebs' }
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'x', annotations }))
  await run.settle()
  assert.equal(run.waiting().get('PersistentVolumeClaim/ns/c')?.[0]?.reason, 'retrying')
  await assertWhy(await bench.asked(), 'pvc/ns/c', 'retrying')
  assert.deepEqual(bench.events(), [])
  await bench.clock.advance(50)
  assert.equal(
    bench.server.peek('PersistentVolumeClaim', 'ns/c')?.metadata.annotations?.[
      'volume.kubernetes.io/storage-provisioner'
    ],
    'ebs.csi.aws.com',
  )
  await run.stop()
})

test('the loss is told only after it was written, and only once (BND-8, CLM-21)', async () => {
  const bench = await createVirtualCluster()
  let refusals = 1
  const run = bench.run(binding, {
    before: ({ verb, subresource }) => {
      if (verb === 'update' && subresource === 'status' && refusals-- > 0) throw new Error('not now')
    },
  })
  await bench.server.create(
    'PersistentVolumeClaim',
    claim({ volumeName: 'v', annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } }),
  )
  await run.settle()
  assert.deepEqual(bench.events(), [])
  await bench.clock.advance(20)
  const lost = bench.server.peek('PersistentVolumeClaim', 'ns/c')!
  await bench.server.update('PersistentVolumeClaim', { ...lost, metadata: { ...lost.metadata, labels: { a: 'b' } } })
  await run.settle()
  assert.equal(bench.events().length, 1)
  await run.stop()
})

test('what did not change is not said again, until minutes have passed (WC-6, PRV-5)', async () => {
  const bench = await createVirtualCluster()
  const run = bench.run(binding)
  await bench.server.create('PersistentVolumeClaim', claim())
  await run.settle()
  const touch = async (label: string) => {
    const now = bench.server.peek('PersistentVolumeClaim', 'ns/c')!
    await bench.server.update('PersistentVolumeClaim', { ...now, metadata: { ...now.metadata, labels: { label } } })
    await run.settle()
    return bench.server.all('Event').map(({ count }) => count)
  }
  assert.deepEqual(await touch('a'), [1])
  await bench.clock.advance(300_000)
  assert.deepEqual(await touch('b'), [2])
  await run.stop()
})

test('claims are bound side by side, not one after the other (WC-3)', async () => {
  const bench = await createVirtualCluster()
  const run = bench.run(binding, { delayMs: ({ verb }) => (verb === 'update' ? 10 : 0) })
  for (let at = 0; at < 32; at++) await bench.server.create('PersistentVolume', volume({ name: `v${at}` }))
  await bench.clock.advance(100)
  for (let at = 0; at < 32; at++) await bench.server.create('PersistentVolumeClaim', claim({ name: `c${at}` }))
  await bench.clock.advance(50)
  const bound = bench.server.all('PersistentVolumeClaim').filter((each) => each.status?.phase === 'Bound')
  assert.equal(bound.length, 32)
  await run.stop()
})

test('the annotations stay after binding, and a second volume of the same claim is let go (PRV-6, PRV-7, TC-29)', async () => {
  const bench = await createVirtualCluster()
  const run = bench.run(binding)
  await bench.server.create('StorageClass', storageClass('fast'))
  const { metadata } = await bench.server.create('PersistentVolumeClaim', claim({ className: 'fast' }))
  await run.settle()
  const twin = (name: string) =>
    volume({
      name,
      className: 'fast',
      policy: 'Delete',
      claimRef: { name: 'c', uid: metadata.uid! },
      annotations: { 'pv.kubernetes.io/provisioned-by': 'csi.example.com' },
    })
  await bench.server.create('PersistentVolume', twin('a'))
  await bench.server.create('PersistentVolume', twin('b'))
  await run.settle()
  const bound = bench.server.peek('PersistentVolumeClaim', 'ns/c')
  assert.equal(bound?.metadata.annotations?.['volume.kubernetes.io/storage-provisioner'], 'csi.example.com')
  const phases = ['a', 'b'].map((name) => bench.server.peek('PersistentVolume', name)?.status?.phase)
  assert.deepEqual(phases, ['Bound', 'Released'])
  await run.stop()
})
