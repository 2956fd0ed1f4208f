// Is the library pleasant to use? Wrong options are told at once, waiting and asking why are one call, and pods with volumes
// run without root.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Fault, HawserOptions, KindName, PersistentVolumeClaim } from '../index.ts'
import { runSimulation, startHawser, UsageError } from '../index.ts'

const mistakes: readonly (readonly [unknown, RegExp])[] = [
  [{ nodes: ['A_'] }, /option nodes has "A_", which is no node name: lower-case/],
  [{ nodes: ['a', 'a'] }, /option nodes names a node twice, not \["a","a"\]/],
  [{ nodes: 'a' }, /option nodes must be a list of names, not "a"/],
  [{ store: 'etcd' }, /option store must be "memory" or "embedded", not "etcd"/],
  [{ strore: 'memory' }, /startHawser has no option "strore"/],
  [{ listen: { host: '::', port: 70_000 } }, /option listen needs a port between 0 and 65535/],
  [{ csiDrivers: ['x=/run/x.sock'] }, /option csiDrivers must be a list of \{ name, socket \}/],
  [{ nodes: ['a'], modelNodes: ['b'] }, /nodes and modelNodes cannot be mixed/],
  [{ driverFault: () => undefined }, /driverFault is for the model driver, and there is none/],
]

for (const [options, says] of mistakes)
  test(`wrong options are refused before anything starts: ${JSON.stringify(options)}`, async () => {
    // as a caller without types would
    await assert.rejects(startHawser(options as HawserOptions), (error: Error) => {
      assert.ok(error instanceof UsageError)
      assert.match(error.message, says)
      return true
    })
  })

test('a kind that does not exist is told in a sentence', async () => {
  await using hawser = await startHawser()
  assert.throws(() => void hawser.client.get('Deployment' as KindName, { name: 'x' }), /there is no kind "Deployment"/)
})

const claim: PersistentVolumeClaim = {
  metadata: { name: 'data', namespace: 'default' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
}
const ref = { name: 'data', namespace: 'default' }
const pod = {
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    containers: [{ name: 'c', image: 'none', command: ['serve'], volumeMounts: [{ name: 'v', mountPath: '/data' }] }],
    volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }],
  },
}

test('a pod with a claim runs on a model node, without root', async () => {
  await using hawser = await startHawser({ modelNodes: ['a', 'b'] })
  await hawser.client.create('PersistentVolumeClaim', claim)
  await hawser.client.create('Pod', pod)
  const running = await hawser.waitFor('Pod', { name: 'web', namespace: 'default' }, (object) => {
    return object?.status?.phase === 'Running'
  })
  assert.match(running?.spec?.nodeName ?? '', /^[ab]$/)
  const explanation = await hawser.why({ kind: 'Pod', name: 'web', namespace: 'default' })
  assert.equal(explanation.verdict, 'healthy')
})

test('faults of the model driver are seen, and why names them', async () => {
  let broken = true
  const driverFault = (rpc: string): Fault | undefined =>
    broken && rpc === 'CreateVolume' ? { kind: 'refused', status: 'RESOURCE_EXHAUSTED' } : undefined
  await using hawser = await startHawser({ modelNodes: ['a'], driverFault })
  await hawser.client.create('PersistentVolumeClaim', claim)
  const bound = (object?: { readonly status?: { readonly phase?: string } }) => object?.status?.phase === 'Bound'
  await assert.rejects(
    hawser.waitFor('PersistentVolumeClaim', ref, bound, { timeoutMs: 1_500 }),
    /waitFor persistentvolumeclaim\/data: the condition did not hold within 1500 ms/,
  )
  const { blocked } = await hawser.why({ kind: 'PersistentVolumeClaim', ...ref })
  assert.equal(blocked?.error?.code, 'RESOURCE_EXHAUSTED')
  broken = false
  assert.ok(bound(await hawser.waitFor('PersistentVolumeClaim', ref, bound)))
})

test('the simulator is part of the library', async () => {
  const result = await runSimulation({ seed: 3, steps: 5 })
  assert.deepEqual(result.violations, [])
})
