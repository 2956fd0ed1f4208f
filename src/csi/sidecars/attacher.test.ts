// The attacher's finalizer: SIDE-26.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attacherFinalizer } from './attacher.ts'
import { leaseNames } from './leases.ts'

test('every strange character is a dash, and no name ends in one (SIDE-26)', () => {
  assert.equal(attacherFinalizer('local.hawser.dev'), 'external-attacher/local-hawser-dev')
  assert.equal(attacherFinalizer('odd.'), 'external-attacher/odd-X')
})

test('upstream’s sidecars are recognised by their leases', () => {
  assert.deepEqual(leaseNames('provisioner', 'a.b'), ['a-b'])
  assert.deepEqual(leaseNames('attacher', 'a.b'), ['external-attacher-leader-a-b'])
  assert.deepEqual(leaseNames('resizer', 'a.b'), ['external-resizer-a-b'])
  assert.deepEqual(leaseNames('snapshotter', 'a.b'), ['external-snapshotter-leader-a-b'])
})
