// Do the binding controller's stories end as the specification's scenarios (T-*) say? On the tiny server, in no time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBindingController } from '../../src/controllers/binding/controller.ts'
import { createRegistry } from '../../src/volume/registry.ts'
import { createBench } from './harness.ts'
import { assertWhy } from '../support/assert-why.ts'
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

test('VOL-2: of a crowd of volumes that nobody wants the first are available at once, the others a moment later', async () => {
  const bench = createBench()
  const run = bench.run(binding)
  await run.settle()
  const make = async (prefix: string, className = '') => {
    for (let each = 0; each < 110; each++)
      await bench.server.create('PersistentVolume', volume({ name: `${prefix}${each}`, className }))
    await run.settle()
  }
  const available = (prefix: string) =>
    bench.server
      .all('PersistentVolume')
      .filter(({ metadata, status }) => metadata.name.startsWith(prefix) && status?.phase === 'Available').length
  await make('a')
  assert.equal(available('a'), 100)
  // A claim for another class changes nothing; one for theirs ends the wait.
  await bench.server.create('PersistentVolumeClaim', claim({ name: 'other', className: 'elsewhere' }))
  await run.settle()
  assert.equal(available('a'), 100)
  await bench.server.create('PersistentVolumeClaim', claim())
  await run.settle()
  assert.equal(available('a'), 109)
  assert.equal(bench.server.peek('PersistentVolumeClaim', 'ns/c')?.status?.phase, 'Bound')
  // In the same second: all of these wait, but not those that the other claim is waiting for.
  await make('b')
  await make('e', 'elsewhere')
  assert.equal(available('b'), 0)
  assert.equal(bench.server.peek('PersistentVolumeClaim', 'ns/other')?.status?.phase, 'Bound')
  await bench.clock.advance(1_500)
  await run.settle()
  assert.deepEqual([available('b'), available('e')], [110, 109])
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
  await assertWhy(await bench.asked(), 'pvc/ns/c3', 'noVolumeFits')
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
  await assertWhy(await bench.asked(), 'pvc/ns/c2', 'volumeLost')
  await assertWhy(await bench.asked(), 'pv/v1', 'retained')
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

test('CLM-10 W-2: a delayed claim says whom it waits for, and hears of pods', async () => {
  const bench = createBench()
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

test('CLM-9 T-43: a class that becomes the default is given to claims that made no choice, and to no others', async () => {
  const bench = createBench()
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

test('T-6 BND-3 BND-4 I-6: after a crash behind any of the four writes, one look of the next process completes the pair', async () => {
  for (let survived = 1; survived <= 4; survived++) {
    const bench = createBench()
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

test('CTL-1 CTL-2 CTL-4 W-1: what was there before the start is looked at once, and then nothing ticks', async () => {
  const bench = createBench()
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

test('CTL-7 CLM-1 VOL-1: a repair that fails stops the look with its error; the key comes back', async () => {
  const bench = createBench()
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

test('BND-8 CLM-21: the loss is told only after it was written, and only once', async () => {
  const bench = createBench()
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

test('W-6 PRV-5: what did not change is not said again, until minutes have passed', async () => {
  const bench = createBench()
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

test('W-3: claims are bound side by side, not one after the other', async () => {
  const bench = createBench()
  const run = bench.run(binding, { delayMs: ({ verb }) => (verb === 'update' ? 10 : 0) })
  for (let at = 0; at < 32; at++) await bench.server.create('PersistentVolume', volume({ name: `v${at}` }))
  await bench.clock.advance(100)
  for (let at = 0; at < 32; at++) await bench.server.create('PersistentVolumeClaim', claim({ name: `c${at}` }))
  await bench.clock.advance(50)
  const bound = bench.server.all('PersistentVolumeClaim').filter((each) => each.status?.phase === 'Bound')
  assert.equal(bound.length, 32)
  await run.stop()
})

test('PRV-6 PRV-7 T-29: the annotations stay after binding, and a second volume of the same claim is let go', async () => {
  const bench = createBench()
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
      annotations: { 'pv.kubernetes.io/provisioned-by': 'example.com/csi' },
    })
  await bench.server.create('PersistentVolume', twin('a'))
  await bench.server.create('PersistentVolume', twin('b'))
  await run.settle()
  const bound = bench.server.peek('PersistentVolumeClaim', 'ns/c')
  assert.equal(bound?.metadata.annotations?.['volume.kubernetes.io/storage-provisioner'], 'example.com/csi')
  const phases = ['a', 'b'].map((name) => bench.server.peek('PersistentVolume', name)?.status?.phase)
  assert.deepEqual(phases, ['Bound', 'Released'])
  await run.stop()
})
