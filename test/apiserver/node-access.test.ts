// What can a node with a stolen credential do? Each test is an attempt that must fail, next to the request that must work.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { User } from '../../src/apiserver/request/call.ts'
import type { TestServer } from '../kit/api-server.ts'
import { claim, makeServer, paths, pod } from '../kit/api-server.ts'

const node = (name: string): User => ({ name: `system:node:${name}`, groups: ['system:nodes', 'system:authenticated'] })
const user = node('n1')
const own = { query: { fieldSelector: 'metadata.name=n1' }, user }
const csiNodes = '/apis/storage.k8s.io/v1/csinodes'
const operations = '/apis/hawser.dev/v1/operations'
const tokenOf = (account: string) => `/api/v1/namespaces/default/serviceaccounts/${account}/token`

const codes = async (...answers: readonly Promise<{ readonly code: number }>[]) =>
  (await Promise.all(answers)).map(({ code }) => code)

async function serverWithPods(): Promise<TestServer> {
  const server = await makeServer()
  await server.clock.settle()
  for (const name of ['n1', 'n2']) await server.post('/api/v1/nodes', { metadata: { name } })
  await server.post(paths.claims, claim('c'))
  const volumes = [{ name: 'd', persistentVolumeClaim: { claimName: 'c' } }]
  await server.post(paths.pods, pod('mine', { nodeName: 'n1', volumes }))
  await server.post(paths.pods, pod('theirs', { nodeName: 'n2' }))
  return server
}

test('a field selector names the object only for list and watch', async () => {
  await using server = await serverWithPods()
  const watch = await server.watch('/api/v1/nodes?watch=true', own)
  watch.stop()
  assert.equal((await server.get('/api/v1/nodes', own)).code, 200)
  const other = { metadata: { name: 'n2' }, spec: { drivers: [] } }
  const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
  assert.deepEqual(
    await codes(
      server.post(csiNodes, other, own),
      server.post('/api/v1/nodes', { metadata: { name: 'n3' } }, own),
      server.post(lease, { metadata: { name: 'n2' } }, own),
    ),
    [403, 403, 403],
  )
})

test('a node deletes no collection, not even one that holds only itself', async () => {
  await using server = await serverWithPods()
  await server.post(csiNodes, { metadata: { name: 'n1' }, spec: { drivers: [] } })
  const collections = [
    '/api/v1/nodes',
    csiNodes,
    operations,
    paths.pods,
    paths.claims,
    '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
    '/api/v1/namespaces/default/events',
  ]
  for (const path of collections) assert.equal((await server.delete(path, undefined, own)).code, 403, path)
  const ownPods = { user, query: { fieldSelector: 'spec.nodeName=n1' } }
  assert.equal((await server.delete(paths.pods, undefined, ownPods)).code, 403)
  assert.equal((await server.get('/api/v1/nodes/n1')).code, 200)
})

test('a node gets tokens only for an account of its own pod and bound to that pod', async () => {
  await using server = await serverWithPods()
  const uidOf = async (name: string) => (await server.get(`${paths.pods}/${name}`)).body.metadata.uid
  const bound = async (name: string) => ({ kind: 'Pod', apiVersion: 'v1', name, uid: await uidOf(name) })
  await server.post('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'other' } })
  const ask = async (account: string, spec: object) => server.post(tokenOf(account), { spec }, { user })
  const cases: readonly (readonly [string, string, object, number])[] = [
    ['bound to its pod', 'default', { boundObjectRef: await bound('mine') }, 201],
    ['unbound', 'default', {}, 403],
    ['bound to a secret', 'default', { boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 's' } }, 403],
    ['bound to a pod elsewhere', 'default', { boundObjectRef: await bound('theirs') }, 403],
    ['bound to an earlier pod', 'default', { boundObjectRef: { ...(await bound('mine')), uid: 'x' } }, 403],
    ['without the uid', 'default', { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'mine' } }, 403],
    ['of an account the pod does not have', 'other', { boundObjectRef: await bound('mine') }, 403],
  ]
  for (const [what, account, spec, code] of cases) {
    const answer = await ask(account, spec)
    assert.equal(answer.code, code, `${what}: ${answer.body.message}`)
  }
})

test('a token that a node asks for lives at most a day', async () => {
  await using server = await serverWithPods()
  const { uid } = (await server.get(`${paths.pods}/mine`)).body.metadata
  const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'mine', uid }
  const lifetime = async (expirationSeconds: number, request: { user?: User }) => {
    const { body } = await server.post(tokenOf('default'), { spec: { boundObjectRef, expirationSeconds } }, request)
    const { iat, exp } = JSON.parse(Buffer.from(body.status.token.split('.')[1], 'base64url').toString())
    assert.equal(body.spec.expirationSeconds, exp - iat)
    return exp - iat
  }
  const tenYears = 10 * 365 * 86_400
  assert.equal(await lifetime(tenYears, { user }), 86_400)
  assert.equal(await lifetime(7_200, { user }), 7_200)
  assert.equal(await lifetime(tenYears, {}), tenYears)
})

test('a node writes and deletes only the operations of its own', async () => {
  await using server = await serverWithPods()
  const record = (name: string, on?: string) => ({
    metadata: { name },
    spec: { actor: 'x', operation: 'mount', ...(on === undefined ? {} : { node: on }) },
  })
  await server.post(operations, record('theirs', 'n2'))
  await server.post(operations, record('control-plane'))
  assert.deepEqual(
    await codes(
      server.post(operations, record('mine', 'n1'), { user }),
      server.post(operations, record('forged', 'n2'), { user }),
      server.post(operations, record('nowhere'), { user }),
    ),
    [201, 403, 403],
  )
  for (const name of ['theirs', 'control-plane']) {
    const path = `${operations}/${name}`
    assert.deepEqual(
      await codes(
        server.patch(path, 'merge', { spec: { node: 'n1' } }, { user }),
        server.put(path, record(name, 'n1'), { user }),
        server.delete(path, undefined, { user }),
      ),
      [403, 403, 403],
      name,
    )
  }
  const mine = `${operations}/mine`
  assert.equal((await server.patch(mine, 'merge', { spec: { node: 'n2' } }, { user })).code, 403)
  assert.equal((await server.patch(mine, 'merge', { spec: { operation: 'unmount' } }, { user })).code, 200)
  assert.equal((await server.delete(mine, undefined, { user })).code, 200)
})

test('a node takes no taint off itself and no label that only administrators give', async () => {
  await using server = await serverWithPods()
  const path = '/api/v1/nodes/n1'
  const label = 'node-restriction.kubernetes.io/secure'
  const taints = [{ key: 'node.kubernetes.io/out-of-service', value: 'yes', effect: 'NoExecute' }]
  await server.patch(path, 'merge', { spec: { taints } })
  const change = (body: object) => server.patch(path, 'merge', body, { user })
  const untainted = await change({ spec: { taints: null } })
  assert.match(untainted.body.message, /node "n1" is not allowed to modify taints/)
  const labelled = await change({ metadata: { labels: { [label]: '1' } } })
  assert.match(labelled.body.message, /is not allowed to modify labels: node-restriction/)
  await server.patch(path, 'merge', { metadata: { labels: { [label]: '1' } } })
  assert.deepEqual(
    await codes(
      change({ metadata: { labels: { [label]: null } } }),
      change({ metadata: { labels: { 'node-role.kubernetes.io/control-plane': '' } } }),
      change({ metadata: { labels: { 'x.k8s.io/trusted': '1' } } }),
      change({ metadata: { labels: { 'topology.kubernetes.io/zone': 'a', 'node.kubernetes.io/instance-type': 'm' } } }),
      change({ metadata: { labels: { 'example.com/rack': '4' } } }),
      server.post('/api/v1/nodes', { metadata: { name: 'n4', labels: { [label]: '1' } } }, { user: node('n4') }),
      server.post('/api/v1/nodes', { metadata: { name: 'n5' }, spec: { taints } }, { user: node('n5') }),
    ),
    [403, 403, 403, 200, 200, 403, 201],
  )
})

test('through /status a node changes no labels, finalizers, owners or spec', async () => {
  await using server = await serverWithPods()
  const metadata = [
    { labels: { app: 'victim' } },
    { finalizers: ['example.com/hold'] },
    { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n2', uid: 'x' }] },
  ]
  const objects = [`${paths.pods}/mine`, '/api/v1/nodes/n1', `${paths.claims}/c`]
  for (const path of objects) {
    const before = (await server.get(path)).body
    for (const changed of metadata) {
      const answer = await server.patch(`${path}/status`, 'merge', { metadata: changed }, { user })
      const after = (await server.get(path)).body
      const what = `${path} ${JSON.stringify(changed)}: ${answer.code}`
      for (const member of Object.keys(changed)) {
        assert.deepEqual(after.metadata[member], before.metadata[member], what)
      }
      // Owners of some kinds are kept by everybody's write of the status; the rest is refused by name.
      if (!('ownerReferences' in changed)) assert.equal(answer.code, 403, what)
    }
    await server.patch(`${path}/status`, 'merge', { spec: { volumeName: 'v', unschedulable: true } }, { user })
    assert.deepEqual((await server.get(path)).body.spec, before.spec, path)
  }
  const running = await server.patch(`${paths.pods}/mine/status`, 'merge', { status: { phase: 'Running' } }, { user })
  assert.equal(running.code, 200)
})

test('a node writes of a claim only what growing it changes', async () => {
  await using server = await serverWithPods()
  const path = `${paths.claims}/c/status`
  const patch = (status: object) => server.patch(path, 'merge', { status }, { user })
  assert.deepEqual(await codes(patch({ phase: 'Lost' }), patch({ accessModes: ['ReadWriteMany'] })), [403, 403])
  assert.equal((await patch({ capacity: { storage: '2Gi' }, conditions: [] })).code, 200)
})
