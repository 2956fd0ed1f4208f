import assert from 'node:assert/strict'
import { test } from 'node:test'
import { takeBackBehind, threadSide } from './gate.ts'

const newWord = () => new Int32Array(new SharedArrayBuffer(4))

test('what waits behind a call is taken back while the thread is inside it, and never made by this thread', () => {
  const word = newWord()
  const thread = threadSide(word)
  assert.equal(thread.begin(1), true)
  assert.equal(takeBackBehind(word, 1, 4), true)
  thread.end()
  assert.deepEqual([2, 3].map(thread.begin), [false, false])
  assert.equal(thread.begin(4), true)
})

test('nothing is taken back from a thread that has gone on by itself', () => {
  const word = newWord()
  const thread = threadSide(word)
  thread.begin(1)
  thread.end()
  assert.equal(takeBackBehind(word, 1, 4), false, 'between two calls')
  assert.equal(thread.begin(2), true)
  assert.equal(takeBackBehind(word, 1, 4), false, 'inside the next')
  thread.end()
  assert.equal(thread.begin(3), true)
})

test('a call is taken back once: the second time there is nothing more to take', () => {
  const word = newWord()
  const thread = threadSide(word)
  thread.begin(1)
  assert.equal(takeBackBehind(word, 1, 3), true)
  assert.equal(takeBackBehind(word, 1, 9), false)
  thread.end()
  assert.deepEqual([2, 3].map(thread.begin), [false, true])
})
