// Do lists and watches keep Kubernetes' promises about versions? Exact and recent lists, tokens, bookmarks, 410.
import assert from 'node:assert/strict'
import test from 'node:test'
import { makeServer, paths, storageClass } from '../kit/api-server.ts'

const nameOf = (item: { metadata: { name: string } }): string => item.metadata.name

test('a watch without version tells the present first, then what follows', async () => {
  await using server = await makeServer()
  await server.post(paths.classes, storageClass('a'))
  const watch = await server.watch(`${paths.classes}?watch=1`)
  const first = await watch.next()
  assert.deepEqual([first.type, first.object.metadata.name, first.object.kind], ['ADDED', 'a', 'StorageClass'])
  const pending = watch.next()
  await server.delete(`${paths.classes}/a`)
  const second = await pending
  assert.equal(second.type, 'DELETED')
  assert.ok(Number(second.object.metadata.resourceVersion) > Number(first.object.metadata.resourceVersion))
  watch.stop()
  assert.equal(await watch.next(), undefined)
})

test('a version that history no longer holds ends the watch with a 410 event', async () => {
  await using server = await makeServer({ history: { changes: 5, bytes: 1_000_000 } })
  for (let index = 0; index < 10; index++) await server.post(paths.classes, storageClass(`s${index}`))
  const watch = await server.watch(`${paths.classes}?watch=1&resourceVersion=1`)
  const event = await watch.next()
  assert.deepEqual([event.type, event.object.code, event.object.reason], ['ERROR', 410, 'Expired'])
  assert.match(event.object.message, /^too old resource version: 1 \(\d+\)$/)
  assert.equal(await watch.next(), undefined)
})

test('history begins after the standing namespaces: version 1 is too old from the first', async () => {
  await using server = await makeServer()
  const watch = await server.watch(`${paths.classes}?watch=1&resourceVersion=1`)
  const event = await watch.next()
  assert.deepEqual([event.type, event.object.code, event.object.reason], ['ERROR', 410, 'Expired'])
  const { body } = await server.get(paths.classes)
  const fresh = await server.watch(`${paths.classes}?watch=1&resourceVersion=${body.metadata.resourceVersion}`)
  await server.post(paths.classes, storageClass('a'))
  assert.equal((await fresh.next()).type, 'ADDED')
  fresh.stop()
})

test('bookmarks come every minute and shortly before the end', async () => {
  await using server = await makeServer()
  const { body } = await server.get(paths.classes)
  const version = body.metadata.resourceVersion
  const watch = await server.watch(
    `${paths.classes}?watch=1&resourceVersion=${version}&allowWatchBookmarks=true&timeoutSeconds=90`,
  )
  const first = watch.next()
  await server.post(paths.configMaps, { metadata: { name: 'elsewhere' } })
  await server.clock.advance(60_000)
  const bookmark = await first
  assert.deepEqual([bookmark.type, bookmark.object.kind], ['BOOKMARK', 'StorageClass'])
  assert.ok(Number(bookmark.object.metadata.resourceVersion) > Number(version))
  const last = watch.next()
  await server.post(paths.configMaps, { metadata: { name: 'again' } })
  await server.clock.advance(28_500)
  assert.equal((await last).type, 'BOOKMARK')
  const end = watch.next()
  await server.clock.advance(2_000)
  assert.equal(await end, undefined)
})

test('a streaming list ends its initial events with a marked bookmark', async () => {
  await using server = await makeServer()
  await server.post(paths.classes, storageClass('a'))
  const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
  const watch = await server.watch(`${paths.classes}?${query}`)
  assert.equal((await watch.next()).type, 'ADDED')
  const mark = await watch.next()
  assert.deepEqual([mark.type, mark.object.metadata.annotations], ['BOOKMARK', { 'k8s.io/initial-events-end': 'true' }])
  watch.stop()
  const refused = await server.get(`${paths.classes}?watch=1&sendInitialEvents=true`)
  assert.equal(refused.code, 422)
})

test('table watches describe their columns once', async () => {
  await using server = await makeServer()
  await server.post(paths.classes, storageClass('a'))
  await server.post(paths.classes, storageClass('b'))
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
  const watch = await server.watch(`${paths.classes}?watch=1`, { accept })
  const [first, second] = [await watch.next(), await watch.next()]
  assert.deepEqual([first.object.kind, first.object.columnDefinitions[0].name], ['Table', 'Name'])
  assert.equal(second.object.columnDefinitions, null)
  assert.equal(second.object.rows[0].cells[0], 'b')
  watch.stop()
})

test('pages continue at their version; a token that is too old says how to go on', async () => {
  await using server = await makeServer({ history: { changes: 8, bytes: 1_000_000 } })
  for (const name of ['a', 'b', 'c', 'd']) await server.post(paths.classes, storageClass(name))
  const first = await server.get(paths.classes, { query: { limit: '2' } })
  assert.deepEqual([first.body.items.map(nameOf), first.body.metadata.remainingItemCount], [['a', 'b'], 2])
  await server.delete(`${paths.classes}/c`)
  const token: string = first.body.metadata.continue
  const second = await server.get(paths.classes, { query: { limit: '2', continue: token } })
  assert.deepEqual(second.body.items.map(nameOf), ['c', 'd'])
  assert.equal(second.body.metadata.resourceVersion, first.body.metadata.resourceVersion)
  for (let index = 0; index < 20; index++) await server.post(paths.configMaps, { metadata: { name: `m${index}` } })
  const late = await server.get(paths.classes, { query: { limit: '2', continue: token } })
  assert.deepEqual([late.code, late.body.reason], [410, 'Expired'])
  const rest = await server.get(paths.classes, { query: { limit: '2', continue: late.body.metadata.continue } })
  assert.deepEqual(rest.body.items.map(nameOf), ['d'])
})

test('pages with a selector are filled across what does not match', async () => {
  await using server = await makeServer()
  for (let index = 0; index < 1_200; index++) {
    await server.post(
      paths.classes,
      storageClass(`s${String(index).padStart(4, '0')}`, {}, { even: String(index % 400 === 0) }),
    )
  }
  const first = await server.get(paths.classes, { query: { limit: '2', labelSelector: 'even=true' } })
  assert.deepEqual(first.body.items.map(nameOf), ['s0000', 's0400'])
  const query = { limit: '2', labelSelector: 'even=true', continue: first.body.metadata.continue }
  const second = await server.get(paths.classes, { query })
  assert.deepEqual([second.body.items.map(nameOf), second.body.metadata.continue], [['s0800'], undefined])
})

test('exact lists show the past, future versions are refused for now', async () => {
  await using server = await makeServer()
  await server.post(paths.classes, storageClass('a'))
  const { body } = await server.get(paths.classes)
  await server.post(paths.classes, storageClass('b'))
  const exact = { resourceVersion: body.metadata.resourceVersion, resourceVersionMatch: 'Exact' }
  assert.deepEqual((await server.get(paths.classes, { query: exact })).body.items.map(nameOf), ['a'])
  const recent = { ...exact, resourceVersionMatch: 'NotOlderThan' }
  assert.deepEqual((await server.get(paths.classes, { query: recent })).body.items.map(nameOf), ['a', 'b'])
  const future = await server.get(paths.classes, { query: { resourceVersion: '99999' } })
  assert.equal(future.code, 504)
  assert.equal(future.body.details.causes[0].reason, 'ResourceVersionTooLarge')
  const lone = await server.get(paths.classes, { query: { resourceVersionMatch: 'Exact' } })
  assert.equal(lone.code, 422)
  const bad = await server.get(paths.classes, { query: { resourceVersion: 'x' } })
  assert.equal(bad.code, 400)
})

test('in process: objects are frozen, shared and carry their type', async () => {
  await using server = await makeServer()
  const api = server.server.api()
  const made = await api.create('ConfigMap', { metadata: { name: 'a', namespace: 'default' }, data: { k: 'v' } })
  const read = await api.get('ConfigMap', { namespace: 'default', name: 'a' })
  assert.equal(read, made)
  assert.ok(Object.isFrozen(read.data))
  const stop = new AbortController()
  const events = api.watch('ConfigMap', { namespace: 'default', resourceVersion: '0' }, stop.signal)
  for await (const event of events) {
    assert.ok(event.type === 'added' && event.object === made)
    break
  }
  stop.abort()
  assert.equal(await api.remove('ConfigMap', { namespace: 'default', name: 'a' }), undefined)
})

test('streams are counted: one too many is told to come back, and a closed one makes room', async () => {
  await using server = await makeServer({ streams: 1 })
  const watch = await server.watch(`${paths.classes}?watch=1`)
  const waiting = watch.next()
  await server.clock.settle()
  const refused = await server.get(`${paths.classes}?watch=1`)
  assert.deepEqual([refused.code, refused.headers['retry-after']], [429, '1'])
  assert.equal((await server.get(paths.classes)).code, 200)
  watch.stop()
  assert.equal(await waiting, undefined)
  const again = await server.watch(`${paths.classes}?watch=1`)
  again.stop()
})

test('one user cannot open all the watches there are, also not as somebody else', async () => {
  await using server = await makeServer({ streams: 10, streamsPerUser: 2 })
  const as = { headers: { 'impersonate-user': 'bob', 'impersonate-group': 'system:masters' } }
  const watches = [await server.watch(`${paths.pods}?watch=1`), await server.watch(`${paths.pods}?watch=1`, as)]
  for (const watch of watches) void watch.next()
  await server.clock.settle()
  const refused = await server.send('GET', `${paths.pods}?watch=1`)
  assert.deepEqual([refused.code, refused.headers['retry-after']], [429, '1'])
  assert.match(refused.body.message, /you have 2 watches, logs and other streams open/)
  const other = { name: 'eve', groups: ['system:masters', 'system:authenticated'] }
  const third = await server.watch(`${paths.pods}?watch=1`, { user: other })
  for (const watch of [...watches, third]) watch.stop()
})

test('one user cannot take all connections with watches: each may need one', async () => {
  await using server = await makeServer()
  const watches = await Promise.all(Array.from({ length: 2_000 }, () => server.watch(`${paths.pods}?watch=1`)))
  for (const watch of watches) void watch.next()
  await server.clock.settle()
  assert.equal((await server.send('GET', `${paths.pods}?watch=1`)).code, 429)
  const other = { name: 'eve', groups: ['system:masters', 'system:authenticated'] }
  watches.push(await server.watch(`${paths.pods}?watch=1`, { user: other }))
  for (const watch of watches) watch.stop()
})
