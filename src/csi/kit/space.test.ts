// Is space counted rightly? Tables of what may be promised, and of how full a disk is.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fullness, reserveOf, roomFor } from './space.ts'

const gi = 1n << 30n
const mi = 1n << 20n

test('the reserve is a tenth of the disk, within bounds', () => {
  assert.equal(reserveOf(100n * gi), gi)
  assert.equal(reserveOf(4n * gi), (4n * gi) / 10n)
  assert.equal(reserveOf(512n * mi), 64n * mi)
  assert.equal(reserveOf(100n * mi), 25n * mi)
})

const disk = { capacityBytes: 101n * gi, availableBytes: 51n * gi, heldBytes: 0n }
const none = { thinBytes: 0n, thickBytes: 0n }
const rows: readonly (readonly [string, 'thin' | 'thick', typeof disk, typeof none, number, bigint])[] = [
  ['thin: free less the reserve, times the ratio', 'thin', disk, none, 2, 100n * gi],
  ['a ratio of 1 promises nothing twice', 'thin', disk, none, 1, 50n * gi],
  ['a broken ratio counts', 'thin', disk, none, 1.5, 75n * gi],
  ['what images hold is part of the pool', 'thin', { ...disk, heldBytes: 10n * gi }, none, 1, 60n * gi],
  ['promises count in full, whatever is written', 'thin', disk, { ...none, thinBytes: 90n * gi }, 2, 10n * gi],
  ['more promised than allowed: no room', 'thin', disk, { ...none, thinBytes: 900n * gi }, 2, 0n],
  ['thick is taken out of the pool', 'thin', disk, { ...none, thickBytes: 10n * gi }, 2, 80n * gi],
  ['thick: what is free less the reserve', 'thick', disk, none, 2, 50n * gi],
  ['thick leaves what thin volumes were promised', 'thick', disk, { ...none, thinBytes: 60n * gi }, 2, 20n * gi],
]
for (const [name, kind, space, promised, ratio, expected] of rows)
  test(name, () => assert.equal(roomFor(kind, space, promised, ratio), expected))

test('a disk is low below twice the reserve, and out below it; what is in memory counts', () => {
  const at = (availableBytes: bigint, unflushed = 0n) =>
    fullness({ capacityBytes: 100n * gi, availableBytes }, unflushed)
  assert.deepEqual([at(2n * gi), at(2n * gi - 1n), at(gi), at(gi - 1n)], ['plenty', 'low', 'low', 'out'])
  assert.deepEqual([at(2n * gi - 1n, gi), at(2n * gi, 9n * gi), at(gi, 1n)], ['out', 'plenty', 'out'])
})
