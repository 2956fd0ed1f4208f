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
