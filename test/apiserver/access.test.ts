// May they? Roles, what a node can reach, tokens of service accounts, reviews.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { User } from '../../src/apiserver/request/call.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { admin, claim, makeServer, paths, pod, storageClass, volume } from '../kit/api-server.ts'

const node = (name: string): User => ({ name: `system:node:${name}`, groups: ['system:nodes', 'system:authenticated'] })
const reader: User = { name: 'rita', groups: ['hawser:read-only'] }
const controller: User = { name: 'carl', groups: ['hawser:controllers'] }
const nobody: User = { name: 'nina', groups: ['system:authenticated'] }

test('without a known user there is only health and version', async () => {
  await using server = await makeServer()
  const user = undefined
  assert.deepEqual(
    [(await server.get('/readyz', { user })).code, (await server.get('/version', { user })).code],
    [200, 200],
  )
  const refused = await server.get(paths.volumes, { user })
  assert.deepEqual([refused.code, refused.body.reason], [401, 'Unauthorized'])
})

test('roles: readers read all but secrets, controllers what their work needs', async () => {
  await using server = await makeServer()
  const cases: readonly (readonly [User, string, string, number])[] = [
    [reader, 'GET', paths.volumes, 200],
    [reader, 'GET', paths.secrets, 403],
    [reader, 'POST', paths.configMaps, 403],
    [controller, 'GET', paths.volumes, 200],
    [controller, 'GET', paths.secrets, 403],
    [controller, 'POST', paths.secrets, 403],
    [controller, 'POST', paths.pods, 403],
    [controller, 'POST', paths.configMaps, 403],
    [controller, 'GET', `${paths.pods}/x/exec`, 403],
    [controller, 'DELETE', `${paths.namespaces}/default`, 403],
    [nobody, 'GET', paths.volumes, 403],
  ]
  for (const [user, method, path, code] of cases) {
    const body = method === 'POST' ? { metadata: { name: 'x' } } : undefined
    const answer = await server.send(method, path, { user, ...(body ? { body } : {}) })
    assert.equal(answer.code, code, `${user.name} ${method} ${path}: ${answer.body.message}`)
  }
})

test('a controller reads only secrets that a class or a volume names, and cannot name others itself', async () => {
  await using server = await makeServer()
  const user = controller
  for (const name of ['of-class', 'of-claim-c', 'of-volume', 'other']) {
    await server.post(paths.secrets, { metadata: { name } })
  }
  const parameters = {
    'csi.storage.k8s.io/provisioner-secret-name': 'of-class',
    'csi.storage.k8s.io/provisioner-secret-namespace': 'default',
    'csi.storage.k8s.io/node-stage-secret-name': 'of-claim-${pvc.name}',
    'csi.storage.k8s.io/node-stage-secret-namespace': '${pvc.namespace}',
  }
  await server.post(paths.classes, storageClass('s', { parameters }))
  const naming = (name: string) => ({
    csi: { driver: 'd', volumeHandle: 'h', controllerPublishSecretRef: { name, namespace: 'default' } },
  })
  await server.post(paths.volumes, volume('v', naming('of-volume')))
  const read = async (name: string) => (await server.get(`${paths.secrets}/${name}`, { user })).code
  assert.deepEqual(await Promise.all(['of-class', 'of-claim-c', 'of-volume', 'other'].map(read)), [200, 200, 200, 403])
  const made = await server.post(paths.volumes, volume('w', naming('other')), { user })
  assert.match(made.body.message, /no class names secret default\/other/)
  const metadata = {
    annotations: {
      'volume.kubernetes.io/provisioner-deletion-secret-name': 'other',
      'volume.kubernetes.io/provisioner-deletion-secret-namespace': 'default',
    },
  }
  assert.equal((await server.patch(`${paths.volumes}/v`, 'merge', { metadata }, { user })).code, 403)
  assert.equal(await read('other'), 403)
  assert.equal((await server.post(paths.volumes, volume('x', naming('of-claim-d')), { user })).code, 201)
})

test('a controller makes volumes of drivers only: the server empties and deletes paths of its own machine', async () => {
  await using server = await makeServer()
  const user = controller
  const source = { hostPath: { path: '/etc' } }
  const claimRef = { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'gone', uid: 'u' }
  const csi = { driver: 'd', volumeHandle: 'h' }
  const none = { csi: undefined }
  const make = (name: string, spec: object) => server.post(paths.volumes, volume(name, { ...none, ...spec }), { user })
  for (const policy of ['Recycle', 'Delete', 'Retain']) {
    const made = await make('evil', { ...source, claimRef, persistentVolumeReclaimPolicy: policy })
    assert.deepEqual([made.code, made.body.reason], [403, 'Forbidden'], policy)
    assert.match(made.body.message, /makes volumes of CSI drivers only/)
  }
  const share = { nfs: { server: 'files', path: '/' } }
  assert.equal((await make('evil', { ...share, claimRef })).code, 403)
  assert.equal((await make('good', { csi })).code, 201)
  await server.post(paths.volumes, volume('kept', { ...none, ...source, persistentVolumeReclaimPolicy: 'Retain' }))
  const recycle = { spec: { persistentVolumeReclaimPolicy: 'Recycle' } }
  const changed = await server.patch(`${paths.volumes}/kept`, 'merge', recycle, { user })
  assert.equal(changed.code, 403)
  assert.match(changed.body.message, /reclaim policy/)
  const labels = { metadata: { labels: { a: 'b' } } }
  assert.equal((await server.patch(`${paths.volumes}/kept`, 'merge', labels, { user })).code, 200)
})

test('who may not delete an object cannot give it owners that are gone, nor change its labels through status', async () => {
  await using server = await makeServer()
  await server.post('/api/v1/nodes', { metadata: { name: 'n1' } })
  await server.post(paths.pods, pod('p', { nodeName: 'n1' }))
  await server.post(paths.claims, claim('c'))
  await server.post(paths.volumes, volume('v'))
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: 'u' }]
  const change = (user: User, path: string, metadata: object) => server.patch(path, 'merge', { metadata }, { user })
  const refused = [
    [controller, '/api/v1/nodes/n1/status', { ownerReferences }],
    [controller, `${paths.claims}/c`, { ownerReferences }],
    [controller, '/api/v1/nodes/n1/status', { labels: { zone: 'a' } }],
    [controller, '/api/v1/nodes/n1/status', { finalizers: ['example.com/hold'] }],
    [controller, `${paths.pods}/p/status`, { labels: { app: 'victim' } }],
    [node('n1'), '/api/v1/nodes/n1', { ownerReferences }],
  ] as const
  for (const [user, path, metadata] of refused) {
    const { code } = await change(user, path, metadata)
    assert.equal(code, 403, `${user.name} ${path} ${JSON.stringify(metadata)}`)
  }
  await server.clock.settle()
  assert.equal((await server.get('/api/v1/nodes/n1')).code, 200)
  assert.equal((await change(controller, '/api/v1/nodes/n1/status', { annotations: { a: 'b' } })).code, 200)
  assert.equal((await change(controller, `${paths.claims}/c`, { labels: { a: 'b' } })).code, 200)
  assert.equal((await change(controller, `${paths.volumes}/v`, { ownerReferences })).code, 200)
})

test('whoever may change an object but not create it cannot create it by apply', async () => {
  await using server = await makeServer()
  const snapshot = {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { name: 's' },
    spec: { source: { persistentVolumeClaimName: 'c' } },
  }
  const path = '/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots/s?fieldManager=m'
  assert.equal((await server.patch(path, 'apply', snapshot, { user: controller })).code, 403)
  const record = {
    apiVersion: 'hawser.dev/v1',
    kind: 'Operation',
    metadata: { name: 'o' },
    spec: { actor: 'x', operation: 'mount', node: 'n2' },
  }
  const operation = '/apis/hawser.dev/v1/operations/o?fieldManager=m'
  assert.equal((await server.patch(operation, 'apply', record, { user: node('n1') })).code, 403)
})

test('metrics are for administrators, readers and monitoring', async () => {
  await using server = await makeServer({ metrics: createMetrics() })
  const monitoring: User = { name: 'prometheus', groups: ['system:monitoring', 'system:authenticated'] }
  const codes = async (path: string) =>
    Promise.all(
      [admin, reader, monitoring, controller, node('n1'), nobody].map(
        async (user) => (await server.get(path, { user })).code,
      ),
    )
  assert.deepEqual(await codes('/metrics'), [200, 200, 200, 403, 403, 403])
  const refused = await server.get('/metrics', { user: nobody })
  assert.equal(refused.body.message, 'forbidden: User "nina" cannot get path "/metrics"')
  const may = async (user: User) => {
    const spec = { nonResourceAttributes: { path: '/metrics', verb: 'get' } }
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
    return (await server.post(path, { spec }, { user })).body.status.allowed
  }
  assert.deepEqual([await may(monitoring), await may(nobody)], [true, false])
})

test('a node reaches itself, its pods and what they use, and nothing else', async () => {
  await using server = await makeServer()
  const user = node('n1')
  for (const name of ['n1', 'n2']) await server.post('/api/v1/nodes', { metadata: { name } })
  for (const name of ['used', 'unused']) await server.post(paths.secrets, { metadata: { name } })
  await server.post(paths.volumes, volume('v', { claimRef: { namespace: 'default', name: 'c' } }))
  await server.post(paths.volumes, volume('w'))
  await server.post(paths.claims, claim('c'))
  const volumes = [
    { name: 's', secret: { secretName: 'used' } },
    { name: 'd', persistentVolumeClaim: { claimName: 'c' } },
  ]
  await server.post(paths.pods, pod('mine', { nodeName: 'n1', volumes }))
  await server.post(paths.pods, pod('theirs', { nodeName: 'n2' }))
  const status = { status: { phase: 'Running' } }
  const cases: readonly (readonly [string, string, unknown, number])[] = [
    ['GET', '/api/v1/nodes/n1', undefined, 200],
    ['GET', '/api/v1/nodes/n2', undefined, 403],
    ['PATCH', '/api/v1/nodes/n1/status', {}, 200],
    ['PATCH', '/api/v1/nodes/n2/status', {}, 403],
    ['DELETE', '/api/v1/nodes/n1', undefined, 403],
    ['POST', '/apis/storage.k8s.io/v1/csinodes', { metadata: { name: 'n1' }, spec: { drivers: [] } }, 201],
    ['POST', '/apis/storage.k8s.io/v1/csinodes', { metadata: { name: 'n2' }, spec: { drivers: [] } }, 403],
    ['POST', '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases', { metadata: { name: 'n1' } }, 201],
    ['POST', '/apis/coordination.k8s.io/v1/namespaces/default/leases', { metadata: { name: 'n1' } }, 403],
    ['GET', `${paths.pods}/mine`, undefined, 200],
    ['GET', `${paths.pods}/theirs`, undefined, 403],
    ['PATCH', `${paths.pods}/mine/status`, status, 200],
    ['PATCH', `${paths.pods}/mine`, { metadata: { labels: { a: 'b' } } }, 403],
    ['GET', '/api/v1/pods', undefined, 403],
    ['GET', '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1', undefined, 200],
    ['GET', '/api/v1/pods?fieldSelector=spec.nodeName%3Dn2', undefined, 403],
    ['GET', `${paths.secrets}/used`, undefined, 200],
    ['GET', `${paths.secrets}/unused`, undefined, 403],
    ['GET', paths.secrets, undefined, 403],
    ['PATCH', `${paths.secrets}/used`, {}, 403],
    ['GET', `${paths.claims}/c`, undefined, 200],
    ['PATCH', `${paths.claims}/c`, {}, 403],
    ['GET', `${paths.volumes}/v`, undefined, 200],
    ['GET', `${paths.volumes}/w`, undefined, 403],
    ['GET', '/apis/storage.k8s.io/v1/csidrivers', undefined, 200],
    ['DELETE', `${paths.pods}/theirs`, undefined, 403],
    ['DELETE', `${paths.pods}/mine`, undefined, 200],
  ]
  for (const [method, path, body, code] of cases) {
    const type = method === 'PATCH' ? { type: 'application/merge-patch+json' } : {}
    const answer = await server.send(method, path, { user, ...type, ...(body === undefined ? {} : { body }) })
    assert.equal(answer.code, code, `${method} ${path}: ${answer.body.message}`)
  }
})

test('a service account token is good for its audience, its time and its pod', async () => {
  await using server = await makeServer()
  await server.clock.settle()
  await server.post(paths.pods, pod('p'))
  const { body: bound } = await server.get(`${paths.pods}/p`)
  const spec = {
    audiences: ['vault'],
    expirationSeconds: 600,
    boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: bound.metadata.uid },
  }
  const path = '/api/v1/namespaces/default/serviceaccounts/default/token'
  const made = await server.post(path, { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec })
  assert.equal(made.code, 201)
  const { token } = made.body.status
  const review = async (audiences: readonly string[]) => {
    const answer = await server.post('/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token, audiences } })
    return answer.body.status
  }
  const good = await review(['vault'])
  assert.deepEqual([good.authenticated, good.user.username], [true, 'system:serviceaccount:default:default'])
  assert.deepEqual(good.user.extra['authentication.kubernetes.io/pod-name'], ['p'])
  assert.equal((await review(['other'])).authenticated, false)
  await server.clock.advance(599_000)
  assert.equal((await review(['vault'])).authenticated, true)
  await server.clock.advance(2_000)
  assert.equal((await review(['vault'])).authenticated, false)
  const fresh = await server.post(path, { spec })
  const changed = `${fresh.body.status.token.slice(0, -2)}xx`
  assert.equal(await server.server.tokens.authenticate(changed, ['vault']), undefined)
  await server.delete(`${paths.pods}/p`)
  assert.equal(await server.server.tokens.authenticate(fresh.body.status.token, ['vault']), undefined)
  const short = await server.post(path, { spec: { expirationSeconds: 5 } })
  assert.equal(short.code, 422)
})

test('the token that every pod asks for is renewed hourly and good for a year while its pod lives', async () => {
  await using server = await makeServer()
  await server.clock.settle()
  await server.post(paths.pods, pod('p'))
  const { body: bound } = await server.get(`${paths.pods}/p`)
  const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: bound.metadata.uid }
  const lifetime = async (spec: object) => {
    const path = '/api/v1/namespaces/default/serviceaccounts/default/token'
    const { token, expirationTimestamp } = (await server.post(path, { spec })).body.status
    const { iat, exp, 'kubernetes.io': own } = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString())
    return [exp - iat, Date.parse(expirationTimestamp) / 1000 - iat, own.warnafter && own.warnafter - iat]
  }
  const year = 365 * 24 * 3600
  assert.deepEqual(await lifetime({ boundObjectRef, expirationSeconds: 3607 }), [year, 3607, 3607])
  assert.deepEqual(await lifetime({ boundObjectRef, expirationSeconds: 3600 }), [3600, 3600, undefined])
  assert.deepEqual(await lifetime({ expirationSeconds: 3607 }), [3607, 3607, undefined])
  const elsewhere = { boundObjectRef, expirationSeconds: 3607, audiences: ['vault'] }
  assert.deepEqual(await lifetime(elsewhere), [3607, 3607, undefined])
})

test('access reviews answer what the request would get', async () => {
  await using server = await makeServer()
  const ask = async (user: User, attributes: object) => {
    const body = { spec: { resourceAttributes: attributes } }
    const answer = await server.post('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', body, { user })
    assert.equal(answer.code, 201)
    return answer.body.status.allowed
  }
  assert.equal(await ask(reader, { verb: 'list', resource: 'pods' }), true)
  assert.equal(await ask(reader, { verb: 'delete', resource: 'pods', name: 'x', namespace: 'default' }), false)
  assert.equal(await ask(nobody, { verb: 'get', resource: 'pods' }), false)
  const about = {
    spec: { user: 'rita', groups: ['hawser:read-only'], resourceAttributes: { verb: 'get', resource: 'secrets' } },
  }
  const other = await server.post('/apis/authorization.k8s.io/v1/subjectaccessreviews', about)
  assert.equal(other.body.status.allowed, false)
  const who = await server.post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {}, { user: reader })
  assert.equal(who.body.status.userInfo.username, 'rita')
})

test('the rules of a user name each review in its own group', async () => {
  await using server = await makeServer()
  const path = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews'
  const answer = await server.post(path, { spec: { namespace: 'default' } }, { user: nobody })
  const { resourceRules } = answer.body['status'] as { resourceRules: readonly Record<string, readonly string[]>[] }
  assert.deepEqual(
    resourceRules.flatMap(({ apiGroups, resources }) => (resources ?? []).map((name) => `${name}.${apiGroups}`)),
    [
      'selfsubjectaccessreviews.authorization.k8s.io',
      'selfsubjectrulesreviews.authorization.k8s.io',
      'selfsubjectreviews.authentication.k8s.io',
    ],
  )
})
