import assert from 'node:assert/strict'
import test from 'node:test'
import { repeatedFields } from './repeated-fields.ts'

const repeated = (text: string): readonly string[] => repeatedFields(text, JSON.parse(text))

test('fields that are named twice are found wherever they stand', () => {
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['{"a":1,"b":{"a":2}}', []],
    ['{ "a": 1, "b": [ { "a": "x,{\\"a\\":" } ] }\n', []],
    ['{"a":1,"a":2}', ['a']],
    ['{"m":{"l":[{"n":1},{"n":1,"n":2}],"n":3},"m":{}}', ['m.l[1].n', 'm']],
    ['{"a":1,"\\u0061":2}', ['a']],
    ['{"a":[1,2],"b":1,"b":2,"b":3}', ['b']],
  ]
  for (const [text, fields] of cases) {
    assert.deepEqual(
      repeated(text),
      fields.map((field) => `duplicate field "${field}"`),
      text,
    )
  }
})
