// Is every source known that the API has, in Kubernetes' order, and is a source of our own asked for its required fields?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonFields } from '../schema/schema.ts'
import { sourceNamesIn, validateInTreeSource } from './in-tree-sources.ts'

test('sources that the order does not name come after those that it names', () => {
  const names = sourceNamesIn('core.VolumeSource', ['nfs', 'emptyDir'])
  assert.deepEqual(names.slice(0, 2), ['nfs', 'emptyDir'])
  assert.deepEqual(names.toSorted(), [...jsonFields('core.VolumeSource').keys()].toSorted())
})

test('a source without rules here must have the required fields of its message', () => {
  // csi has rules elsewhere: here it stands for a source that is not in the table.
  const errors = (inVolume: boolean) => validateInTreeSource('csi', { driver: '' }, 'spec', inVolume)
  assert.deepEqual(
    [errors(false), errors(true)].map((each) => each.map(({ field }) => field)),
    [['spec.csi.driver'], ['spec.csi.driver', 'spec.csi.volumeHandle']],
  )
})
