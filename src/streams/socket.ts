// How does a socket become a ByteStream? Reading stops while the reader is busy, writing waits until the kernel has room.
import { STATUS_CODES } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ByteStream } from './byte-stream.ts'
import type { NodeResponse } from './node-server.ts'

/** How long a peer may be silent before the kernel asks whether it is there at all. */
export const probeMs = 60_000

/** `head` is what was read together with the request that opened the stream. */
export function streamOfSocket(socket: Duplex, head: Uint8Array = new Uint8Array()): ByteStream {
  // A peer that vanishes is told to the reader and to the writer; an event without a listener would end the process.
  socket.on('error', () => {})
  const gone = new AbortController()
  socket.once('close', () => gone.abort(new Error('the connection is closed')))
  /** One for all who wait: many streams may share a socket. */
  let room: Promise<void> | undefined
  async function* read(): AsyncGenerator<Uint8Array, void, undefined> {
    if (head.length > 0) yield head
    // Breaking off must not close the other direction: `destroy` does that.
    for await (const piece of socket.iterator({ destroyOnReturn: false })) yield piece as Uint8Array
  }
  return {
    input: { [Symbol.asyncIterator]: read },
    async write(bytes) {
      if (socket.destroyed || socket.writableEnded) throw new Error('the connection is closed')
      if (!socket.write(bytes)) await (room ??= drained(socket).finally(() => (room = undefined)))
      if (socket.destroyed) throw new Error('the connection is closed')
    },
    end: () =>
      new Promise((resolve) => {
        if (socket.destroyed || socket.writableEnded) return resolve()
        socket.once('close', () => resolve())
        socket.end(() => resolve())
      }),
    destroy: () => void socket.destroy(),
    gone: gone.signal,
  }
}

/** Resolves when there is room for more, or nobody who would take it. */
export function drained(output: NodeJS.EventEmitter): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      output.off('drain', finish)
      output.off('close', finish)
      resolve()
    }
    output.on('drain', finish)
    output.on('close', finish)
  })
}

/** Answers a request that asked for an upgrade: with a stream, or with words if it is refused. */
export async function answerUpgrade(answer: NodeResponse, socket: Duplex, head: Uint8Array): Promise<void> {
  const stream = streamOfSocket(socket, head)
  if (socket instanceof Socket) socket.setKeepAlive(true, probeMs)
  const { status, headers, body, upgrade } = answer
  const length = body instanceof Uint8Array ? { 'content-length': String(body.length) } : {}
  const all = upgrade ? headers : { ...headers, ...length, connection: 'close' }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  await stream.write(Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n`))
  if (upgrade) return await upgrade(stream)
  if (body instanceof Uint8Array) await stream.write(body)
  else for await (const piece of body) await stream.write(piece)
  await stream.end()
}
