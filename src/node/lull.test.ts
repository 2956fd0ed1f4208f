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
  let workload = 0
  const lull = createLull({ clock, pending, measureWork: () => () => workload }, stopping.signal)
  const passed: string[] = []
  const wait = async (pod: string) => {
    await lull.wait(podUid(pod))
    passed.push(pod)
  }
  /** A volume is worked on for so long. */
  const work = (name: string, ms: number) =>
    pending.start([name], 'volume_mount', () => clock.sleep(ms, stopping.signal).catch(() => {}))
  const setWorkload = (share: number) => void (workload = share)
  return { clock, lull, stopping, passed, wait, work, setWorkload }
}

test('a pod that comes alone to a quiet node waits for three milliseconds', async () => {
  const { lull, clock, passed, wait } = bench()
  lull.came(podUid('a'))
  void wait('a')
  await clock.advance(3)
  assert.deepEqual(passed, ['a'])
})

test('while the process has much to do, others are on their way: the first of a crowd waits for them', async () => {
  const { lull, clock, passed, wait, setWorkload } = bench()
  setWorkload(1)
  lull.came(podUid('a'))
  void wait('a')
  await clock.advance(40)
  lull.came(podUid('b'))
  void wait('b')
  setWorkload(0.2)
  await clock.advance(29)
  assert.deepEqual(passed, [])
  await clock.advance(4)
  assert.deepEqual(passed, ['a', 'b'])
})

test('a process that is never at rest starts containers after half a second all the same', async () => {
  const { lull, clock, passed, wait, setWorkload } = bench()
  setWorkload(1)
  lull.came(podUid('a'))
  void wait('a')
  await clock.advance(490)
  assert.deepEqual(passed, [])
  await clock.advance(20)
  assert.deepEqual(passed, ['a'])
})

test('pods of a crowd start when all of them have their volumes', async () => {
  const { lull, clock, passed, wait, work } = bench()
  for (const pod of ['a', 'b', 'c']) {
    lull.came(podUid(pod))
    work(pod, 5)
    await clock.advance(10)
    void wait(pod)
  }
  await clock.advance(15)
  assert.deepEqual(passed, [])
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
