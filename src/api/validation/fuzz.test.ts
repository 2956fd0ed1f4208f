// Can any request make reading, defaults or validation throw something unexpected? Random objects along the schema
// table, with wrong types, nulls and odd texts mixed in: each is read, refused or accepted, and nothing else happens.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { applyDefaults } from '../defaults/defaults.ts'
import { invalidObject } from '../field-errors.ts'
import { kindNames, kinds } from '../kinds.ts'
import type { KindMap, KindName } from '../kinds.ts'
import { readObject, ReadError } from '../schema/check.ts'
import { jsonFields, messageSchema } from '../schema/schema.ts'
import type { FieldSchema } from '../schema/schema.ts'
import { validateCreate, validateUpdate } from './validate.ts'

const words = fc.constantFrom(
  '',
  'a',
  'A_b',
  '..',
  '/x/../y',
  '-',
  'example.com/x',
  'x'.repeat(300),
  '__proto__',
  '1Gi',
  '\u0000',
)
const quantities = fc.constantFrom('1Gi', '-1', '0', '1e3', '1.5', 5, `${'9'.repeat(253)}.5`, '1e300')
const times = fc.constantFrom('2024-01-01T00:00:00Z', '2024-01-01T00:00:00.1+01:00')
const junk = fc.constantFrom<unknown>(null, {}, [], 'x', 5, -1, 1.5, true)

function valueOf(field: FieldSchema, depth: number): fc.Arbitrary<unknown> {
  switch (field.type) {
    case 'string':
      return field.words ? fc.oneof(fc.constantFrom(...field.words), words) : words
    case 'bytes':
      return fc.constantFrom('', 'QQ==')
    case 'bool':
      return fc.boolean()
    case 'int32':
    case 'int64':
      return fc.constantFrom(0, 1, -1, 80, 600, 70_000)
    case 'resource.Quantity':
      return quantities
    case 'meta.Time':
    case 'meta.MicroTime':
      return times
    case 'intstr.IntOrString':
      return fc.constantFrom<unknown>(80, 'http', '')
    default:
      return messageSchema(field.type)?.scalar ? fc.constantFrom<unknown>({}, ['x']) : structOf(field.type, depth - 1)
  }
}

function structOf(message: string, depth: number): fc.Arbitrary<object> {
  if (depth <= 0) return fc.constant({})
  const fields = [...jsonFields(message).values()]
  const chosen = fc.subarray(fields, { maxLength: Math.min(9, fields.length) })
  return chosen.chain(
    (list) =>
      fc.record(Object.fromEntries(list.map((field) => [field.name, memberOf(field, depth)]))) as fc.Arbitrary<object>,
  )
}

function memberOf(field: FieldSchema, depth: number): fc.Arbitrary<unknown> {
  const one = valueOf(field, depth)
  const shaped =
    field.shape === 'list'
      ? fc.array(fc.oneof({ weight: 20, arbitrary: one }, { weight: 1, arbitrary: fc.constant(null) }), {
          maxLength: 3,
        })
      : field.shape === 'map'
        ? fc.dictionary(words, one, { maxKeys: 3 })
        : one
  return fc.oneof({ weight: 300, arbitrary: shaped }, { weight: 1, arbitrary: junk })
}

function check(kind: KindName, body: unknown, other: unknown): void {
  const next = read(kind, body)
  const previous = read(kind, other)
  if (next === undefined || previous === undefined) return
  const errors = [...validateCreate(kind, next), ...validateUpdate(kind, next, previous)]
  validateUpdate(kind, next, previous, 'status')
  if (errors.length > 0) assert.equal(invalidObject(kinds[kind], 'x', errors).code, 422)
  // What we would store, we read again unchanged.
  const stored = JSON.parse(JSON.stringify(next)) as unknown
  assert.deepEqual(JSON.parse(JSON.stringify(read(kind, stored))), stored)
}

function read<K extends KindName>(kind: K, value: unknown): KindMap[K] | undefined {
  try {
    return applyDefaults(kind, readObject(kind, value).value as unknown as KindMap[K]) // just read as that kind
  } catch (error) {
    if (error instanceof ReadError) return undefined
    throw error
  }
}

for (const kind of kindNames) {
  test(`no ${kind} can break reading, defaults or validation`, () => {
    const body = structOf(kinds[kind].message, 6)
    fc.assert(
      fc.property(body, body, (next, previous) => check(kind, next, previous)),
      { numRuns: 100 },
    )
  })
}
