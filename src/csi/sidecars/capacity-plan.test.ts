// Which capacity objects there should be, and what is done about one of them.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { StorageClass } from '../../api/generated/types.ts'
import { capacityObject, placesOf, planCapacity, withCapacity } from './capacity-plan.ts'

const owner = { driver: 'd', namespace: 'ns', managedBy: 'me' }
const storageClass = (name: string, rest: Partial<StorageClass> = {}): StorageClass => ({
  metadata: { name },
  provisioner: 'd',
  volumeBindingMode: 'WaitForFirstConsumer',
  ...rest,
})
const place = { storageClass: storageClass('late'), segment: undefined }
const object = capacityObject('o', place, { availableBytes: 1024n }, owner)

test('only classes of the driver that bind late have objects (SIDE-50)', () => {
  const classes = [
    storageClass('late'),
    storageClass('early', { volumeBindingMode: 'Immediate' }),
    storageClass('other', { provisioner: 'x' }),
  ]
  const places = placesOf({ driver: 'd', hasTopology: false, classes, nodes: [], csiNodes: [] })
  assert.deepEqual(
    [...places.values()].map((each) => each.storageClass.metadata.name),
    ['late'],
  )
})

test('a place is asked for; an object without a place is removed if it is ours', () => {
  const foreign = { ...object, metadata: { ...object.metadata, labels: {} } }
  const kinds = [
    planCapacity(undefined, place, owner),
    planCapacity(object, place, owner),
    planCapacity(object, undefined, owner),
    planCapacity(foreign, undefined, owner),
    planCapacity(undefined, undefined, owner),
  ].map(({ kind }) => kind)
  assert.deepEqual(kinds, ['ask', 'ask', 'remove', 'nothing', 'nothing'])
})

test('equal sizes are no write; a maximum that is no longer told goes', () => {
  const larger = capacityObject('o', place, { availableBytes: 2048n, maximumVolumeBytes: 512n }, owner)
  assert.equal(withCapacity(object, object), object)
  assert.deepEqual(
    [withCapacity(object, larger).capacity, withCapacity(larger, object).maximumVolumeSize],
    ['2Ki', undefined],
  )
})
