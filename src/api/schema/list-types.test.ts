// Does every merge rule name a list that exists, with keys that its items have?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { messages } from '../generated/schema.ts'
import { isAtomic, listRule } from './list-types.ts'
import { jsonFields } from './schema.ts'

test('merge keys are fields of the items they merge', () => {
  let merging = 0
  for (const message of Object.keys(messages)) {
    for (const field of messages[message]?.fields ?? []) {
      const rule = listRule(message, field.name)
      if (rule.apply === 'atomic' && rule.strategy === 'replace') continue
      merging += 1
      assert.equal(field.shape, 'list', `${message}.${field.name}`)
      for (const key of rule.keys) assert.ok(jsonFields(field.type).has(key), `${message}.${field.name}: ${key}`)
    }
  }
  // Every rule of the table was met once: none names a list that does not exist.
  assert.equal(merging, 38)
})

test('selectors are replaced as a whole, a claim reference is not', () => {
  assert.equal(isAtomic('core.PersistentVolumeClaimSpec', 'selector', 'meta.LabelSelector'), true)
  assert.equal(isAtomic('core.PodSpec', 'nodeSelector', 'string'), true)
  assert.equal(isAtomic('core.PersistentVolumeSpec', 'claimRef', 'core.ObjectReference'), false)
  assert.equal(isAtomic('core.PersistentVolumeSpec', 'capacity', 'resource.Quantity'), false)
})
