// How does the agent pass on the streams of a process that the launch server started? They arrive as sockets; output is passed on
// piece by piece. When the process has gone, its last output is still read, but nobody waits for children that keep its pipes.
import { constants, open } from 'node:fs'
import { Socket } from 'node:net'
import { promisify } from 'node:util'
import type { Clock } from '../../clock/clock.ts'
import type { CommandStreams } from '../../streams/remote-command.ts'
import { drained } from '../../streams/socket.ts'
import type { TerminalSize } from '../../streams/terminal-sizes.ts'
import { HostError } from '../host-error.ts'
import type { SessionStream } from './launch-messages.ts'

export interface SessionDeps {
  readonly clock: Clock
  readonly sockets: ReadonlyMap<SessionStream, Socket>
  /** Resolves with the exit code. */
  readonly exited: Promise<number>
  resize(size: TerminalSize): void
  kill(): void
}

interface Reader {
  /** Pieces passed on so far. */
  pieces: number
  /** The listener has not taken the last piece yet. */
  waiting: boolean
  done: boolean
}

/** A pipe that is still open and silent for this long after the end is held by a child that went on. */
const quietMs = 200
const quietRounds = 4
const openFile = promisify(open)
/** How long a killed process may take to be gone. */
const killedMs = 5_000

export async function runSession(deps: SessionDeps, streams: CommandStreams, signal: AbortSignal): Promise<number> {
  const { clock, sockets } = deps
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => {})
  const over = new AbortController()
  const onAbort = () => failed.reject(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  const readers: Reader[] = []
  const read = (name: SessionStream, listener: CommandStreams['stdout']) => {
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
    // the client has gone; the signal says so
  }
  // A pipe ends when it is closed; a terminal stays open for the output of the process.
  if (!isTerminal) socket.end(() => socket.destroy())
}

export async function writePipe(pipe: string, input: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
  // Without waiting for a reader: a pipe that nobody reads is an error (ENXIO).
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

async function followSizes(deps: SessionDeps, streams: CommandStreams, over: AbortSignal): Promise<void> {
  if (!deps.sockets.has('terminal')) return
  for await (const size of streams.sizes) {
    if (over.aborted) return
    deps.resize(size)
  }
}

async function untilQuiet(clock: Clock, readers: readonly Reader[], signal: AbortSignal): Promise<void> {
  const count = () => readers.reduce((sum, { pieces }) => sum + pieces, 0)
  for (let [quiet, before] = [0, count()]; quiet < quietRounds;) {
    if (readers.every(({ done }) => done)) return
    await clock.sleep(quietMs / quietRounds, signal)
    // A timer that comes late comes before what has arrived meanwhile: that must have its turn first.
    for (let turns = 0; turns < 2; turns++) await new Promise((resolve) => setImmediate(resolve))
    const now = count()
    quiet = now === before && !readers.some(({ waiting }) => waiting) ? quiet + 1 : 0
    before = now
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

/** A client sends the size of its terminal soon after the connection is open, not with it. */
const firstSizeMs = 500

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

/** The sockets of one session, as they arrive. */
export class IncomingSession {
  readonly sockets = new Map<SessionStream, Socket>()
  readonly exited = Promise.withResolvers<number>()
  constructor() {
    // The caller may have given up before the process ended.
    this.exited.promise.catch(() => {})
  }
  lose(error: HostError): void {
    this.exited.reject(error)
  }
}
