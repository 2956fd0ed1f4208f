// Many times on one timer, against a simple model.
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createSchedule } from './schedule.ts'

test('property: each key is due once, at its last time, unless cleared', async () => {
  const step = fc.record({ key: fc.nat(5), time: fc.nat(50), action: fc.constantFrom('set', 'set', 'clear', 'pass') })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const clock = createVirtualClock(0)
      const fired: string[] = []
      const expected: string[] = []
      const model = new Map<number, number>()
      const schedule = createSchedule<number>(clock, (key) => fired.push(`${key}@${clock.now()}`))
      const pass = async (ms: number) => {
        const end = clock.now() + ms
        const due = [...model].filter(([, time]) => time <= end)
        for (const [key, time] of due) {
          model.delete(key)
          expected.push(`${key}@${time}`)
        }
        await clock.advance(ms)
      }
      for (const { key, time, action } of steps) {
        if (action === 'pass') await pass(time)
        else if (action === 'clear') {
          schedule.clear(key)
          model.delete(key)
        } else {
          schedule.set(key, clock.now() + 1 + time)
          model.set(key, clock.now() + 1 + time)
        }
      }
      await pass(100)
      assert.deepEqual(fired.toSorted(), expected.toSorted())
      assert.equal(clock.next(), undefined)
    }),
  )
})

test('a thousand planned keys hold one timer of the clock', () => {
  let timers = 0
  const clock = createVirtualClock(0)
  const counting = { ...clock, at: (...args: Parameters<typeof clock.at>) => (timers++, clock.at(...args)) }
  const schedule = createSchedule<number>(counting, () => {})
  for (let i = 0; i < 1_000; i++) schedule.set(i, 1_000 + i)
  assert.equal(timers, 1)
})
