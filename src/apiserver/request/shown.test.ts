// Found by the fuzzer (seed 165442423): a body whose kind is an object with a `toString` of its own.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shown } from './shown.ts'

test('a value is shown without calling anything it brought along', () => {
  assert.deepEqual(['a', undefined, 7, { toString: 'x' }].map(shown), ['a', 'undefined', '7', '{"toString":"x"}'])
})
