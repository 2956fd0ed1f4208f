// What can a node with a stolen credential do? Each test is an attempt that must fail, next to the request that must work.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { User } from '../../src/apiserver/request/call.ts'
import type { TestServer } from '../kit/api-server.ts'
import { claim, makeServer, paths, pod, volume } from '../kit/api-server.ts'

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

test('a node reads the operations of its own, and no others', async () => {
  await using server = await serverWithPods()
  for (const [name, on] of [
    ['mine', 'n1'],
    ['theirs', 'n2'],
  ])
    await server.post(operations, { metadata: { name }, spec: { actor: 'x', operation: 'mount', node: on } })
  const list = (fieldSelector?: string) =>
    server.get(operations, { user, ...(fieldSelector === undefined ? {} : { query: { fieldSelector } }) })
  assert.deepEqual(
    await codes(
      list(),
      list('spec.node=n2'),
      list('spec.node!=n2'),
      list('metadata.name=theirs'),
      server.get(`${operations}/theirs`, { user }),
      server.get(`${operations}/mine`, { user }),
    ),
    [403, 403, 403, 403, 403, 200],
  )
  const { code, body } = await list('spec.node=n1')
  assert.deepEqual(
    [code, body.items.map((each: { metadata: { name: string } }) => each.metadata.name)],
    [200, ['mine']],
  )
})

test('a node writes events about itself, its pods and their claims, in its own name, and about nothing else', async () => {
  await using server = await serverWithPods()
  await server.post(paths.claims, claim('foreign'))
  await server.post(paths.volumes, volume('v', { claimRef: { namespace: 'default', name: 'foreign' } }))
  const events = '/api/v1/namespaces/default/events'
  const event = (name: string, involvedObject: object, host = 'n1') => ({
    metadata: { name },
    involvedObject: { namespace: 'default', ...involvedObject },
    reason: 'Failed',
    source: { component: 'kubelet', host },
    reportingInstance: host,
  })
  const uid = (await server.get(`${paths.pods}/mine`)).body.metadata.uid as string
  const cases: readonly (readonly [string, object, number])[] = [
    ['its pod', { kind: 'Pod', name: 'mine', uid }, 201],
    ['a pod that is gone', { kind: 'Pod', name: 'gone', uid: 'u' }, 201],
    ['its claim', { kind: 'PersistentVolumeClaim', name: 'c' }, 201],
    ['itself', { kind: 'Node', name: 'n1', namespace: undefined }, 201],
    ['a pod elsewhere', { kind: 'Pod', name: 'theirs' }, 403],
    ['a pod elsewhere with the uid of its own', { kind: 'Pod', name: 'theirs', uid }, 403],
    ['a pod elsewhere by its uid', { kind: 'Pod', name: 'nobody', uid: await uidOf(server, 'theirs') }, 403],
    ['a claim elsewhere', { kind: 'PersistentVolumeClaim', name: 'foreign' }, 403],
    ['a volume elsewhere', { kind: 'PersistentVolume', name: 'v' }, 403],
    ['another node', { kind: 'Node', name: 'n2' }, 403],
    ['something else', { kind: 'Secret', name: 's' }, 403],
  ]
  for (const [index, [what, involved, code]] of cases.entries()) {
    const answer = await server.post(events, event(`e${index}`, involved), { user })
    assert.equal(answer.code, code, `${what}: ${answer.body.message}`)
    const applied = { apiVersion: 'v1', kind: 'Event', ...event(`a${index}`, involved) }
    const query = { fieldManager: 'n1' }
    const byApply = await server.patch(`${events}/a${index}`, 'apply', applied, { user, query })
    assert.equal(byApply.code, code, `${what} by apply: ${byApply.body.message}`)
  }
  const newer = '/apis/events.k8s.io/v1/namespaces/default/events'
  const regarding = { kind: 'Pod', name: 'theirs', namespace: 'default' }
  const times = { eventTime: '2026-01-01T00:00:00.000000Z', action: 'x', reason: 'y', type: 'Normal' }
  const reporter = { reportingController: 'a/b', reportingInstance: 'n1' }
  const other = await server.post(newer, { metadata: { name: 'new' }, regarding, ...times, ...reporter }, { user })
  assert.equal(other.code, 403, other.body.message)
  const forged = await server.post(events, event('forged', { kind: 'Pod', name: 'mine', uid }, 'n2'), { user })
  assert.equal(forged.code, 403, 'in the name of another')
  await server.post(events, event('server', { kind: 'Pod', name: 'mine', uid }, 'server'))
  const change = (name: string, body: object) => server.patch(`${events}/${name}`, 'merge', body, { user })
  assert.deepEqual(
    await codes(
      change('e0', { count: 2, message: 'again' }),
      change('e0', { involvedObject: { name: 'theirs' } }),
      change('e0', { source: { host: 'n2' } }),
      change('server', { message: 'all is well' }),
      change('nothing', { count: 2 }),
    ),
    [200, 403, 403, 403, 404],
  )
})

test('a node holds neither its Node nor its CSINode or Lease with finalizers', async () => {
  await using server = await serverWithPods()
  const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
  const kept = { metadata: { name: 'n4', finalizers: ['example.com/hold'] } }
  const as4 = { user: node('n4') }
  assert.deepEqual(
    await codes(
      server.patch('/api/v1/nodes/n1', 'merge', { metadata: { finalizers: ['example.com/hold'] } }, { user }),
      server.post('/api/v1/nodes', kept, as4),
      server.post(csiNodes, { ...kept, spec: { drivers: [] } }, as4),
      server.post(leases, kept, as4),
      server.post(leases, { metadata: { name: 'n4' } }, as4),
    ),
    [403, 403, 403, 403, 201],
  )
  const finalizers = ['example.com/hold']
  assert.equal((await server.patch(`${leases}/n4`, 'merge', { metadata: { finalizers } }, as4)).code, 403)
  await server.patch('/api/v1/nodes/n1', 'merge', { metadata: { finalizers: ['example.com/admin'] } })
  const freed = await server.patch('/api/v1/nodes/n1', 'merge', { metadata: { finalizers: null } }, { user })
  assert.equal(freed.code, 403, 'nor takes off those of others')
})

const uidOf = async (server: TestServer, name: string): Promise<string> =>
  (await server.get(`${paths.pods}/${name}`)).body.metadata.uid
