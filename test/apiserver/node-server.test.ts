// Who may call a node's server? Real TLS on the loopback: strangers, foreign certificates, tokens with too few rights, and another
// process that listens in the node's place.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request as httpsRequest } from 'node:https'
import type { RequestOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import test from 'node:test'
import { connect as connectTls } from 'node:tls'
import {
  createAuthority,
  createClientCertificate,
  createServerCertificate,
} from '../../src/apiserver/access/certificates.ts'
import type { KeyPair } from '../../src/apiserver/access/certificates.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createNodeClient } from '../../src/apiserver/request/node-client.ts'
import type { Access, Verdict } from '../../src/node/server/access.ts'
import { createAccess } from '../../src/node/server/access.ts'
import type { ListenerDeps } from '../../src/node/server/listener.ts'
import { listenForNode } from '../../src/node/server/listener.ts'
import { createStreamPair, readAll } from '../../src/streams/byte-stream.ts'
import type { NodeServer } from '../../src/streams/node-server.ts'
import { openSpdySession } from '../../src/streams/spdy-session.ts'
import type { AuditRecord } from '../../src/telemetry/audit.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { breakableLine } from '../kit/breakable-connection.ts'
import { modelNode } from '../kit/node-server.ts'

const clock = createSystemClock()
const now = clock.now()
const authority = await createAuthority()
const serving = await createServerCertificate(await createAuthority(), { names: ['127.0.0.1'] }, now)
const admin = await createClientCertificate(authority, { name: 'admin', groups: ['system:masters'] }, now)
const aPod = {
  metadata: { name: 'p', namespace: 'default', uid: '11111111-2222-3333-4444-555555555555' },
  spec: { containers: [{ name: 'c', image: 'x' }] },
}
const anyone = { method: 'GET', signal: new AbortController().signal, headers: {} } as const

const written = { clock, node: 'n1', audit: { refusal: () => undefined, write: async () => {} } }
const allowed: Access = async () => ({ kind: 'allowed', user: 'admin' })

/** What the API server would say: tokens are names, and only a reader may read. */
async function review(path: string, body: object): Promise<unknown> {
  const { spec } = body as { spec: { token?: string; user?: string; resourceAttributes?: Record<string, string> } }
  if (path.endsWith('tokenreviews')) {
    const known = ['rita', 'root'].includes(spec.token ?? '')
    const groups = spec.token === 'root' ? ['system:masters'] : []
    return { status: { authenticated: known, user: { username: spec.token, groups } } }
  }
  return { status: { allowed: spec.user === 'rita' && spec.resourceAttributes?.['verb'] === 'get' } }
}

async function open(more: Partial<ListenerDeps> = {}) {
  const model = await modelNode(clock)
  await model.put(aPod)
  const access = createAccess({ clock, node: 'n1', review })
  const listener = await listenForNode(
    { nodeServer: model.nodeServer, access, log: silentLog, ...written, ...more },
    listening,
  )
  const get = (path: string, more: RequestOptions = {}) =>
    new Promise<string>((resolve, reject) => {
      const url = `https://127.0.0.1:${listener.port}${path}`
      const sent = httpsRequest(url, { agent: false, rejectUnauthorized: false, ...more }, (answer) => {
        readAll(answer, 100_000).then((body) => resolve(`${answer.statusCode} ${body.toString().slice(0, 40)}`), reject)
      })
      sent.on('error', reject)
      sent.end()
    })
  return { listener, get, [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose]() }
}

const withToken = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
const withPair = ({ certificate, key }: KeyPair) => ({ cert: certificate, key })

test('nobody is let in without a name, not even to be told that all is well', async () => {
  await using node = await open()
  for (const path of ['/healthz', '/metrics', '/pods', '/stats/summary', '/containerLogs/default/p/c', '/nothing']) {
    assert.equal(await node.get(path), '401 Unauthorized', path)
  }
  const stranger = await createClientCertificate(
    await createAuthority(),
    { name: 'admin', groups: ['system:masters'] },
    now,
  )
  assert.equal(await node.get('/healthz', withPair(stranger)), '401 Unauthorized')
  assert.equal(await node.get('/healthz', withToken('guess')), '401 Unauthorized')
  // A bad token is not made good by a good certificate.
  assert.equal(await node.get('/healthz', { ...withPair(admin), ...withToken('guess') }), '401 Unauthorized')
})

test('who it is decides what it may', async () => {
  await using node = await open()
  assert.equal(await node.get('/healthz', withPair(admin)), '200 ok')
  assert.equal(await node.get('/healthz', withToken('root')), '200 ok')
  assert.equal(await node.get('/healthz', withToken('rita')), '200 ok')
  assert.match(await node.get('/containerLogs/default/p/c', withToken('rita')), /^200 one/)
  assert.equal(await node.get('/healthz', { ...withToken('rita'), method: 'POST' }), '403 Forbidden')
  const asRita = { headers: { ...upgrade, ...withToken('rita').headers } }
  for (const path of [
    '/exec/default/p/c?command=cat&output=1',
    '/attach/default/p/c?output=1',
    '/portForward/default/p',
  ]) {
    assert.equal(await node.get(path, asRita), '403 Forbidden')
    assert.match(await node.get(path, withPair(admin)), /^400 Upgrade request required/)
  }
  const nobody = await createClientCertificate(authority, { name: 'bob', groups: ['x'] }, now)
  assert.equal(await node.get('/metrics', withPair(nobody)), '403 Forbidden')
})

const clientOf = (port: number, fingerprint: string) =>
  createNodeClient({
    local: new Map(),
    identity: () => admin,
    node: async (name) => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name,
        annotations: {
          'hawser.dev/node-server': `127.0.0.1:${port}`,
          'hawser.dev/node-server-certificate': fingerprint,
        },
      },
    }),
  })
const { fingerprint256 } = new X509Certificate(serving.certificate)
const listening = { host: '127.0.0.1', port: 0, ...serving, authority: authority.certificate }
const upgrade = { connection: 'Upgrade', upgrade: 'SPDY/3.1', 'x-stream-protocol-version': 'v4.channel.k8s.io' }
const switched = { status: 101, headers: upgrade, body: new Uint8Array() }

test('the API server reaches the node by the certificate its Node object tells', async () => {
  await using node = await open()
  const nodeClient = clientOf(node.listener.port, fingerprint256)
  const health = await nodeClient('n1', { ...anyone, path: '/healthz' })
  assert.equal(health.status, 200)
  assert.equal((await readAll(health.body as AsyncIterable<Uint8Array>, 100)).toString(), 'ok')
})

test('a caller that breaks off before it is known begins nothing and harms nobody', async () => {
  const asked = Promise.withResolvers<void>()
  const known = Promise.withResolvers<Verdict>()
  const failed = Promise.withResolvers<void>()
  let begun = 0
  const nodeServer: NodeServer = async () => ({ ...switched, upgrade: async () => void begun++ })
  const access = () => {
    asked.resolve()
    return known.promise
  }
  const log = { ...silentLog, debug: () => failed.resolve() }
  await using listener = await listenForNode({ nodeServer, access, log, ...written }, listening)
  await using line = await breakableLine(listener.port)
  const socket = connectTls({ port: line.port, host: '127.0.0.1', rejectUnauthorized: false })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  socket.write('GET /exec/x HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n')
  await asked.promise
  line.break()
  // An error of the socket that nobody hears would end this process now.
  await clock.sleep(50, anyone.signal)
  known.resolve({ kind: 'allowed', user: 'admin' })
  await failed.promise
  assert.equal(begun, 0)
  const { status } = await clientOf(listener.port, fingerprint256)('n1', {
    ...anyone,
    path: '/exec/x',
    headers: upgrade,
  })
  assert.equal(status, 101)
})

test('whoever leaves before it takes a stream over leaves none behind', { timeout: 10_000 }, async () => {
  const closed = Promise.withResolvers<string>()
  const nodeServer: NodeServer = async () => ({
    ...switched,
    upgrade: async ({ input }) => closed.resolve(await readAll(input, 100).then(String, () => '')),
  })
  await using listener = await listenForNode({ nodeServer, access: allowed, log: silentLog, ...written }, listening)
  const stop = new AbortController()
  const asked = { ...anyone, signal: stop.signal, headers: upgrade, path: '/exec/x' }
  const answer = await clientOf(listener.port, fingerprint256)('n1', asked)
  assert.equal(answer.status, 101)
  stop.abort()
  assert.equal(await closed.promise, '')
})

test('a client that speaks after the last word of a node loses nothing of it', async () => {
  const heard = Promise.withResolvers<string>()
  const nodeServer: NodeServer = async () => ({
    ...switched,
    async upgrade({ input, write, end }) {
      await write(Buffer.from('last words'))
      await end()
      heard.resolve(String(await readAll(input, 100)))
    },
  })
  await using listener = await listenForNode({ nodeServer, access: allowed, log: silentLog, ...written }, listening)
  const asked = { ...anyone, headers: upgrade, path: '/exec/x' }
  const answer = await clientOf(listener.port, fingerprint256)('n1', asked)
  const [ours, theirs] = createStreamPair()
  const served = answer.upgrade!(theirs)
  await clock.sleep(100, anyone.signal) // it is slow to read
  await ours.write(Buffer.from('still here'))
  await clock.sleep(100, anyone.signal)
  assert.equal(String(await readAll(ours.input, 100)), 'last words')
  await ours.end()
  assert.equal(await heard.promise, 'still here')
  await served
})

test('a stream through two connections arrives whole', async () => {
  await using node = await open()
  const nodeClient = clientOf(node.listener.port, fingerprint256)
  const path = '/exec/default/p/c?command=cat&command=5&input=1&output=1'
  const answer = await nodeClient('n1', { ...anyone, method: 'POST', headers: upgrade, path })
  assert.equal(answer.status, 101)
  const [ours, theirs] = createStreamPair()
  const served = answer.upgrade!(theirs)
  const client = openSpdySession(ours, { role: 'client', clock, maxStreams: 5, onStream: () => assert.fail() })
  const error = await client.open({ streamtype: 'error' })
  const stdin = await client.open({ streamtype: 'stdin' })
  const stdout = await client.open({ streamtype: 'stdout' })
  const piece = Buffer.alloc(60_000, 'z')
  const sending = (async () => {
    for (let count = 0; count < 50; count++) await stdin.write(piece)
    await stdin.end()
  })()
  const said = await readAll(stdout.input, 10_000_000)
  await sending
  assert.equal(said.length, 50 * piece.length)
  assert.match((await readAll(error.input, 1_000)).toString(), /"NonZeroExitCode".*"5"/)
  await client.close()
  await served
})

test('whoever listens in the place of the node hears nothing of what was asked', async () => {
  const impostor = await createServerCertificate(await createAuthority(), { names: ['127.0.0.1'] }, now)
  let heard = 0
  const server = createServer({ cert: impostor.certificate, key: impostor.key }, (_, answer) => {
    heard++
    answer.end('ok')
  })
  server.on('secureConnection', (socket) => socket.on('data', () => heard++))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const nodeClient = clientOf(port, fingerprint256)
  await assert.rejects(nodeClient('n1', { ...anyone, path: '/exec/default/p/c?command=secret' }), /is not the node/)
  await clock.sleep(100, anyone.signal)
  assert.equal(heard, 0)
  server.close()
})

test('a node that told nothing, or does not answer, is said to be so', async () => {
  const silent = createNodeClient({
    local: new Map(),
    identity: () => admin,
    node: async (name) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } }),
  })
  await assert.rejects(silent('n1', { ...anyone, path: '/healthz' }), /node n1 has no agent address/)
  const nobody = await open()
  const { port } = nobody.listener
  await nobody[Symbol.asyncDispose]()
  await assert.rejects(clientOf(port, fingerprint256)('n1', { ...anyone, path: '/healthz' }), /ECONNREFUSED/)
})

test('exec, attach, port-forward and refusals straight at the node leave a line there (A12)', async () => {
  const lines: AuditRecord[] = []
  const audit = { refusal: () => undefined, write: async (record: AuditRecord) => void lines.push(record) }
  await using node = await open({ audit })
  const secret = '?command=mysql&command=--password%3Dhunter2&output=1'
  await node.get(`/exec/default/p/c${secret}`, withPair(admin))
  await node.get(`/%65xec/default/p/c${secret}`, withPair(admin))
  await node.get('/attach/default/p/c', withToken('root'))
  await node.get('/portForward/default/p', withToken('rita'))
  await node.get('/pods', withToken('nobody'))
  await node.get('/pods', withToken('rita'))
  const line = { source: '127.0.0.1', node: 'n1', verb: 'get', resource: 'pods', namespace: 'default', name: 'p' }
  assert.deepEqual(
    lines.map(({ ms: _, ...rest }) => rest),
    [
      { ...line, user: 'admin', subresource: 'exec', code: 400 },
      { ...line, user: 'admin', subresource: 'exec', code: 400 },
      { ...line, user: 'root', subresource: 'attach', code: 400 },
      { ...line, user: 'rita', subresource: 'portforward', code: 403 },
      {
        source: '127.0.0.1',
        node: 'n1',
        verb: 'get',
        user: 'system:anonymous',
        resource: 'nodes',
        name: 'n1',
        path: '/pods',
        code: 401,
      },
    ],
  )
  assert.doesNotMatch(JSON.stringify(lines), /hunter2/)
})

test('a node whose audit log cannot be written lets nobody into a pod', async () => {
  const audit = {
    refusal: () => 'the audit log /x cannot be written: full',
    write: () => Promise.reject(new Error('full')),
  }
  await using node = await open({ audit })
  assert.match(await node.get('/exec/default/p/c?command=id&output=1', withPair(admin)), /^503 the audit log/)
  assert.match(await node.get('/healthz', withPair(admin)), /^200 ok/)
})
