// A pod that sets spec.nodeName never meets the scheduler: are its waiting claims bound to that node all the same?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolumeClaim } from '../../src/api/generated/types.ts'
import { createBindingController } from '../../src/controllers/binding/controller.ts'
import { createPlacementController } from '../../src/controllers/placement/controller.ts'
import type { PlacementOptions } from '../../src/controllers/placement/controller.ts'
import { createRegistry } from '../../src/volume/registry.ts'
import { assertWhy } from '../kit/assert-why.ts'
import { claim, node, pod, storageClass, volume } from '../kit/objects.ts'
import { createVirtualCluster } from '../kit/virtual-cluster.ts'

const selectedKey = 'volume.kubernetes.io/selected-node'
const late = storageClass('late', { volumeBindingMode: 'WaitForFirstConsumer', provisioner: 'd' })
const onNode = (...values: string[]) => ({
  nodeAffinity: {
    required: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In' as const, values }] }],
    },
  },
})

async function cluster(options: PlacementOptions = {}) {
  const bench = await createVirtualCluster()
  const run = bench.run((deps) => [
    createPlacementController({ ...deps, options }),
    createBindingController({ ...deps, plugins: createRegistry([]), options: { auditMs: 0 } }),
  ])
  await bench.server.create('StorageClass', late)
  for (const name of ['n1', 'n2']) await bench.server.create('Node', node(name))
  await run.settle()
  const chosen = (name = 'c') =>
    (bench.server.peek('PersistentVolumeClaim', `ns/${name}`) as PersistentVolumeClaim).metadata.annotations?.[
      selectedKey
    ]
  return { ...bench, run, chosen }
}

test('a claim is provisioned for the node that its pod names (WC-10)', async () => {
  const { server, run, chosen } = await cluster()
  await server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await server.create('Pod', pod('p', { node: 'n2', claims: ['c'] }))
  await run.settle()
  assert.equal(chosen(), 'n2')
  await run.stop()
})

test('the claim may be made after its pod, and the node too', async () => {
  const { server, run, chosen } = await cluster()
  await server.create('Pod', pod('p', { node: 'n3', claims: ['c'] }))
  await run.settle()
  await server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await run.settle()
  assert.equal(chosen(), undefined)
  await server.create('Node', node('n3'))
  await run.settle()
  assert.equal(chosen(), 'n3')
  await run.stop()
})

test('a free volume of that node is taken, not one of another node', async () => {
  const { server, run } = await cluster()
  for (const on of ['n1', 'n2'])
    await server.create(
      'PersistentVolume',
      volume({ name: `v-${on}`, className: 'late', spec: { local: { path: '/d' }, ...onNode(on) } }),
    )
  await server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await server.create('Pod', pod('p', { node: 'n2', claims: ['c'] }))
  await run.settle()
  const bound = server.peek('PersistentVolumeClaim', 'ns/c') as PersistentVolumeClaim
  assert.deepEqual([bound.spec.volumeName, bound.status?.phase], ['v-n2', 'Bound'])
  await run.stop()
})

test('a node that cannot have the volume is told about, and asked again when things change', async () => {
  const bench = await cluster()
  const { server, run, chosen } = bench
  const csiNode = (name: string) => ({ metadata: { name }, spec: { drivers: [{ name: 'd', nodeID: name }] } })
  await server.create('CSINode', csiNode('n1'))
  await server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await server.create('Pod', pod('p', { node: 'n2', claims: ['c'] }))
  await run.settle()
  assert.equal(chosen(), undefined)
  const text = `node "n2" cannot have the pod's volumes: node(s) didn't have the CSI driver of the volume`
  assert.equal(run.waiting().get('Pod/ns/p')?.[0]?.message, text)
  await assertWhy(await bench.asked(), 'pvc/ns/c', 'noNodeFits')
  await server.create('CSINode', csiNode('n2'))
  await run.settle()
  assert.equal(chosen(), 'n2')
  await run.stop()
})

test('a provisioner that gives up is asked again for the same node', async () => {
  const bench = await cluster()
  const { server, run, chosen } = bench
  await server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await server.create('Pod', pod('p', { node: 'n2', claims: ['c'] }))
  await run.settle()
  const made = server.peek('PersistentVolumeClaim', 'ns/c') as PersistentVolumeClaim
  const { [selectedKey]: _gone, ...rest } = made.metadata.annotations ?? {}
  await server.update('PersistentVolumeClaim', { ...made, metadata: { ...made.metadata, annotations: rest } })
  await run.settle()
  await bench.clock.advance(5_000)
  assert.equal(chosen(), 'n2')
  await run.stop()
})

test('strict scheduling, another scheduler and a pod that is over: the claim waits, as in Kubernetes', async () => {
  const strict = await cluster({ strict: true })
  await strict.server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await strict.server.create('Pod', pod('p', { node: 'n2', claims: ['c'] }))
  await strict.run.settle()
  assert.equal(strict.chosen(), undefined)
  await assertWhy(await strict.asked(), 'pvc/ns/c', 'placedByHand')
  await strict.run.stop()
  const other = await cluster()
  await other.server.create('Pod', pod('p', { node: 'n2', claims: ['c'], spec: { schedulerName: 'mine' } }))
  const over = await other.server.create('Pod', pod('q', { node: 'n2', claims: ['c'] }))
  await other.server.update('Pod', { ...over, status: { phase: 'Succeeded' } }, { subresource: 'status' })
  await other.server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await other.run.settle()
  assert.equal(other.chosen(), undefined)
  await other.run.stop()
})
