// Are the generated files of src/api in step with the table and its overlay? After a change: node tools/gen-api.ts
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { definitionsText, schemaText, typesText } from './gen-api.ts'

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

test('the schema table is what the generator writes', () => {
  assert.equal(read('src/api/generated/schema.ts'), schemaText())
})

test('the interfaces are what the generator writes, but for layout', () => {
  const words = (text: string) => text.replaceAll(/[\s|()]+/g, '')
  assert.equal(words(read('src/api/generated/types.ts')), words(typesText()))
})

test('the table of kinds is what the generator writes', () => {
  assert.equal(read('src/api/generated/definitions.ts'), definitionsText())
})
