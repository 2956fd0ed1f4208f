// Does a trouble keep its beginning? Each breakage of the corpus is asked about again after more tries, and again after every agent
// was killed and started anew.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cases } from './corpus/all.ts'
import { playSince } from './corpus/play.ts'

const only = process.env['CASE']
const isHeavy = process.env['HAWSER_HEAVY'] === '1'
const lasting = cases.filter(({ since, verdict }) => since !== false && verdict !== 'working')
/** Every fourth breakage; all of them with HAWSER_HEAVY=1. */
const played = lasting.filter(({ id }, index) => {
  if (only !== undefined) return id.includes(only)
  return isHeavy || index % 4 === 0
})

test('since when something waits is not changed by tries and restarts', async () => {
  const seen = { same: 0, 'another cause': 0 }
  const wrong: string[] = []
  for (const each of played)
    await playSince(each).then(
      (answer) => void seen[answer]++,
      (error: Error) => void wrong.push(`${each.id}: ${error.message}`),
    )
  assert.deepEqual(wrong, [])
  if (only === undefined) assert.ok(seen.same > played.length * 0.9, JSON.stringify(seen))
})
