// The house rules hold: directions of imports, ports, lengths, READMEs, links.
import assert from 'node:assert/strict'
import test from 'node:test'
import { findProblems } from './tidy.ts'

test('the tree is tidy', () => {
  assert.deepEqual(findProblems(), [])
})
