// How do many streams share one connection? SPDY/3.1 as Kubernetes speaks it: either side opens streams, each has two
// directions that end apart. A stream whose reader is slow stops the connection: SPDY here has no flow control per stream.
import type { Clock } from '../clock/clock.ts'
import type { ByteQueue, ByteStream } from './byte-stream.ts'
import { createByteQueue } from './byte-stream.ts'
import { keepAlive, waitForPeer } from './keep-alive.ts'
import type { SpdyFrame } from './spdy-frames.ts'
import { createSpdyDecoder, createSpdyEncoder, resetStatus } from './spdy-frames.ts'
import type { SpdyHeaders } from './spdy-headers.ts'
import { SpdyError } from './spdy-headers.ts'

export interface SpdyStream extends Omit<ByteStream, 'destroy' | 'gone'> {
  readonly headers: SpdyHeaders
  /** Drops what the other side sends here. */
  discard(): void
  /** Both directions, at once. */
  reset(): void
}

export interface SpdySession {
  /** Opens a stream of our own. */
  open(headers: SpdyHeaders): Promise<SpdyStream>
  /** Resolves when the connection is over, however it ended. */
  readonly ended: Promise<void>
  /** Aborts at the same time. */
  readonly over: AbortSignal
  /** Sends GOAWAY and closes the connection when the other side has read everything; what it still sends is dropped. */
  close(): Promise<void>
}

export interface SpdySessionOptions {
  readonly role: 'server' | 'client'
  readonly clock: Clock
  /** Streams open at the same time; more are refused. */
  readonly maxStreams: number
  /** Called with each stream that the other side opens. */
  onStream(stream: SpdyStream): void
}

interface Open {
  readonly input: ByteQueue
  inputEnded: boolean
  outputEnded: boolean
  reset: boolean
}

interface Session {
  readonly connection: ByteStream
  readonly options: SpdySessionOptions
  readonly table: ReturnType<typeof createTable>
  readonly over: AbortController
  send(frame: SpdyFrame): Promise<void>
  /** The number of our next stream. */
  nextStream: number
  /** The number of the other side's last stream. */
  lastSeen: number
  /** Pieces read so far. */
  received: number
  closing: boolean
}

export function openSpdySession(connection: ByteStream, options: SpdySessionOptions): SpdySession {
  const { clock, role } = options
  const encode = createSpdyEncoder()
  const over = new AbortController()
  const send = (frame: SpdyFrame) => connection.write(encode(frame))
  const session: Session = {
    connection,
    options,
    table: createTable(send, over.signal),
    over,
    send,
    nextStream: role === 'server' ? 2 : 1,
    lastSeen: 0,
    received: 0,
    closing: false,
  }
  const ended = readFrames(session)
  const ping: SpdyFrame = { kind: 'ping', id: session.nextStream }
  const sendPing = async () => (session.closing ? undefined : await send(ping))
  void keepAlive(clock, connection, over.signal, sendPing, () => finish(session))
  return {
    ended,
    over: over.signal,
    async open(headers) {
      const id = session.nextStream
      session.nextStream += 2
      const stream = session.table.admit(id, headers)
      await send({ kind: 'synStream', stream: id, headers, fin: false })
      return stream
    },
    close: () => close(session),
  }
}

async function readFrames(session: Session): Promise<void> {
  const decoder = createSpdyDecoder()
  try {
    for await (const bytes of session.connection.input) {
      session.received++
      for (const frame of decoder.feed(bytes)) await onFrame(session, frame)
    }
  } catch (error) {
    // A broken connection needs no answer; a broken protocol gets one.
    if (error instanceof SpdyError) await sendGoAway(session, resetStatus.protocolError)
  } finally {
    finish(session)
  }
}

async function onFrame(session: Session, frame: SpdyFrame): Promise<void> {
  const { table, options, send } = session
  if (session.closing) return
  switch (frame.kind) {
    case 'synStream':
      return await onSynStream(session, frame.stream, frame.headers, frame.fin)
    case 'data':
      await table.put(frame.stream, frame.bytes)
      if (frame.fin) table.endInput(frame.stream)
      return
    case 'synReply':
    case 'headers':
      if (frame.fin) table.endInput(frame.stream)
      return
    case 'reset':
      return table.cut(frame.stream, 'the other side closed the stream')
    case 'ping':
      // The sender of a ping chooses odd or even numbers, as for streams; the others are answers to ours.
      if (frame.id % 2 === (options.role === 'server' ? 1 : 0)) await send(frame)
      return
    case 'goAway':
    case 'ignored':
      return
    default:
      return frame satisfies never
  }
}

async function onSynStream(session: Session, id: number, headers: SpdyHeaders, fin: boolean): Promise<void> {
  const { table, options, send } = session
  const ours = id % 2 === (options.role === 'server' ? 0 : 1)
  if (id <= session.lastSeen || ours) throw new SpdyError(`stream ${id} comes out of order`)
  session.lastSeen = id
  if (table.streams.size >= options.maxStreams)
    return await send({ kind: 'reset', stream: id, status: resetStatus.refused })
  const stream = table.admit(id, headers)
  await send({ kind: 'synReply', stream: id, headers: {}, fin: false })
  if (fin) table.endInput(id)
  options.onStream(stream)
}

async function close(session: Session): Promise<void> {
  const { connection, options, table, over } = session
  if (over.signal.aborted) return
  session.closing = true
  table.discardAll()
  await sendGoAway(session, 0)
  await connection.end()
  await waitForPeer(options.clock, over.signal, () => session.received)
  finish(session)
}

async function sendGoAway({ lastSeen, send }: Session, status: number): Promise<void> {
  await send({ kind: 'goAway', lastStream: lastSeen, status }).catch(() => {})
}

function finish({ connection, table, over }: Session): void {
  over.abort(new SpdyError('the other side has gone'))
  table.cutAll()
  connection.destroy()
}

/** The streams that are open; each is forgotten when both its directions have ended. */
function createTable(send: (frame: SpdyFrame) => Promise<void>, over: AbortSignal) {
  const streams = new Map<number, Open>()
  const forgetEnded = (id: number, open: Open) => {
    if (open.reset || (open.inputEnded && open.outputEnded)) streams.delete(id)
  }
  const cut = (id: number, why: string) => {
    const open = streams.get(id)
    if (!open) return
    open.reset = true
    open.input.fail(new SpdyError(why))
    forgetEnded(id, open)
  }
  return {
    streams,
    cut,
    admit(id: number, headers: SpdyHeaders): SpdyStream {
      const open: Open = { input: createByteQueue(), inputEnded: false, outputEnded: false, reset: false }
      streams.set(id, open)
      const isClosed = () => over.aborted || open.reset || open.outputEnded
      return {
        headers,
        input: open.input,
        discard: () => open.input.discard(),
        async write(bytes) {
          if (isClosed()) throw new SpdyError('the stream is closed')
          if (bytes.length > 0) await send({ kind: 'data', stream: id, bytes, fin: false })
        },
        async end() {
          if (isClosed()) return
          open.outputEnded = true
          forgetEnded(id, open)
          await send({ kind: 'data', stream: id, bytes: new Uint8Array(), fin: true })
        },
        reset() {
          if (over.aborted || open.reset || !streams.has(id)) return
          cut(id, 'we closed the stream')
          send({ kind: 'reset', stream: id, status: resetStatus.cancel }).catch(() => {})
        },
      }
    },
    /** What comes for a stream that is not there may have crossed our own end of it: no reason to end the others. */
    async put(id: number, bytes: Uint8Array) {
      const open = streams.get(id)
      if (open && !open.inputEnded) await open.input.write(bytes)
    },
    endInput(id: number) {
      const open = streams.get(id)
      if (!open) return
      open.inputEnded = true
      open.input.end()
      forgetEnded(id, open)
    },
    discardAll() {
      for (const { input } of streams.values()) input.discard()
    },
    /** A stream whose input had ended before is not broken. */
    cutAll() {
      for (const [id, open] of [...streams]) if (!open.inputEnded) cut(id, 'the connection is over')
    },
  }
}
