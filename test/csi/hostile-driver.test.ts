// What becomes of the answers of a driver that means harm, or has gone wrong? Each is refused with an event that says why, or
// kept harmless: no claim ever gets the data of another one, nothing is asked in a tight loop, no text carries control characters.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolume } from '../../src/api/generated/types.ts'
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

type Controller = NonNullable<DriverHandlers['controller']>

/** The driver with other answers to some calls of its controller. */
const answering =
  (calls: (honest: Controller) => Partial<Controller>) =>
  (handlers: DriverHandlers): DriverHandlers => ({
    ...handlers,
    controller: { ...handlers.controller, ...calls(handlers.controller!) },
  })

/** Changes what the driver says after it has made a volume. */
const createAnswers = (change: (honest: Answer) => Answer) =>
  answering((honest) => ({
    async createVolume(request, signal) {
      const { volume } = await honest.createVolume!(request, signal)
      return { volume: change(volume as Answer) as NonNullable<typeof volume> }
    },
  }))

/** Changes what the driver says after it has made a snapshot. */
const snapshotAnswers = (change: object) =>
  answering((honest) => ({
    async createSnapshot(request, signal) {
      const { snapshot } = await honest.createSnapshot!(request, signal)
      return { snapshot: { ...snapshot!, ...change } as NonNullable<typeof snapshot> }
    },
  }))

async function bind(world: CsiWorld, name: string): Promise<PersistentVolume> {
  await world.client.create('PersistentVolumeClaim', modelClaim(name))
  await eventually(world, 'bound', async () => (await phaseOf(world, name)) === 'Bound')
  const { spec } = await world.client.get('PersistentVolumeClaim', claimNamed(name))
  return world.client.get('PersistentVolume', { name: spec?.volumeName ?? '' })
}

/** A claim `c` is bound in a world whose driver answers as `options` say. */
async function withBoundClaim(
  options: Parameters<typeof createCsiWorld>[0],
  act: (world: CsiWorld, volume: PersistentVolume) => Promise<void>,
): Promise<void> {
  const world = await createCsiWorld(options)
  await furnish(world, options?.attach === false ? { attachRequired: false } : {})
  const life = world.start()
  await act(world, await bind(world, 'c'))
  await life.stop()
}

async function grow({ client }: CsiWorld, name: string, storage: string): Promise<void> {
  const claim = await client.get('PersistentVolumeClaim', claimNamed(name))
  const spec = { ...claim.spec, resources: { requests: { storage } } }
  await client.update('PersistentVolumeClaim', { ...claim, spec })
}

async function makeSnapshotClass({ client }: CsiWorld): Promise<void> {
  await client.create('VolumeSnapshotClass', {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    metadata: { name: 'model' },
    driver: 'model.hawser.dev',
    deletionPolicy: 'Delete',
  })
}

async function snapshot({ client }: CsiWorld, name: string): Promise<void> {
  await client.create('VolumeSnapshot', {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: claimNamed(name),
    spec: { volumeSnapshotClassName: 'model', source: { persistentVolumeClaimName: 'c' } },
  })
}

const isTold = (world: CsiWorld, words: RegExp) =>
  eventually(world, `told ${words}`, async () => (await world.events()).some((each) => words.test(each)))

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
    await isTold(world, /ProvisioningFailed/)
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
    const change = createAnswers((honest) => ({ ...honest, volumeId }))
    await withBoundClaim({ attach: false, change }, async (_world, volume) => {
      assert.equal(volume.spec?.csi?.volumeHandle, volumeId)
    })
  }
})

test('one handle for two claims: the second is refused, and the data of the first stays', async () => {
  let first: Answer | undefined
  const world = await createCsiWorld({ change: createAnswers((honest) => (first ??= honest)) })
  await furnish(world)
  const life = world.start()
  await bind(world, 'mine')
  await world.client.create('PersistentVolumeClaim', modelClaim('other'))
  await isTold(world, /ProvisioningFailed.*already the handle of PersistentVolume pvc-/)
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

test('a volume that another object names too is not deleted with the first', () =>
  withBoundClaim({}, async (world, volume) => {
    const { client } = world
    const { claimRef: _claim, ...spec } = volume.spec!
    await client.create('PersistentVolume', {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'kept' },
      spec: { ...spec, persistentVolumeReclaimPolicy: 'Retain', storageClassName: 'by-hand' },
    })
    await client.remove('PersistentVolumeClaim', claimNamed('c'))
    await isTold(world, /VolumeFailedDelete.*PersistentVolume kept/)
    await world.clock.advance(120_000)
    assert.ok(!world.calls.includes('DeleteVolume'), 'the data of volume kept was deleted')
    await assertWhy(world, `pv/${volume.metadata.name}`, 'storageShared')
    await client.remove('PersistentVolume', { name: 'kept' })
    await eventually(world, 'deleted', async () => (await client.list('PersistentVolume')).items.length === 0)
    assert.ok(world.calls.includes('DeleteVolume'))
  }))

test('a long error with control characters is cut and made readable', async () => {
  const world = await createCsiWorld({
    change: answering(() => ({
      createVolume: async () => {
        throw new CsiError('INTERNAL', `\u001b]0;owned\u0007 first\nsecond\0 ${'x'.repeat(4 << 20)}`)
      },
    })),
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
    const change = answering(() => ({
      controllerExpandVolume: async () => ({ capacityBytes, nodeExpansionRequired: false }),
    }))
    await withBoundClaim({ change }, async (world, { metadata: { name } }) => {
      const { client } = world
      await grow(world, 'c', '2Gi')
      await isTold(world, /VolumeResizeFailed/)
      assert.equal((await client.get('PersistentVolume', { name })).spec?.capacity?.['storage'], '1Gi')
      assert.equal((await client.get('PersistentVolumeClaim', claimNamed('c'))).status?.capacity?.['storage'], '1Gi')
    })
  }
})

test('two snapshots with one handle: the second is refused, and neither deletes the other', () =>
  withBoundClaim({ change: snapshotAnswers({ snapshotId: 'always-the-same' }) }, async (world) => {
    const { client } = world
    await makeSnapshotClass(world)
    const ready = async (name: string) =>
      (await client.get('VolumeSnapshot', claimNamed(name))).status?.readyToUse === true
    await snapshot(world, 'mine')
    await eventually(world, 'ready', () => ready('mine'))
    await snapshot(world, 'other')
    await isTold(world, /already the handle of VolumeSnapshotContent snapcontent-/)
    assert.equal(await ready('other'), false)
    await client.remove('VolumeSnapshot', claimNamed('other'))
    await eventually(world, 'gone', async () => (await client.list('VolumeSnapshot')).items.length === 1)
    await world.clock.advance(60_000)
    assert.ok(!world.calls.includes('DeleteSnapshot'), 'the snapshot of the first was deleted')
    assert.equal(await ready('mine'), true)
  }))

test('snapshots without a usable id, size or time are refused with an event', async () => {
  const wrong = [
    { snapshotId: '' },
    { snapshotId: 'a\u001b[2J' },
    { snapshotId: 'x'.repeat(10_000) },
    { sizeBytes: -1n },
    { creationTime: { seconds: 1n << 62n, nanos: 0 } },
  ]
  for (const each of wrong)
    await withBoundClaim({ change: snapshotAnswers(each) }, async (world) => {
      await makeSnapshotClass(world)
      await snapshot(world, 's')
      await isTold(world, /SnapshotContentCheckandUpdateFailed.*driver answered/)
    })
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
    const change = answering((honest) => ({
      async controllerPublishVolume(request, signal) {
        await honest.controllerPublishVolume!(request, signal)
        return { publishContext }
      },
    }))
    await withBoundClaim({ change }, async (world, volume) => {
      const { client } = world
      await attach(world, volume.metadata.name)
      const status = async () => (await client.get('VolumeAttachment', { name: 'va' })).status
      await eventually(world, 'told', async () => /publish context/.test((await status())?.attachError?.message ?? ''))
      assert.equal((await status())?.attached, false)
      await client.remove('VolumeAttachment', { name: 'va' })
      await eventually(world, 'gone', async () => (await client.list('VolumeAttachment')).items.length === 0)
      assert.ok(world.calls.includes('ControllerUnpublishVolume'))
    })
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
  await grow(world, 'c', '2Gi')
  await isTold(world, /VolumeResizeFailed/)
  const before = world.calls.length
  await world.clock.advance(60_000)
  assert.ok(world.calls.length - before < 60, `${world.calls.length - before} calls in a minute`)
  assert.deepEqual((await client.list('CSIStorageCapacity')).items, [])
  await assertWhy(world, 'pvc/c', 'notSupported')
  await life.stop()
})
