// Do the small helpers over metadata and names keep their promises?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  annotation,
  controllerOf,
  hasFinalizer,
  keyFor,
  keyOf,
  parseKey,
  refOf,
  uidOf,
  withAnnotations,
  withCondition,
  withFinalizer,
  withoutFinalizer,
} from './meta.ts'
import type { Condition } from './meta.ts'
import { nodeName, pluginName, podUid, uniqueVolumeName } from './names.ts'

const object = { metadata: { name: 'a', namespace: 'n', uid: 'u' } }

test('a key names an object and is read back', () => {
  assert.equal(keyOf(object), 'n/a')
  assert.deepEqual(refOf(object), { namespace: 'n', name: 'a' })
  const part = fc.string({ minLength: 1 }).filter((text) => !text.includes('/'))
  fc.assert(
    fc.property(fc.option(part, { nil: undefined }), part, (namespace, name) => {
      const expected = namespace === undefined ? { name } : { namespace, name }
      assert.deepEqual(parseKey(keyFor(namespace, name)), expected)
    }),
  )
  for (const text of ['', 'a/b/c', '/a', 'a/']) assert.equal(parseKey(text), undefined, text)
})

test('annotations are set and removed without leaving an empty map behind', () => {
  const set = withAnnotations(object, { k: 'v' })
  assert.equal(annotation(set, 'k'), 'v')
  assert.equal(annotation(set, 'toString'), undefined)
  assert.deepEqual(withAnnotations(set, { k: undefined }), object)
})

test('a finalizer is added once and removed whole', () => {
  const held = withFinalizer(withFinalizer(object, 'x/y'), 'x/y')
  assert.deepEqual(held.metadata, { ...object.metadata, finalizers: ['x/y'] })
  assert.equal(hasFinalizer(held, 'x/y'), true)
  assert.deepEqual(withoutFinalizer(held, 'x/y'), object)
})

test('the transition time of a condition changes with its status only', () => {
  const first: Condition = { type: 'Ready', status: 'True', lastTransitionTime: '1', reason: 'a' }
  const again: Condition = { type: 'Ready', status: 'True', lastTransitionTime: '2', reason: 'b' }
  const turned: Condition = { type: 'Ready', status: 'False', lastTransitionTime: '3' }
  assert.deepEqual(withCondition([first], again), [{ ...again, lastTransitionTime: '1' }])
  assert.deepEqual(withCondition([first], turned), [turned])
  assert.deepEqual(withCondition(undefined, first), [first])
})

test('an object without uid was never stored; its controller is the owner that says so', () => {
  assert.equal(uidOf(object), 'u')
  assert.throws(() => uidOf({ metadata: { name: 'a' } }), /has no uid/)
  const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'x', controller: true }
  const owned = { metadata: { name: 'a', ownerReferences: [{ ...owner, controller: false }, owner] } }
  assert.deepEqual(controllerOf(owned), owner)
})

test('names that travel are parsed, not trusted', () => {
  assert.equal(podUid('1-2'), '1-2')
  assert.equal(pluginName('kubernetes.io/nfs'), 'kubernetes.io/nfs')
  assert.equal(uniqueVolumeName('kubernetes.io/csi/d^h'), 'kubernetes.io/csi/d^h')
  for (const text of ['', '.', '..', 'a/b', 'a\0']) {
    assert.throws(() => podUid(text), /invalid pod uid/)
    assert.throws(() => nodeName(text), /invalid node name/)
  }
  for (const text of ['', 'a/b/c', '-a', '/a']) assert.throws(() => pluginName(text), /invalid plugin name/)
  for (const text of ['', 'a', 'a/', '/a']) assert.throws(() => uniqueVolumeName(text), /invalid unique volume name/)
})
