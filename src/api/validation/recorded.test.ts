// Do we refuse what a real Kubernetes 1.35 refused, with the same fields, reasons and sentences? The cases in
// recorded-cases.json were recorded from it.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { applyDefaults } from '../defaults/defaults.ts'
import { invalidObject } from '../field-errors.ts'
import { kindByType } from '../kinds.ts'
import type { KindMap } from '../kinds.ts'
import { readObject } from '../schema/check.ts'
import type { StatusCause } from '../generated/types.ts'
import { validateCreate } from './validate.ts'

interface RecordedCase {
  readonly name: string
  readonly body: { readonly apiVersion: string; readonly kind: string; readonly metadata: { readonly name?: string } }
  readonly code: number
  readonly causes: readonly StatusCause[]
  readonly message?: string
}

const cases = JSON.parse(
  readFileSync(new URL('recorded-cases.json', import.meta.url), 'utf8'),
) as readonly RecordedCase[]

for (const recorded of cases) {
  test(`API recorded ${recorded.name}`, () => {
    const info = kindByType(recorded.body.apiVersion, recorded.body.kind)
    assert.ok(info)
    const read = readObject(info.name, recorded.body).value as unknown as KindMap[typeof info.name] // just read as that kind
    const errors = validateCreate(info.name, applyDefaults(info.name, read))
    const byField = (a: StatusCause, b: StatusCause) => (`${a.field} ${a.message}` < `${b.field} ${b.message}` ? -1 : 1)
    const causes = errors.map(({ field, message, reason }) => ({ field, message, reason }))
    assert.deepEqual(causes.toSorted(byField), [...recorded.causes].sort(byField))
    if (recorded.code !== 422 || recorded.message === undefined) return
    const status = invalidObject(info, recorded.body.metadata.name ?? '', errors)
    assert.equal(status.code, 422)
    assert.equal(status.message, recorded.message)
  })
}
