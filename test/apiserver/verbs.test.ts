// Do the verbs answer as Kubernetes' do? Requests without sockets, on virtual time. Recorded answers of a real server
// are in the conformance suite; here is what it does not reach.
import assert from 'node:assert/strict'
import test from 'node:test'
import { claim, makeServer, paths, pod, storageClass, volume } from '../kit/api-server.ts'

test('status in a create is ignored, phases start as Pending (API-2)', async () => {
  await using server = await makeServer()
  const made = await server.post(paths.volumes, { ...volume('v'), status: { phase: 'Bound', message: 'x' } })
  assert.equal(made.code, 201)
  assert.deepEqual(made.body.status, {
    phase: 'Pending',
    lastPhaseTransitionTime: made.body.metadata.creationTimestamp,
  })
  const asked = await server.post(paths.claims, { ...claim('c'), status: { phase: 'Bound' } })
  assert.deepEqual(asked.body.status, { phase: 'Pending' })
})

test('main and status are written apart, status writes carry metadata (API-1)', async () => {
  await using server = await makeServer()
  await server.post(paths.claims, claim('c'))
  const one = await server.patch(`${paths.claims}/c`, 'merge', {
    metadata: { labels: { a: '1' } },
    status: { phase: 'Bound' },
  })
  assert.deepEqual([one.body.metadata.labels, one.body.status.phase], [{ a: '1' }, 'Pending'])
  const two = await server.patch(`${paths.claims}/c/status`, 'merge', {
    metadata: { annotations: { b: '2' } },
    spec: { volumeName: 'v' },
    status: { phase: 'Bound' },
  })
  assert.deepEqual(
    [two.body.metadata.annotations, two.body.spec.volumeName, two.body.status.phase],
    [{ b: '2' }, undefined, 'Bound'],
  )
})

test('a new phase is stamped, an old one keeps its time (API-3)', async () => {
  await using server = await makeServer()
  const made = await server.post(paths.volumes, volume('v'))
  await server.clock.advance(5_000)
  const same = await server.patch(`${paths.volumes}/v/status`, 'merge', {
    status: { message: 'm', lastPhaseTransitionTime: null },
  })
  assert.equal(same.body.status.lastPhaseTransitionTime, made.body.status.lastPhaseTransitionTime)
  const bound = await server.patch(`${paths.volumes}/v/status`, 'merge', { status: { phase: 'Available' } })
  assert.equal(bound.body.status.lastPhaseTransitionTime, '2026-01-01T00:00:05Z')
})

test('a claim without class gets the newest default class (API-8)', async () => {
  await using server = await makeServer()
  const marked = (name: string) => ({
    ...storageClass(name),
    metadata: { name, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  })
  await server.post(paths.classes, marked('old'))
  await server.clock.advance(2_000)
  await server.post(paths.classes, marked('b'))
  await server.post(paths.classes, marked('a'))
  assert.equal((await server.post(paths.claims, claim('c'))).body.spec.storageClassName, 'a')
  const none = await server.post(paths.claims, claim('d', { storageClassName: '' }))
  assert.equal(none.body.spec.storageClassName, '')
})

test('only a bound claim of an expandable class may grow (API-9)', async () => {
  await using server = await makeServer()
  await server.post(paths.classes, storageClass('fixed'))
  await server.post(paths.classes, storageClass('grows', { allowVolumeExpansion: true }))
  const grow = { spec: { resources: { requests: { storage: '2Gi' } } } }
  for (const name of ['fixed', 'grows']) {
    await server.post(paths.claims, claim(name, { storageClassName: name, volumeName: 'v' }))
    await server.patch(`${paths.claims}/${name}/status`, 'merge', {
      status: { phase: 'Bound', capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] },
    })
  }
  const refused = await server.patch(`${paths.claims}/fixed`, 'merge', grow)
  assert.deepEqual([refused.code, refused.body.reason], [403, 'Forbidden'])
  assert.match(refused.body.message, /only dynamically provisioned pvc can be resized/)
  assert.equal((await server.patch(`${paths.claims}/grows`, 'merge', grow)).code, 200)
})

test('protected objects wait for their finalizer (API-10, API-11)', async () => {
  await using server = await makeServer()
  const made = await server.post(paths.volumes, volume('v'))
  assert.deepEqual(made.body.metadata.finalizers, ['kubernetes.io/pv-protection'])
  const held = await server.delete(`${paths.volumes}/v`)
  assert.ok(held.body.metadata.deletionTimestamp)
  const again = await server.delete(`${paths.volumes}/v`)
  assert.equal(again.body.metadata.resourceVersion, held.body.metadata.resourceVersion)
  await server.patch(`${paths.volumes}/v`, 'merge', { metadata: { finalizers: null } })
  assert.equal((await server.get(`${paths.volumes}/v`)).code, 404)
})

test('generateName makes names, and create needs one of the two', async () => {
  await using server = await makeServer()
  const one = await server.post(paths.configMaps, { metadata: { generateName: 'x-' } })
  assert.match(one.body.metadata.name, /^x-[a-z0-9]{5}$/)
  const none = await server.post(paths.configMaps, { metadata: {} })
  assert.equal(none.code, 422)
  assert.match(none.body.message, /name or generateName is required/)
})

test('a namespace must exist and live to take objects; some may not go', async () => {
  await using server = await makeServer()
  const missing = await server.post('/api/v1/namespaces/nowhere/configmaps', { metadata: { name: 'a' } })
  assert.deepEqual([missing.code, missing.body.message], [404, 'namespaces "nowhere" not found'])
  await server.post(paths.namespaces, { metadata: { name: 'ns' } })
  await server.post('/api/v1/namespaces/ns/configmaps', { metadata: { name: 'a', finalizers: ['example.com/hold'] } })
  await server.delete(`${paths.namespaces}/ns`)
  const closing = await server.post('/api/v1/namespaces/ns/configmaps', { metadata: { name: 'b' } })
  assert.equal(closing.code, 403)
  assert.match(closing.body.message, /unable to create new content in namespace ns because it is being terminated/)
  assert.equal(closing.body.details.causes[0].reason, 'NamespaceTerminating')
  assert.equal((await server.delete(`${paths.namespaces}/default`)).code, 403)
})

test('secrets take plain text and keep it encoded', async () => {
  await using server = await makeServer()
  const made = await server.post(paths.secrets, { metadata: { name: 's' }, stringData: { a: 'b' } })
  assert.deepEqual([made.body.data, made.body.stringData, made.body.type], [{ a: 'Yg==' }, undefined, 'Opaque'])
})

test('a pod is bound once, by a scheduler', async () => {
  await using server = await makeServer()
  await server.post(paths.pods, pod('p'))
  const bind = { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'p' }, target: { kind: 'Node', name: 'n1' } }
  assert.equal((await server.post(`${paths.pods}/p/binding`, bind)).code, 201)
  const bound = await server.get(`${paths.pods}/p`)
  assert.equal(bound.body.spec.nodeName, 'n1')
  assert.equal(bound.body.status.conditions[0].type, 'PodScheduled')
  const twice = await server.post(`${paths.pods}/p/binding`, bind)
  assert.deepEqual([twice.code, twice.body.reason], [409, 'Conflict'])
})

test('an evicted pod gets its grace period', async () => {
  await using server = await makeServer()
  await server.post(paths.pods, pod('p', { nodeName: 'n1', terminationGracePeriodSeconds: 9 }))
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p' } }
  assert.equal((await server.post(`${paths.pods}/p/eviction`, eviction)).code, 201)
  assert.equal((await server.get(`${paths.pods}/p`)).body.metadata.deletionGracePeriodSeconds, 9)
})

test('a size that is none is refused in the words of Kubernetes, with a warning that names the field', async () => {
  await using server = await makeServer()
  const body = { metadata: { name: 'v' }, spec: { capacity: { storage: '1GB' } } }
  const { code, headers } = await server.post('/api/v1/persistentvolumes', body)
  const text = 'spec.capacity.storage: \\"1GB\\" is not a quantity; did you mean 1Gi or 1G?'
  assert.deepEqual([code, headers['warning']], [400, `299 - "${text}"`])
})

test('unknown fields are refused, warned about or dropped, as asked', async () => {
  await using server = await makeServer()
  const body = { ...storageClass('s'), colour: 'red' }
  const strict = await server.post(paths.classes, body, { query: { fieldValidation: 'Strict' } })
  assert.equal(strict.code, 400)
  const warned = await server.post(paths.classes, body)
  assert.deepEqual([warned.code, warned.headers['warning']], [201, '299 - "unknown field \\"colour\\""'])
  assert.equal(warned.body.colour, undefined)
})

test('delete collection takes what the selector chooses', async () => {
  await using server = await makeServer()
  for (const name of ['a', 'b', 'c']) {
    await server.post(paths.configMaps, { metadata: { name, labels: { keep: String(name === 'b') } } })
  }
  const gone = await server.delete(paths.configMaps, undefined, { query: { labelSelector: 'keep=false' } })
  assert.equal(gone.code, 200)
  const left = await server.get(paths.configMaps)
  assert.deepEqual(
    left.body.items.map((item: { metadata: { name: string } }) => item.metadata.name),
    ['b'],
  )
})

test('found by fuzz seed 777520727: nothing is deleted across all namespaces at once', async () => {
  await using server = await makeServer()
  await server.post(paths.claims, claim('c'))
  const refused = await server.delete('/api/v1/persistentvolumeclaims')
  assert.deepEqual([refused.code, refused.body.reason], [405, 'MethodNotAllowed'])
  assert.equal((await server.get(`${paths.claims}/c`)).code, 200)
})

test('YAML is read as kubectl reads it and written when asked for', async () => {
  await using server = await makeServer()
  const text = 'metadata:\n  name: yam\ndata:\n  a: "yes"\nimmutable: on\n'
  const made = await server.send('POST', paths.configMaps, { raw: text, type: 'application/yaml' })
  assert.deepEqual([made.code, made.body.immutable], [201, true])
  const shown = await server.get(`${paths.configMaps}/yam`, { accept: 'application/yaml' })
  assert.match(shown.body, /^kind: ConfigMap$/m)
})

test('both event APIs show the same event', async () => {
  await using server = await makeServer()
  const core = '/api/v1/namespaces/default/events'
  const events = '/apis/events.k8s.io/v1/namespaces/default/events'
  const involvedObject = { kind: 'Pod', name: 'p', namespace: 'default' }
  await server.post(core, { metadata: { name: 'e' }, involvedObject, reason: 'R', message: 'hello', type: 'Normal' })
  const seen = await server.get(`${events}/e`)
  assert.deepEqual(
    [seen.body.apiVersion, seen.body.note, seen.body.regarding],
    ['events.k8s.io/v1', 'hello', involvedObject],
  )
  const listed = await server.get(events, { query: { fieldSelector: 'regarding.name=p' } })
  assert.equal(listed.body.items.length, 1)
})

test('requests that are not HTTP as we know it get an answer, never a crash', async () => {
  await using server = await makeServer()
  const cases: readonly (readonly [string, string, number])[] = [
    ['GET', '/api/v1/%zz', 404],
    ['GET', '/api/v1/namespaces/%2e%2e/pods', 404],
    ['PROPFIND', paths.volumes, 405],
    ['GET', '/nothing', 404],
    ['GET', '/apis/storage.k8s.io/v1/storageclasses/a/b/c/d', 404],
    ['POST', '/version', 405],
  ]
  for (const [method, path, code] of cases) {
    assert.equal((await server.send(method, path)).code, code, `${method} ${path}`)
  }
  const deep = await server.send('POST', paths.configMaps, { raw: '['.repeat(1_000_000) })
  assert.equal(deep.code, 400)
  const huge = await server.send('POST', paths.configMaps, { raw: Buffer.alloc(3 * 1024 * 1024 + 1, 32) })
  assert.equal(huge.code, 413)
})

test('patches cannot rename, move or replace an object, and options must fit the patch', async () => {
  await using server = await makeServer()
  await server.post(paths.configMaps, { metadata: { name: 'a' } })
  const path = `${paths.configMaps}/a`
  const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } }
  const answers = [
    await server.patch(path, 'merge', { metadata: { name: 'b' } }),
    await server.patch(path, 'merge', { metadata: { namespace: 'kube-system' } }),
    await server.patch(path, 'merge', { metadata: { uid: 'u' } }),
    await server.patch(path, 'merge', { metadata: { resourceVersion: '1' } }),
    await server.patch(path, 'apply', config),
    await server.patch(path, 'merge', {}, { query: { force: 'true' } }),
  ]
  assert.deepEqual(
    answers.map(({ code }) => code),
    [400, 400, 422, 409, 422, 422],
  )
})

test('PUT creates leases and events, under the name of the path only', async () => {
  await using server = await makeServer()
  const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases/a'
  const other = await server.put(path, { metadata: { name: 'b' }, spec: {} })
  assert.deepEqual([other.code, other.body.reason], [400, 'BadRequest'])
  assert.equal((await server.put(path, { metadata: { name: 'a' }, spec: {} })).code, 201)
  assert.equal((await server.put(path, { metadata: { name: 'a' }, spec: {} })).body.reason, 'Invalid')
  const event = { metadata: { name: 'e' }, involvedObject: { namespace: 'default' } }
  assert.equal((await server.put('/api/v1/namespaces/default/events/e', event)).code, 201)
  assert.equal((await server.put(`${paths.configMaps}/none`, { metadata: { name: 'none' } })).code, 404)
})

test('deletion and creation times are the server’s alone', async () => {
  await using server = await makeServer()
  const made = await server.post(paths.configMaps, {
    metadata: { name: 'a', deletionTimestamp: '2020-01-01T00:00:00Z' },
  })
  assert.equal(made.body.metadata.deletionTimestamp, undefined)
  const path = `${paths.configMaps}/a`
  const marked = await server.patch(path, 'merge', { metadata: { deletionTimestamp: '2020-01-01T00:00:00Z' } })
  assert.equal(marked.code, 422)
  assert.equal(marked.body.details.causes[0].field, 'metadata.deletionTimestamp')
  const changed = await server.patch(path, 'merge', { metadata: { creationTimestamp: null, generation: 7 } })
  assert.deepEqual(changed.body.metadata, made.body.metadata)
})

test('what only the server sets is not carried over from a PUT, and later patches do not stumble over it', async () => {
  await using server = await makeServer()
  const words = { metadata: { name: 'words', namespace: 'default' }, data: { a: '1' } }
  const path = '/api/v1/namespaces/default/configmaps'
  await server.post(path, words)
  const foreign = { selfLink: '/elsewhere', generation: 3 }
  const changed = { metadata: { ...words.metadata, ...foreign }, data: { a: '2' } }
  const put = await server.put(`${path}/words`, changed)
  assert.equal(put.code, 200)
  for (const kind of ['merge', 'strategic'] as const) {
    const patched = await server.patch(`${path}/words`, kind, { metadata: { labels: { by: kind } } })
    assert.equal(patched.code, 200, JSON.stringify(patched.body))
    const { selfLink, generation, labels } = patched.body.metadata
    assert.deepEqual(
      { selfLink, generation, labels },
      { selfLink: undefined, generation: undefined, labels: { by: kind } },
    )
  }
})

test('in the same process an undefined member is an absent one, as in JSON', async () => {
  await using server = await makeServer()
  const api = server.server.api()
  const words = { metadata: { name: 'words', namespace: 'default', labels: undefined }, data: undefined }
  const made = await api.create('ConfigMap', words as never)
  assert.equal('labels' in made.metadata, false)
  const again = await api.update('ConfigMap', { ...made, data: { a: '1' }, immutable: undefined } as never)
  assert.deepEqual(again.data, { a: '1' })
})

test('small patches do not make an object larger than one request may', async () => {
  await using server = await makeServer()
  const keys = (from: number) =>
    Object.fromEntries(Array.from({ length: 4_000 }, (_, index) => [`k${from + index}`, 'v']))
  await server.post(paths.configMaps, { metadata: { name: 'c' }, data: keys(0) })
  const patch = (kind: 'merge' | 'apply', from: number) => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, data: keys(from) }
    return server.patch(`${paths.configMaps}/c`, kind, body, { query: kind === 'apply' ? { fieldManager: 'm' } : {} })
  }
  assert.equal((await patch('merge', 4_000)).code, 200)
  assert.equal((await patch('merge', 8_000)).code, 413)
  assert.equal((await patch('apply', 8_000)).code, 413)
})
