// Access modes, on the node and at the controller; names of enum numbers.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { controllerAccessMode, namesOf, nodeAccessMode } from './values.ts'

test('on the node only the first mode counts (CSI-19)', () => {
  const table: readonly [string[], boolean, string][] = [
    [['ReadWriteOnce'], false, 'SINGLE_NODE_WRITER'],
    [['ReadWriteOnce'], true, 'SINGLE_NODE_MULTI_WRITER'],
    [['ReadWriteOncePod'], false, 'SINGLE_NODE_WRITER'],
    [['ReadWriteOncePod'], true, 'SINGLE_NODE_SINGLE_WRITER'],
    [['ReadOnlyMany', 'ReadWriteMany'], false, 'MULTI_NODE_READER_ONLY'],
    [['ReadWriteMany'], true, 'MULTI_NODE_MULTI_WRITER'],
    [[], false, 'SINGLE_NODE_WRITER'],
    [['Strange'], false, 'UNKNOWN'],
  ]
  for (const [modes, multi, expected] of table)
    assert.equal(nodeAccessMode(modes.length ? modes : undefined, multi), expected)
})

test('at the controller the whole list decides, and some lists are refused (SIDE-12)', () => {
  assert.equal(controllerAccessMode(['ReadOnlyMany', 'ReadWriteMany'], false), 'MULTI_NODE_MULTI_WRITER')
  assert.equal(controllerAccessMode(['ReadOnlyMany'], false), 'MULTI_NODE_READER_ONLY')
  assert.equal(controllerAccessMode(['ReadWriteOnce'], true), 'SINGLE_NODE_MULTI_WRITER')
  assert.equal(controllerAccessMode(['ReadWriteOncePod'], true), 'SINGLE_NODE_SINGLE_WRITER')
  assert.throws(() => controllerAccessMode(['ReadWriteOncePod', 'ReadWriteOnce'], true), /may not be combined/)
  assert.throws(() => controllerAccessMode(['ReadOnlyMany', 'ReadWriteOnce'], true), /does not support/)
})

test('unknown enum numbers are skipped (WIRE-2)', () => {
  assert.deepEqual([...namesOf([0, 1, 77, undefined], { UNKNOWN: 0, ONE: 1 })], ['ONE'])
})
