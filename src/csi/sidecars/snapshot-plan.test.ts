// Every branch of a snapshot content as a table.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { VolumeSnapshotContent } from '../../api/generated/types.ts'
import { planSnapshot } from './snapshot-plan.ts'

const creating = { 'snapshot.storage.kubernetes.io/volumesnapshot-being-created': 'yes' }
const deletion = { 'snapshot.storage.kubernetes.io/volumesnapshot-being-deleted': 'yes' }
const finalizers = ['snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection']
const content = (
  metadata: Partial<VolumeSnapshotContent['metadata']> = {},
  spec: Partial<VolumeSnapshotContent['spec']> = {},
  status?: VolumeSnapshotContent['status'],
): VolumeSnapshotContent => ({
  metadata: { name: 'c', ...metadata },
  spec: {
    driver: 'd',
    deletionPolicy: 'Delete',
    source: { volumeHandle: 'h' },
    volumeSnapshotRef: { name: 's', namespace: 'ns', uid: 'u' },
    ...spec,
  },
  ...(status && { status }),
})
const gone = (annotations: Record<string, string>) => ({ deletionTimestamp: 't', finalizers, annotations })

const table: readonly [string, VolumeSnapshotContent, object, boolean?][] = [
  ['a volume is snapshotted (SIDE-46)', content(), { kind: 'create', isMarked: false }],
  ['again after a call without an answer', content({ annotations: creating }), { kind: 'create', isMarked: true }],
  ['a ready snapshot is left alone', content({}, {}, { readyToUse: true }), { kind: 'nothing' }],
  ['another driver’s content is left alone', content({}, { driver: 'x' }), { kind: 'nothing' }],
  [
    'a snapshot made elsewhere is found (SIDE-47)',
    content({}, { source: { snapshotHandle: 's' } }),
    { kind: 'find', handle: 's' },
  ],
  [
    'or taken to be ready if the driver cannot list',
    content({}, { source: { snapshotHandle: 's' } }),
    { kind: 'assumeReady', handle: 's' },
    false,
  ],
  [
    'a content marked by the binder is deleted (SIDE-48)',
    content(gone(deletion), {}, { snapshotHandle: 's' }),
    { kind: 'delete', handle: 's' },
  ],
  ['one without the mark waits', content(gone({}), {}, { snapshotHandle: 's' }), { kind: 'nothing' }],
  ['a snapshot that may be under way is asked for once more', content(gone(creating)), { kind: 'deleteUnknown' }],
  [
    'also when it should be kept: nobody knows its handle',
    content(gone(creating), { deletionPolicy: 'Retain' }),
    { kind: 'deleteUnknown' },
  ],
  ['a kept snapshot stays', content(gone({}), { deletionPolicy: 'Retain' }), { kind: 'release' }],
  ['a content without our finalizer is done with', content({ deletionTimestamp: 't' }), { kind: 'nothing' }],
]
for (const [name, given, expected, canList = true] of table)
  test(name, () => assert.deepEqual(planSnapshot({ content: given, driver: 'd', canList }), expected))
