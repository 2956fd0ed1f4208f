// What becomes of a session when one side leaves, or is slow to? Nothing that was said is lost, nothing goes on for nobody, and half
// an input never looks like the whole.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import type { VirtualClock } from '../clock/virtual-clock.ts'
import type { ByteStream } from './byte-stream.ts'
import { createByteQueue, createStreamPair } from './byte-stream.ts'
import { openSpdyCommand, openWebSocketCommand, serveCommand } from './remote-command.ts'
import { streamOfSocket } from './socket.ts'
import { createSpdyEncoder } from './spdy-frames.ts'
import { encodeWebSocketFrame } from './websocket-frames.ts'

const mask = Uint8Array.of(9, 8, 7, 6)
const languages = ['SPDY', 'WebSocket'] as const
const options = { stdin: true, stdout: true, stderr: false, tty: false }

/** A client by its bare frames: it does only what it is told to. */
function client(language: (typeof languages)[number], connection: ByteStream) {
  if (language === 'WebSocket') {
    const frame = (kind: 'binary' | 'ping', ...bytes: Uint8Array[]) =>
      connection.write(encodeWebSocketFrame(kind, bytes, mask))
    return {
      open: async () => {},
      say: (bytes: Uint8Array) => frame('binary', Uint8Array.of(0), bytes),
      ping: () => frame('ping'),
    }
  }
  const encode = createSpdyEncoder()
  const streams = ['error', 'stdin', 'stdout']
  return {
    async open() {
      for (const [index, streamtype] of streams.entries())
        await connection.write(
          encode({ kind: 'synStream', stream: index * 2 + 1, headers: { streamtype }, fin: false }),
        )
    },
    say: (bytes: Uint8Array) => connection.write(encode({ kind: 'data', stream: 3, bytes, fin: false })),
    ping: () => connection.write(encode({ kind: 'ping', id: 1 })),
  }
}

for (const language of languages) {
  const openCommand = language === 'SPDY' ? openSpdyCommand : openWebSocketCommand

  test(`whoever is there after our last word may still be reading: it is not cut off (${language})`, async () => {
    const clock = createVirtualClock()
    const [ours, theirs] = createStreamPair()
    let over = false
    const served = openCommand(theirs, options, clock)
      .then((session) => serveCommand(session, async () => 0))
      .then(() => (over = true))
    const { open, ping } = client(language, ours)
    await open()
    await ping()
    // Somebody looks at the first page; then it goes on.
    await clock.advance(3 * 3_600_000)
    await ping()
    await clock.advance(3 * 3_600_000)
    assert.equal(over, false)
    await clock.advance(3 * 3_600_000) // it says nothing more
    await served
  })

  /** A command that reads nothing, and a client that has said more than fits. */
  const stall = async (clock: VirtualClock, ours: ByteStream, theirs: ByteStream) => {
    const started = Promise.withResolvers<AbortSignal>()
    const served = openCommand(theirs, options, clock).then((session) =>
      serveCommand(session, async (_, signal) => {
        started.resolve(signal)
        await once(signal, 'abort')
        throw signal.reason as Error
      }),
    )
    const { open, say } = client(language, ours)
    await open()
    const signal = await started.promise
    for (let count = 0; count < 100; count++) void say(Buffer.alloc(1_000)).catch(() => {})
    await clock.settle()
    return { served, signal }
  }

  test(`a client that goes while nobody reads its input ends the command all the same (${language})`, async () => {
    const clock = createVirtualClock()
    const [ours, theirs] = createStreamPair(1_000)
    // Of a peer that has gone we hear only when we read or write.
    const { served, signal } = await stall(clock, ours, { ...theirs, gone: new AbortController().signal })
    ours.destroy()
    await clock.advance(6_000)
    assert.equal(signal.aborted, true)
    await served
  })

  test(`a connection that is destroyed here ends the command at once, whoever is busy (${language})`, async () => {
    const clock = createVirtualClock()
    const [ours, theirs] = createStreamPair(1_000)
    const { served, signal } = await stall(clock, ours, theirs)
    theirs.destroy()
    assert.equal(signal.aborted, true)
    await served
  })

  test(`an input that breaks off does not look like one that ended (${language})`, async () => {
    const clock = createVirtualClock()
    const [ours, theirs] = createStreamPair()
    let end = ''
    const served = openCommand(theirs, options, clock).then((session) =>
      serveCommand(session, async ({ stdin }) => {
        try {
          for await (const bytes of stdin ?? []) {
            assert.equal(Buffer.from(bytes).toString(), 'half')
            ours.destroy()
          }
          end = 'ended'
        } catch {
          end = 'broke off'
        }
        return 0
      }),
    )
    const { open, say } = client(language, ours)
    await open()
    await say(Buffer.from('half'))
    await served
    assert.equal(end, 'broke off')
  })

  test(`pings that nobody takes do not heap up (${language})`, async () => {
    const clock = createVirtualClock()
    const [ours, theirs] = createStreamPair(1)
    let written = 0
    let stuck = false
    const counted: ByteStream = {
      ...theirs,
      async write(bytes) {
        if (!stuck) return await theirs.write(bytes)
        written++
        await new Promise(() => {})
      },
    }
    void openCommand(counted, options, clock).catch(() => {})
    const reading = ours.input[Symbol.asyncIterator]().next()
    reading.catch(() => {})
    await clock.settle()
    stuck = true
    // SPDY waits thirty seconds for its streams.
    await clock.advance(29_000)
    assert.equal(written, 1)
    ours.destroy()
  })
}

test('many who write to one socket wait together', async () => {
  const server = createServer((socket) => socket.pause())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [[peer]] = await Promise.all([once(server, 'connection'), once(socket, 'connect')])
  const stream = streamOfSocket(socket)
  const writing = Array.from({ length: 50 }, () => stream.write(Buffer.alloc(1_000_000)))
  assert.equal(socket.listenerCount('drain'), 1)
  peer.resume()
  await Promise.all(writing)
  assert.equal(socket.listenerCount('drain'), 0)
  stream.destroy()
  server.close()
})

test('a reader who waits is told when nobody is to read any more', async () => {
  const queue = createByteQueue()
  const waiting = queue[Symbol.asyncIterator]().next()
  queue.discard()
  assert.deepEqual(await waiting, { done: true, value: undefined })
})
