// Are the texts those of Go's reader? The first is recorded from Kubernetes 1.35, the others follow its rules.
import assert from 'node:assert/strict'
import test from 'node:test'
import { jsonProblem } from './json-problem.ts'

const cases: Readonly<Record<string, string>> = {
  '{nope': "invalid character 'n' looking for beginning of object key string",
  '': 'unexpected end of JSON input',
  '{"a":': 'unexpected end of JSON input',
  '{"a" 1}': "invalid character '1' after object key",
  '{"a":1 "b":2}': "invalid character '\"' after object key:value pair",
  '[1 2]': "invalid character '2' after array element",
  '[1,]': "invalid character ']' looking for beginning of value",
  '{} x': "invalid character 'x' after top-level value",
  tru: 'unexpected end of JSON input',
  trux: "invalid character 'x' in literal true (expecting 'e')",
  '-x': "invalid character 'x' in numeric literal",
  '1.x': "invalid character 'x' after decimal point in numeric literal",
  '1ex': "invalid character 'x' in exponent of numeric literal",
  '"a\u0001"': "invalid character '\\x01' in string literal",
  '"\\q"': "invalid character 'q' in string escape code",
  '"\\u12x4"': "invalid character 'x' in \\u hexadecimal character escape",
}

for (const [text, problem] of Object.entries(cases)) {
  test(`JSON problem of ${JSON.stringify(text)}`, () => {
    assert.throws(() => JSON.parse(text))
    assert.equal(jsonProblem(text), problem)
  })
}
