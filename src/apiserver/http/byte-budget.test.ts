// Are bodies counted in total and for each user, and given back?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createByteBudget } from './byte-budget.ts'

test('a user that has too many bytes in flight is told to come back, others are not', () => {
  const budget = createByteBudget({ total: 100, perUser: 50 })
  using first = budget.open('ann')
  using second = budget.open('ann')
  using other = budget.open('bob')
  assert.equal(first.take(40), undefined)
  assert.equal(second.take(20)?.code, 429)
  assert.equal(other.take(50), undefined)
  assert.equal(second.take(10), undefined)
})

test('all users together are bounded, and what is done is given back', () => {
  const budget = createByteBudget({ total: 60, perUser: 50 })
  const first = budget.open('ann')
  using second = budget.open('bob')
  assert.equal(first.take(50), undefined)
  assert.equal(second.take(20)?.code, 503)
  first[Symbol.dispose]()
  first[Symbol.dispose]()
  assert.equal(second.take(50), undefined)
})
