import assert from 'node:assert/strict'
import { test } from 'node:test'
import { podUid } from '../api/names.ts'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createPending } from '../loop/pending.ts'
import { createLull } from './lull.ts'

function bench() {
  const clock = createVirtualClock()
  const pending = createPending(clock)
  const stopping = new AbortController()
  const lull = createLull(clock, pending, stopping.signal)
  const passed: string[] = []
  const wait = async (pod: string) => {
    await lull.wait(podUid(pod))
    passed.push(pod)
  }
  /** A volume is worked on for so long. */
  const work = (name: string, ms: number) =>
    pending.start([name], 'volume_mount', () => clock.sleep(ms, stopping.signal).catch(() => {}))
  return { clock, lull, stopping, passed, wait, work }
}

test('a pod that comes alone does not wait, not even a turn of the clock', async () => {
  const { lull, clock, passed, wait } = bench()
  lull.came(podUid('a'))
  void wait('a')
  await clock.settle()
  assert.deepEqual(passed, ['a'])
})

test('pods of a crowd start when all of them have their volumes; the first of all knows of no others', async () => {
  const { lull, clock, passed, wait, work } = bench()
  for (const pod of ['a', 'b', 'c']) {
    lull.came(podUid(pod))
    work(pod, 5)
    await clock.advance(10)
    void wait(pod)
  }
  await clock.advance(15)
  assert.deepEqual(passed, ['a'])
  await clock.advance(10)
  assert.deepEqual(passed, ['a', 'b', 'c'])
})

test('a stream of pods that never ends holds nobody up for longer than half a second', async () => {
  const { lull, clock, passed, wait, work } = bench()
  for (let at = 0; at < 500; at += 20) {
    lull.came(podUid(`p${at}`))
    work(`p${at}`, 19)
    if (at === 0) void wait('p0')
    assert.deepEqual(passed, [])
    await clock.advance(20)
  }
  assert.deepEqual(passed, ['p0'])
})

test('the end of the agent is the end of the wait', async () => {
  const { clock, stopping, passed, wait, work } = bench()
  work('v', 400)
  void wait('a')
  await clock.advance(10)
  assert.deepEqual(passed, [])
  stopping.abort()
  await clock.settle()
  assert.deepEqual(passed, ['a'])
})
