// Does the definition of our own kind hold together? Also the example for docs/guides/add-a-kind.md.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OperationRecord } from '../generated/types.ts'
import { validateCreate } from '../validation/validate.ts'
import { operationKind } from './operation.ts'

const record: OperationRecord = {
  metadata: { name: 'o', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { actor: 'node/n1', operation: 'mount', volume: 'v' },
  status: { phase: 'Succeeded', startedAt: '2026-01-01T00:00:00Z', finishedAt: '2026-01-01T00:00:03Z' },
}

test('an operation without actor or operation is refused', () => {
  assert.deepEqual(validateCreate('Operation', record), [])
  const empty = { ...record, spec: { actor: '', operation: '' } }
  assert.deepEqual(
    validateCreate('Operation', empty).map(({ field, reason }) => [field, reason]),
    [
      ['spec.actor', 'FieldValueRequired'],
      ['spec.operation', 'FieldValueRequired'],
    ],
  )
})

test('an operation is shown with how long it took', () => {
  const { columns, cells } = operationKind.table
  const row = cells(record, Date.parse('2026-01-01T00:10:00Z'))
  assert.equal(row.length, columns.length)
  assert.deepEqual(row.slice(0, 6), ['o', 'mount', 'v', 'Succeeded', '3s', '10m'])
})
