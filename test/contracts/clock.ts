// What every clock promises, real or virtual; `pass` lets that much time go by.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Clock } from '../../src/clock/clock.ts'
import { DeadlineExceeded } from '../../src/clock/clock.ts'

export function clockContract(name: string, make: () => { clock: Clock; pass: (ms: number) => Promise<void> }): void {
  describe(`clock contract: ${name}`, () => {
    test('a sleep ends after its time and not before', async () => {
      const { clock, pass } = make()
      let woke = false
      const sleeping = clock.sleep(30, new AbortController().signal).then(() => (woke = true))
      await pass(10)
      assert.equal(woke, false)
      await pass(40)
      await sleeping
      assert.equal(woke, true)
    })
    test('an aborted sleep rejects with the reason', async () => {
      const { clock } = make()
      const abort = new AbortController()
      const sleeping = clock.sleep(10_000, abort.signal)
      abort.abort(new Error('no more'))
      await assert.rejects(sleeping, /no more/)
    })
    test('a deadline aborts with DeadlineExceeded; a disposed one never does', async () => {
      const { clock, pass } = make()
      const outer = new AbortController()
      using kept = clock.deadline(20, outer.signal)
      const dropped = clock.deadline(20, outer.signal)
      dropped[Symbol.dispose]()
      await pass(60)
      assert.ok(kept.signal.reason instanceof DeadlineExceeded)
      assert.equal(dropped.signal.aborted, false)
    })
    test('a deadline follows the outer signal', () => {
      const { clock } = make()
      const outer = new AbortController()
      using deadline = clock.deadline(10_000, outer.signal)
      outer.abort(new Error('stop'))
      assert.match(String(deadline.signal.reason), /stop/)
    })
    test('timers fire in the order of their times', async () => {
      const { clock, pass } = make()
      const order: string[] = []
      clock.at(clock.now() + 40, () => order.push('late'))
      clock.at(clock.now() + 5, () => order.push('early'))
      clock.at(clock.now() + 20, () => order.push('cancelled'))[Symbol.dispose]()
      await pass(80)
      assert.deepEqual(order, ['early', 'late'])
    })
  })
}
