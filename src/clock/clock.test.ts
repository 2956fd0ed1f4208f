// Real and virtual time keep the same promises; virtual time is exact.
import assert from 'node:assert/strict'
import test from 'node:test'
import { clockContract } from '../../test/contracts/clock.ts'
import { microTimestamp, timestamp } from './clock.ts'
import { createSystemClock } from './system-clock.ts'
import { createVirtualClock } from './virtual-clock.ts'

clockContract('system', () => {
  const clock = createSystemClock()
  return { clock, pass: (ms) => clock.sleep(ms, new AbortController().signal) }
})
clockContract('virtual', () => {
  const clock = createVirtualClock()
  return { clock, pass: (ms) => clock.advance(ms) }
})

test('virtual timers of one moment fire in the order they were set', async () => {
  const clock = createVirtualClock()
  const order: number[] = []
  for (let i = 0; i < 50; i++) clock.at(clock.now() + (i % 5), () => order.push(i))
  await clock.advance(10)
  const expected = Array.from({ length: 50 }, (_, i) => i).toSorted((a, b) => (a % 5) - (b % 5) || a - b)
  assert.deepEqual(order, expected)
})

test('what a timer causes happens before later timers', async () => {
  const clock = createVirtualClock()
  const signal = new AbortController().signal
  const order: string[] = []
  void (async () => {
    await clock.sleep(10, signal)
    order.push('a')
    await clock.sleep(5, signal)
    order.push('b')
  })()
  clock.at(clock.now() + 16, () => order.push('c'))
  await clock.advance(100)
  assert.deepEqual(order, ['a', 'b', 'c'])
})

test('times are written as Kubernetes writes them', () => {
  const ms = Date.UTC(2026, 10, 16, 1, 2, 3, 45)
  assert.equal(timestamp(ms), '2026-11-16T01:02:03Z')
  assert.equal(microTimestamp(ms), '2026-11-16T01:02:03.045000Z')
})
