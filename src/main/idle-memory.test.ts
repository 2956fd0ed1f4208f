import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createMemoryStore } from '../store/memory-store.ts'
import { silentLog } from '../telemetry/log.ts'
import { giveBackWhenCalm } from './idle-memory.ts'

test('memory is given back after the start and after each burst, once it is over; not during a trickle', async () => {
  const clock = createVirtualClock()
  await using store = createMemoryStore()
  let given = 0
  await using _keeper = giveBackWhenCalm({ store, clock, log: silentLog, giveBack: () => given++ })
  await clock.advance(1_000)
  assert.equal(given, 0)
  await clock.advance(10_000)
  assert.equal(given, 1, 'after the start')

  for (let round = 0; round < 4; round++) {
    for (let index = 0; index < 1_200; index++) await store.create(`/a/${round}-${index}`, 'x')
    await clock.advance(1_900)
  }
  assert.equal(given, 1, 'not while the burst lasts')
  await clock.advance(10_000)
  assert.equal(given, 2)

  for (let round = 0; round < 30; round++) {
    for (let index = 0; index < 400; index++) await store.create(`/b/${round}-${index}`, 'x')
    await clock.advance(2_000)
  }
  assert.equal(given, 2, 'a trickle is no burst')
  await clock.advance(10_000)
  assert.equal(given, 3, 'but what it left behind goes with it')
  await clock.advance(600_000)
  assert.equal(given, 3)
})

test('what was practised at the start stays for a while, or until the first burst is over', async () => {
  for (const changes of [0, 3_000]) {
    const clock = createVirtualClock()
    await using store = createMemoryStore()
    let given = 0
    await using _keeper = giveBackWhenCalm({ store, clock, log: silentLog, keepMs: 600_000, giveBack: () => given++ })
    await clock.advance(60_000)
    assert.equal(given, 0)
    for (let index = 0; index < changes; index++) await store.create(`/a/${index}`, 'x')
    await clock.advance(10_000)
    assert.equal(given, changes === 0 ? 0 : 1)
    await clock.advance(600_000)
    assert.equal(given, 1, 'nobody came')
    await clock.advance(600_000)
    assert.equal(given, 1)
  }
})
