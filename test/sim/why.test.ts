// Is anybody ever left without an answer? Random clusters under faults; whatever does not run, bind or attach for a while
// has a cause and a next command, and once all is calm nothing is said to wait. HAWSER_HEAVY=1 runs 100 seeds.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, VolumeAttachment } from '../../src/api/generated/types.ts'
import type { Cluster } from '../../src/sim/cluster.ts'
import { createCluster } from '../../src/sim/cluster.ts'
import { createWorkload } from '../../src/sim/workload.ts'
import { assertHealthy, why } from '../kit/assert-why.ts'

const seeds = process.env['HAWSER_HEAVY'] === '1' ? 100 : 5
const timeoutMs = 20_000
/** A machine that died is known to be silent after 40 s; then its pods are said to run no longer. */
const longestUnknownMs = 60_000

test(`${seeds} seeds: whatever stands still is explained, with a command that helps`, async () => {
  const seen = new Map<string, number>()
  for (let seed = 1; seed <= seeds; seed++) await live(seed, seen)
  // Faults of many kinds were met; a run that met none would prove nothing.
  assert.ok(seen.size >= 3, JSON.stringify([...seen]))
})

async function live(seed: number, seen: Map<string, number>): Promise<void> {
  const cluster = await createCluster({ seed, nodes: 3, cast: 'real', history: true })
  const workload = createWorkload(cluster)
  const asked = { client: cluster.admin, clock: cluster.clock }
  const idleSince = new Map<string, number>()
  await cluster.start()
  for (let step = 0; step < 40; step++) {
    await workload.act()
    await cluster.clock.advance(cluster.random.below(4_000))
    if (step % 4 !== 0) continue
    const before = await standingStill(cluster)
    await cluster.clock.advance(timeoutMs)
    for (const subject of await withoutProcess(cluster, idleSince)) {
      const { verdict, steps } = await why(asked, subject)
      const place = `seed ${seed}, step ${step}, why ${subject}: ${JSON.stringify(steps, null, 2)}`
      assert.notEqual(verdict, 'healthy', `no process of it runs: ${place}`)
    }
    const after = new Set(await standingStill(cluster))
    for (const subject of before.filter((each) => after.has(each))) {
      const explanation = await why(asked, subject)
      const { blocked } = explanation
      const place = `seed ${seed}, step ${step}, why ${subject}: ${JSON.stringify(explanation, null, 2)}`
      assert.ok(blocked !== undefined && blocked.hints.length > 0, place)
      seen.set(blocked.cause, (seen.get(blocked.cause) ?? 0) + 1)
    }
  }
  cluster.faults.calm = true
  await workload.repairAll()
  await cluster.clock.advance(30 * 60_000)
  const running = (await cluster.admin.list('Pod')).items.filter(isFine)
  for (const { metadata } of running) await assertHealthy(asked, `pod/${metadata.name}`)
  await cluster[Symbol.asyncDispose]()
}

/** Pods of which no process has run anywhere for so long that somebody must know, as the machines themselves know it. */
async function withoutProcess(
  { admin, machines, clock }: Cluster,
  since: Map<string, number>,
): Promise<readonly string[]> {
  const alive = new Set([...machines.values()].flatMap(({ running }) => [...running.keys()]))
  const idle = (await admin.list('Pod')).items.filter(({ metadata }) => !alive.has(metadata.uid ?? ''))
  const names = new Set(idle.map(({ metadata }) => `pod/${metadata.name}`))
  for (const name of [...since.keys(), ...names]) {
    if (!names.has(name)) since.delete(name)
    else if (!since.has(name)) since.set(name, clock.now())
  }
  return [...since].filter(([, time]) => clock.now() - time > longestUnknownMs).map(([name]) => name)
}

/** As words for `why`. */
async function standingStill({ admin }: Cluster): Promise<readonly string[]> {
  const pods = (await admin.list('Pod')).items.filter((pod) => !isFine(pod))
  const attachments = (await admin.list('VolumeAttachment')).items.filter((each) => !isAttached(each))
  const claims = (await admin.list('PersistentVolumeClaim')).items.filter(({ status }) => status?.phase !== 'Bound')
  return [
    ...pods.map(({ metadata }) => `pod/${metadata.name}`),
    ...attachments.map(({ metadata }) => `va/${metadata.name}`),
    ...claims.map(({ metadata }) => `pvc/${metadata.name}`),
  ]
}

const isFine = ({ metadata, status }: Pod) => status?.phase === 'Running' && metadata.deletionTimestamp === undefined
const isAttached = ({ metadata, status }: VolumeAttachment) =>
  status?.attached === true && metadata.deletionTimestamp === undefined
