// How are messages exchanged over a WebSocket? Pings are answered, a close is answered with a close, and what breaks the
// protocol ends it with a code. `tunnel` carries a plain stream of bytes in its messages.
import type { Clock } from '../clock/clock.ts'
import type { ByteStream } from './byte-stream.ts'
import { keepAlive, waitForPeer } from './keep-alive.ts'
import { closePayload, createWebSocketDecoder, encodeWebSocketFrame, WebSocketError } from './websocket-frames.ts'

/** A part of a message; `first` opens it. */
export interface MessagePart {
  readonly bytes: Uint8Array
  readonly first: boolean
  readonly last: boolean
}

export interface WebSocketConnection {
  /** Ends when the other side closes; fails when it breaks the connection or the protocol. Read it, or nothing goes on. */
  readonly parts: AsyncIterable<MessagePart>
  /** One binary message of these bytes. Resolves when there is room for more. */
  send(...bytes: readonly Uint8Array[]): Promise<void>
  /** Aborts when the connection is over, however it ended; also while nobody reads. */
  readonly over: AbortSignal
  /** Sends a close, and waits until the other side has answered it. */
  close(code?: number, reason?: string): Promise<void>
  destroy(): void
}

export interface WebSocketOptions {
  readonly clock: Clock
  /** Only for clients: they mask what they send, each frame anew. */
  readonly mask?: () => Uint8Array
}

export function openWebSocket(stream: ByteStream, { clock, mask }: WebSocketOptions): WebSocketConnection {
  const decoder = createWebSocketDecoder(mask === undefined)
  const over = new AbortController()
  let closing = false
  let received = 0
  const send = (kind: Parameters<typeof encodeWebSocketFrame>[0], parts: readonly Uint8Array[]) =>
    stream.write(encodeWebSocketFrame(kind, parts, mask?.()))
  const finish = () => {
    over.abort(new Error('the other side has gone'))
    stream.destroy()
  }
  const sendClose = async (code: number, reason: string) => {
    if (closing) return
    closing = true
    await send('close', [closePayload(code, reason)]).catch(() => {})
    await stream.end()
  }
  async function* read(): AsyncGenerator<MessagePart, void, undefined> {
    try {
      for await (const bytes of stream.input) {
        received++
        for (const frame of decoder.feed(bytes)) {
          if (frame.kind === 'data') yield frame
          else if (frame.kind === 'ping' && !closing) await send('pong', [frame.bytes])
          else if (frame.kind === 'close') return await sendClose(1000, '')
        }
      }
    } catch (error) {
      if (error instanceof WebSocketError) await sendClose(error.closeCode, error.message)
      throw error
    } finally {
      finish()
    }
  }
  void keepAlive(clock, stream, over.signal, async () => (closing ? undefined : await send('ping', [])), finish)
  return {
    parts: { [Symbol.asyncIterator]: read },
    send: (...bytes) => send('binary', bytes),
    over: over.signal,
    async close(code = 1000, reason = '') {
      await sendClose(code, reason)
      // The other side answers with a close of its own, when it has read all of ours.
      await waitForPeer(clock, over.signal, () => received)
      finish()
    },
    destroy: finish,
  }
}

/** A stream of bytes inside messages: where they begin and end means nothing. */
export function tunnel(socket: WebSocketConnection): ByteStream {
  async function* read(): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const { bytes } of socket.parts) if (bytes.length > 0) yield bytes
  }
  return {
    input: { [Symbol.asyncIterator]: read },
    write: (bytes) => socket.send(bytes),
    end: () => socket.close(),
    destroy: socket.destroy,
    gone: socket.over,
  }
}
