// Every branch of an attachment as a table: facts in, action or refusal out.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { PersistentVolume, VolumeAttachment } from '../../api/generated/types.ts'
import { isDisputed, nodeIdAnnotation, planAttachment, planPublish, planUnpublish } from './attach-plan.ts'

const finalizer = 'external-attacher/d'
const attachment = (
  status: { readonly attached?: boolean } = {},
  metadata: Partial<VolumeAttachment['metadata']> = {},
): VolumeAttachment => ({
  metadata: { name: 'a', ...metadata },
  spec: { attacher: 'd', nodeName: 'n', source: { persistentVolumeName: 'v' } },
  status: { attached: status.attached ?? false },
})
const deleting = { deletionTimestamp: 't' }
const volume = (metadata: Partial<PersistentVolume['metadata']> = {}, csi = true): PersistentVolume => ({
  metadata: { name: 'v', ...metadata },
  spec: csi ? { csi: { driver: 'd', volumeHandle: 'h' } } : {},
})

const actions: readonly [string, Partial<Parameters<typeof planAttachment>[0]>, string][] = [
  ['another driver’s attachment is left alone', { driver: 'other' }, 'nothing'],
  ['a new attachment is published (SIDE-26)', {}, 'publish'],
  ['an attached one is left alone', { attachment: attachment({ attached: true }) }, 'nothing'],
  [
    'an attached one that the storage denies is published again (SIDE-29)',
    { attachment: attachment({ attached: true }), isDisputed: true },
    'publish',
  ],
  [
    'a deleted one with our finalizer is unpublished (SIDE-28)',
    { attachment: attachment({}, { ...deleting, finalizers: [finalizer] }) },
    'unpublish',
  ],
  ['a deleted one without it is left alone', { attachment: attachment({}, deleting) }, 'nothing'],
  ['without ControllerPublish it is attached at once (SIDE-25)', { canPublish: false }, 'markAttached'],
  ['and a deleted one is not', { canPublish: false, attachment: attachment({}, deleting) }, 'nothing'],
]
for (const [name, facts, expected] of actions) {
  test(name, () => {
    const base = { attachment: attachment(), driver: 'd', finalizer, canPublish: true, isDisputed: false }
    assert.equal(planAttachment({ ...base, ...facts }), expected)
  })
}

test('a publish holds the volume first, also when it is then refused', () => {
  const facts = { attachment: attachment(), volume: volume(), nodeId: undefined, driver: 'd' }
  const plan = planPublish(facts, finalizer)
  assert.deepEqual([plan.kind, plan.hold?.metadata.name], ['refused', 'v'])
  assert.equal(plan.kind === 'refused' && plan.error.code, 'NodeUnknown')
})

const refusals: readonly [string, PersistentVolume | undefined, string][] = [
  ['a volume that does not exist', undefined, 'VolumeMissing'],
  ['a volume that is being deleted', volume(deleting), 'VolumeDeleting'],
  ['a volume of another type', volume({}, false), 'NotCsi'],
]
for (const [name, given, code] of refusals) {
  test(`${name} is not published, and nothing was asked of the driver`, () => {
    const plan = planPublish({ attachment: attachment(), volume: given, nodeId: 'id', driver: 'd' }, finalizer)
    assert.deepEqual(plan.kind === 'refused' && [plan.error.code, plan.error.effect], [code, 'none'])
  })
}

test('a held volume is not written again, and a volume that is being deleted is still unpublished', () => {
  const held = { attachment: attachment(), volume: volume({ finalizers: [finalizer] }), nodeId: 'id', driver: 'd' }
  const plan = planPublish(held, finalizer)
  assert.deepEqual([plan.kind, plan.hold], ['target', undefined])
  assert.equal(planUnpublish({ ...held, volume: volume(deleting) }).kind, 'target')
})

test('a node that is gone is unpublished by the id on the attachment', () => {
  const noted = attachment({}, { annotations: { [nodeIdAnnotation]: 'old' } })
  const plan = planUnpublish({ attachment: noted, volume: volume(), nodeId: undefined, driver: 'd' })
  assert.equal(plan.kind === 'target' && plan.nodeId, 'old')
})

test('only a list that names the volume is evidence against an attachment (SIDE-29)', () => {
  const attached = attachment({ attached: true })
  assert.deepEqual(
    [isDisputed(attached, [], 'id'), isDisputed(attached, ['id'], 'id'), isDisputed(attached, undefined, 'id')],
    [true, false, false],
  )
  assert.deepEqual([isDisputed(attachment(), ['id'], 'id'), isDisputed(attached, [], undefined)], [true, false])
})
