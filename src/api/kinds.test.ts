// Is the table of kinds whole and in step with the schema table and with recorded discovery?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isKindName, kindByResource, kindByType, kindNames, kinds, qualifiedKind, qualifiedResource } from './kinds.ts'
import { jsonFields, messageSchema } from './schema/schema.ts'

test('every kind has a message that is a whole object', () => {
  for (const name of kindNames) {
    assert.equal(messageSchema(kinds[name].message)?.object, true, name)
    assert.equal(jsonFields(kinds[name].message).get('metadata')?.type, 'meta.ObjectMeta', name)
    const hasStatus = jsonFields(kinds[name].message).has('status')
    const serves = kinds[name].subresources.some((each) => each.name === 'status')
    assert.equal(serves, hasStatus, `${name}: status subresource`)
  }
})

test('a view names a stored kind that is no view itself', () => {
  for (const name of kindNames) {
    const { view } = kinds[name]
    if (view === undefined) continue
    assert.ok(isKindName(view.of), name)
    assert.equal(kinds[view.of].view, undefined, name)
  }
})

test('every kind is described in a sentence, and its field texts name fields of its group', () => {
  for (const name of kindNames) {
    const { description, fieldDescriptions, message } = kinds[name]
    assert.match(description, /^[A-Z].*\.$/, name)
    const [group = ''] = message.split('.')
    for (const key of Object.keys(fieldDescriptions)) {
      const [part = '', field] = key.split('.')
      const fields = jsonFields(`${group}.${part}`)
      assert.ok(field === undefined ? fields.size > 0 : fields.has(field), `${name}: ${key}`)
    }
  }
})

test('subresources are declared once, in the order of discovery', () => {
  for (const name of kindNames) {
    const names = kinds[name].subresources.map((each) => each.name)
    assert.deepEqual(names, [...new Set(names)].toSorted(), name)
  }
})

test('a kind is found by its path and by its type', () => {
  for (const name of kindNames) {
    const info = kinds[name]
    assert.equal(kindByResource(info.group, info.version, info.plural), info)
    assert.equal(kindByType(info.apiVersion, info.kind), info)
    assert.equal(isKindName(name), true)
  }
  assert.equal(kindByResource('', 'v2', 'pods'), undefined)
  assert.equal(kindByResource('', 'v1', 'toString'), undefined)
  assert.equal(isKindName('toString'), false)
})

test('names with a group are qualified by it', () => {
  assert.equal(qualifiedResource(kinds.StorageClass), 'storageclasses.storage.k8s.io')
  assert.equal(qualifiedKind(kinds.StorageClass), 'StorageClass.storage.k8s.io')
  assert.equal(qualifiedKind(kinds.Pod), 'Pod')
})

test('inlined messages appear as fields of their parent', () => {
  assert.equal(jsonFields('core.Volume').get('emptyDir')?.type, 'core.EmptyDirVolumeSource')
  assert.equal(jsonFields('core.PersistentVolumeSpec').get('csi')?.type, 'core.CSIPersistentVolumeSource')
  assert.equal(jsonFields('core.SecretProjection').get('name')?.type, 'string')
  assert.equal(jsonFields('core.EphemeralContainer').has('ephemeralContainerCommon'), false)
  assert.equal(jsonFields('authentication.BoundObjectReference').has('uid'), true)
})
