// Is a node of one name run by one agent only? Whoever starts takes its lease, and is refused while another agent lives.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createTestApi } from '../../test/kit/api.ts'
import { annotations } from '../api/annotations.ts'
import { microTimestamp } from '../clock/clock.ts'
import { createRandom } from '../clock/random.ts'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { takeLock } from './directory-lock.ts'
import { claimNode, placeOfAgent } from './other-agent.ts'

const { signal } = new AbortController()
const ref = { namespace: 'kube-node-lease', name: 'n' }
const away = '/var/lib/hawser/node on elsewhere (abc)'

async function createCluster() {
  const clock = createVirtualClock()
  const api = await createTestApi({ clock, random: createRandom(1) })
  const { client } = api
  const waits: string[] = []
  const claim = (root = '/nowhere/node') =>
    claimNode({ client, clock, node: 'n', root, machineId: 'm', onWait: (text) => waits.push(text) }, signal)
  const write = (place: string, renewTime = microTimestamp(clock.now())) =>
    client.patch(
      'Lease',
      ref,
      { type: 'merge', body: { metadata: { annotations: { [annotations.agentPlace]: place } }, spec: { renewTime } } },
      {},
      signal,
    )
  const place = async () => (await client.get('Lease', ref, signal)).metadata.annotations?.[annotations.agentPlace]
  return { ...api, clock, claim, write, place, waits, [Symbol.asyncDispose]: () => api[Symbol.asyncDispose]() }
}

/** How a claim ends while virtual time passes. */
async function outcome(claiming: Promise<void>, clock: { advance(ms: number): Promise<void> }, ms: number) {
  const ended = claiming.then(
    () => 'taken',
    (error: unknown) => (error as Error).message,
  )
  await clock.advance(ms)
  return await ended
}

test('a free node is taken, and taken again by the same agent after each restart', async () => {
  await using cluster = await createCluster()
  await cluster.claim()
  await cluster.claim()
  assert.equal(await cluster.place(), placeOfAgent('/nowhere/node', 'm'))
  assert.deepEqual(cluster.waits, [])
})

/** Two agents hold their roots before they claim a node. */
function heldRoots(t: TestContext): readonly string[] {
  return ['a', 'b'].map((name) => {
    const root = mkdtempSync(join(tmpdir(), `hawser-other-agent-${name}-`))
    const lock = takeLock(join(root, 'node.lock'))
    t.after(() => {
      if (lock.kind === 'held') lock.release()
      rmSync(root, { recursive: true, force: true })
    })
    return root
  })
}

test('of two agents that start at the same instant one is refused', async (t) => {
  await using cluster = await createCluster()
  const roots = heldRoots(t)
  const results = await Promise.allSettled(roots.map((root) => cluster.claim(root)))
  assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  // The same over a lease that nobody holds any more.
  await using other = await createCluster()
  await other.claim()
  await other.write(away, microTimestamp(other.clock.now() - 3_600_000))
  const both = roots.map((root) => outcome(other.claim(root), other.clock, 60_000))
  assert.equal((await Promise.all(both)).filter((result) => result === 'taken').length, 1)
})

test('an agent elsewhere that renewed its lease a moment ago is not replaced', async () => {
  await using cluster = await createCluster()
  await cluster.claim()
  await cluster.write(away)
  await assert.rejects(
    cluster.claim(),
    /node n is run by another agent, with .*elsewhere.*: it renewed its lease 0 seconds ago/,
  )
  assert.equal(await cluster.place(), away)
})

for (const [name, ms] of [
  ['was not renewed while the server was away', -3_600_000],
  ['was written by a clock ten years ahead', 10 * 365 * 86_400_000],
  ['was written in 1970', -Date.parse('2026-01-01')],
] as const)
  test(`a lease that ${name}: its agent is given the time to show itself`, async () => {
    await using cluster = await createCluster()
    await cluster.claim()
    const then = microTimestamp(Math.max(0, cluster.clock.now() + ms))
    await cluster.write(away, then)
    const alive = outcome(cluster.claim(), cluster.clock, 10_000)
    await cluster.client.patch('Lease', ref, { type: 'merge', body: { spec: { leaseTransitions: 1 } } }, {}, signal)
    assert.match(await alive, /it renewed its lease just now/)
    assert.equal(await cluster.place(), away)
    assert.match(cluster.waits.join(), /node n was last run with .*elsewhere.*; waiting 40 s for a sign of that agent/)
    // It has gone for good.
    assert.equal(await outcome(cluster.claim(), cluster.clock, 60_000), 'taken')
  })

test('a root of this machine that is gone has no agent: a backup was restored at another place', async () => {
  await using cluster = await createCluster()
  await cluster.claim('/nowhere/before')
  await cluster.claim('/nowhere/restored')
  assert.equal(await cluster.place(), placeOfAgent('/nowhere/restored', 'm'))
  assert.deepEqual(cluster.waits, [])
})

test('another root of this machine is asked for its lock, without a wait', async () => {
  await using cluster = await createCluster()
  const root = mkdtempSync(join(tmpdir(), 'hawser-other-agent-'))
  try {
    await cluster.claim(root)
    const lock = takeLock(join(root, 'node.lock'))
    assert.equal(lock.kind, 'held')
    await assert.rejects(
      cluster.claim(),
      new RegExp(`is run by another agent, with ${root} on .*process ${process.pid} holds`),
    )
    if (lock.kind === 'held') lock.release()
    await cluster.claim()
    assert.deepEqual(cluster.waits, [])
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
})
