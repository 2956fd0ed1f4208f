// What can somebody do to us who listens at a driver's socket and does not speak CSI? Every call ends with an error by its
// deadline, memory stays bounded, and another driver is answered meanwhile.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttp2Server } from 'node:http2'
import type { ServerHttp2Stream } from 'node:http2'
import { createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { openChannel } from '../../src/csi/channel.ts'
import { CsiError } from '../../src/csi/codes.ts'
import { createControllerCalls } from '../../src/csi/controller.ts'
import { createIdentityCalls } from '../../src/csi/identity.ts'
import { serveOnSocket } from '../../src/csi/serve.ts'
import { createWire, csiServices } from '../../src/csi/service.ts'

const { signal } = new AbortController()
const mebibyte = 1 << 20
const grpcHeaders = { ':status': 200, 'content-type': 'application/grpc+proto' }

/** A message as gRPC frames it; the length may be a lie. */
function frame(body: Buffer, length = body.length, compressed = false): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt8(compressed ? 1 : 0, 0)
  head.writeUInt32BE(length, 1)
  return Buffer.concat([head, body])
}

/** Writes the same bytes as fast as they are taken, until the other side has enough. */
function pour(stream: ServerHttp2Stream, chunk: Buffer, times: number): void {
  let left = times
  const more = () => {
    while (left-- > 0 && !stream.destroyed) if (!stream.write(chunk)) return void stream.once('drain', more)
    if (!stream.destroyed) stream.end()
  }
  more()
}

type Behaviour = { readonly bytes: (socket: Socket) => void } | { readonly stream: (stream: ServerHttp2Stream) => void }

const zeros = Buffer.alloc(mebibyte)
const bomb = gzipSync(Buffer.alloc(64 * mebibyte), { level: 1 })
const garbage = Buffer.from(Array.from({ length: 4_096 }, (_, index) => (index * 7919) & 0xff))

const behaviours: Readonly<Record<string, Behaviour>> = {
  'accepts and says nothing': { bytes: () => {} },
  'answers with garbage': { bytes: (socket) => void socket.write(garbage) },
  'speaks HTTP/1': { bytes: (socket) => void socket.write('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n') },
  'hangs up at once': { bytes: (socket) => void socket.destroy() },
  'hangs up when it is spoken to': { bytes: (socket) => void socket.once('data', () => socket.destroy()) },
  'resets each stream': { stream: (stream) => stream.close(2) },
  'begins a frame and stops': {
    stream: (stream) => {
      stream.respond(grpcHeaders)
      stream.write(frame(Buffer.from('abc'), 1_000))
    },
  },
  'hangs up in the middle of a frame': {
    stream: (stream) => {
      stream.respond(grpcHeaders)
      stream.write(frame(Buffer.from('abc'), 1_000), () => stream.session?.destroy())
    },
  },
  'answers 100 MB': {
    stream: (stream) => {
      stream.respond(grpcHeaders)
      stream.write(frame(Buffer.alloc(0), 100 * mebibyte))
      pour(stream, zeros, 100)
    },
  },
  'answers 60 MB, which a list may have': {
    stream: (stream) => {
      stream.respond(grpcHeaders)
      stream.write(frame(Buffer.alloc(0), 60 * mebibyte))
      pour(stream, zeros, 60)
    },
  },
  'answers a gzip that unpacks to 64 MB': {
    stream: (stream) => {
      stream.respond({ ...grpcHeaders, 'grpc-encoding': 'gzip' })
      stream.end(frame(bomb, undefined, true))
    },
  },
  'answers without end': {
    stream: (stream) => {
      stream.respond(grpcHeaders)
      pour(stream, frame(Buffer.alloc(0)), 1_000_000_000)
    },
  },
  'answers another message': {
    stream: (stream) => {
      stream.respond(grpcHeaders, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end(frame(garbage))
    },
  },
  'answers a web page': {
    stream: (stream) => {
      stream.respond({ ':status': 200, 'content-type': 'text/html' })
      stream.end('<html>'.repeat(1_000))
    },
  },
  'gives a reason of 4 MB': {
    stream: (stream) => {
      stream.respond(
        { ...grpcHeaders, 'grpc-status': '13', 'grpc-message': 'x'.repeat(4 * mebibyte) },
        { endStream: true },
      )
    },
  },
  'gives a reason with control characters': {
    stream: (stream) => {
      const message = `%1B]0;owned%07${'x'.repeat(32_000)}`
      stream.respond({ ...grpcHeaders, 'grpc-status': '13', 'grpc-message': message }, { endStream: true })
    },
  },
}

function listen(t: TestContext, path: string, behaviour: Behaviour): Promise<void> {
  const sockets = new Set<Socket>()
  const server: Server =
    'bytes' in behaviour
      ? createServer((socket) => {
          socket.on('error', () => {})
          behaviour.bytes(socket)
        })
      : createHttp2Server({ maxSendHeaderBlockLength: 8 * mebibyte }).on('stream', (stream: ServerHttp2Stream) => {
          stream.on('error', () => {})
          behaviour.stream(stream)
        })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('sessionError', () => {})
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return new Promise((resolve) => void server.listen(path, resolve))
}

/** The most that messages took in memory while this ran. */
async function peakBytes(run: () => Promise<void>): Promise<number> {
  const held = () => process.memoryUsage().arrayBuffers
  const before = held()
  let peak = 0
  const timer = setInterval(() => void (peak = Math.max(peak, held() - before)), 5)
  try {
    await run()
  } finally {
    clearInterval(timer)
  }
  return Math.max(peak, held() - before)
}

for (const [what, behaviour] of Object.entries(behaviours))
  test(`a driver that ${what} costs one failed call`, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'hawser-hostile-'))
    t.after(() => rmSync(directory, { recursive: true, force: true }))
    const [bad, good] = [join(directory, 'bad.sock'), join(directory, 'good.sock')]
    await listen(t, bad, behaviour)
    await using _server = await serveOnSocket(good, csiServices, async () => new Uint8Array())
    using channel = openChannel(bad)
    using other = openChannel(good)
    const clock = createSystemClock()
    const calls = createIdentityCalls({ wire: createWire(channel.transport), clock, timeoutMs: 1_500 })
    const well = createIdentityCalls({ wire: createWire(other.transport), clock })
    let error: unknown
    const peak = await peakBytes(async () => {
      const failed = calls.info(signal).then(
        () => assert.fail('the call succeeded'),
        (thrown: unknown) => void (error = thrown),
      )
      assert.equal(await well.probe(signal), true)
      await failed
    })
    assert.ok(error instanceof CsiError, String(error))
    assert.ok(error.message.length < 2_500, `an error of ${error.message.length} characters`)
    assert.doesNotMatch(error.message, /[^\P{Cc}\n]/u)
    assert.ok(peak < 40 * mebibyte, `${Math.round(peak / mebibyte)} MiB in messages`)
    assert.equal(await well.probe(signal), true)
  })

test('a list may be longer than other answers', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-hostile-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  const path = join(directory, 'csi.sock')
  // One entry of ListVolumes with an unknown field of 5 MiB: what a page of many volumes would take.
  const body = Buffer.alloc(5 * mebibyte)
  const filler = body.length - 6
  body.set([0x7a, ...varint(filler)])
  await listen(t, path, {
    stream: (stream) => {
      stream.respond(grpcHeaders, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end(frame(body.subarray(0, filler + 1 + varint(filler).length)))
    },
  })
  using channel = openChannel(path)
  const calls = createControllerCalls({
    wire: createWire(channel.transport),
    clock: createSystemClock(),
    timeoutMs: 60_000,
  })
  assert.deepEqual(await calls.listVolumes(signal), [])
  await assert.rejects(calls.capacity({ parameters: {} }, signal), /larger than max/)
})

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(Math.floor(value / 128))]
}
