// What does the audit log know? Every change, every secret read, every refusal and every stream: who, from where, what, outcome.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { User } from '../../src/apiserver/request/call.ts'
import type { TestServer } from '../kit/api-server.ts'
import { makeServer, paths, pod } from '../kit/api-server.ts'

const nobody: User = { name: 'nina', groups: ['system:authenticated'] }
const audits = ({ lines }: TestServer) =>
  lines.flatMap(({ message, fields }) => (message === 'api request' ? [fields['audit']] : []))
const source = '192.0.2.7'

test('every change leaves one line with the address it came from, and none tells a secret', async () => {
  await using server = await makeServer()
  await server.post(paths.secrets, { metadata: { name: 's' }, stringData: { password: 'hunter2' } }, { source })
  await server.delete(`${paths.secrets}/none`, undefined, { source })
  assert.deepEqual(audits(server), [
    { user: 'admin', source, verb: 'post', resource: 'secrets', namespace: 'default', name: 's', code: 201, ms: 0 },
    {
      user: 'admin',
      source,
      verb: 'delete',
      resource: 'secrets',
      namespace: 'default',
      name: 'none',
      code: 404,
      ms: 0,
    },
  ])
  assert.doesNotMatch(JSON.stringify(server.lines), /hunter2/)
})

test('every read of a secret leaves one line, whether one, all or a watch', async () => {
  await using server = await makeServer()
  await server.get(`${paths.secrets}/none`, { source })
  await server.get('/api/v1/secrets', { source })
  const watch = await server.watch('/api/v1/secrets?watch=true', { source })
  watch.stop()
  await server.get(paths.configMaps, { source })
  const read = { user: 'admin', source, verb: 'get', resource: 'secrets', ms: 0 }
  assert.deepEqual(audits(server), [
    { ...read, namespace: 'default', name: 'none', code: 404 },
    { ...read, code: 200 },
    { ...read, code: 200 },
  ])
})

test('every refusal leaves one line, also of a read and of somebody unknown', async () => {
  await using server = await makeServer()
  await server.get(paths.volumes, { source, user: nobody })
  await server.get('/metrics', { source, user: nobody })
  await server.get(paths.volumes, { source, user: undefined })
  const line = { source, verb: 'get', ms: 0 }
  assert.deepEqual(audits(server), [
    { ...line, user: 'nina', resource: 'persistentvolumes', code: 403 },
    { ...line, user: 'nina', resource: 'document', path: '/metrics', code: 403 },
    { ...line, user: 'system:anonymous', resource: 'persistentvolumes', code: 401 },
  ])
})

test('every exec, attach and port-forward leaves one line, whatever becomes of it', async () => {
  await using server = await makeServer()
  await server.post(paths.pods, pod('p'))
  const before = audits(server).length
  for (const subresource of ['exec', 'attach', 'portforward']) {
    await server.get(`${paths.pods}/p/${subresource}`, { source })
  }
  assert.deepEqual(
    audits(server).slice(before),
    ['exec', 'attach', 'portforward'].map((subresource) => ({
      user: 'admin',
      source,
      verb: 'get',
      resource: 'pods',
      namespace: 'default',
      name: 'p',
      subresource,
      code: 400,
      ms: 0,
    })),
  )
})

test('when the log cannot be written, nothing is done that belongs into it', async () => {
  const audit = {
    refusal: () => 'the audit log /x cannot be written: full',
    write: () => Promise.reject(new Error('full')),
  }
  await using server = await makeServer({ audit })
  const { code, body } = await server.post(paths.configMaps, { metadata: { name: 'c' } })
  assert.equal(code, 503)
  assert.match(JSON.stringify(body), /cannot be written: full. Nothing was done/)
  assert.equal((await server.get(`${paths.configMaps}/c`)).code, 404)
  assert.equal((await server.get('/api/v1/secrets')).code, 503)
})

test('a change whose own line cannot be written is not acknowledged', async () => {
  const audit = { refusal: () => undefined, write: () => Promise.reject(new Error('full')) }
  await using server = await makeServer({ audit })
  const { code, body } = await server.post(paths.configMaps, { metadata: { name: 'c' } })
  assert.equal(code, 503)
  assert.match(JSON.stringify(body), /may have been done/)
})
