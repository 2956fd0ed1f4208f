// What does every cluster have that programs rely on? The authority in every namespace, and the service of the API server (E5).
import assert from 'node:assert/strict'
import test from 'node:test'
import { createInProcessClient } from '../../src/client/in-process.ts'
import { publishService } from '../../src/installation/kubernetes-service.ts'
import { makeServer, paths } from '../kit/api-server.ts'

const rootCertificate = '-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n'
const pathIn = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps/kube-root-ca.crt`

test('every namespace has the authority of the server; deleted or changed, it is restored', async () => {
  await using server = await makeServer({ rootCertificate })
  await server.post(paths.namespaces, { metadata: { name: 'shop' } })
  await server.clock.settle()
  for (const namespace of ['default', 'kube-system', 'shop']) {
    assert.deepEqual((await server.get(pathIn(namespace))).body.data, { 'ca.crt': rootCertificate }, namespace)
  }
  await server.delete(pathIn('shop'))
  await server.clock.settle()
  assert.deepEqual((await server.get(pathIn('shop'))).body.data, { 'ca.crt': rootCertificate })
  await server.patch(pathIn('shop'), 'merge', { data: { 'ca.crt': 'another', more: 'x' } })
  await server.clock.settle()
  assert.deepEqual((await server.get(pathIn('shop'))).body.data, { 'ca.crt': rootCertificate })
  await server.delete(`${paths.namespaces}/shop`)
  await server.clock.settle()
  assert.equal((await server.get(`${paths.namespaces}/shop`)).code, 404)
})

test('a server without a certificate of its own publishes none', async () => {
  await using server = await makeServer()
  await server.clock.settle()
  assert.equal((await server.get(pathIn('default'))).code, 404)
})

test('the service of the API server has its real address, follows it, and nobody makes or deletes services', async () => {
  await using server = await makeServer()
  const client = createInProcessClient(server.server.api())
  const path = '/api/v1/namespaces/default/services/kubernetes'
  await publishService(client, 'https://10.1.2.3:7443')
  const { spec, metadata } = (await server.get(path)).body
  assert.deepEqual([spec.clusterIP, spec.ports[0].port, spec.ipFamilies], ['10.1.2.3', 7443, ['IPv4']])
  await publishService(client, 'https://10.1.2.3:7443')
  assert.equal((await server.get(path)).body.metadata.resourceVersion, metadata.resourceVersion)
  await publishService(client, 'https://[fd00::1]:443')
  assert.deepEqual((await server.get(path)).body.spec.clusterIPs, ['fd00::1'])
  await publishService(client, 'https://hawser.example:7443')
  assert.equal((await server.get(path)).body.spec.clusterIP, 'None')
  const services = '/api/v1/namespaces/default/services'
  assert.equal((await server.post(services, { metadata: { name: 'x' } })).code, 405)
  assert.equal((await server.delete(path)).code, 405)
  assert.equal((await server.put(path, {})).code, 405)
  assert.equal((await server.patch(path, 'merge', {})).code, 405)
  const { body } = await server.get(services, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' })
  assert.deepEqual(body.rows[0].cells.slice(0, 5), ['kubernetes', 'ClusterIP', 'None', '<none>', '7443/TCP'])
})
