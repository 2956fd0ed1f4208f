// Keys are reminders: deduped, never looked at twice at once, retried with back-off, bounded in number.
import assert from 'node:assert/strict'
import test from 'node:test'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createKeyLoop } from './key-loop.ts'

test('waking a waiting key twice is one look', async () => {
  const clock = createVirtualClock()
  const looked: string[] = []
  await using loop = createKeyLoop<string>({ name: 't', clock, workers: 1, look: async (key) => void looked.push(key) })
  for (const key of ['a', 'b', 'a', 'b']) loop.wake(key)
  await loop.idle()
  assert.deepEqual(looked, ['a', 'b'])
})

test('waking a running key means one more look afterwards, never two at once', async () => {
  const clock = createVirtualClock()
  let running = 0
  let looks = 0
  await using loop = createKeyLoop<string>({
    name: 't',
    clock,
    workers: 4,
    async look(key, signal) {
      assert.equal(++running, 1)
      if (++looks === 1) for (let i = 0; i < 3; i++) loop.wake(key)
      await clock.sleep(10, signal)
      running--
    },
  })
  loop.wake('a')
  await clock.advance(100)
  assert.equal(looks, 2)
})

test('at most `workers` keys are looked at side by side', async () => {
  const clock = createVirtualClock()
  let running = 0
  let most = 0
  await using loop = createKeyLoop<number>({
    name: 't',
    clock,
    workers: 3,
    async look(_key, signal) {
      most = Math.max(most, ++running)
      await clock.sleep(1, signal)
      running--
    },
  })
  for (let i = 0; i < 10; i++) loop.wake(i)
  await clock.advance(50)
  assert.equal(most, 3)
  assert.equal(loop.depth, 0)
})

test('a failed look is retried with back-off and reported; success forgets the failures', async () => {
  const clock = createVirtualClock()
  const start = clock.now()
  const times: number[] = []
  const errors: string[] = []
  await using loop = createKeyLoop<string>({
    name: 't',
    clock,
    workers: 1,
    async look() {
      times.push(clock.now() - start)
      if (times.length < 4) throw new Error(`try ${times.length}`)
    },
    onError: (_key, error) => errors.push((error as Error).message),
  })
  loop.wake('a')
  await clock.advance(1)
  assert.equal(loop.failing.get('a')?.failures, 1)
  await clock.advance(1_000)
  assert.deepEqual(times, [0, 5, 15, 35])
  assert.deepEqual(errors, ['try 1', 'try 2', 'try 3'])
  assert.equal(loop.failing.size, 0)
})

test('a look may name the time of the next; a wake in between replaces it', async () => {
  const clock = createVirtualClock()
  const start = clock.now()
  const times: number[] = []
  await using loop = createKeyLoop<string>({
    name: 't',
    clock,
    workers: 1,
    async look() {
      times.push(clock.now() - start)
      return times.length < 3 ? { again: clock.now() + 100 } : undefined
    },
  })
  loop.wake('a')
  await clock.advance(50)
  loop.wake('a')
  await clock.advance(1_000)
  assert.deepEqual(times, [0, 50, 150])
  assert.equal(clock.next(), undefined)
})

test('an idle loop holds no timer and a stopped loop starts nothing', async () => {
  const clock = createVirtualClock()
  let looks = 0
  const loop = createKeyLoop<string>({ name: 't', clock, workers: 1, look: async () => void looks++ })
  loop.wake('a')
  await clock.settle()
  assert.equal(clock.next(), undefined)
  await loop[Symbol.asyncDispose]()
  loop.wake('b')
  loop.wakeAt('c', clock.now() + 1)
  await clock.advance(10)
  assert.equal(looks, 1)
})
