// Is `why` right? Every breakage of the corpus is made on a whole cluster, asked about, mended, and asked about again.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { causes } from '../../src/why/causes.ts'
import { attachmentReasons, controllerReasons, driverReasons, nodeReasons } from '../../src/why/reasons.ts'
import { cases, notPlayed } from './corpus/all.ts'
import { play } from './corpus/play.ts'
import { rows } from './rows.ts'

const only = process.env['CASE']

for (const each of cases.filter(({ id }) => only === undefined || id.includes(only)))
  test(`${each.id}: ${each.cause}`, () => play(each))

test('there are many breakages, each with its own name, and most say what mends them', () => {
  assert.ok(cases.length >= 150, `only ${cases.length}`)
  assert.equal(new Set(cases.map(({ id }) => id)).size, cases.length)
  assert.deepEqual(
    cases.filter(({ mend }) => mend === undefined).map(({ id }) => id),
    [],
  )
  assert.ok(cases.filter(({ mend }) => mend !== 'nothing').length > 120)
})

test('every cause is made by a case, or by a test that is named', () => {
  const made = new Set<string>(cases.map(({ cause }) => cause))
  const all = Object.keys(causes)
  assert.deepEqual(
    all.filter((cause) => !made.has(cause) && !Object.hasOwn(notPlayed, cause)),
    [],
  )
  assert.deepEqual(
    Object.keys(notPlayed).filter((cause) => made.has(cause)),
    [],
    'these are played after all',
  )
})

test('every reason to wait is explained by some facts', () => {
  const seen = new Set(
    rows.flatMap(([, { operations }]) =>
      operations.flatMap(({ status }) => (status?.waiting ?? []).map(({ reason }) => reason)),
    ),
  )
  for (const table of [controllerReasons, attachmentReasons, nodeReasons, driverReasons])
    assert.deepEqual(
      Object.keys(table).filter((reason) => !seen.has(reason)),
      [],
    )
})
