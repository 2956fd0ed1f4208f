// Sizes, pages and turns: what the kit decides before a driver works.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import { CapacityRangeSchema } from '../generated/csi_pb.ts'
import { chooseSize, createExclusive, pageOf } from './checks.ts'

const limits = { minimumBytes: 10n, maximumBytes: 100n }
const range = (requiredBytes: bigint, limitBytes = 0n) => create(CapacityRangeSchema, { requiredBytes, limitBytes })

test('the size is what is required, within both limits', () => {
  assert.equal(chooseSize(undefined, limits), 10n)
  assert.equal(chooseSize(range(50n), limits), 50n)
  assert.equal(chooseSize(range(0n, 20n), limits), 10n)
  assert.throws(() => chooseSize(range(101n), limits), /OutOfRange/)
  assert.throws(() => chooseSize(range(0n, 5n), limits), /OutOfRange/)
  assert.throws(() => chooseSize(range(9n, 5n), limits), /InvalidArgument/)
  assert.throws(() => chooseSize(range(-1n), limits), /InvalidArgument/)
})

test('pages follow one another, and a wrong token is ABORTED', () => {
  const items = ['a', 'b', 'c']
  assert.deepEqual(pageOf(items, 2, ''), { page: ['a', 'b'], nextToken: '2' })
  assert.deepEqual(pageOf(items, 2, '2'), { page: ['c'], nextToken: '' })
  assert.deepEqual(pageOf(items, 0, ''), { page: items, nextToken: '' })
  assert.throws(() => pageOf(items, 2, 'nonsense'), /Aborted/)
})

test('calls on one volume take turns in their order; a failed one does not stop the next', async () => {
  const exclusive = createExclusive()
  const order: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = exclusive('v', async () => {
    await gate.promise
    order.push('first')
    throw new Error('failed')
  })
  const second = exclusive('v', async () => order.push('second'))
  await exclusive('other', async () => order.push('other'))
  gate.resolve()
  await assert.rejects(first, /failed/)
  await second
  assert.deepEqual(order, ['other', 'first', 'second'])
})
