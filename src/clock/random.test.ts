// Chance is reproducible, and looks like chance.
import assert from 'node:assert/strict'
import test from 'node:test'
import { createRandom } from './random.ts'

test('the same seed gives the same run, another seed another', () => {
  const draw = (seed: string) => {
    const random = createRandom(seed)
    return [random.uid(), random.suffix(), random.below(1000), ...random.bytes(8)]
  }
  assert.deepEqual(draw('a'), draw('a'))
  assert.notDeepEqual(draw('a'), draw('b'))
})

test('uids are version 4 UUIDs and do not repeat', () => {
  const random = createRandom(1)
  const seen = new Set(Array.from({ length: 20_000 }, () => random.uid()))
  assert.equal(seen.size, 20_000)
  for (const uid of seen) assert.match(uid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})

test('numbers below a limit are spread evenly', () => {
  const random = createRandom('even')
  const counts = Array.from({ length: 10 }, () => 0)
  for (let i = 0; i < 100_000; i++) counts[random.below(10)]!++
  for (const count of counts) assert.ok(count > 9_500 && count < 10_500, String(counts))
})
