import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { createStoredObjects, withoutManagedFields } from './stored-objects.ts'

const owner = (manager: string, fieldsV1: object = { 'f:data': { '.': {}, 'f:a': {} } }) => ({
  manager,
  operation: 'Update',
  apiVersion: 'v1',
  time: '2026-01-01T00:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1,
})
const embedded = { metadata: { a: 1, managedFields: [{ manager: 'inside' }] }, more: [{ b: 2 }] }

const cases: Record<string, object> = {
  'one owner': { metadata: { name: 'x', managedFields: [owner('kubectl')] }, data: { a: 'b' } },
  'two owners and nothing else': { metadata: { name: 'x', managedFields: [owner('a'), owner('b')] } },
  'no owners': { metadata: { name: 'x' }, data: { a: 'b' } },
  'an empty record': { metadata: { name: 'x', managedFields: [] }, spec: { list: [{ b: 1 }] }, status: { a: 'b' } },
  'no owners, but a record inside the object': { metadata: { name: 'x' }, spec: embedded, status: { a: 'b' } },
  'a record beside the metadata': { metadata: { name: 'x' }, spec: { a: 1, managedFields: [{ b: 1 }] }, status: {} },
  'owners and a record inside': { metadata: { name: 'x', managedFields: [owner('a')] }, spec: embedded },
  'a manager that looks like the end': { metadata: { name: 'x', managedFields: [owner('}]},"y":{"')] }, data: {} },
  'a manager that ends like the end': { metadata: { name: 'x', managedFields: [owner('}]}')] }, data: { a: 'b' } },
  'a field that looks like the end': {
    metadata: { name: 'x', managedFields: [owner('a', { 'f:}]}': {}, 'v:"}]},': {} })] },
    data: { a: '}]}' },
  },
  'lists among the fields': {
    metadata: { name: 'x', managedFields: [owner('a', { 'f:a': [{ b: 1 }], 'f:c': {} })] },
    data: { a: 'b' },
  },
  'an annotation of that name': {
    metadata: { name: 'x', annotations: { a: '', managedFields: '[{}]}' }, managedFields: [owner('a')] },
    data: { a: 'b' },
  },
}

for (const [name, object] of Object.entries(cases)) {
  test(`an object without its owners is the same, read from text: ${name}`, () => {
    const objects = createStoredObjects()
    const info = kinds.ConfigMap
    const value = objects.encode(info, object as KubeObject)
    const entry = () => ({ key: '/core/configmaps/default/x', value, revision: 7, createRevision: 7 })
    const whole = objects.decode(info, entry())
    const { metadata, ...others } = object as KubeObject
    const { kind, apiVersion } = info
    assert.deepEqual(whole, { kind, apiVersion, metadata: { ...metadata, resourceVersion: '7' }, ...others })
    assert.deepEqual(objects.lean(info, entry()), withoutManagedFields(whole))
  })
}

const dataOf = (object: KubeObject) => (object as { data?: unknown }).data

test('the object that one of our parts keeps is found again in its entry, down to its parts', () => {
  const info = kinds.ConfigMap
  for (const [name, object] of Object.entries(cases)) {
    const objects = createStoredObjects()
    const value = objects.encode(info, object as KubeObject)
    const entry = { key: '/core/configmaps/default/x', value, revision: 7, createRevision: 7 }
    const parsed = objects.decode(info, { ...entry })
    objects.decode(info, entry)
    const kept = objects.keptLean(info, entry)
    // The objects of another server have made nothing lately; they find what is kept with the entry.
    const others = createStoredObjects()
    const whole = others.decode(info, entry)
    assert.deepEqual(whole, parsed, name)
    assert.equal(others.lean(info, entry), kept)
    if (name === 'one owner') assert.equal(dataOf(whole), dataOf(kept))
    others.letGo(entry)
    assert.notEqual(createStoredObjects().lean(info, entry), kept)
    const fresh = createStoredObjects()
    fresh.keptLean(info, entry)
    assert.notEqual(
      fresh.lean(info, entry),
      fresh.lean(info, entry),
      'an entry that is no longer the newest keeps nothing',
    )
  }
})
