// What becomes of the answers of a driver that means harm, or has gone wrong? Each is refused with an event that says why, or
// kept harmless: no claim ever gets the data of another one, nothing is asked in a tight loop, no text carries control characters.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CsiError } from '../../src/csi/codes.ts'
import type { DriverHandlers } from '../../src/csi/service.ts'
import { assertWhy } from '../kit/assert-why.ts'
import { createCsiWorld, eventually, furnish, modelClaim } from '../kit/csi-cluster.ts'
import type { CsiWorld } from '../kit/csi-cluster.ts'

/** What a driver says of a volume; the wire has more. */
interface Answer {
  readonly volumeId: string
  readonly capacityBytes?: bigint
  readonly volumeContext?: Readonly<Record<string, string>>
  readonly accessibleTopology?: readonly { readonly segments: Readonly<Record<string, string>> }[]
}

const gibibyte = 1n << 30n
const claimNamed = (name: string) => ({ namespace: 'default', name })
const phaseOf = async ({ client }: CsiWorld, name: string) =>
  (await client.get('PersistentVolumeClaim', claimNamed(name))).status?.phase

/** Changes what the driver says after it has made a volume. */
const createAnswers =
  (change: (honest: Answer) => Answer) =>
  (handlers: DriverHandlers): DriverHandlers => ({
    ...handlers,
    controller: {
      ...handlers.controller,
      createVolume: async (request, signal) => {
        const { volume } = await handlers.controller!.createVolume!(request, signal)
        return { volume: change(volume as Answer) as NonNullable<typeof volume> }
      },
    },
  })

const many = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`key-${index}`, 'value']))

const refusedAnswers: readonly (readonly [what: string, answer: () => Partial<Answer>, says: RegExp])[] = [
  ['an id with NUL', () => ({ volumeId: 'a\0b' }), /volume id .*control character/],
  ['an id with a newline', () => ({ volumeId: 'a\nb' }), /volume id .*control character/],
  ['an id with an escape sequence', () => ({ volumeId: '\u001b[31mred' }), /volume id .*control character/],
  ['an id of 10 kB', () => ({ volumeId: 'x'.repeat(10_000) }), /volume id .*10000 bytes/],
  ['a negative size', () => ({ capacityBytes: -1n }), /capacity -1/],
  ['too small a size', () => ({ capacityBytes: 5n }), /capacity 5 less than requested/],
  ['100,000 entries of context', () => ({ volumeContext: many(100_000) }), /volume context .*100000 entries/],
  ['a context of a megabyte', () => ({ volumeContext: { key: 'x'.repeat(1 << 20) } }), /volume context .*bytes/],
  [
    'a context key with control characters',
    () => ({ volumeContext: { 'a\u001bb': '' } }),
    /volume context .*control character/,
  ],
  [
    'topology with keys that are none',
    () => ({ accessibleTopology: [{ segments: { 'no key!': 'x' } }] }),
    /AnswerRefused|nodeSelectorTerms/,
  ],
  [
    '10,000 places',
    () => ({ accessibleTopology: Array.from({ length: 10_000 }, () => ({ segments: { a: 'b' } })) }),
    /topology .*10000/,
  ],
]

for (const [what, answer, says] of refusedAnswers)
  test(`a volume with ${what} is refused with an event, and deleted again`, async () => {
    const world = await createCsiWorld({ change: createAnswers((honest) => ({ ...honest, ...answer() })) })
    await furnish(world)
    const life = world.start()
    await world.client.create('PersistentVolumeClaim', modelClaim('c'))
    await eventually(world, 'refused', async () =>
      (await world.events()).some((each) => /ProvisioningFailed/.test(each)),
    )
    const event = (await world.events()).find((each) => /ProvisioningFailed/.test(each)) ?? ''
    assert.match(event, says)
    assert.doesNotMatch(event, /\p{Cc}/u)
    assert.ok(event.length < 1_100, `an event of ${event.length} characters`)
    assert.equal((await world.client.list('PersistentVolume')).items.length, 0)
    assert.ok(world.calls.includes('DeleteVolume'), 'what was made was not deleted')
    const before = world.calls.length
    await world.clock.advance(60_000)
    assert.ok(world.calls.length - before < 40, `${world.calls.length - before} calls in a minute`)
    await assertWhy(world, 'pvc/c', 'answerRefused')
    await world.client.remove('PersistentVolumeClaim', claimNamed('c'))
    await eventually(
      world,
      'claim gone',
      async () => (await world.client.list('PersistentVolumeClaim')).items.length === 0,
    )
    await life.stop()
  })

test('ids that look like paths are ids: they are kept to the letter and become no path', async () => {
  for (const volumeId of [
    '../../../etc/passwd',
    '/',
    '..',
    '.',
    'a/b/../c',
    'vol_data.json',
    '__proto__',
    'x'.repeat(512),
  ]) {
    const world = await createCsiWorld({ attach: false, change: createAnswers((honest) => ({ ...honest, volumeId })) })
    await furnish(world, { attachRequired: false })
    const life = world.start()
    await world.client.create('PersistentVolumeClaim', modelClaim('c'))
    await eventually(world, 'bound', async () => (await phaseOf(world, 'c')) === 'Bound')
    const [volume] = (await world.client.list('PersistentVolume')).items
    assert.equal(volume?.spec?.csi?.volumeHandle, volumeId)
    await life.stop()
  }
})

test('one handle for two claims: the second is refused, and the data of the first stays', async () => {
  let first: Answer | undefined
  const world = await createCsiWorld({ change: createAnswers((honest) => (first ??= honest)) })
  await furnish(world)
  const life = world.start()
  await world.client.create('PersistentVolumeClaim', modelClaim('mine'))
  await eventually(world, 'bound', async () => (await phaseOf(world, 'mine')) === 'Bound')
  await world.client.create('PersistentVolumeClaim', modelClaim('other'))
  await eventually(world, 'refused', async () =>
    (await world.events()).some((each) => /ProvisioningFailed.*already the handle of PersistentVolume pvc-/.test(each)),
  )
  await world.clock.advance(120_000)
  assert.equal(await phaseOf(world, 'other'), 'Pending')
  assert.equal((await world.client.list('PersistentVolume')).items.length, 1)
  assert.ok(!world.calls.includes('DeleteVolume'), 'the data of the first claim was deleted')
  await assertWhy(world, 'pvc/other', 'answerRefused')
  await world.client.remove('PersistentVolumeClaim', claimNamed('other'))
  await eventually(
    world,
    'claim gone',
    async () => (await world.client.list('PersistentVolumeClaim')).items.length === 1,
  )
  assert.ok(!world.calls.includes('DeleteVolume'))
  await life.stop()
})

test('one handle for two claims that are made at the same time: one of them gets it', async () => {
  let first: Answer | undefined
  const world = await createCsiWorld({ change: createAnswers((honest) => (first ??= honest)) })
  await furnish(world)
  const life = world.start()
  await Promise.all(['a', 'b', 'c'].map((name) => world.client.create('PersistentVolumeClaim', modelClaim(name))))
  await world.clock.advance(60_000)
  assert.equal((await world.client.list('PersistentVolume')).items.length, 1)
  const phases = await Promise.all(['a', 'b', 'c'].map((name) => phaseOf(world, name)))
  assert.deepEqual(phases.toSorted(), ['Bound', 'Pending', 'Pending'])
  assert.ok(!world.calls.includes('DeleteVolume'))
  await life.stop()
})

test('a volume that another object names too is not deleted with the first', async () => {
  const world = await createCsiWorld()
  const { client } = world
  await furnish(world)
  const life = world.start()
  await client.create('PersistentVolumeClaim', modelClaim('c'))
  await eventually(world, 'bound', async () => (await phaseOf(world, 'c')) === 'Bound')
  const [volume] = (await client.list('PersistentVolume')).items
  const { claimRef: _claim, ...spec } = volume!.spec!
  await client.create('PersistentVolume', {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'kept' },
    spec: { ...spec, persistentVolumeReclaimPolicy: 'Retain', storageClassName: 'by-hand' },
  })
  await client.remove('PersistentVolumeClaim', claimNamed('c'))
  await eventually(world, 'told', async () =>
    (await world.events()).some((each) => /VolumeFailedDelete.*PersistentVolume kept/.test(each)),
  )
  await world.clock.advance(120_000)
  assert.ok(!world.calls.includes('DeleteVolume'), 'the data of volume kept was deleted')
  await assertWhy(world, `pv/${volume!.metadata.name}`, 'storageShared')
  await client.remove('PersistentVolume', { name: 'kept' })
  await eventually(world, 'deleted', async () => (await client.list('PersistentVolume')).items.length === 0)
  assert.ok(world.calls.includes('DeleteVolume'))
  await life.stop()
})

test('a long error with control characters is cut and made readable', async () => {
  const world = await createCsiWorld({
    change: (handlers) => ({
      ...handlers,
      controller: {
        ...handlers.controller,
        createVolume: async () => {
          throw new CsiError('INTERNAL', `\u001b]0;owned\u0007 first\nsecond\0 ${'x'.repeat(4 << 20)}`)
        },
      },
    }),
  })
  await furnish(world)
  const life = world.start()
  await world.client.create('PersistentVolumeClaim', modelClaim('c'))
  await eventually(world, 'told', async () =>
    (await world.client.list('Operation')).items.some((each) => each.status?.error),
  )
  const { items } = await world.client.list('Operation')
  const texts = [...items.map((each) => JSON.stringify(each.status?.error?.message ?? '')), ...(await world.events())]
  for (const text of texts) {
    assert.ok(text.length < 5_000, `${text.length} characters`)
    assert.doesNotMatch(text, /[^\P{Cc}\n]/u)
  }
  assert.ok(items.some((each) => /owned.* first/.test(each.status?.error?.message ?? '')))
  await life.stop()
})

test('an expansion that shrinks, or has a size that is none, is an error: the claim keeps its size', async () => {
  for (const capacityBytes of [1n, -1n, gibibyte]) {
    const world = await createCsiWorld({
      change: (handlers) => ({
        ...handlers,
        controller: {
          ...handlers.controller,
          controllerExpandVolume: async () => ({ capacityBytes, nodeExpansionRequired: false }),
        },
      }),
    })
    const { client } = world
    await furnish(world)
    const life = world.start()
    await client.create('PersistentVolumeClaim', modelClaim('c'))
    await eventually(world, 'bound', async () => (await phaseOf(world, 'c')) === 'Bound')
    const claim = await client.get('PersistentVolumeClaim', claimNamed('c'))
    const spec = { ...claim.spec, resources: { requests: { storage: '2Gi' } } }
    await client.update('PersistentVolumeClaim', { ...claim, spec })
    await eventually(world, 'told', async () => (await world.events()).some((each) => /VolumeResizeFailed/.test(each)))
    const [volume] = (await client.list('PersistentVolume')).items
    assert.equal(volume?.spec?.capacity?.['storage'], '1Gi')
    assert.equal((await client.get('PersistentVolumeClaim', claimNamed('c'))).status?.capacity?.['storage'], '1Gi')
    await life.stop()
  }
})

test('two snapshots with one handle: the second is refused, and neither deletes the other', async () => {
  const world = await createCsiWorld({
    change: (handlers) => ({
      ...handlers,
      controller: {
        ...handlers.controller,
        createSnapshot: async (request, signal) => {
          const { snapshot } = await handlers.controller!.createSnapshot!(request, signal)
          return { snapshot: { ...snapshot!, snapshotId: 'always-the-same' } as NonNullable<typeof snapshot> }
        },
      },
    }),
  })
  const { client } = world
  await furnish(world)
  await client.create('VolumeSnapshotClass', {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    metadata: { name: 'model' },
    driver: 'model.hawser.dev',
    deletionPolicy: 'Delete',
  })
  const life = world.start()
  await client.create('PersistentVolumeClaim', modelClaim('c'))
  await eventually(world, 'bound', async () => (await phaseOf(world, 'c')) === 'Bound')
  const take = (name: string) =>
    client.create('VolumeSnapshot', {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: claimNamed(name),
      spec: { volumeSnapshotClassName: 'model', source: { persistentVolumeClaimName: 'c' } },
    })
  const ready = async (name: string) =>
    (await client.get('VolumeSnapshot', claimNamed(name))).status?.readyToUse === true
  await take('mine')
  await eventually(world, 'ready', () => ready('mine'))
  await take('other')
  await eventually(world, 'refused', async () =>
    (await world.events()).some((each) => /already the handle of VolumeSnapshotContent snapcontent-/.test(each)),
  )
  assert.equal(await ready('other'), false)
  await client.remove('VolumeSnapshot', claimNamed('other'))
  await eventually(world, 'gone', async () => (await client.list('VolumeSnapshot')).items.length === 1)
  await world.clock.advance(60_000)
  assert.ok(!world.calls.includes('DeleteSnapshot'), 'the snapshot of the first was deleted')
  assert.equal(await ready('mine'), true)
  await life.stop()
})

test('snapshots without a usable id, size or time are refused with an event', async () => {
  const wrong = [
    { snapshotId: '' },
    { snapshotId: 'a\u001b[2J' },
    { snapshotId: 'x'.repeat(10_000) },
    { sizeBytes: -1n },
    { creationTime: { seconds: 1n << 62n, nanos: 0 } },
  ]
  for (const each of wrong) {
    const world = await createCsiWorld({
      change: (handlers) => ({
        ...handlers,
        controller: {
          ...handlers.controller,
          createSnapshot: async (request, signal) => {
            const { snapshot } = await handlers.controller!.createSnapshot!(request, signal)
            return { snapshot: { ...snapshot!, ...each } as NonNullable<typeof snapshot> }
          },
        },
      }),
    })
    const { client } = world
    await furnish(world)
    const life = world.start()
    await client.create('PersistentVolumeClaim', modelClaim('c'))
    await eventually(world, 'bound', async () => (await phaseOf(world, 'c')) === 'Bound')
    await client.create('VolumeSnapshotClass', {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshotClass',
      metadata: { name: 'model' },
      driver: 'model.hawser.dev',
      deletionPolicy: 'Delete',
    })
    await client.create('VolumeSnapshot', {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: claimNamed('s'),
      spec: { volumeSnapshotClassName: 'model', source: { persistentVolumeClaimName: 'c' } },
    })
    await eventually(world, 'told', async () =>
      (await world.events()).some((text) => /SnapshotContentCheckandUpdateFailed.*driver answered/.test(text)),
    )
    await life.stop()
  }
})

/** A pod's volume is wanted on the node. */
async function attach({ client }: CsiWorld, persistentVolumeName: string): Promise<void> {
  await client.create('VolumeAttachment', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: { name: 'va' },
    spec: { attacher: 'model.hawser.dev', nodeName: 'n1', source: { persistentVolumeName } },
  })
}

test('an attachment whose context no object can hold is an error, and is detached all the same', async () => {
  for (const publishContext of [many(100_000), { 'a\u001b': '' }, { devicePath: '/dev/\u0000' }]) {
    const world = await createCsiWorld({
      change: (handlers) => ({
        ...handlers,
        controller: {
          ...handlers.controller,
          controllerPublishVolume: async (request, signal) => {
            await handlers.controller!.controllerPublishVolume!(request, signal)
            return { publishContext }
          },
        },
      }),
    })
    const { client } = world
    await furnish(world)
    const life = world.start()
    await client.create('PersistentVolumeClaim', modelClaim('c'))
    await eventually(world, 'bound', async () => (await phaseOf(world, 'c')) === 'Bound')
    await attach(world, (await client.list('PersistentVolume')).items[0]!.metadata.name)
    const status = async () => (await client.get('VolumeAttachment', { name: 'va' })).status
    await eventually(world, 'told', async () => /publish context/.test((await status())?.attachError?.message ?? ''))
    assert.equal((await status())?.attached, false)
    await client.remove('VolumeAttachment', { name: 'va' })
    await eventually(world, 'gone', async () => (await client.list('VolumeAttachment')).items.length === 0)
    assert.ok(world.calls.includes('ControllerUnpublishVolume'))
    await life.stop()
  }
})

test('a driver that claims what it cannot do is asked seldom, and the claim says why', async () => {
  const world = await createCsiWorld({
    change: (handlers) => {
      const { controllerExpandVolume: _expand, getCapacity: _capacity, ...rest } = handlers.controller!
      return { ...handlers, controller: { ...rest, getCapacity: async () => ({ availableCapacity: -(1n << 62n) }) } }
    },
  })
  const { client } = world
  await furnish(world, { waits: true })
  const life = world.start()
  await client.create('PersistentVolumeClaim', modelClaim('c', { 'volume.kubernetes.io/selected-node': 'n1' }))
  await eventually(world, 'bound', async () => (await phaseOf(world, 'c')) === 'Bound')
  const claim = await client.get('PersistentVolumeClaim', claimNamed('c'))
  await client.update('PersistentVolumeClaim', {
    ...claim,
    spec: { ...claim.spec, resources: { requests: { storage: '2Gi' } } },
  })
  await eventually(world, 'told', async () => (await world.events()).some((each) => /VolumeResizeFailed/.test(each)))
  const before = world.calls.length
  await world.clock.advance(60_000)
  assert.ok(world.calls.length - before < 60, `${world.calls.length - before} calls in a minute`)
  assert.deepEqual((await client.list('CSIStorageCapacity')).items, [])
  await assertWhy(world, 'pvc/c', 'notSupported')
  await life.stop()
})
