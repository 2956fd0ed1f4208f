// Can somebody who only has the published keys verify a token of a service account (D9)? And are older tokens still good?
import assert from 'node:assert/strict'
import { createHmac, createPublicKey, verify } from 'node:crypto'
import test from 'node:test'
import { createTokenKeys } from '../../src/apiserver/access/token-keys.ts'
import type { TestServer } from '../kit/api-server.ts'
import { makeServer } from '../kit/api-server.ts'

const path = '/api/v1/namespaces/default/serviceaccounts/default/token'
const somebody = { name: 'x', groups: ['system:authenticated'] }
/** As the kit's servers have it. */
const secret = new Uint8Array(32).fill(7)

async function tokenOf(server: TestServer): Promise<string> {
  await server.clock.settle()
  return (await server.post(path, { spec: { audiences: ['vault'] } })).body.status.token
}

test('a token is verified with the keys that the issuer publishes', async () => {
  await using server = await makeServer()
  const headers = { host: 'hawser.example:7443' }
  const found = await server.get('/.well-known/openid-configuration', { user: somebody, headers })
  assert.equal(found.body.jwks_uri, 'https://hawser.example:7443/openid/v1/jwks')
  const published = await server.get('/openid/v1/jwks', { user: somebody })
  assert.equal(published.headers['content-type'], 'application/jwk-set+json')
  const [head = '', payload = '', mark = ''] = (await tokenOf(server)).split('.')
  const { alg, kid } = JSON.parse(Buffer.from(head, 'base64url').toString())
  assert.equal(alg, 'ES256')
  const key = published.body.keys.find((each: { kid: string }) => each.kid === kid)
  assert.deepEqual([key.kty, key.d], ['EC', undefined], 'the private half stays here')
  const options = { key: createPublicKey({ format: 'jwk', key }), dsaEncoding: 'ieee-p1363' as const }
  assert.ok(verify('sha256', Buffer.from(`${head}.${payload}`), options, Buffer.from(mark, 'base64url')))
  assert.equal(JSON.parse(Buffer.from(payload, 'base64url').toString()).iss, found.body.issuer)
})

test('strangers read no keys; other pages of the folders do not exist', async () => {
  await using server = await makeServer()
  assert.equal((await server.get('/openid/v1/jwks', { user: undefined })).code, 401)
  assert.equal((await server.get('/openid/v1')).code, 404)
  assert.equal((await server.get('/.well-known/other')).code, 404)
})

test('the key is the same after a restart, and another in another cluster', () => {
  const kidOf = (bytes: Uint8Array) => (createTokenKeys(bytes).keySet.keys[0] as { kid: string }).kid
  assert.equal(kidOf(secret), kidOf(secret))
  assert.notEqual(kidOf(secret), kidOf(new Uint8Array(32).fill(8)))
})

test('a token of the time before is good until it expires; one that only names another algorithm never is', async () => {
  await using server = await makeServer()
  const payload = (await tokenOf(server)).split('.')[1] ?? ''
  const { authenticate } = server.server.tokens
  const seal = (header: object, key: Uint8Array | string) => {
    const text = `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${payload}`
    return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
  }
  const old = seal({ alg: 'HS256', typ: 'JWT' }, secret)
  assert.equal((await authenticate(old, ['vault']))?.user.name, 'system:serviceaccount:default:default')
  const [key] = createTokenKeys(secret).keySet.keys
  const publicText = createPublicKey({ format: 'jwk', key: key as object }).export({ format: 'pem', type: 'spki' })
  for (const forged of [
    seal({ alg: 'HS256', typ: 'JWT' }, publicText),
    seal({ alg: 'ES256', typ: 'JWT' }, publicText),
    `${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.`,
    `${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.x`,
  ]) {
    assert.equal(await authenticate(forged, ['vault']), undefined)
  }
  await server.clock.advance(2 * 3600_000)
  assert.equal(await authenticate(old, ['vault']), undefined)
})
