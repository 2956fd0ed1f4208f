// Does the server behave on real sockets? TLS with tokens and certificates, HTTP/1.1 and HTTP/2, gzip, limits,
// watchers that stop reading, and a clean end.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import http2 from 'node:http2'
import https from 'node:https'
import type { IncomingMessage } from 'node:http'
import test from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gunzipSync } from 'node:zlib'
import type { Audit, AuditRecord } from '../../src/telemetry/audit.ts'
import {
  createAuthority,
  createClientCertificate,
  createServerCertificate,
} from '../../src/apiserver/access/certificates.ts'
import type { KeyPair } from '../../src/apiserver/access/certificates.ts'
import { startApiServer } from '../../src/apiserver/http/listen.ts'
import type { StartedApiServer } from '../../src/apiserver/http/listen.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import type { HistoryLimits } from '../../src/store/compaction.ts'
import { createMemoryStore } from '../../src/store/memory-store.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { admin, paths } from '../kit/api-server.ts'

interface Running extends AsyncDisposable {
  readonly server: StartedApiServer
  readonly authority: KeyPair
  request(path: string, options?: https.RequestOptions, body?: string | Buffer): Promise<Reply>
}

interface Reply {
  readonly code: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

async function start(
  history?: HistoryLimits,
  audit: Audit = { refusal: () => undefined, write: async () => {} },
): Promise<Running> {
  const now = Date.now()
  const authority = await createAuthority()
  const certificate = await createServerCertificate(authority, { names: ['localhost', '127.0.0.1'] }, now)
  const store = createMemoryStore(history ? { history } : {})
  const server = await startApiServer({
    store,
    clock: createSystemClock(),
    random: createRandom(randomBytes(16)),
    log: silentLog,
    audit,
    tokens: [{ token: 'secret-token', user: admin }],
    signingKey: randomBytes(32),
    listen: { host: '127.0.0.1', port: 0 },
    tls: { certificate: certificate.certificate, key: certificate.key, authority: authority.certificate },
  })
  return {
    server,
    authority,
    request: (path, options = {}, body) =>
      new Promise((resolve, reject) => {
        const headers = { authorization: 'Bearer secret-token', ...options.headers }
        const request = https.request(
          `${server.url}${path}`,
          { ca: authority.certificate, agent: false, ...options, headers },
          (response) => {
            const chunks: Buffer[] = []
            response.on('data', (chunk: Buffer) => chunks.push(chunk))
            response.on('error', reject)
            response.on('end', () =>
              resolve({ code: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
            )
          },
        )
        request.on('error', reject)
        request.end(body)
      }),
    async [Symbol.asyncDispose]() {
      await server.close()
      await store[Symbol.asyncDispose]()
    },
  }
}

test('a token, a certificate and neither', async () => {
  await using running = await start()
  const { request, authority } = running
  assert.equal((await request('/api/v1/nodes')).code, 200)
  assert.equal((await request('/api/v1/nodes', { headers: { authorization: 'Bearer wrong' } })).code, 401)
  const client = await createClientCertificate(
    authority,
    { name: 'rita', groups: ['hawser:read-only', 'x'] },
    Date.now(),
  )
  const withCertificate = { headers: {}, cert: client.certificate, key: client.key }
  assert.equal((await bare(running, '/api/v1/nodes', {})).code, 401)
  const who = await bare(
    running,
    '/apis/authentication.k8s.io/v1/selfsubjectreviews',
    { ...withCertificate, method: 'POST' },
    '{}',
  )
  assert.deepEqual(JSON.parse(who.body.toString()).status.userInfo, {
    username: 'rita',
    groups: ['hawser:read-only', 'x', 'system:authenticated'],
  })
  const foreign = await createClientCertificate(await createAuthority(), { name: 'rita', groups: [] }, Date.now())
  assert.equal((await bare(running, '/api/v1/nodes', { cert: foreign.certificate, key: foreign.key })).code, 401)
  assert.equal((await bare(running, '/healthz', {})).code, 200)
})

/** Without the token that `request` adds. */
function bare(running: Running, path: string, options: https.RequestOptions, body?: string): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = https.request(
      `${running.server.url}${path}`,
      { ca: running.authority.certificate, agent: false, ...options },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve({ code: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
        )
      },
    )
    request.on('error', reject)
    request.end(body)
  })
}

test('a connection that rests is kept longer than a client pauses, so that its next request is not cut off', async () => {
  await using running = await start()
  const agent = new https.Agent({ keepAlive: true, ca: running.authority.certificate })
  const { headers } = await running.request('/version', { agent })
  agent.destroy()
  assert.equal(headers['keep-alive'], 'timeout=75')
})

test('large answers are compressed for those who ask, large bodies are refused', async () => {
  await using running = await start()
  const { request, server } = running
  const api = server.api()
  const data = { text: 'lorem ipsum '.repeat(3_000) }
  for (let index = 0; index < 8; index++) {
    await api.create('ConfigMap', { metadata: { name: `m${index}`, namespace: 'default' }, data })
  }
  const zipped = await request(paths.configMaps, { headers: { 'accept-encoding': 'gzip' } })
  assert.equal(zipped.headers['content-encoding'], 'gzip')
  assert.equal(JSON.parse(gunzipSync(zipped.body).toString()).items.length, 8)
  assert.equal((await request(paths.configMaps)).headers['content-encoding'], undefined)
  const huge = await request(paths.configMaps, { method: 'POST' }, Buffer.alloc(4 * 1024 * 1024, 32))
  assert.equal(huge.code, 413)
  assert.equal((await request('/healthz')).code, 200)
})

test('HTTP/2: many watches share a connection and hear of a change', async () => {
  await using running = await start()
  const session = http2.connect(running.server.url, { ca: running.authority.certificate })
  try {
    const heard: Promise<string>[] = []
    const opened: Promise<unknown>[] = []
    for (let index = 0; index < 20; index++) {
      const stream = session.request({
        ':path': `${paths.configMaps}?watch=1&resourceVersion=8`,
        authorization: 'Bearer secret-token',
      })
      stream.setEncoding('utf8')
      opened.push(new Promise((resolve) => stream.on('response', resolve)))
      heard.push(new Promise((resolve) => stream.once('data', resolve)))
    }
    await Promise.all(opened)
    await running.server.api().create('ConfigMap', { metadata: { name: 'a', namespace: 'default' } })
    for (const line of await Promise.all(heard)) assert.equal(JSON.parse(line).object.metadata.name, 'a')
  } finally {
    session.destroy()
  }
})

test('a watcher that stops reading costs no memory and is told when it comes back too late', async () => {
  await using running = await start({ changes: 200, bytes: 4_000_000 })
  const api = running.server.api()
  const stalled = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { authorization: 'Bearer secret-token' }
    const path = `${running.server.url}${paths.configMaps}?watch=1`
    https.get(path, { ca: running.authority.certificate, agent: false, headers }, resolve).on('error', reject)
  })
  stalled.pause()
  const before = process.memoryUsage().arrayBuffers
  const data = { text: 'x'.repeat(10_000) }
  const { metadata } = await api.create('ConfigMap', { metadata: { name: 'a', namespace: 'default' }, data })
  for (let round = 0; round < 3_000; round++) {
    await api.update('ConfigMap', {
      metadata: { name: 'a', namespace: 'default' },
      data: { ...data, round: String(round) },
    })
    if (round % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  // 30 MB went by; what is kept is the history (4 MB) and what the sockets hold.
  let kept = Infinity
  for (let tries = 0; tries < 40 && kept >= 12_000_000; tries++) {
    collectGarbage()
    kept = process.memoryUsage().arrayBuffers - before
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  assert.ok(kept < 12_000_000, `${kept} bytes are kept`)
  let text = ''
  stalled.setEncoding('utf8')
  stalled.on('data', (piece: string) => (text += piece))
  stalled.resume()
  await new Promise((resolve) => stalled.on('close', resolve))
  const last = JSON.parse(text.trimEnd().split('\n').at(-1) ?? '')
  assert.deepEqual([last.type, last.object.code], ['ERROR', 410])
  assert.ok(metadata.uid)
})

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
}

test('closing ends watches at once and frees the port', async () => {
  const running = await start()
  const watch = running.request(`${paths.configMaps}?watch=1`)
  await new Promise((resolve) => setTimeout(resolve, 100))
  const started = Date.now()
  await running[Symbol.asyncDispose]()
  assert.equal((await watch).code, 200)
  assert.ok(Date.now() - started < 1_500)
  await assert.rejects(running.request('/healthz'))
})

test('the audit line has the address of the peer, over HTTP/1.1 and HTTP/2, and groups that came in several headers', async () => {
  const lines: AuditRecord[] = []
  await using running = await start(undefined, {
    refusal: () => undefined,
    write: async (record) => void lines.push(record),
  })
  const headers = { 'impersonate-user': 'bob', 'impersonate-group': ['dev', 'ops'], 'x-forwarded-for': '192.0.2.1' }
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const first = await running.request(path, { method: 'POST', headers }, '{}')
  const groups = ['dev', 'ops', 'system:authenticated']
  assert.deepEqual(JSON.parse(first.body.toString()).status.userInfo, { username: 'bob', groups })
  const session = http2.connect(running.server.url, { ca: running.authority.certificate })
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    authorization: 'Bearer secret-token',
    ...headers,
  })
  stream.end('{}')
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  session.close()
  assert.deepEqual(JSON.parse(Buffer.concat(chunks).toString()).status.userInfo, { username: 'bob', groups })
  assert.deepEqual(
    lines.map(({ user, impersonatedUser, source, code }) => ({ user, impersonatedUser, source, code })),
    [1, 2].map(() => ({ user: 'admin', impersonatedUser: 'bob', source: '127.0.0.1', code: 201 })),
  )
})
