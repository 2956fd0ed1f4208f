// Is YAML read as Kubernetes reads it: repeated keys, aliases, merges, and refusals above the limits?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../../api/status-error.ts'
import { parseJsonOrYaml } from './codec.ts'

function read(text: string) {
  const repeated: string[] = []
  try {
    return { value: parseJsonOrYaml(Buffer.from(text), (what) => repeated.push(what)), repeated }
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error))
    return `${error.code} ${error.message}`
  }
}

test('the last of repeated keys counts, and each is told with its line', () => {
  assert.deepEqual(read('a: 1\nb: 2\na: 3\n"b": {x: 1, x: 2}\n'), {
    value: { a: 3, b: { x: 2 } },
    repeated: ['line 3', 'line 4', 'line 4'].map((line) => `${line}: key already set in map`),
  })
})

test('a map keeps its own keys before merged ones, and earlier merged ones before later', () => {
  const text = 'one: &a {p: 1, q: 1}\ntwo: &b {q: 2, r: 2}\nall:\n  r: 3\n  <<: [*a, *b]\n'
  assert.deepEqual(read(text), {
    value: { one: { p: 1, q: 1 }, two: { q: 2, r: 2 }, all: { p: 1, q: 1, r: 3 } },
    repeated: [],
  })
})

test('an alias stands for the last value of its anchor before it', () => {
  assert.deepEqual(read('- &a 1\n- *a\n- &a [2]\n- *a\n'), { value: [1, 1, [2], [2]], repeated: [] })
})

const failed = '400 error converting YAML to JSON: yaml:'
const refusals: readonly (readonly [string, string, string])[] = [
  ['an unknown alias', '- *a', `${failed} Unresolved alias (the anchor must be set before the alias): a`],
  ['a value in itself', 'a: &a [*a]', `${failed} anchor 'a' value contains itself`],
  ['a list as a key', '? [a]\n: b', `${failed} invalid map key: it is a map or a list`],
  ['a merge of a number', '<<: 1', `${failed} Merge sources must be maps or map aliases`],
  ['a fault', 'a: b: c', `${failed} Nested mappings are not allowed in compact mappings at line 1, column 4:`],
  ['a fault at the end', 'a: "x\n', `${failed} Missing closing "quote at line 2, column 1:`],
  ['lists in lists', '- '.repeat(250), '400 the body of the request is nested more than 200 levels deep'],
  [
    'lists in lists beyond the stack',
    '- '.repeat(5000),
    '400 the body of the request is nested more than 200 levels deep',
  ],
  [
    'too many aliases',
    `- &a x\n${'- *a\n'.repeat(101)}`,
    `${failed} Excessive alias count indicates a resource exhaustion attack`,
  ],
  [
    'aliases of a large value',
    `- &a ${'x'.repeat(100_000)}\n${'- *a\n'.repeat(50)}`,
    `${failed} Excessive alias count indicates a resource exhaustion attack`,
  ],
  [
    'a long text',
    'a: b\n'.repeat(10_000),
    '413 Request entity too large: the YAML is too long to read: it has more than 12000 words and signs; send JSON',
  ],
]
for (const [what, text, answer] of refusals) {
  test(`refused: ${what}`, () => assert.equal(read(text), answer))
}
