// How do we talk with a process that another one has started for us? Its streams arrive as sockets; what it says is passed on
// piece by piece, and when it has gone, what it said last is still read, but nobody waits for children that keep its pipes.
import { constants, open } from 'node:fs'
import { Socket } from 'node:net'
import { promisify } from 'node:util'
import type { Clock } from '../../clock/clock.ts'
import type { CommandStreams } from '../../streams/remote-command.ts'
import { drained } from '../../streams/socket.ts'
import type { TerminalSize } from '../../streams/terminal-sizes.ts'
import { HostError } from '../host-error.ts'
import type { TalkStream } from './launch-server.ts'

export interface TalkDeps {
  readonly clock: Clock
  readonly sockets: ReadonlyMap<TalkStream, Socket>
  /** Resolves with the exit code. */
  readonly exited: Promise<number>
  resize(size: TerminalSize): void
  kill(): void
}

interface Reader {
  /** Pieces passed on so far. */
  pieces: number
  /** The one who listens is slow just now. */
  waiting: boolean
  done: boolean
}

/** A pipe that is still open and silent for this long after the end is held by a child that went on. */
const quietMs = 200
const openFile = promisify(open)
/** How long a killed process may take to be gone. */
const killedMs = 5_000

export async function holdTalk(deps: TalkDeps, streams: CommandStreams, signal: AbortSignal): Promise<number> {
  const { clock, sockets } = deps
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => {})
  const over = new AbortController()
  const onAbort = () => failed.reject(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  const readers: Reader[] = []
  const read = (name: TalkStream, listener: CommandStreams['stdout']) => {
    const socket = sockets.get(name)
    if (socket) readAll(socket, listener, readers).catch(failed.reject)
  }
  read('stdout', streams.stdout)
  read('stderr', streams.stderr)
  read('terminal', streams.stdout)
  void writeAll(sockets.get('stdin') ?? sockets.get('terminal'), streams.stdin, sockets.has('terminal'))
  void followSizes(deps, streams, over.signal)
  try {
    const code = await Promise.race([deps.exited, failed.promise])
    await Promise.race([untilQuiet(clock, readers, signal), failed.promise])
    return code
  } catch (error) {
    deps.kill()
    using deadline = clock.deadline(killedMs, new AbortController().signal)
    await Promise.race([deps.exited.catch(() => {}), aborted(deadline.signal)])
    throw error
  } finally {
    over.abort()
    signal.removeEventListener('abort', onAbort)
    for (const socket of sockets.values()) socket.destroy()
  }
}

async function readAll(socket: Socket, listener: CommandStreams['stdout'], readers: Reader[]): Promise<void> {
  const reader: Reader = { pieces: 0, waiting: false, done: false }
  readers.push(reader)
  try {
    for await (const piece of socket.iterator({ destroyOnReturn: false })) {
      reader.waiting = true
      await listener(piece as Buffer)
      reader.waiting = false
      reader.pieces++
    }
  } catch (error) {
    // We close sockets ourselves at the end; a listener that fails is another matter.
    if (!socket.destroyed) throw error
  } finally {
    reader.done = true
  }
}

async function writeAll(
  socket: Socket | undefined,
  stdin: AsyncIterable<Uint8Array> | undefined,
  isTerminal: boolean,
): Promise<void> {
  if (!socket) return
  // A process that reads no further is no failure: it may have what it needs.
  socket.on('error', () => {})
  try {
    for await (const bytes of stdin ?? []) {
      if (socket.destroyed) return
      if (!socket.write(bytes)) await drained(socket)
    }
  } catch {
    // whoever sent it has gone, and that is told by the signal
  }
  // A pipe ends when it is closed; a terminal's reader goes on reading what the process says.
  if (!isTerminal) socket.end(() => socket.destroy())
}

export async function speak(pipe: string, input: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
  // Without waiting for a reader: a pipe that nobody reads is an answer.
  const fd = await openFile(pipe, constants.O_WRONLY | constants.O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    throw new HostError(error.code ?? 'EIO', error.message, { path: pipe })
  })
  const socket = new Socket({ fd, readable: false, writable: true })
  const cut = () => void socket.destroy()
  signal.addEventListener('abort', cut, { once: true })
  if (signal.aborted) cut()
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await writeAll(socket, input, false)
  await closed
  signal.removeEventListener('abort', cut)
}

async function followSizes(deps: TalkDeps, streams: CommandStreams, over: AbortSignal): Promise<void> {
  if (!deps.sockets.has('terminal')) return
  for await (const size of streams.sizes) {
    if (over.aborted) return
    deps.resize(size)
  }
}

async function untilQuiet(clock: Clock, readers: readonly Reader[], signal: AbortSignal): Promise<void> {
  for (let before = -1; readers.some(({ done }) => !done);) {
    const now = readers.reduce((sum, { pieces }) => sum + pieces, 0)
    if (now === before && !readers.some(({ waiting }) => waiting)) return
    before = now
    await clock.sleep(quietMs / 2, signal)
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

/** A client tells the size of its terminal at once, but not with its first word. */
const firstSizeMs = 250

/** The size to begin with, if it comes in time, and those that come later. */
export async function takeFirstSize(
  clock: Clock,
  sizes: CommandStreams['sizes'],
  signal: AbortSignal,
): Promise<{ readonly size: TerminalSize | undefined; readonly sizes: CommandStreams['sizes'] }> {
  const iterator = sizes[Symbol.asyncIterator]()
  const next = iterator.next()
  const inTime = await Promise.race([next, clock.sleep(firstSizeMs, signal).then(() => undefined)])
  async function* later(): AsyncGenerator<TerminalSize, void, undefined> {
    for (let step = inTime ? iterator.next() : next; ; step = iterator.next()) {
      const { done, value } = await step
      if (done === true) return
      yield value
    }
  }
  return { size: inTime === undefined || inTime.done === true ? undefined : inTime.value, sizes: later() }
}

/** The sockets of one talk, as they arrive. */
export class IncomingTalk {
  readonly sockets = new Map<TalkStream, Socket>()
  readonly exited = Promise.withResolvers<number>()
  constructor() {
    // Whoever started it may have given up before it ended.
    this.exited.promise.catch(() => {})
  }
  lose(): void {
    this.exited.reject(new HostError('WORKER', 'the process that starts others has ended', { certain: false }))
  }
}
