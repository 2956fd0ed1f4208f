// Does the server hold its limits on real sockets? Strangers' bodies are not kept (attack A13), bytes in flight and
// connections are bounded, and each refusal is a Status.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import test from 'node:test'
import { startApiServer } from '../../src/apiserver/http/listen.ts'
import type { StartedApiServer } from '../../src/apiserver/http/listen.ts'
import type { ServerLimits } from '../../src/apiserver/http/server.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createMemoryStore } from '../../src/store/memory-store.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { admin, paths } from '../kit/api-server.ts'

const megabyte = 1024 * 1024

async function start(limits: Partial<ServerLimits> = {}) {
  const store = createMemoryStore()
  const server = await startApiServer({
    store,
    clock: createSystemClock(),
    random: createRandom(Buffer.alloc(16)),
    log: silentLog,
    tokens: [
      { token: 'ann', user: admin },
      { token: 'bob', user: { ...admin, name: 'bob' } },
    ],
    signingKey: Buffer.alloc(32),
    listen: { host: '127.0.0.1', port: 0, limits },
  })
  const clients: Client[] = []
  return {
    open(): Client {
      const client = openClient(server)
      clients.push(client)
      return client
    },
    async [Symbol.asyncDispose]() {
      for (const { socket } of clients) socket.destroy()
      await server.close()
      await store[Symbol.asyncDispose]()
    },
  }
}

interface Client {
  readonly socket: Socket
  /** Sends the head of a POST of that length, and the beginning of its body. */
  post(token: string | undefined, length: number, body: Buffer): void
  get(path: string, token?: string): void
  /** The status of the next answer, and its reason if it is a Status. */
  answer(): Promise<string>
}

function openClient({ port }: StartedApiServer): Client {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  let text = ''
  let wake = (): void => {}
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString()
    wake()
  })
  return {
    socket,
    post(token, length, body) {
      const who = token === undefined ? '' : `authorization: Bearer ${token}\r\n`
      const type = 'content-type: application/json\r\n'
      socket.write(`POST ${paths.configMaps} HTTP/1.1\r\nhost: x\r\n${who}${type}content-length: ${length}\r\n\r\n`)
      socket.write(body)
    },
    get(path, token) {
      const who = token === undefined ? '' : `authorization: Bearer ${token}\r\n`
      socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n${who}\r\n`)
    },
    async answer() {
      while (!text.includes('\r\n\r\n') || !/\}\s*$|ok$/.test(text)) {
        await new Promise<void>((resolve) => (wake = resolve))
      }
      const code = text.slice(9, 12)
      const reason = /"reason":"(\w+)"/.exec(text)?.[1]
      text = ''
      return reason === undefined ? code : `${code} ${reason}`
    },
  }
}

test('a stranger is refused before its body has come', { timeout: 20_000 }, async () => {
  await using running = await start()
  const client = running.open()
  client.post(undefined, 3 * megabyte, Buffer.alloc(1024, 32))
  assert.equal(await client.answer(), '401 Unauthorized')
  // The rest is dropped, and the connection serves the next request.
  client.socket.write(Buffer.alloc(3 * megabyte - 1024, 32))
  client.get('/healthz')
  assert.equal(await client.answer(), '200')
})

test('200 strangers with 3 MB each cost no memory', { timeout: 60_000 }, async () => {
  await using running = await start()
  const body = Buffer.alloc(3 * megabyte - 1, 32)
  const before = process.memoryUsage().arrayBuffers
  const clients = Array.from({ length: 200 }, () => running.open())
  for (const client of clients) client.post(undefined, 3 * megabyte, body)
  const answers = await Promise.all(clients.map((client) => client.answer()))
  assert.deepEqual(new Set(answers), new Set(['401 Unauthorized']))
  await Promise.all(clients.map(({ socket }) => written(socket)))
  const grown = process.memoryUsage().arrayBuffers - before
  assert.ok(grown < 100 * megabyte, `${Math.round(grown / megabyte)} MB more after 600 MB were sent`)
})

/** When the system has taken everything. */
function written(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.write('', () => resolve()))
}

test('bytes in flight are bounded for a user and in total, and come free again', { timeout: 20_000 }, async () => {
  await using running = await start({ bytesPerUser: megabyte, bytes: 1.5 * megabyte })
  const body = Buffer.alloc(0.75 * megabyte, 32)
  const [first, second, other] = [running.open(), running.open(), running.open()]
  first.post('ann', body.length + 1, body)
  second.post('ann', body.length + 1, body)
  assert.equal(await Promise.race([first.answer(), second.answer()]), '429 TooManyRequests')
  other.post('bob', megabyte, Buffer.alloc(megabyte - 1, 32))
  assert.equal(await other.answer(), '503 ServiceUnavailable')
  first.socket.write(' ')
  second.socket.write(' ')
  const last = running.open()
  first.socket.destroy()
  second.socket.destroy()
  last.post('ann', 2, Buffer.from('{}'))
  assert.match(await last.answer(), /^(400|422) /)
})

test(
  'a connection that rests makes room for a new one; when all are at work, the new one comes back later',
  { timeout: 20_000 },
  async () => {
    await using running = await start({ connections: 2 })
    const [first, second] = [running.open(), running.open()]
    for (const client of [first, second]) {
      client.get('/healthz')
      assert.equal(await client.answer(), '200')
    }
    first.get('/healthz')
    assert.equal(await first.answer(), '200')
    const closed = once(second.socket, 'close')
    const third = running.open()
    third.get('/api/v1/namespaces?watch=1', 'ann')
    assert.equal(await third.answer(), '200')
    await closed // it had rested longest
    first.get('/api/v1/namespaces?watch=1', 'ann')
    assert.equal(await first.answer(), '200')
    const fourth = running.open()
    fourth.get('/healthz')
    assert.equal(await fourth.answer(), '503 ServiceUnavailable')
    first.socket.destroy()
    for (;;) {
      fourth.get('/healthz')
      if ((await fourth.answer()) === '200') break
    }
  },
)
