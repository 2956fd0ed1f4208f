// How do connections reach a pod's ports? The port-forward protocol of Kubernetes: over SPDY each connection is a pair of streams
// (data and error), over channels of a WebSocket each port has two; kubectl's newer way is the former inside the latter.
import type { Clock } from '../clock/clock.ts'
import { errorText } from '../telemetry/error-text.ts'
import type { ByteQueue, ByteStream } from './byte-stream.ts'
import { createByteQueue } from './byte-stream.ts'
import type { SpdyStream } from './spdy-session.ts'
import { openSpdySession } from './spdy-session.ts'
import { openWebSocket } from './websocket.ts'

/** Opens a connection to a port of the pod. */
export type Dial = (port: number, signal: AbortSignal) => Promise<ByteStream>

export const portForwardProtocols = {
  spdy: ['portforward.k8s.io'],
  tunnelled: 'SPDY/3.1+portforward.k8s.io',
  channels: 'v4.channel.k8s.io',
} as const

/** Two for each connection. */
const mostStreams = 512
/** Between the two streams of a connection. */
const pairMs = 30_000

interface Pair {
  error?: SpdyStream
  data?: SpdyStream
  timer?: Disposable
}

/** Serves connections until the client closes the session. */
export async function serveSpdyForward(connection: ByteStream, dial: Dial, clock: Clock): Promise<void> {
  const pairs = new Map<string, Pair>()
  const session = openSpdySession(connection, {
    role: 'server',
    clock,
    maxStreams: mostStreams,
    onStream(stream) {
      const { streamtype: type, port, requestid: id = port ?? '' } = stream.headers
      if (type !== 'error' && type !== 'data') return stream.reset()
      const pair: Pair = pairs.get(id) ?? {}
      if (pair[type]) return stream.reset()
      pair[type] = stream
      pairs.set(id, pair)
      pair.timer ??= clock.at(clock.now() + pairMs, () => {
        pairs.delete(id)
        pair.error?.reset()
        pair.data?.reset()
      })
      const { error, data } = pair
      if (!error || !data) return
      pair.timer[Symbol.dispose]()
      pairs.delete(id)
      error.discard()
      void forward(data, error, Number(data.headers['port']), dial, session.over)
    },
  })
  await session.ended
  for (const { timer } of pairs.values()) timer?.[Symbol.dispose]()
}

async function forward(
  data: SpdyStream,
  error: SpdyStream,
  port: number,
  dial: Dial,
  signal: AbortSignal,
): Promise<void> {
  try {
    if (!isPort(port)) throw new Error(`"${data.headers['port']}" is not a port`)
    const target = await dial(port, signal)
    copy(data.input, target, () => target.end()).catch(() => target.destroy())
    // Once the pod has said all, the connection is over, whatever the client still says: it waits for our word.
    await copy(target.input, data, () => data.end()).finally(() => target.destroy())
    data.discard()
    await error.end()
  } catch (failure) {
    const why = errorText(failure)
    await error.write(Buffer.from(`error forwarding port ${port} to pod: ${why}`)).catch(() => {})
    await error.end().catch(() => {})
    data.reset()
  }
}

async function copy(
  input: AsyncIterable<Uint8Array>,
  output: Pick<ByteStream, 'write'>,
  end: () => Promise<void>,
): Promise<void> {
  for await (const bytes of input) await output.write(bytes)
  await end()
}

/** The older way over a WebSocket: one connection per port, channels 2n (data) and 2n + 1 (error). */
export async function serveChannelForward(
  connection: ByteStream,
  ports: readonly number[],
  dial: Dial,
  clock: Clock,
): Promise<void> {
  const socket = openWebSocket(connection, { clock })
  const inputs = ports.map(() => createByteQueue())
  const serve = async (port: number, index: number, input: ByteQueue) => {
    const [dataChannel, errorChannel] = [Uint8Array.of(index * 2), Uint8Array.of(index * 2 + 1)]
    // Each channel begins with its port, so that the client knows which is which.
    const mark = Uint8Array.of(port & 0xff, port >> 8)
    await socket.send(dataChannel, mark)
    await socket.send(errorChannel, mark)
    try {
      const target = await dial(port, socket.over)
      copy(input, target, () => target.end()).catch(() => target.destroy())
      for await (const bytes of target.input) await socket.send(dataChannel, bytes)
      target.destroy()
    } catch (failure) {
      const why = errorText(failure)
      await socket.send(errorChannel, Buffer.from(`error forwarding port ${port} to pod: ${why}`)).catch(() => {})
    }
    input.discard()
  }
  const listen = async () => {
    let input: ByteQueue | undefined
    for await (const { bytes, first } of socket.parts) {
      if (first) input = (bytes[0] ?? 1) % 2 === 0 ? inputs[(bytes[0] ?? 0) / 2] : undefined
      await input?.write(first ? bytes.subarray(1) : bytes)
    }
  }
  const listening = listen()
    .catch(() => {})
    .finally(() => inputs.forEach((input) => input.end()))
  await Promise.all(ports.map((port, index) => serve(port, index, inputs[index]!).catch(() => {})))
  await socket.close()
  await listening
}

export function isPort(port: number): boolean {
  return Number.isInteger(port) && port > 0 && port < 65_536
}
