// Is each broken driver found by the checks that should find it? In the heavy suites the whole catalogue is tried on every
// defect: no other check may fail.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDirectoryDriver } from '../../src/csi/model/directory-driver.ts'
import { brokenHandlers, defects } from '../../examples/broken-drivers/defects.ts'
import type { Defect } from '../../examples/broken-drivers/defect.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { directTransport } from '../../src/csi/service.ts'
import { createModelHost } from '../../src/host/model/model-host.ts'
import { allChecks, checksOf } from '../../src/lab/catalogue.ts'
import type { Check } from '../../src/lab/check.ts'
import { runLab } from '../../src/lab/run.ts'

const isHeavy = process.env['HAWSER_HEAVY'] === '1'
const clock = createSystemClock()
const signal = new AbortController().signal
const identity = { name: 'broken.example.com', nodeId: 'n1' }
const recipe = { sizeBytes: 1n << 24n, fsType: '', parameters: {}, secrets: {} }

async function resultsOf(defect: Defect | undefined, checks: readonly Check[] = allChecks) {
  const host = createModelHost({ clock })
  const driver = createDirectoryDriver({ host, clock, dataDirectory: '/data', ...identity })
  await host.files.mkdirAll('/data', 0o700, signal)
  const transport = directTransport(brokenHandlers(driver, defect))
  const place = { host, directory: '/lab' }
  // A defect may hang: then this is how long it takes.
  const options = { checks, recipe, run: 'lab', callTimeoutMs: 300 }
  const { results } = await runLab({ clock, transport, place, duringMs: 0 }, options, {}, signal)
  return { results, left: await host.files.readDir('/data', signal) }
}

test('the good driver passes every check and leaves nothing', async () => {
  const { results, left } = await resultsOf(undefined)
  const problems = results.flatMap(({ check, verdict, leftovers }) => [
    ...(verdict.kind === 'failed' ? [`${check.id}: ${verdict.finding}`] : []),
    ...leftovers,
  ])
  assert.deepEqual(problems, [])
  assert.deepEqual(left, [])
})

for (const [name, defect] of Object.entries(defects))
  test(`found: ${name}: ${defect.what}`, async () => {
    const { results } = await resultsOf(defect, isHeavy ? triedOn(defect) : named(defect))
    const failed = results.flatMap(({ check, verdict }) =>
      verdict.kind === 'failed' ? [[check.id, verdict.finding]] : [],
    )
    assert.deepEqual(
      failed.map(([id]) => id).toSorted(),
      defect.foundBy.toSorted(),
      failed.map((each) => each.join(': ')).join('\n'),
    )
  })

/** A call that cannot be repeated breaks most of the faults suite too: only defects that show nowhere else are tried on that. */
const triedOn = ({ foundBy }: Defect) =>
  foundBy.some((id) => id.startsWith('faults/')) ? allChecks : checksOf(['honesty', 'life'])

const named = ({ foundBy }: Defect) => allChecks.filter(({ id }) => foundBy.includes(id))

test('there are at least twenty defects, and they name checks that exist', () => {
  assert.ok(Object.keys(defects).length >= 20)
  const known = new Set(allChecks.map(({ id }) => id))
  const unknown = Object.values(defects).flatMap(({ foundBy }) => foundBy.filter((id) => !known.has(id)))
  assert.deepEqual(unknown, [])
})
