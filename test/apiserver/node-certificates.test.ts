// How does a machine get the certificate of a node, and when is it taken from it? Over real TLS, with a real authority.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createAuthority,
  createClientCertificate,
  createKey,
  createNodeSigner,
  createRequest,
  createServerCertificate,
} from '../../src/apiserver/access/certificates.ts'
import { startApiServer } from '../../src/apiserver/http/listen.ts'
import { createHttpTransport } from '../../src/client/http.ts'
import type { HttpConfig } from '../../src/client/http.ts'
import { createInProcessClient } from '../../src/client/in-process.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import type { TokenOptions } from '../../src/installation/bootstrap-tokens.ts'
import { createBootstrapToken } from '../../src/installation/bootstrap-tokens.ts'
import { createMemoryStore } from '../../src/store/memory-store.ts'
import { createLog } from '../../src/telemetry/log.ts'

const { signal } = new AbortController()
const now = Date.now()
const authority = await createAuthority()
const shown = await createServerCertificate(authority, { names: ['127.0.0.1'] }, now)

async function start() {
  const server = await startApiServer({
    store: createMemoryStore(),
    clock: createSystemClock(),
    random: createRandom(1),
    log: createLog(() => {}),
    tokens: [],
    signingKey: new Uint8Array(48),
    listen: { host: '127.0.0.1', port: 0 },
    tls: { ...shown, authority: authority.certificate },
    nodeSigner: createNodeSigner(() => authority),
  })
  const client = createInProcessClient(server.api())
  const ask = async (who: Partial<HttpConfig>, method: 'GET' | 'POST', path: string, body?: unknown) => {
    using transport = createHttpTransport({ url: server.url, ca: authority.certificate, ...who })
    const text = body === undefined ? {} : { body: JSON.stringify(body) }
    return await transport.request({ method, path, ...text }, signal).then(
      (answer) => ({ code: 200, answer }),
      (error: { code: number; message: string }) => ({ code: error.code, answer: error.message }),
    )
  }
  return {
    client,
    ask,
    token: (options: Partial<TokenOptions> = {}, at = now) =>
      createBootstrapToken(client, { hours: 1, uses: 1, ...options }, at),
    /** Asks for a certificate of this node; answers who it makes us, or the refusal. */
    async join(who: Partial<HttpConfig>, node: string, key: string) {
      const spec = { node, request: await createRequest(`system:node:${node}`, key) }
      const { code, answer } = await ask(who, 'POST', '/apis/hawser.dev/v1/nodecertificates', { spec })
      if (code !== 200) return { code, text: String(answer), who: {} }
      const { certificate } = (answer as { status: { certificate: string } }).status
      return { code, text: '', who: { cert: certificate, key } }
    },
    async whoami(who: Partial<HttpConfig>) {
      const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
      const { code, answer } = await ask(who, 'POST', path, {})
      return code === 200 ? (answer as { status: { userInfo: { username: string } } }).status.userInfo.username : code
    },
    [Symbol.asyncDispose]: () => server.close(),
  }
}

test('a bootstrap token gets the certificate of a node, and nothing else', async () => {
  await using server = await start()
  const token = await server.token()
  assert.equal(await server.whoami({ token }), `system:bootstrap:${token.slice(0, 6)}`)
  for (const path of ['/api/v1/nodes', '/api/v1/secrets', '/api/v1/namespaces/kube-system/configmaps'])
    assert.equal((await server.ask({ token }, 'GET', path)).code, 403, path)
  const { who } = await server.join({ token }, 'w1', await createKey())
  assert.equal(await server.whoami(who), 'system:node:w1')
  assert.equal((await server.ask(who, 'GET', '/api/v1/nodes/w1')).code, 404)
  assert.equal((await server.ask(who, 'GET', '/api/v1/nodes/w2')).code, 403)
  assert.equal((await server.ask(who, 'GET', '/api/v1/namespaces/kube-system/secrets')).code, 403)
  const { items } = await server.client.list('Secret', { namespace: 'kube-system' })
  assert.ok(!JSON.stringify(items).includes(Buffer.from(token).toString('base64').slice(0, 20)), 'only a hash is kept')
})

test('a token is good for as many machines as it says; one whose answer was lost asks again', async () => {
  await using server = await start()
  const token = await server.token({ uses: 2 })
  const [first, second, third] = [await createKey(), await createKey(), await createKey()]
  assert.equal((await server.join({ token }, 'w1', first)).code, 200)
  assert.equal((await server.join({ token }, 'w1', first)).code, 200)
  assert.equal((await server.join({ token }, 'w2', second)).code, 200)
  const refused = await server.join({ token }, 'w3', third)
  assert.equal(refused.code, 403)
  assert.match(refused.text, /this token is used up; "hawser token join-command" on the server makes a new one/)
  assert.equal((await server.join({ token }, 'w2', second)).code, 200)
})

test('of many machines that use a token at once, one is let in', async () => {
  await using server = await start()
  const token = await server.token()
  const keys = await Promise.all(Array.from({ length: 8 }, () => createKey()))
  const codes = await Promise.all(keys.map(async (key, at) => (await server.join({ token }, `w${at}`, key)).code))
  assert.deepEqual(codes.toSorted(), [200, ...Array.from({ length: 7 }, () => 403)])
})

test('a name that is taken needs a token for that name, which shuts the older machine out', async () => {
  await using server = await start()
  await server.client.create('Node', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } })
  const token = await server.token({ uses: 9 })
  const { who: old } = await server.join({ token }, 'w1', await createKey())
  for (const node of ['n1', 'w1']) {
    const refused = await server.join({ token }, node, await createKey())
    assert.equal(refused.code, 403)
    assert.match(refused.text, new RegExp(`node ${node} exists already; .* hawser token join-command --node ${node}`))
  }
  const bound = await server.token({ node: 'w1' })
  assert.match((await server.join({ token: bound }, 'w2', await createKey())).text, /for node w1, not for w2/)
  const { who } = await server.join({ token: bound }, 'w1', await createKey())
  assert.deepEqual([await server.whoami(who), await server.whoami(old)], ['system:node:w1', 401])
})

test('a token that is over, wrong or removed is nobody', async () => {
  await using server = await start()
  const over = await server.token({}, now - 2 * 3600_000)
  const removed = await server.token()
  await server.client.remove('Secret', { namespace: 'kube-system', name: `bootstrap-token-${removed.slice(0, 6)}` })
  const good = await server.token()
  for (const token of [over, removed, `${good.slice(0, -1)}_`, `${good.slice(0, 7)}${'a'.repeat(16)}`, 'abcdef.'])
    assert.equal((await server.join({ token }, 'w1', await createKey())).code, 401)
})

test('a node renews its own certificate; both are good until it is removed', async () => {
  await using server = await start()
  const { who } = await server.join({ token: await server.token() }, 'w1', await createKey())
  const { who: renewed } = await server.join(who, 'w1', await createKey())
  assert.deepEqual([await server.whoami(who), await server.whoami(renewed)], ['system:node:w1', 'system:node:w1'])
  assert.equal((await server.join(renewed, 'w2', await createKey())).code, 403)
  await server.client.remove('Secret', { namespace: 'kube-system', name: 'node-certificates-w1' })
  assert.deepEqual([await server.whoami(who), await server.whoami(renewed)], [401, 401])
  assert.equal((await server.join(renewed, 'w1', await createKey())).code, 401)
})

test('a certificate of a node that was not issued here is nobody, whoever signed it', async () => {
  await using server = await start()
  const user = { name: 'system:node:w1', groups: ['system:nodes'] }
  const { certificate: cert, key } = await createClientCertificate(authority, user, now)
  assert.equal(await server.whoami({ cert, key }), 401)
})

test('what is no request of its own key, or no name, is refused', async () => {
  await using server = await start()
  const token = await server.token()
  const request = await createRequest('x', await createKey())
  const damaged = withOneBitChanged(request)
  const specs = [
    {},
    { node: 'w1' },
    { node: 'w1', request: 'x' },
    { node: 'w1', request: damaged },
    { node: 'A_', request },
  ]
  for (const spec of [...specs, { node: 'x'.repeat(250), request }])
    assert.equal((await server.ask({ token }, 'POST', '/apis/hawser.dev/v1/nodecertificates', { spec })).code, 400)
  assert.equal((await server.join({ token }, 'w1', await createKey())).code, 200, 'none of them used the token')
})

/** The last bit belongs to the signature, so the request no longer proves that its sender has the key. */
function withOneBitChanged(pem: string): string {
  const [begin = '', ...rest] = pem.trim().split('\n')
  const bytes = Buffer.from(rest.slice(0, -1).join(''), 'base64')
  bytes[bytes.length - 1]! ^= 1
  return [begin, ...bytes.toString('base64').match(/.{1,64}/g)!, rest.at(-1)!].join('\n')
}
