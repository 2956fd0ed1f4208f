// Back-off as a table: rules BO-1, BO-2, BO-3, CTL-7.
import assert from 'node:assert/strict'
import test from 'node:test'
import { afterFailure, backoff, keyBackoff, mayRetry, retryAt } from './backoff.ts'
import type { BackoffRecord } from './backoff.ts'

test('a fresh record allows a try at once (BO-1)', () => {
  assert.equal(mayRetry(undefined, 0), true)
  assert.equal(backoff(0), 0)
})

test('.5, 1, 2, 4, 8, 16, 32, 64, 122, 122 s (BO-2, C-1)', () => {
  const waits = Array.from({ length: 10 }, (_, i) => backoff(i + 1) / 1000)
  assert.deepEqual(waits, [0.5, 1, 2, 4, 8, 16, 32, 64, 122, 122])
})

test('time and error are overwritten by each failure (BO-2)', () => {
  let record: BackoffRecord | undefined = afterFailure(undefined, 100, 'first')
  record = afterFailure(record, 5_000, 'second')
  assert.deepEqual(record, { failures: 2, failedAt: 5_000, waitMs: 1_000, error: 'second' })
})

test('the boundary itself still refuses (BO-3)', () => {
  const record = afterFailure(undefined, 1_000, 'x')
  assert.equal(mayRetry(record, 1_500), false)
  assert.equal(mayRetry(record, 1_501), true)
  assert.equal(retryAt(record), 1_501)
})

test('keys back off from 5 ms to 1000 s (CTL-7)', () => {
  assert.equal(backoff(1, keyBackoff), 5)
  assert.equal(backoff(60, keyBackoff), 1_000_000)
})
