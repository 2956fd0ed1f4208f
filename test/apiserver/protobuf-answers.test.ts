// Does a client that asks for protobuf get what a client that asks for JSON gets? Objects, lists, watches, failures, reviews.
import assert from 'node:assert/strict'
import test from 'node:test'
import { kindNames, kinds } from '../../src/api/kinds.ts'
import { decodeProtobuf } from '../../src/apiserver/protobuf/decode.ts'
import { WireReader } from '../../src/apiserver/protobuf/wire.ts'
import type { TestServer } from '../kit/api-server.ts'
import { claim, makeServer, paths, pod, storageClass, volume } from '../kit/api-server.ts'

const protobuf = 'application/vnd.kubernetes.protobuf'
/** What client-go sends. */
const both = `${protobuf},application/json`

async function raw(server: TestServer, method: string, path: string, accept = protobuf, body?: unknown) {
  const response = await server.open(method, path, { accept, body })
  assert.ok(response.body instanceof Uint8Array)
  return { code: response.status, type: response.headers['content-type'], body: response.body }
}

/** The metadata and items of a list, read by hand: our decoder knows no lists. */
function listOf(bytes: Uint8Array) {
  const texts = envelopeOf(bytes)
  const reader = new WireReader(texts.raw)
  const items: Uint8Array[] = []
  let metadata: Uint8Array = new Uint8Array()
  while (!reader.done) {
    const { number } = reader.tag()
    if (number === 1) metadata = reader.bytes()
    else items.push(reader.bytes())
  }
  return { ...texts, metadata, items }
}

function envelopeOf(bytes: Uint8Array) {
  assert.equal(Buffer.from(bytes.subarray(0, 4)).toString(), 'k8s\0')
  const reader = new WireReader(bytes, 4)
  const texts: string[] = []
  let content: Uint8Array = new Uint8Array()
  while (!reader.done) {
    const { number } = reader.tag()
    if (number === 1) {
      const type = reader.message()
      while (!type.done) {
        type.tag()
        texts.push(type.text())
      }
    } else if (number === 2) content = reader.bytes()
    else assert.equal(reader.text(), '')
  }
  return { apiVersion: texts[0], kind: texts[1], raw: content }
}

/** An item of a list has no envelope. */
function itemOf(apiVersion: string, kind: string, content: Uint8Array) {
  const field = (number: number, bytes: Uint8Array) => {
    const head: number[] = [number * 8 + 2]
    let rest = bytes.length
    for (; rest > 127; rest >>>= 7) head.push((rest & 127) | 128)
    return Buffer.concat([Buffer.from([...head, rest]), bytes])
  }
  const type = Buffer.concat([field(1, Buffer.from(apiVersion)), field(2, Buffer.from(kind))])
  return decodeProtobuf(Buffer.concat([Buffer.from('k8s\0'), field(1, type), field(2, content)])).object
}

test('an object in protobuf is the object in JSON, whether read, created, patched or deleted', async () => {
  await using server = await makeServer()
  const made = await raw(server, 'POST', paths.claims, both, claim('c', { storageClassName: '' }))
  assert.deepEqual([made.code, made.type], [201, protobuf])
  assert.equal(decodeProtobuf(made.body).object['kind'], 'PersistentVolumeClaim')
  await server.post(paths.volumes, volume('v'))
  await server.post(paths.classes, storageClass('k', { parameters: { fsType: 'ext4' } }))
  await server.post(paths.pods, pod('p'))
  await server.post(paths.secrets, { metadata: { name: 's' }, stringData: { key: 'wörter' } })
  for (const path of [
    `${paths.claims}/c`,
    `${paths.volumes}/v`,
    `${paths.classes}/k`,
    `${paths.pods}/p`,
    `${paths.secrets}/s`,
    '/api/v1/namespaces/default',
  ]) {
    for (const accept of [protobuf, both]) {
      const answer = await raw(server, 'GET', path, accept)
      assert.deepEqual([answer.code, answer.type], [200, protobuf], path)
      assert.deepEqual(decodeProtobuf(answer.body).object, withoutEmpty((await server.get(path)).body), path)
    }
  }
  const gone = await raw(server, 'DELETE', `${paths.classes}/k`)
  assert.equal(decodeProtobuf(gone.body).object['kind'], 'StorageClass')
  const status = await raw(server, 'DELETE', `${paths.secrets}/s`)
  assert.equal(decodeProtobuf(status.body).object['status'], 'Success')
})

/** Go's empty lists and maps are absent in protobuf. */
function withoutEmpty(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_key, inner) => (Array.isArray(inner) && inner.length === 0 ? undefined : inner)),
  )
}

test('a list in protobuf has the items, version and continuation of the list in JSON', async () => {
  await using server = await makeServer()
  for (const name of ['a', 'b', 'c']) await server.post(paths.configMaps, { metadata: { name }, data: { name } })
  const answer = await raw(server, 'GET', `${paths.configMaps}?limit=2`)
  const list = listOf(answer.body)
  assert.deepEqual([answer.type, list.apiVersion, list.kind], [protobuf, 'v1', 'ConfigMapList'])
  const json = (await server.get(`${paths.configMaps}?limit=2`)).body
  assert.deepEqual(
    list.items.map((item) => itemOf('v1', 'ConfigMap', item)),
    json.items.map((item: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', ...item })),
  )
  assert.ok(Buffer.from(list.metadata).includes(json.metadata.continue))
  assert.ok(Buffer.from(list.metadata).includes(json.metadata.resourceVersion))
})

test('a watch in protobuf: frames with a length, objects in envelopes, bookmarks and failures too', async () => {
  await using server = await makeServer()
  await server.post(paths.configMaps, { metadata: { name: 'a' }, data: { long: 'x'.repeat(300) } })
  const stop = await server.open('GET', `${paths.configMaps}?watch=true&resourceVersion=0&timeoutSeconds=1`, {
    accept: both,
  })
  assert.equal(stop.headers['content-type'], `${protobuf};stream=watch`)
  assert.ok(!(stop.body instanceof Uint8Array))
  const frames: { type: string; object: unknown }[] = []
  const reading = (async () => {
    assert.ok(!(stop.body instanceof Uint8Array))
    for await (const bytes of stop.body) frames.push(frameOf(bytes))
  })()
  await server.post(paths.configMaps, { metadata: { name: 'b' } })
  await server.clock.advance(2000)
  await reading
  const objects = (await server.get(paths.configMaps)).body.items
  assert.deepEqual(
    frames,
    objects.map((object: object) => ({ type: 'ADDED', object: { apiVersion: 'v1', kind: 'ConfigMap', ...object } })),
  )
})

function frameOf(bytes: Buffer): { type: string; object: unknown } {
  assert.equal(bytes.readUInt32BE(), bytes.length - 4)
  const reader = new WireReader(bytes, 4)
  reader.tag()
  const type = reader.text()
  reader.tag()
  const inner = reader.message()
  inner.tag()
  return { type, object: decodeProtobuf(inner.bytes()).object }
}

test('a failure is told in the form that was asked for', async () => {
  await using server = await makeServer()
  const absent = await raw(server, 'GET', `${paths.claims}/none`, both)
  assert.deepEqual([absent.code, absent.type], [404, protobuf])
  const status = decodeProtobuf(absent.body).object
  assert.deepEqual(status, withoutEmpty((await server.get(`${paths.claims}/none`)).body))
  const yaml = await raw(server, 'GET', `${paths.claims}/none`, 'application/yaml')
  assert.deepEqual([yaml.code, yaml.type], [404, 'application/yaml'])
  const neither = await raw(server, 'GET', `${paths.claims}/none`, 'image/png')
  assert.deepEqual([neither.code, neither.type], [406, 'application/json'])
})

test('the quality in the header decides, then its order; zero means never', async () => {
  await using server = await makeServer()
  const typeFor = async (accept: string) => (await raw(server, 'GET', paths.claims, accept)).type
  assert.equal(await typeFor(`${protobuf};q=0.5,application/json;q=0.9`), 'application/json')
  assert.equal(await typeFor(`application/json;q=0.5, ${protobuf}`), protobuf)
  assert.equal(await typeFor(`application/json,${protobuf}`), 'application/json')
  assert.equal(await typeFor(`*/*,${protobuf}`), protobuf)
  assert.equal(await typeFor(`${protobuf};q=0,application/json`), 'application/json')
  assert.equal(await typeFor('*/*'), 'application/json')
})

test('tables are never protobuf; metadata are, of every kind', async () => {
  await using server = await makeServer()
  await server.post(paths.claims, claim('c'))
  const table = `${protobuf};as=Table;v=v1;g=meta.k8s.io`
  assert.equal((await raw(server, 'GET', paths.claims, table)).code, 406)
  const orJson = await raw(server, 'GET', paths.claims, `${table},application/json;as=Table;v=v1;g=meta.k8s.io`)
  assert.equal(JSON.parse(orJson.body.toString()).kind, 'Table')
  const metadata = `${protobuf};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io`
  const snapshots = '/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots'
  for (const path of [paths.claims, snapshots]) {
    const list = listOf((await raw(server, 'GET', path, metadata)).body)
    assert.deepEqual([list.apiVersion, list.kind], ['meta.k8s.io/v1', 'PartialObjectMetadataList'])
  }
  assert.equal(listOf((await raw(server, 'GET', paths.claims, metadata)).body).items.length, 1)
})

test('kinds without field numbers are JSON; those who want only protobuf of them are told what there is', async () => {
  await using server = await makeServer()
  const jsonOnly: string[] = []
  for (const name of kindNames) {
    const info = kinds[name]
    const root = info.group === '' ? '/api/v1' : `/apis/${info.group}/v1`
    const path = `${root}/${info.plural}`
    const alone = await raw(server, 'GET', path)
    if (alone.code === 406) {
      jsonOnly.push(name)
      assert.match(alone.body.toString(), /accepted: application\/json, application\/yaml"/)
      assert.equal((await raw(server, 'GET', path, both)).type, 'application/json')
    } else assert.deepEqual([alone.code, alone.type], [200, protobuf], name)
  }
  assert.ok(jsonOnly.includes('VolumeSnapshot'))
  assert.deepEqual(
    jsonOnly,
    kindNames.filter((name) => kinds[name].shape !== undefined),
  )
})

test('reviews and tokens answer in protobuf, also to a JSON body whose members are not what they should be', async () => {
  await using server = await makeServer()
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
  const spec = { resourceAttributes: { verb: 'get', resource: 'pods' } }
  const answer = await raw(server, 'POST', path, protobuf, { spec })
  assert.deepEqual([answer.code, answer.type], [201, protobuf])
  assert.equal((decodeProtobuf(answer.body).object['status'] as { allowed: boolean }).allowed, true)
  const odd = await raw(server, 'POST', path, protobuf, { spec: { ...spec, user: 7, groups: 'g', extra: { a: 'b' } } })
  assert.equal(odd.code, 201)
  const account = { metadata: { name: 'robot' } }
  await server.post('/api/v1/namespaces/default/serviceaccounts', account)
  const token = await raw(server, 'POST', '/api/v1/namespaces/default/serviceaccounts/robot/token', protobuf, {
    spec: {},
  })
  assert.equal(decodeProtobuf(token.body).object['kind'], 'TokenRequest')
})
