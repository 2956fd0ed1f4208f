// What do clients cost that only hold or spoil connections? Those that never send a request are closed, those that reset streams by the
// thousand are cut off, and one address leaves room for the others.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectHttp2, constants } from 'node:http2'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import test from 'node:test'
import { connect as connectTls } from 'node:tls'
import { createAuthority, createServerCertificate } from '../../src/apiserver/access/certificates.ts'
import { startApiServer } from '../../src/apiserver/http/listen.ts'
import type { ServerLimits } from '../../src/apiserver/http/server.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createMemoryStore } from '../../src/store/memory-store.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { admin } from '../kit/api-server.ts'

const authority = await createAuthority()
const shown = await createServerCertificate(authority, { names: ['127.0.0.1'] }, Date.now())

async function start(limits: Partial<ServerLimits>) {
  const store = createMemoryStore()
  const server = await startApiServer({
    store,
    clock: createSystemClock(),
    random: createRandom(1),
    log: silentLog,
    tokens: [{ token: 'ann', user: admin }],
    signingKey: Buffer.alloc(32),
    listen: { host: '127.0.0.1', port: 0, limits },
    tls: { ...shown, authority: authority.certificate },
  })
  const sockets: Socket[] = []
  const keep = <S extends Socket>(socket: S): S => {
    sockets.push(socket)
    socket.on('error', () => {})
    return socket
  }
  return {
    ...server,
    plain: () => keep(connect(server.port, '127.0.0.1')),
    tls: (protocol: string, text = '', localAddress = '127.0.0.1') => {
      const at = { port: server.port, host: '127.0.0.1', localAddress }
      const socket = keep(connectTls({ ...at, rejectUnauthorized: false, ALPNProtocols: [protocol] }))
      if (text !== '') socket.write(text)
      return socket
    },
    http2: () => connectHttp2(`https://127.0.0.1:${server.port}`, { ca: authority.certificate }),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await server.close()
      await store[Symbol.asyncDispose]()
    },
  }
}

/** The status of the answer to a GET on this connection. */
async function ask(socket: Socket, path: string, more = ''): Promise<number> {
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ann\r\n${more}\r\n`)
  const [bytes] = (await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => [''])])) as [Buffer | '']
  return Number(/^HTTP\/1.1 (\d+)/.exec(String(bytes))?.[1] ?? 0)
}

/** Also after an error. */
const closeOf = (socket: Socket): Promise<void> => new Promise((resolve) => socket.once('close', () => resolve()))

const http2Start = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u0004\0\0\0\0\0'
/** HEADERS of stream 1 without END_HEADERS: the rest never comes. */
const halfHeaders = '\0\0\u0001\u0001\u0001\0\0\0\u0001\u0082'

test('a connection that sends no whole request is closed, whatever it speaks', { timeout: 20_000 }, async () => {
  await using server = await start({ headersMs: 500 })
  const silent = {
    'no handshake': server.plain(),
    'a handshake and no word': server.tls('http/1.1'),
    'half a head': server.tls('http/1.1', 'GET /healthz HTTP/1.1\r\nhost: x\r\n'),
    'HTTP/2 and no word': server.tls('h2'),
    'HTTP/2 and no request': server.tls('h2', http2Start),
    'HTTP/2 and half a head': server.tls('h2', http2Start + halfHeaders),
  }
  const busy = server.tls('http/1.1')
  assert.equal(await ask(busy, '/api/v1/namespaces?watch=1'), 200)
  const session = server.http2()
  const watch = session.request({ ':path': '/api/v1/namespaces?watch=1', authorization: 'Bearer ann' })
  await once(watch, 'response')
  const closed = Object.entries(silent).map(async ([name, socket]) => {
    socket.resume()
    await closeOf(socket)
    return name
  })
  assert.deepEqual(await Promise.all(closed), Object.keys(silent))
  assert.ok(!busy.destroyed && !session.destroyed, 'those with a request stay')
  session.destroy()
})

test('one address leaves room for others', { timeout: 20_000 }, async () => {
  await using server = await start({ connections: 12, connectionsPerAddress: 4 })
  const first = Array.from({ length: 4 }, () => server.tls('http/1.1'))
  for (const socket of first) assert.equal(await ask(socket, '/api/v1/namespaces?watch=1'), 200)
  assert.equal(await ask(server.tls('http/1.1'), '/healthz'), 503, 'its fifth')
  const upgrade = 'connection: Upgrade\r\nupgrade: websocket\r\n'
  assert.equal(
    await ask(server.tls('http/1.1'), '/api/v1/namespaces/default/pods/p/exec', upgrade),
    503,
    'nor by upgrades',
  )
  const more = Array.from({ length: 30 }, () => server.tls('http/1.1'))
  await Promise.race(more.map(closeOf))
  assert.equal(await ask(server.tls('http/1.1', '', '127.0.0.2'), '/healthz'), 200, 'another address')
  assert.ok(first.every((socket) => !socket.destroyed))
})

test(
  'a client that resets streams by the thousand is cut off, and others are answered',
  { timeout: 60_000 },
  async () => {
    await using server = await start({})
    const session = server.http2()
    let ended = false
    session.on('error', () => {})
    session.on('close', () => (ended = true))
    session.on('goaway', () => (ended = true))
    await once(session, 'connect')
    let sent = 0
    for (; sent < 20_000 && !ended; sent++) {
      const stream = session.request({ ':path': '/api/v1/namespaces', authorization: 'Bearer ann' })
      stream.on('error', () => {})
      stream.close(constants.NGHTTP2_CANCEL)
      if (sent % 100 === 99) await new Promise((resolve) => setImmediate(resolve))
    }
    assert.equal(await ask(server.tls('http/1.1'), '/healthz'), 200)
    assert.ok(ended, `${sent} streams were opened and reset`)
    session.destroy()
  },
)
