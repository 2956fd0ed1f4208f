// Are objects kept where and how kube-apiserver keeps them, and is what it wrote read without loss?
import assert from 'node:assert/strict'
import test from 'node:test'
import { kinds } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { encodeProtobuf } from '../protobuf/encode.ts'
import { createRegistryLayout } from './registry-layout.ts'
import { createStoredObjects, storeKey } from './stored-objects.ts'

const layout = createRegistryLayout()
const stored = createStoredObjects()

const places = [
  [kinds.Node, { name: 'n' }, '/minions/n'],
  [kinds.Pod, { namespace: 'a', name: 'b' }, '/pods/a/b'],
  [kinds.Service, { namespace: 'a', name: 'b' }, '/services/specs/a/b'],
  [kinds.PersistentVolume, { name: 'v' }, '/persistentvolumes/v'],
  [kinds.StorageClass, { name: 's' }, '/storageclasses/s'],
  [kinds.VolumeAttachment, { name: 'v' }, '/volumeattachments/v'],
  [kinds.CSINode, { name: 'n' }, '/csinodes/n'],
  [kinds.Lease, { namespace: 'kube-node-lease', name: 'n' }, '/leases/kube-node-lease/n'],
  [kinds.Event, { namespace: 'a', name: 'e' }, '/events/a/e'],
  [kinds.VolumeSnapshot, { namespace: 'a', name: 's' }, '/snapshot.storage.k8s.io/volumesnapshots/a/s'],
  [kinds.VolumeSnapshotClass, { name: 's' }, '/snapshot.storage.k8s.io/volumesnapshotclasses/s'],
] as const

for (const [info, ref, path] of places)
  test(`${info.kind} lies at ${path}`, () => {
    const key = storeKey(info, ref)
    assert.equal(layout.path(key), path)
    assert.equal(layout.key(path), key)
  })

test('what only Hawser has lies beside the prefix', () => {
  const key = storeKey(kinds.Operation, { namespace: 'a', name: 'o' })
  assert.match(layout.path(key), /^\.hawser\/operations\//)
  assert.equal(layout.key(layout.path(key)), key)
})

test('keys of kinds that we do not serve, and strange ones, are no entries', () => {
  const paths = ['/deployments/a/b', '/pods/a', '/pods/a/b/c', '/minions/a/b', '/minions/', '.hawser/marker', '/', '']
  assert.deepEqual(
    paths.map((path) => layout.key(path)),
    paths.map(() => undefined),
  )
})

const volume = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: {
    name: 'v',
    uid: 'u',
    managedFields: [
      { manager: 'm', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': {} } },
    ],
    annotations: { text: 'with ",\\"managedFields\\":[{" in it' },
  },
  spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/data', type: '' } },
  status: { phase: 'Available' },
}
const key = storeKey(kinds.PersistentVolume, { name: 'v' })
const object = volume as unknown as KubeObject

function readBack(bytes: Uint8Array): unknown {
  const value = layout.decode(key, bytes)
  const { resourceVersion: _version, ...metadata } = stored.decode(kinds.PersistentVolume, {
    key,
    value,
    revision: 5,
    createRevision: 5,
  }).metadata
  return { ...JSON.parse(value), apiVersion: 'v1', kind: 'PersistentVolume', metadata }
}

test('our own values are JSON that names its type, and come back as they were', () => {
  const bytes = layout.encode(key, stored.encode(kinds.PersistentVolume, object))
  assert.deepEqual(JSON.parse(Buffer.from(bytes).toString()), volume)
  assert.deepEqual(readBack(bytes), volume)
})

test('JSON of others is read whatever the order of its members', () => {
  const { apiVersion, kind, metadata, spec, status } = volume
  const { managedFields, name, uid, annotations } = metadata
  const other = { apiVersion, kind, metadata: { annotations, managedFields, name, uid }, spec, status }
  assert.deepEqual(readBack(Buffer.from(JSON.stringify(other))), volume)
  assert.deepEqual(readBack(Buffer.from(JSON.stringify({ status, spec, metadata, kind, apiVersion }))), volume)
})

test('protobuf is read', () => {
  assert.deepEqual(readBack(encodeProtobuf(volume as never)), volume)
})

test('a value that lies at the wrong place, or is of another version, is refused with the reason', () => {
  const decode = (change: object) => () => layout.decode(key, Buffer.from(JSON.stringify({ ...volume, ...change })))
  assert.throws(decode({ apiVersion: 'v2' }), /it is PersistentVolume of v2; this server reads PersistentVolume of v1/)
  assert.throws(decode({ metadata: { name: 'w' } }), /it says that it is w/)
  assert.throws(() => layout.decode(key, Buffer.from('no json')), SyntaxError)
})
