// Do objects that were written in the same way share the record of it, and only those?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '../../api/meta.ts'
import { createManagedFieldsCache } from './managed-fields-cache.ts'
import { updateManagedFields } from './managed-fields.ts'

const second = 1_000
const cache = createManagedFieldsCache()
const volume = (name: string, capacity = '1Gi', labels?: Record<string, string>): KubeObject =>
  ({
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, ...(labels ? { labels } : {}) },
    spec: { capacity: { storage: capacity }, accessModes: ['ReadWriteOnce'] },
  }) as KubeObject
const written = (after: KubeObject, manager: string, now: number, before?: KubeObject, subresource?: string) =>
  updateManagedFields({ kind: 'PersistentVolume', before, after, manager, now, subresource }, cache)
const owned = (object: KubeObject, managedFields: ReturnType<typeof written>): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, managedFields },
})

test('the same write of another object in the same second has the same record', () => {
  const first = written(volume('a'), 'kubectl', 0)
  assert.equal(written(volume('b', '2Gi'), 'kubectl', 999), first)
  assert.ok(Object.isFrozen(first) && Object.isFrozen(first[0]) && Object.isFrozen(first[0]?.fieldsV1))
  const [a, b] = ['a', 'b'].map((name) => owned(volume(name), first))
  const grown = written(volume('a', '3Gi'), 'resizer', second, a)
  assert.equal(written(volume('b', '4Gi'), 'resizer', second, b), grown)
  assert.deepEqual(
    grown.map(({ manager, time }) => [manager, time]),
    [
      ['kubectl', '1970-01-01T00:00:00Z'],
      ['resizer', '1970-01-01T00:00:01Z'],
    ],
  )
})

test('another time, writer, subresource or field is another record', () => {
  const first = written(volume('a'), 'kubectl', 0)
  const others = [
    written(volume('a'), 'kubectl', second),
    written(volume('a'), 'hawser', 0),
    written(volume('a'), 'kubectl', 0, undefined, 'status'),
    written(volume('a', '1Gi', { app: 'db' }), 'kubectl', 0),
  ]
  assert.equal(new Set([first, ...others].map((entries) => JSON.stringify(entries))).size, 5)
})

test('a removed field and a changed one are not the same step', () => {
  const labelled = owned(volume('a', '1Gi', { app: 'db' }), written(volume('a', '1Gi', { app: 'db' }), 'kubectl', 0))
  const changed = written(volume('a', '1Gi', { app: 'web' }), 'hawser', second, labelled)
  const removed = written(volume('a', '1Gi', {}), 'hawser', second, labelled)
  const fieldsOf = (entries: typeof changed) =>
    entries.map(({ manager, fieldsV1 }) => [manager, JSON.stringify(fieldsV1)])
  assert.match(String(fieldsOf(changed).find(([manager]) => manager === 'hawser')), /f:app/)
  assert.equal(
    fieldsOf(removed).some(([, fields]) => fields?.includes('f:app')),
    false,
  )
})

test('a record read from text is the one that was written, and the writes after it are known', () => {
  const first = written(volume('a'), 'kubectl', 5 * second)
  assert.equal(cache.read(cache.textOf(first)), first)
  const foreign = '[{"manager":"x","operation":"Update","apiVersion":"v1","fieldsV1":{"f:spec":{"f:capacity":{}}}}]'
  assert.equal(cache.read(foreign), cache.read(foreign))
  assert.deepEqual(cache.read(foreign), JSON.parse(foreign))
})

test('more records than are kept: everything is right, only no longer shared', () => {
  for (let round = 0; round < 2; round++) {
    for (let index = 0; index < 1_200; index++) {
      const labels = { [`app-${index}`]: 'x' }
      const entries = written(volume('a', '1Gi', labels), 'kubectl', 0)
      const after = written(volume('a', '2Gi', labels), 'resizer', second, owned(volume('a', '1Gi', labels), entries))
      assert.deepEqual(
        after.map(({ manager }) => manager),
        ['kubectl', 'resizer'],
      )
      assert.deepEqual(entries[0]?.fieldsV1?.['f:metadata'], { 'f:labels': { '.': {}, [`f:app-${index}`]: {} } })
    }
  }
})
