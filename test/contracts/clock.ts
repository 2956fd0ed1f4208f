// What every clock promises, real or virtual; `pass` lets that much time go by.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Clock } from '../../src/clock/clock.ts'
import { DeadlineExceeded } from '../../src/clock/clock.ts'

export function clockContract(name: string, make: () => { clock: Clock; pass: (ms: number) => Promise<void> }): void {
  describe(`clock contract: ${name}`, () => {
    test('a sleep ends after its time and not before', async () => {
      const { clock, pass } = make()
      // Judged by the clock itself: on a busy machine `pass` may take much longer than it should.
      const begun = clock.now()
      let sleptMs: number | undefined
      const sleeping = clock.sleep(30, new AbortController().signal).then(() => (sleptMs = clock.now() - begun))
      await pass(50)
      await sleeping
      assert.ok(sleptMs !== undefined && sleptMs >= 29, `slept ${sleptMs} ms`) // timers count whole milliseconds
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
