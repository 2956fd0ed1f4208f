// Who may use a volume at the same time: ID-6, MNT-5, MAT-3 as tables.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { PersistentVolume } from '../api/generated/types.ts'
import { accessModeSet, allowsMultiAttach, isSinglePodWriter, offersModes } from './access.ts'
import { specOfPersistentVolume, specOfPodVolume } from './spec.ts'

const pv = (
  ...accessModes: NonNullable<NonNullable<PersistentVolume['spec']>['accessModes']>[number][]
): PersistentVolume => ({
  metadata: { name: 'pv' },
  spec: { volumeMode: 'Filesystem', accessModes, csi: { driver: 'd', volumeHandle: 'h' } },
})

test('several nodes (ID-6)', () => {
  const answers = {
    unknown: allowsMultiAttach(undefined),
    'inline azureDisk': allowsMultiAttach(specOfPodVolume({ name: 'a', azureDisk: { diskName: 'x', diskURI: 'y' } })),
    'inline cinder': allowsMultiAttach(specOfPodVolume({ name: 'a', cinder: { volumeID: 'x' } })),
    'inline other': allowsMultiAttach(specOfPodVolume({ name: 'a', csi: { driver: 'd' } })),
    'no modes': allowsMultiAttach(specOfPersistentVolume(pv(), false)),
    RWO: allowsMultiAttach(specOfPersistentVolume(pv('ReadWriteOnce'), false)),
    RWOP: allowsMultiAttach(specOfPersistentVolume(pv('ReadWriteOncePod'), false)),
    'RWO+ROX': allowsMultiAttach(specOfPersistentVolume(pv('ReadWriteOnce', 'ReadOnlyMany'), false)),
    RWX: allowsMultiAttach(specOfPersistentVolume(pv('ReadWriteMany'), false)),
  }
  assert.deepEqual(answers, {
    unknown: true,
    'inline azureDisk': false,
    'inline cinder': false,
    'inline other': true,
    'no modes': true,
    RWO: false,
    RWOP: false,
    'RWO+ROX': true,
    RWX: true,
  })
})

test('the single-pod writer, guarded against a missing volume (MNT-5, WA-21)', () => {
  assert.deepEqual([undefined, pv(), pv('ReadWriteOncePod'), pv('ReadWriteOnce')].map(isSinglePodWriter), [
    false,
    false,
    true,
    false,
  ])
})

test('sets of modes (MAT-3)', () => {
  assert.deepEqual(accessModeSet(['ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOnce']), [
    'ReadWriteOnce',
    'ReadWriteMany',
  ])
  assert.equal(offersModes(['ReadWriteOnce', 'ReadWriteMany'], ['ReadWriteMany']), true)
  assert.equal(offersModes(['ReadWriteOnce'], ['ReadWriteOncePod']), false)
  assert.equal(offersModes(['ReadWriteOncePod'], ['ReadWriteOnce']), false)
})
