// Who goes with whom? Owner references in the background, in the foreground and orphaned; namespaces that empty themselves.
import assert from 'node:assert/strict'
import test from 'node:test'
import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import type { TestServer } from '../kit/api-server.ts'
import { makeServer, paths, pod } from '../kit/api-server.ts'

async function family(server: TestServer, blockOwnerDeletion = false): Promise<string> {
  const owner = await server.post(paths.configMaps, { metadata: { name: 'owner' } })
  const { uid } = owner.body.metadata
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid, blockOwnerDeletion }]
  await server.post(paths.configMaps, { metadata: { name: 'child', ownerReferences } })
  return uid
}

const codeOf = async (server: TestServer, name: string): Promise<number> => {
  await server.clock.settle()
  return (await server.get(`${paths.configMaps}/${name}`)).code
}

test('dependents go when their owner is gone', async () => {
  await using server = await makeServer()
  await family(server)
  await server.delete(`${paths.configMaps}/owner`)
  assert.equal(await codeOf(server, 'child'), 404)
})

test('an object whose owner never existed, or was replaced, goes', async () => {
  await using server = await makeServer()
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'ghost', uid: 'u-1' }]
  await server.post(paths.configMaps, { metadata: { name: 'child', ownerReferences } })
  assert.equal(await codeOf(server, 'child'), 404)
})

test('an object with another living owner only loses the reference', async () => {
  await using server = await makeServer()
  const one = await server.post(paths.configMaps, { metadata: { name: 'one' } })
  const two = await server.post(paths.configMaps, { metadata: { name: 'two' } })
  const owner = (name: string, uid: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', name, uid })
  const ownerReferences = [owner('one', one.body.metadata.uid), owner('two', two.body.metadata.uid)]
  await server.post(paths.configMaps, { metadata: { name: 'child', ownerReferences } })
  await server.delete(`${paths.configMaps}/one`)
  await server.clock.settle()
  const child = await server.get(`${paths.configMaps}/child`)
  assert.deepEqual(child.body.metadata.ownerReferences, [owner('two', two.body.metadata.uid)])
})

test('who makes an object anew is told that the old one is on its way (API-11)', async () => {
  await using server = await makeServer()
  const metadata = { name: 'held', finalizers: ['example.com/hold'] }
  await server.post(paths.configMaps, { metadata })
  const taken = 'configmaps "held" already exists'
  assert.equal((await server.post(paths.configMaps, { metadata })).body.message, taken)
  await server.delete(`${paths.configMaps}/held`)
  const { code, body } = await server.post(paths.configMaps, { metadata })
  assert.deepEqual([code, body.message], [409, `object is being deleted: ${taken}`])
})

test('foreground deletion waits for dependents that block it', async () => {
  await using server = await makeServer()
  await family(server, true)
  await server.patch(`${paths.configMaps}/child`, 'merge', { metadata: { finalizers: ['example.com/hold'] } })
  const held = await server.delete(`${paths.configMaps}/owner`, { propagationPolicy: 'Foreground' })
  assert.deepEqual(held.body.metadata.finalizers, ['foregroundDeletion'])
  assert.equal(await codeOf(server, 'owner'), 200)
  const child = await server.get(`${paths.configMaps}/child`)
  assert.ok(child.body.metadata.deletionTimestamp)
  await server.patch(`${paths.configMaps}/child`, 'merge', { metadata: { finalizers: null } })
  assert.deepEqual([await codeOf(server, 'child'), await codeOf(server, 'owner')], [404, 404])
})

test('orphaned dependents live on without the reference', async () => {
  await using server = await makeServer()
  await family(server)
  await server.delete(`${paths.configMaps}/owner`, { propagationPolicy: 'Orphan' })
  assert.equal(await codeOf(server, 'owner'), 404)
  const child = await server.get(`${paths.configMaps}/child`)
  assert.deepEqual([child.code, child.body.metadata.ownerReferences], [200, undefined])
})

test('a namespace empties itself and goes when the last object has gone', async () => {
  await using server = await makeServer()
  await server.post(paths.namespaces, { metadata: { name: 'ns' } })
  await server.clock.settle()
  assert.equal((await server.get('/api/v1/namespaces/ns/serviceaccounts/default')).code, 200)
  await server.post('/api/v1/namespaces/ns/configmaps', { metadata: { name: 'a' } })
  await server.post('/api/v1/namespaces/ns/pods', pod('p', { nodeName: 'n1' }))
  const closing = await server.delete(`${paths.namespaces}/ns`)
  assert.equal(closing.body.status.phase, 'Terminating')
  await server.clock.settle()
  assert.equal((await server.get('/api/v1/namespaces/ns/configmaps/a')).code, 404)
  assert.ok((await server.get('/api/v1/namespaces/ns/pods/p')).body.metadata.deletionTimestamp)
  assert.equal((await server.get(`${paths.namespaces}/ns`)).code, 200)
  await server.delete('/api/v1/namespaces/ns/pods/p', { gracePeriodSeconds: 0 })
  await server.clock.settle()
  assert.equal((await server.get(`${paths.namespaces}/ns`)).code, 404)
})

test('events go an hour after they were last seen', async () => {
  await using server = await makeServer()
  const start = createVirtualClock().now()
  const event = (name: string, at: number) => ({
    metadata: { name },
    involvedObject: { kind: 'Pod', name: 'p', namespace: 'default' },
    lastTimestamp: new Date(start + at).toISOString().replace('.000', ''),
  })
  await server.post('/api/v1/namespaces/default/events', event('early', 0))
  await server.post('/api/v1/namespaces/default/events', event('late', 1_800_000))
  await server.clock.advance(3_661_000)
  assert.equal((await server.get('/api/v1/namespaces/default/events/early')).code, 404)
  assert.equal((await server.get('/api/v1/namespaces/default/events/late')).code, 200)
  await server.clock.advance(1_900_000)
  assert.equal((await server.get('/api/v1/namespaces/default/events/late')).code, 404)
})
