// How does the command line speak to a process in a pod? Over a WebSocket with one channel per stream; the last word is its exit code.
import { randomBytes } from 'node:crypto'
import { objectPath } from '../client/rest.ts'
import { createSystemClock } from '../clock/system-clock.ts'
import { channels, commandProtocols, exitFromStatus } from '../streams/remote-command.ts'
import type { MessagePart, WebSocketConnection } from '../streams/websocket.ts'
import { openWebSocket } from '../streams/websocket.ts'
import type { Connection } from './connect.ts'
import { Failed } from './errors.ts'

export interface RemoteCommand {
  readonly pod: string
  readonly verb: 'exec' | 'attach'
  readonly container?: string | undefined
  readonly command: readonly string[]
  readonly tty: boolean
}

export interface RemoteStreams {
  readonly stdin?: AsyncIterable<Uint8Array> | undefined
  /** Resolves when there is room for more. */
  stdout(bytes: Uint8Array): Promise<void>
  stderr(bytes: Uint8Array): Promise<void>
  /** Tells the size of our terminal, now and when it changes. */
  sizes?(tell: (width: number, height: number) => void): void
}

/** Answers the exit code; fails when there is none. */
export async function runRemote(
  connection: Pick<Connection, 'transport' | 'namespace'>,
  request: RemoteCommand,
  streams: RemoteStreams,
  signal: AbortSignal,
): Promise<number> {
  const socket = await openPodSocket(
    connection,
    pathOf(connection, request, streams),
    commandProtocols.webSocket,
    signal,
  )
  const leave = () => socket.destroy()
  signal.addEventListener('abort', leave, { once: true })
  streams.sizes?.((width, height) => {
    const size = JSON.stringify({ Width: width, Height: height })
    socket.send(Uint8Array.of(channels.resize), Buffer.from(size)).catch(() => {})
  })
  const input = sendInput(socket, streams.stdin)
  input.catch(() => socket.destroy())
  const status = await readMessages(partsOf(socket, request), streams).catch(async (error: unknown) => {
    // If it was our own input that failed, that is the reason to tell.
    await Promise.race([input, Promise.resolve()])
    throw error
  })
  if (status === '') throw lost(request)
  const end = exitFromStatus(status)
  if ('code' in end) return end.code
  throw new Failed(`${request.verb} in pod ${request.pod}: ${end.error}`)
}

async function* partsOf(
  socket: WebSocketConnection,
  request: RemoteCommand,
): AsyncGenerator<MessagePart, void, undefined> {
  try {
    yield* socket.parts
  } catch (error) {
    throw lost(request, error)
  }
}

function lost({ pod, verb }: RemoteCommand, error?: unknown): Failed {
  const before = verb === 'exec' ? 'before the command had ended' : 'while we listened'
  const why = error instanceof Error ? `: ${error.message}` : ''
  return new Failed(`the connection to pod ${pod} was lost ${before}${why}`)
}

/** Passes on what is said, and answers the last word; empty when there was none. */
async function readMessages(parts: AsyncIterable<MessagePart>, streams: RemoteStreams): Promise<string> {
  let [channel, status] = [-1, '']
  for await (const { bytes, first } of parts) {
    if (first) channel = bytes[0] ?? -1
    const piece = first ? bytes.subarray(1) : bytes
    if (channel === channels.stdout) await streams.stdout(piece)
    if (channel === channels.stderr) await streams.stderr(piece)
    if (channel === channels.error && status.length < statusLimit) status += Buffer.from(piece).toString()
  }
  return status
}

/** A Status is a few lines. */
const statusLimit = 65_536

/** A WebSocket to a path of a pod. */
export async function openPodSocket(
  { transport }: Pick<Connection, 'transport'>,
  path: string,
  protocols: readonly string[],
  signal: AbortSignal,
): Promise<WebSocketConnection> {
  const stream = await transport.upgrade(path, protocols, signal)
  return openWebSocket(stream, { clock: createSystemClock(), mask: () => randomBytes(4) })
}

function pathOf(
  { namespace }: Pick<Connection, 'namespace'>,
  { pod, verb, container, command, tty }: RemoteCommand,
  { stdin }: RemoteStreams,
): string {
  const query = new URLSearchParams({ stdout: 'true', ...(tty ? { tty: 'true' } : { stderr: 'true' }) })
  if (stdin) query.set('stdin', 'true')
  if (container !== undefined) query.set('container', container)
  for (const word of command) query.append('command', word)
  return `${objectPath('Pod', { name: pod, namespace }, verb)}?${query}`
}

/** Fails when our own input does: half of it must not look like the whole. */
async function sendInput(socket: WebSocketConnection, stdin: AsyncIterable<Uint8Array> | undefined): Promise<void> {
  if (!stdin) return
  for await (const bytes of stdin) {
    // A command that has ended needs no more.
    const isTaken = await socket.send(Uint8Array.of(channels.stdin), bytes).then(
      () => true,
      () => false,
    )
    if (!isTaken) return
  }
  await socket.send(Uint8Array.of(channels.close, channels.stdin)).catch(() => {})
}

/** Writes to one of our own streams, no faster than it takes it. */
export function writerTo(stream: NodeJS.WritableStream): (bytes: Uint8Array) => Promise<void> {
  return (bytes) =>
    new Promise((resolve, reject) => {
      stream.write(bytes, (error) => (error ? reject(error) : resolve()))
    })
}
