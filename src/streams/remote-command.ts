// How does a command's input and output travel to whoever asked for it? The remote command protocol of Kubernetes, over SPDY
// streams (v4) or over channels of a WebSocket (v4, v5). The end of it is a Status, as kubectl takes its exit code from.
import type { Clock } from '../clock/clock.ts'
import { errorText } from '../telemetry/error-text.ts'
import type { ByteStream } from './byte-stream.ts'
import { createByteQueue } from './byte-stream.ts'
import type { SpdyStream } from './spdy-session.ts'
import { openSpdySession } from './spdy-session.ts'
import type { TerminalSize } from './terminal-sizes.ts'
import { createSizes } from './terminal-sizes.ts'
import { openWebSocket } from './websocket.ts'

export interface CommandOptions {
  readonly stdin: boolean
  readonly stdout: boolean
  readonly stderr: boolean
  readonly tty: boolean
}

export interface CommandStreams {
  /** Its end is the end of the command's input; it fails when the client goes without a word of an end. */
  readonly stdin: AsyncIterable<Uint8Array> | undefined
  /** Resolves when there is room for more; fails when nobody takes it any more. */
  stdout(bytes: Uint8Array): Promise<void>
  stderr(bytes: Uint8Array): Promise<void>
  readonly sizes: AsyncIterable<TerminalSize>
}

export interface CommandSession {
  readonly streams: CommandStreams
  /** Aborts when the client goes before the end. */
  readonly gone: AbortSignal
  /** Tells how it ended, and closes the connection. */
  finish(status: object): Promise<void>
}

export const commandProtocols = {
  spdy: ['v4.channel.k8s.io'],
  webSocket: ['v5.channel.k8s.io', 'v4.channel.k8s.io'],
} as const

export const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const

const streamsMs = 30_000
const mostStreams = 16
const nothing = new Uint8Array()
/** A longer message on the resize or close channel is not valid and is cut off. */
const textLimit = 4_096

/** Resolves when the client has opened all streams it wants; fails when it does not. */
export async function openSpdyCommand(
  connection: ByteStream,
  options: CommandOptions,
  clock: Clock,
): Promise<CommandSession> {
  const expected = spdyStreamNames(options)
  const found = new Map<string, SpdyStream>()
  const complete = Promise.withResolvers<void>()
  const session = openSpdySession(connection, {
    role: 'server',
    clock,
    maxStreams: mostStreams,
    onStream(stream) {
      const name = stream.headers['streamtype'] ?? ''
      if (!expected.includes(name) || found.has(name)) return stream.reset()
      found.set(name, stream)
      if (name !== 'stdin' && name !== 'resize') stream.discard()
      if (found.size === expected.length) complete.resolve()
    },
  })
  using deadline = clock.deadline(streamsMs, session.over)
  deadline.signal.addEventListener('abort', () => complete.reject(deadline.signal.reason), { once: true })
  try {
    await complete.promise
  } catch (error) {
    await session.close()
    throw error
  }
  const sizes = createSizes()
  const resize = found.get('resize')
  if (resize) void sizes.readFrom(resize.input)
  const write = (name: string) => async (bytes: Uint8Array) => await found.get(name)?.write(bytes)
  return {
    streams: { stdin: found.get('stdin')?.input, stdout: write('stdout'), stderr: write('stderr'), sizes },
    gone: session.over,
    async finish(status) {
      for (const name of ['stdout', 'stderr']) await found.get(name)?.end()
      await found.get('error')?.write(Buffer.from(JSON.stringify(status)))
      await found.get('error')?.end()
      await session.close()
    },
  }
}

function spdyStreamNames({ stdin, stdout, stderr, tty }: CommandOptions): readonly string[] {
  const wanted = { error: true, stdin, stdout, stderr: stderr && !tty, resize: tty }
  return Object.entries(wanted).flatMap(([name, is]) => (is ? [name] : []))
}

export async function openWebSocketCommand(
  connection: ByteStream,
  options: CommandOptions,
  clock: Clock,
): Promise<CommandSession> {
  const socket = openWebSocket(connection, { clock })
  const stdin = createByteQueue()
  if (!options.stdin) stdin.discard()
  const sizes = createSizes()
  const readMessages = async () => {
    let channel = -1
    let text = Buffer.alloc(0)
    for await (const { bytes, first, last } of socket.parts) {
      if (first) {
        channel = bytes[0] ?? -1
        text = Buffer.alloc(0)
      }
      const content = first ? bytes.subarray(1) : bytes
      if (channel === channels.stdin) await stdin.write(content)
      else if (text.length + content.length <= textLimit) text = Buffer.concat([text, content])
      if (!last) continue
      if (channel === channels.resize) sizes.read(text.toString())
      if (channel === channels.close && text[0] === channels.stdin) stdin.end()
    }
  }
  readMessages().catch(() => {})
  // A broken connection and a close mean the same here: the client has gone, and its input has no end.
  socket.over.addEventListener('abort', () => stdin.fail(new Error('the client has gone')), { once: true })
  const write = (channel: number) => (bytes: Uint8Array) => socket.send(Uint8Array.of(channel), bytes)
  const silent = () => Promise.resolve()
  // Clients that wait for a first message learn that the connection is open.
  const lowest = options.stdout ? channels.stdout : options.stderr && !options.tty ? channels.stderr : channels.error
  await write(lowest)(nothing)
  return {
    streams: {
      stdin: options.stdin ? stdin : undefined,
      stdout: options.stdout ? write(channels.stdout) : silent,
      stderr: options.stderr && !options.tty ? write(channels.stderr) : silent,
      sizes,
    },
    gone: socket.over,
    async finish(status) {
      stdin.discard()
      await write(channels.error)(Buffer.from(JSON.stringify(status)))
      await socket.close()
    },
  }
}

/** Runs the command for the session and tells the client how it ended: with an exit code, or not at all. */
export async function serveCommand(
  session: CommandSession,
  run: (streams: CommandStreams, signal: AbortSignal) => Promise<number>,
): Promise<void> {
  let status: object
  try {
    status = statusOfExit(await run(session.streams, session.gone))
  } catch (error) {
    status = statusOfFailure(errorText(error))
  }
  // A client that has gone gets no status.
  if (!session.gone.aborted) await session.finish(status).catch(() => {})
}

function statusOfExit(code: number): object {
  if (code === 0) return { metadata: {}, status: 'Success' }
  return {
    metadata: {},
    status: 'Failure',
    message: `command terminated with non-zero exit code: exit status ${code}`,
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
  }
}

function statusOfFailure(message: string): object {
  const details = { causes: [{ message }] }
  const text = `Internal error occurred: ${message}`
  return { metadata: {}, status: 'Failure', message: text, reason: 'InternalError', details, code: 500 }
}

/** What the Status at the end of a session says: an exit code, or why there is none. */
export function exitFromStatus(text: string): { readonly code: number } | { readonly error: string } {
  const status = JSON.parse(text) as {
    status?: string
    message?: string
    reason?: string
    details?: { causes?: readonly { reason?: string; message?: string }[] }
  }
  if (status.status === 'Success') return { code: 0 }
  const exit = status.details?.causes?.find(({ reason }) => reason === 'ExitCode')
  if (status.reason === 'NonZeroExitCode' && exit) return { code: Number(exit.message) }
  return { error: status.message ?? 'the server did not say how it ended' }
}
