// Does the list of rules without a test find what it should?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exceptionsOf, reasonFor, rulesNamedIn, rulesOf } from './rules-without-tests.ts'

test('rules are what a specification defines in bold, each once', () => {
  assert.deepEqual(rulesOf('- **PVP-1** add. **PVP-2** keep.\n- see PVP-3, **PVP-1**, **MUST**'), ['PVP-1', 'PVP-2'])
})

test('rules are also what begins an entry of a list; what an entry mentions is not', () => {
  const spec = '- LAYOUT-1 Pod dir, see PLUG-20..22.\n  MOUNT-24 goes on.\n- CSINODE-9 [GA] x\n| FMT-1 |'
  assert.deepEqual(rulesOf(spec), ['LAYOUT-1', 'CSINODE-9'])
})

test('a test names a rule anywhere; a letter belongs to its rule', () => {
  assert.deepEqual(
    [...rulesNamedIn(["test('CLM-8c T-2: x')", '// W-14, SUBPATH-3'])],
    ['CLM-8', 'T-2', 'W-14', 'SUBPATH-3'],
  )
})

test('an exception needs a reason, may speak for a group, and holds for its specification alone', () => {
  const text = '## b.md\n- W-3: of another\n## a.md\n- W-1, W-2: because\n- XPR-*: elsewhere\n- W-3\n'
  const exceptions = exceptionsOf(text, 'a.md')
  assert.deepEqual(
    ['W-1', 'W-2', 'W-3', 'XPR-7'].map((rule) => reasonFor(rule, exceptions)),
    ['because', 'because', undefined, 'elsewhere'],
  )
})
