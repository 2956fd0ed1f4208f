import assert from 'node:assert/strict'
import test from 'node:test'
import { createFifoQueue } from './fifo-queue.ts'

const any = () => true

test('keys are found in the order of pushing, and keys that were put back come first', () => {
  const queue = createFifoQueue()
  for (const key of ['a', 'b', 'c']) queue.push(key)
  assert.equal(queue.find(any), 'a')
  queue.remove('a')
  queue.remove('b')
  assert.equal(queue.find(any), 'c')
  queue.pushFront('a')
  queue.push('d')
  assert.deepEqual([queue.find(any), queue.find((key) => key !== 'a'), queue.find((key) => key > 'c')], ['a', 'c', 'd'])
})

test('pushing twice, removing twice and removing an unknown key change nothing', () => {
  const queue = createFifoQueue()
  queue.remove('x')
  queue.push('a')
  queue.push('a')
  queue.pushFront('a')
  queue.remove('a')
  queue.remove('a')
  assert.deepEqual([queue.isEmpty(), queue.find(any)], [true, undefined])
  queue.push('a')
  assert.deepEqual([queue.isEmpty(), queue.find(any)], [false, 'a'])
})

test('emptying a long queue visits each key once', () => {
  const queue = createFifoQueue()
  const count = 20_000
  for (let index = 0; index < count; index++) queue.push(`key-${index}`)
  let calls = 0
  const counted = () => ++calls > 0
  for (let index = 0; index < count; index++) {
    const key = queue.find(counted)
    assert.equal(key, `key-${index}`)
    queue.remove(key)
  }
  assert.deepEqual([calls, queue.isEmpty()], [count, true])
})
