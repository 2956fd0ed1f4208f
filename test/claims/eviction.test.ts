// Does a NoExecute taint make pods leave, in their own time, marked, and never by force (D7)?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod, Toleration } from '../../src/api/generated/types.ts'
import { createEvictionController } from '../../src/controllers/eviction/controller.ts'
import { node, pod } from '../kit/objects.ts'
import { createVirtualCluster } from '../kit/virtual-cluster.ts'

async function cluster() {
  const bench = await createVirtualCluster()
  await bench.server.create('Node', node('n1'))
  const start = () => bench.run((deps) => [createEvictionController(deps)])
  const run = start()
  await run.settle()
  const taint = async (...keys: string[]) => {
    const found = bench.server.peek('Node', 'n1') as Node
    const taints = keys.map((key) => ({ key, effect: 'NoExecute' as const }))
    await bench.server.update('Node', { ...found, spec: { ...found.spec, taints } })
  }
  const found = (name: string) => bench.server.peek('Pod', `ns/${name}`) as Pod | undefined
  const isLeaving = (name: string) => found(name)?.metadata.deletionTimestamp !== undefined
  const make = (name: string, tolerations: Toleration[] = []) =>
    bench.server.create('Pod', pod(name, { node: 'n1', spec: { tolerations, terminationGracePeriodSeconds: 17 } }))
  return { ...bench, run, start, taint, found, isLeaving, make }
}

const forAWhile: Toleration = { key: 'maintenance', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 }
const forEver: Toleration = { key: 'maintenance', operator: 'Exists' }

test('pods leave at once, after their time, or never; each with its own grace period and a mark', async () => {
  const bench = await cluster()
  await bench.make('at-once')
  await bench.make('later', [forAWhile])
  await bench.make('never', [forEver])
  await bench.run.settle()
  assert.deepEqual(['at-once', 'later', 'never'].map(bench.isLeaving), [false, false, false])
  await bench.taint('maintenance')
  await bench.run.settle()
  assert.deepEqual(['at-once', 'later', 'never'].map(bench.isLeaving), [true, false, false])
  const gone = bench.found('at-once')
  assert.equal(gone?.metadata.deletionGracePeriodSeconds, 17)
  const mark = gone?.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')
  assert.deepEqual([mark?.status, mark?.reason], ['True', 'DeletionByTaintManager'])
  await bench.clock.advance(59_000)
  assert.equal(bench.isLeaving('later'), false)
  await bench.clock.advance(2_000)
  assert.deepEqual(['later', 'never'].map(bench.isLeaving), [true, false])
  assert.ok(bench.events().includes('Normal TaintManagerEviction Pod/later: Marking for deletion Pod ns/later'))
  await bench.run.stop()
})

test('a taint that is taken away in time evicts nobody, and the time begins anew', async () => {
  const bench = await cluster()
  await bench.make('later', [forAWhile])
  await bench.taint('maintenance')
  await bench.clock.advance(50_000)
  await bench.taint()
  await bench.clock.advance(50_000)
  assert.equal(bench.isLeaving('later'), false)
  await bench.taint('maintenance')
  await bench.clock.advance(50_000)
  assert.equal(bench.isLeaving('later'), false)
  await bench.clock.advance(11_000)
  assert.equal(bench.isLeaving('later'), true)
  await bench.run.stop()
})

test('a pod that comes to a tainted node, and one found at the start, leave too', async () => {
  const bench = await cluster()
  await bench.taint('maintenance')
  await bench.make('new')
  await bench.run.settle()
  assert.equal(bench.isLeaving('new'), true)
  await bench.run.stop()
  await bench.make('old')
  const again = bench.start()
  await again.settle()
  assert.equal(bench.isLeaving('old'), true)
  await again.stop()
})
