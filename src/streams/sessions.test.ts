// Do whole sessions work over any connection? Commands and forwarded ports in both languages, against clients that behave,
// that leave, that are slow, and that break the rules.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import type { ByteStream } from './byte-stream.ts'
import { createByteQueue, createStreamPair, readAll } from './byte-stream.ts'
import { serveChannelForward, serveSpdyForward } from './port-forward.ts'
import { exitFromStatus, openSpdyCommand, openWebSocketCommand, serveCommand } from './remote-command.ts'
import type { CommandStreams } from './remote-command.ts'
import { createSpdyDecoder } from './spdy-frames.ts'
import type { SpdyStream } from './spdy-session.ts'
import { openSpdySession } from './spdy-session.ts'
import { openWebSocket, tunnel } from './websocket.ts'

const everything = { stdin: true, stdout: true, stderr: true, tty: false }
const mask = () => Uint8Array.of(9, 8, 7, 6)
const text = async (input: AsyncIterable<Uint8Array>) => (await readAll(input, 1e7)).toString()

/** Says back what it hears, a word on the other stream, and ends with 3. */
async function echo({ stdin, stdout, stderr }: CommandStreams): Promise<number> {
  for await (const bytes of stdin ?? []) await stdout(bytes)
  await stderr(Buffer.from('done'))
  return 3
}

function spdyClient(connection: ByteStream, clock = createVirtualClock()) {
  return openSpdySession(connection, { role: 'client', clock, maxStreams: 10, onStream: () => assert.fail('unasked') })
}

test('a command over SPDY: three streams, and the exit code on a fourth', async () => {
  const clock = createVirtualClock()
  const [ours, theirs] = createStreamPair()
  const served = openSpdyCommand(theirs, everything, clock).then((session) => serveCommand(session, echo))
  const client = spdyClient(ours, clock)
  const streams: Record<string, SpdyStream> = {}
  for (const name of ['error', 'stdin', 'stdout', 'stderr']) streams[name] = await client.open({ streamtype: name })
  await streams['stdin']!.write(Buffer.from('hello '))
  await streams['stdin']!.write(Buffer.from('world'))
  await streams['stdin']!.end()
  const said = await Promise.all(['stdout', 'stderr', 'error'].map((name) => text(streams[name]!.input)))
  assert.deepEqual(said.slice(0, 2), ['hello world', 'done'])
  assert.deepEqual(exitFromStatus(said[2]!), { code: 3 })
  await Promise.all([client.ended, served, client.close()])
})

for (const version of ['v4', 'v5']) {
  test(`a command over the channels of a WebSocket (${version})`, async () => {
    const clock = createVirtualClock()
    const [ours, theirs] = createStreamPair()
    const options = { ...everything, stdin: version === 'v5' }
    const served = openWebSocketCommand(theirs, options, clock).then((session) => serveCommand(session, echo))
    const client = openWebSocket(ours, { clock, mask })
    if (version === 'v5') {
      await client.send(Uint8Array.of(0), Buffer.from('hello'))
      await client.send(Uint8Array.of(255, 0))
    }
    const said: Record<number, string> = {}
    let channel = 0
    for await (const { bytes, first } of client.parts) {
      if (first) channel = bytes[0]!
      said[channel] = (said[channel] ?? '') + Buffer.from(first ? bytes.subarray(1) : bytes).toString()
    }
    await served
    assert.equal(said[1], version === 'v5' ? 'hello' : '')
    assert.equal(said[2], 'done')
    assert.deepEqual(exitFromStatus(said[3]!), { code: 3 })
  })
}

test('what cannot be run is told as an error of the server', async () => {
  const clock = createVirtualClock()
  const [ours, theirs] = createStreamPair()
  const fail = () => Promise.reject(new Error('container c does not run'))
  void openWebSocketCommand(theirs, everything, clock).then((session) => serveCommand(session, fail))
  const client = openWebSocket(ours, { clock, mask })
  let last = ''
  for await (const { bytes } of client.parts) last = Buffer.from(bytes.subarray(1)).toString()
  assert.deepEqual(exitFromStatus(last), { error: 'Internal error occurred: container c does not run' })
})

for (const language of ['SPDY', 'WebSocket'] as const) {
  test(`a client that goes ends the command (${language})`, async () => {
    const clock = createVirtualClock()
    const [ours, theirs] = createStreamPair()
    const begun = Promise.withResolvers<AbortSignal>()
    const open = language === 'SPDY' ? openSpdyCommand : openWebSocketCommand
    const served = open(theirs, { ...everything, stdin: false, stderr: false }, clock).then((session) =>
      serveCommand(session, async (_, signal) => {
        begun.resolve(signal)
        await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
        return 0
      }),
    )
    if (language === 'SPDY') {
      const client = spdyClient(ours, clock)
      for (const streamtype of ['error', 'stdout']) await client.open({ streamtype })
    }
    const signal = await begun.promise
    assert.equal(signal.aborted, false)
    ours.destroy()
    await served
    assert.equal(signal.aborted, true)
  })
}

test('streams that never come are not waited for without end', async () => {
  const clock = createVirtualClock()
  const [ours, theirs] = createStreamPair()
  const opening = openSpdyCommand(theirs, everything, clock)
  const client = spdyClient(ours, clock)
  await client.open({ streamtype: 'error' })
  const refused = assert.rejects(opening, /timed out/)
  await clock.advance(31_000)
  await clock.advance(3_000)
  await refused
  await client.ended
})

test('more streams than allowed are refused, one out of order ends the connection', async () => {
  const clock = createVirtualClock()
  const [ours, theirs] = createStreamPair()
  const taken: SpdyStream[] = []
  const options = {
    role: 'server',
    clock,
    maxStreams: 2,
    onStream: (stream: SpdyStream) => void taken.push(stream),
  } as const
  const session = openSpdySession(theirs, options)
  const client = spdyClient(ours, clock)
  const [first, , third] = [await client.open({ a: '1' }), await client.open({ a: '2' }), await client.open({ a: '3' })]
  await assert.rejects(text(third!.input), /closed the stream/)
  assert.equal(taken.length, 2)
  // Room again once one is over in both directions.
  await Promise.all([first.end(), taken[0]!.end(), text(taken[0]!.input), text(first.input)])
  await client.open({ a: '4' })
  await taken[1]!.write(Buffer.from('x'))
  assert.equal(taken.length, 3)
  const [badOurs, badTheirs] = createStreamPair()
  const bad = openSpdySession(badTheirs, options)
  await badOurs.write(Buffer.from([0x80, 3, 0, 77, 0, 0, 0, 0]))
  const { value } = await badOurs.input[Symbol.asyncIterator]().next()
  await bad.ended
  assert.deepEqual(createSpdyDecoder().feed(value as Uint8Array), [{ kind: 'goAway', lastStream: 0, status: 1 }])
  await Promise.all([client.close(), session.ended])
})

test('a reader that takes nothing stops the sender, and the connection with it', async () => {
  const clock = createVirtualClock()
  const [ours, theirs] = createStreamPair(1_000)
  const session = openSpdySession(theirs, { role: 'server', clock, maxStreams: 2, onStream: () => {} })
  const client = spdyClient(ours, clock)
  const stream = await client.open({ a: '1' })
  let sent = 0
  const sending = (async () => {
    for (; sent < 10_000; sent++) await stream.write(Buffer.alloc(1_000))
  })()
  for (let turns = 0; turns < 200; turns++) await Promise.resolve()
  await new Promise((resolve) => setImmediate(resolve))
  assert.ok(sent < 100, `${sent} kilobytes went into the void`)
  // Whoever reads nothing sees no end either; the next ping does.
  theirs.destroy()
  await assert.rejects(sending)
  await clock.advance(31_000)
  await session.ended
})

const dialTo = (answer: (stream: ByteStream) => Promise<void>) => async (port: number) => {
  if (port === 81) throw new Error('connection refused')
  const [near, far] = createStreamPair()
  void answer(far)
  return near
}
const echoServer = async (stream: ByteStream) => {
  for await (const bytes of stream.input) await stream.write(bytes)
  await stream.end()
}

for (const way of ['plain', 'tunnelled'] as const) {
  test(`ports over SPDY, ${way}: each connection is a pair of streams`, async () => {
    const clock = createVirtualClock()
    const [ours, theirs] = createStreamPair()
    const inside = way === 'plain'
    const server = inside ? theirs : tunnel(openWebSocket(theirs, { clock }))
    const served = serveSpdyForward(server, dialTo(echoServer), clock)
    const client = spdyClient(inside ? ours : tunnel(openWebSocket(ours, { clock, mask })), clock)
    const connect = async (port: string, requestid: string) => {
      const error = await client.open({ streamtype: 'error', port, requestid })
      await error.end()
      return { error, data: await client.open({ streamtype: 'data', port, requestid }) }
    }
    const [one, two, bad] = [await connect('80', '0'), await connect('80', '1'), await connect('81', '2')]
    await one.data.write(Buffer.from('first'))
    await two.data.write(Buffer.from('second'))
    await Promise.all([one.data.end(), two.data.end()])
    assert.deepEqual(await Promise.all([text(one.data.input), text(two.data.input)]), ['first', 'second'])
    assert.equal(await text(one.error.input), '')
    assert.equal(await text(bad.error.input), 'error forwarding port 81 to pod: connection refused')
    await Promise.all([client.close(), served])
  })
}

test('ports over channels: each begins with its number', async () => {
  const clock = createVirtualClock()
  const [ours, theirs] = createStreamPair()
  const served = serveChannelForward(theirs, [80, 81], dialTo(echoServer), clock)
  const client = openWebSocket(ours, { clock, mask })
  await client.send(Uint8Array.of(0), Buffer.from('hello'))
  const said: Record<number, string> = {}
  for await (const { bytes } of client.parts) {
    said[bytes[0]!] = (said[bytes[0]!] ?? '') + Buffer.from(bytes.subarray(1)).toString('latin1')
    if (said[0] === 'P\u0000hello' && (said[3]?.length ?? 0) > 2) break
  }
  assert.equal(said[0], 'P\u0000hello')
  assert.equal(said[3], 'Q\u0000error forwarding port 81 to pod: connection refused')
  client.destroy()
  await served
})

test('a queue holds no more than it may, and drops what nobody reads', async () => {
  const queue = createByteQueue(10)
  await queue.write(Buffer.alloc(9))
  let full = true
  const writing = queue.write(Buffer.alloc(9)).then(() => (full = false))
  await Promise.resolve()
  assert.equal(full, true)
  const reader = queue[Symbol.asyncIterator]()
  await reader.next()
  await writing
  await reader.return?.()
  await queue.write(Buffer.alloc(100))
  await queue.write(Buffer.alloc(100))
})
