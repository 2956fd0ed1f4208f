// Do upgrades work on real sockets, with a client that is not ours? Node's own WebSocket looks into a pod; whoever asks to upgrade
// something else gets the plain answer; and a server that stops lets nobody hang.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import test from 'node:test'
import { startApiServer } from '../../src/apiserver/http/listen.ts'
import type { NodeClient } from '../../src/apiserver/request/pass-through.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createMemoryStore } from '../../src/store/memory-store.ts'
import { exitFromStatus } from '../../src/streams/remote-command.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { admin } from '../kit/api-server.ts'
import { modelNode } from '../kit/node-server.ts'

const authorization = 'Bearer secret-token'

async function open(nodeClient?: NodeClient) {
  const clock = createSystemClock()
  const store = createMemoryStore({})
  const model = await modelNode(clock)
  const server = await startApiServer({
    store,
    clock,
    random: createRandom(randomBytes(16)),
    log: silentLog,
    tokens: [{ token: 'secret-token', user: admin }],
    signingKey: randomBytes(32),
    listen: { host: '127.0.0.1', port: 0 },
    nodeClient: nodeClient ?? ((_node, request) => model.nodeServer(request)),
  })
  const containers = [{ name: 'c', image: 'x' }]
  const metadata = { name: 'p', namespace: 'default' }
  await model.put(await server.api().create('Pod', { metadata, spec: { nodeName: 'n1', containers } }))
  return {
    port: server.port,
    path: '/api/v1/namespaces/default/pods/p',
    close: () => server.close(),
    async [Symbol.asyncDispose]() {
      await server.close()
      await store[Symbol.asyncDispose]()
    },
  }
}

function openSocket(port: number, path: string, protocol: string): WebSocket {
  // Headers are an addition of Node's; browsers have none.
  const options = { protocols: [protocol], headers: { authorization } } as unknown as string[]
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, options)
  socket.binaryType = 'arraybuffer'
  return socket
}

test("Node's own WebSocket runs a command and learns how it ended", async () => {
  await using server = await open()
  const path = `${server.path}/exec?command=cat&command=6&stdin=true&stdout=true`
  const socket = openSocket(server.port, path, 'v5.channel.k8s.io')
  const said: Record<number, string> = {}
  socket.addEventListener('message', ({ data }) => {
    const bytes = Buffer.from(data as ArrayBuffer)
    said[bytes[0]!] = (said[bytes[0]!] ?? '') + bytes.subarray(1).toString()
  })
  await once(socket, 'open')
  assert.equal(socket.protocol, 'v5.channel.k8s.io')
  const long = 'x'.repeat(200_000)
  socket.send(Buffer.concat([Uint8Array.of(0), Buffer.from(long)]))
  socket.send(Uint8Array.of(255, 0))
  await once(socket, 'close')
  assert.equal(said[1], long)
  assert.deepEqual(exitFromStatus(said[3]!), { code: 6 })
})

test("Node's own WebSocket reaches a port", async () => {
  await using server = await open()
  const socket = openSocket(server.port, `${server.path}/portforward?ports=80`, 'v4.channel.k8s.io')
  let data = Buffer.alloc(0)
  const heard = Promise.withResolvers<void>()
  socket.addEventListener('message', (event) => {
    const bytes = Buffer.from(event.data as ArrayBuffer)
    if (bytes[0] === 0) data = Buffer.concat([data, bytes.subarray(1)])
    if (data.length === 2 + 5) heard.resolve()
  })
  await once(socket, 'open')
  socket.send(Buffer.concat([Uint8Array.of(0), Buffer.from('hello')]))
  await heard.promise
  assert.deepEqual([data.readUInt16LE(0), data.subarray(2).toString()], [80, 'hello'])
  socket.close()
  await once(socket, 'close')
})

/** What is answered to a request, byte by byte. */
async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(text)
  let answer = ''
  for await (const piece of socket) answer += String(piece)
  return answer
}

test('whoever asks to upgrade something else gets the plain answer', async () => {
  await using server = await open()
  const head = (path: string, more = '') =>
    `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\nconnection: Upgrade\r\nupgrade: h2c\r\n${more}\r\n`
  const version = await raw(server.port, head('/version'))
  assert.match(version, /^HTTP\/1\.1 200 OK\r\n[^]*"gitVersion"/)
  assert.match(
    await raw(server.port, head(`${server.path}/exec?command=x&stdout=1`)),
    /^HTTP\/1\.1 400 [^]*Upgrade request required/,
  )
  assert.match(await raw(server.port, head('/version').replace('secret-token', 'x')), /^HTTP\/1\.1 200/)
  assert.match(await raw(server.port, head('/api/v1/nodes').replace('secret-token', 'x')), /^HTTP\/1\.1 401/)
})

test('a client that breaks off while the node is asked begins nothing and harms nobody', async () => {
  const asked = Promise.withResolvers<void>()
  const left = Promise.withResolvers<void>()
  let begun = 0
  await using server = await open(async (_node, { signal }) => {
    asked.resolve()
    await once(signal, 'abort')
    left.resolve()
    return { status: 101, headers: {}, body: new Uint8Array(), upgrade: async () => void begun++ }
  })
  const socket = connect(server.port, '127.0.0.1')
  const path = `${server.path}/exec?command=x&stdout=1`
  socket.write(
    `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n`,
  )
  await asked.promise
  socket.resetAndDestroy()
  await left.promise
  assert.match(
    await raw(server.port, 'GET /version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'),
    /^HTTP\/1\.1 200/,
  )
  assert.equal(begun, 0)
})

test('a server that stops ends the streams that go through it', async () => {
  await using server = await open()
  const socket = openSocket(server.port, `${server.path}/exec?command=cat&stdin=true&stdout=true`, 'v5.channel.k8s.io')
  socket.addEventListener('error', () => {})
  await once(socket, 'open')
  const closed = once(socket, 'close')
  await server.close()
  await closed
})
