// Which token is believed? Only one that we signed, as we signed it. Each forgery is made from a good token, and the good one is
// accepted beside it.
import assert from 'node:assert/strict'
import { createHmac, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import test from 'node:test'
import { makeServer } from '../kit/api-server.ts'
import type { TestServer } from '../kit/api-server.ts'

const text = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const accounts = '/api/v1/namespaces/default/serviceaccounts'

const review = async ({ post }: TestServer, token: string, audiences?: readonly string[]): Promise<boolean> => {
  const { body } = await post('/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token, audiences } })
  return body.status.authenticated === true
}

interface Parts {
  readonly head: Record<string, unknown>
  readonly payload: Record<string, unknown>
  readonly mark: string
  /** The public key, as anybody who is known may read it. */
  readonly jwk: { readonly kid: string }
}

const stranger = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
const signed = (head: object, payload: object, key: KeyObject = stranger.privateKey): string => {
  const body = `${text(head)}.${text(payload)}`
  const mark = sign('sha256', Buffer.from(body), { key, dsaEncoding: 'ieee-p1363' })
  return `${body}.${mark.toString('base64url')}`
}
const sealed = (head: object, payload: object, secret: string | Buffer): string => {
  const body = `${text(head)}.${text(payload)}`
  return `${body}.${createHmac('sha256', secret).update(body).digest('base64url')}`
}
const publicPem = ({ jwk }: Parts): string =>
  createPublicKey({ format: 'jwk', key: jwk as never })
    .export({ format: 'pem', type: 'spki' })
    .toString()

const forgeries: Readonly<Record<string, (parts: Parts) => string>> = {
  'no algorithm, no signature': ({ head, payload }) => `${text({ ...head, alg: 'none' })}.${text(payload)}.`,
  'no algorithm, the old signature': ({ head, payload, mark }) =>
    `${text({ ...head, alg: 'none' })}.${text(payload)}.${mark}`,
  'the key of a stranger under our id': ({ head, payload }) => signed(head, payload),
  'the key of a stranger in the header': ({ head, payload }) =>
    signed({ ...head, jwk: stranger.publicKey.export({ format: 'jwk' }) }, payload),
  'a key to be fetched from elsewhere': ({ head, payload }) =>
    signed({ ...head, jku: 'http://127.0.0.1:1/keys' }, payload),
  'a key id that is a path': ({ head, payload }) =>
    sealed({ ...head, alg: 'HS256', kid: '../../../../dev/null' }, payload, ''),
  'sealed with the text of the public key': (parts) =>
    sealed({ ...parts.head, alg: 'HS256' }, parts.payload, publicPem(parts)),
  'sealed with an empty secret': ({ head, payload }) => sealed({ ...head, alg: 'HS256' }, payload, ''),
  'another payload under the old signature': ({ head, payload, mark }) =>
    `${text(head)}.${text({ ...payload, sub: 'system:serviceaccount:kube-system:default' })}.${mark}`,
  'a longer life under the old signature': ({ head, payload, mark }) =>
    `${text(head)}.${text({ ...payload, exp: Number(payload['exp']) * 2 })}.${mark}`,
  'a signature of zeros': ({ head, payload }) =>
    `${text(head)}.${text(payload)}.${Buffer.alloc(64).toString('base64url')}`,
  'the signature in other letters': ({ head, payload, mark }) => `${text(head)}.${text(payload)}.${mark}=`,
  'a fourth part': ({ head, payload, mark }) => `${text(head)}.${text(payload)}.${mark}.${mark}`,
  'no payload': ({ head, mark }) => `${text(head)}..${mark}`,
}

async function goodToken(server: TestServer, spec: object = {}) {
  await server.clock.settle()
  const { body } = await server.post(`${accounts}/default/token`, { spec })
  const token = body.status.token as string
  const [head = '', payload = '', mark = ''] = token.split('.')
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>
  const { keys } = (await server.get('/openid/v1/jwks')).body as { keys: { kid: string }[] }
  return { token, parts: { head: read(head), payload: read(payload), mark, jwk: keys[0]! } satisfies Parts }
}

for (const [what, forge] of Object.entries(forgeries))
  test(`a forged token is nobody's: ${what}`, async () => {
    await using server = await makeServer()
    const { token, parts } = await goodToken(server)
    const forged = forge(parts)
    assert.notEqual(forged, token)
    assert.deepEqual([await review(server, token), await review(server, forged)], [true, false])
  })

test('a token is good for the audiences it was made for, and for no others', async () => {
  await using server = await makeServer()
  const { token: usual } = await goodToken(server)
  const { token: vault } = await goodToken(server, { audiences: ['vault'] })
  assert.deepEqual(
    [await review(server, usual), await review(server, usual, ['vault']), await review(server, vault)],
    [true, false, false],
  )
  assert.equal(await review(server, vault, ['vault', 'other']), true)
})

test('a token of an account that was deleted and made again is nobody', async () => {
  await using server = await makeServer()
  await server.clock.settle()
  await server.post(accounts, { metadata: { name: 'a' } })
  const { body } = await server.post(`${accounts}/a/token`, { spec: {} })
  assert.equal(await review(server, body.status.token), true)
  await server.delete(`${accounts}/a`)
  await server.post(accounts, { metadata: { name: 'a' } })
  assert.equal(await review(server, body.status.token), false)
})
