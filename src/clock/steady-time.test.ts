// Does time go on when somebody sets the clock?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSchedule } from '../loop/schedule.ts'
import type { Clock } from './clock.ts'
import { waitsOver } from './clock.ts'
import { createSteadyTime } from './steady-time.ts'

const hour = 3_600_000

function machine() {
  const state = { wall: 10 * hour, steady: 0 }
  const pass = (ms: number) => {
    state.wall += ms
    state.steady += ms
  }
  const now = createSteadyTime(
    () => state.wall,
    () => state.steady,
  )
  return { state, pass, now }
}

test('the machine’s time is ours, forward steps and all', () => {
  const { state, pass, now } = machine()
  pass(1_500)
  assert.equal(now(), 10 * hour + 1_500)
  state.wall += hour
  assert.equal(now(), 11 * hour + 1_500)
})

test('a clock set back a little: time goes on at half its speed until it is caught up, and never back', () => {
  const { state, pass, now } = machine()
  now()
  state.wall -= 30_000
  assert.equal(now(), 10 * hour)
  pass(10_000)
  assert.equal(now(), 10 * hour + 5_000)
  pass(40_000)
  assert.equal(now(), 10 * hour + 25_000)
  pass(60_000)
  assert.equal(now(), state.wall)
})

test('a clock set forward by mistake and corrected: time goes on at its full speed at once (A17)', () => {
  const { state, pass, now } = machine()
  now()
  state.wall += 365 * 24 * hour
  pass(5_000)
  assert.equal(now(), state.wall)
  state.wall -= 365 * 24 * hour
  assert.equal(now(), 10 * hour + 5_000)
  pass(10_000)
  assert.equal(now(), 10 * hour + 15_000)
})

test('what is due in ten seconds is done in ten, although the clock went back an hour', () => {
  const { state, pass, now } = machine()
  const timers = new Set<{ left: number; wake: () => void }>()
  const at: Clock['at'] = (time, wake) => {
    const timer = { left: Math.max(0, time - now()), wake }
    timers.add(timer)
    return { [Symbol.dispose]: () => void timers.delete(timer) }
  }
  const done: string[] = []
  const schedule = createSchedule<string>(
    { now, steady: () => state.steady, at, ...waitsOver(at, now) },
    (key) => void done.push(key),
  )
  schedule.set('lease', now() + 10_000)
  state.wall -= hour
  for (let second = 0; second < 11; second++) {
    pass(1_000)
    for (const timer of [...timers]) {
      timer.left -= 1_000
      if (timer.left > 0) continue
      timers.delete(timer)
      timer.wake()
    }
  }
  assert.deepEqual(done, ['lease'])
})
