// How does the agent use the launch server, the small process that forks for it? It is started when it is first needed and
// started again when it died. Commands are sent with an id; answers and sockets come back with the same id.
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import type { Clock } from '../../clock/clock.ts'
import type { CommandStreams } from '../../streams/remote-command.ts'
import type { TerminalSize } from '../../streams/terminal-sizes.ts'
import { HostError } from '../host-error.ts'
import type { InteractiveRequest, Launched, LaunchRequest, Processes, ProcessIdentity } from '../processes.ts'
import { IncomingSession, runSession, takeFirstSize } from './exec-sessions.ts'
import type { LaunchCommand, LaunchMessage } from './launch-messages.ts'
import { readStat } from './proc.ts'
import { searchPathOf } from './run.ts'

export interface LaunchClientDeps {
  readonly clock: Clock
  /** Resolves when a process is gone that is no child of the launch server any more. */
  gone(identity: ProcessIdentity): Promise<void>
}

interface LaunchClient extends LaunchClientDeps {
  server: ChildProcess | undefined
  nextId: number
  /** Commands that have no answer yet. */
  readonly waiting: Map<number, { resolve(message: LaunchMessage): void; reject(error: Error): void }>
  /** Launched processes whose end the server will report. */
  readonly running: Map<number, { identity: ProcessIdentity | undefined; resolve(): void }>
  readonly sessions: Map<number, IncomingSession>
}

const startSessionMs = 30_000

export function createLaunchClient(deps: LaunchClientDeps): Pick<Processes, 'launch' | 'run' | 'runInteractive'> {
  const client: LaunchClient = {
    ...deps,
    server: undefined,
    nextId: 1,
    waiting: new Map(),
    running: new Map(),
    sessions: new Map(),
  }
  return {
    launch: (request, signal) => launch(client, request, signal),
    async run(request, signal) {
      const id = client.nextId++
      const answer = await sendCommand(client, { id, kind: 'run', request }, request.timeoutMs, signal)
      if (answer.kind !== 'ended') throw new HostError('NOPROGRAM', 'it could not be started')
      return { exitCode: answer.exitCode, output: answer.output }
    },
    runInteractive: (request, streams, signal) => runInteractive(client, request, streams, signal),
  }
}

async function launch(client: LaunchClient, request: LaunchRequest, signal: AbortSignal): Promise<Launched> {
  const id = client.nextId++
  const ended = Promise.withResolvers<void>()
  const entry = { identity: undefined as ProcessIdentity | undefined, resolve: ended.resolve }
  client.running.set(id, entry)
  const { prepare: _prepare, ...plain } = request
  const first = await sendCommand(client, { id, kind: 'launch', request: plain }, request.timeoutMs, signal)
  const answer = first.kind === 'ready' ? await goOn(client, id, request, signal) : first
  if (answer.kind !== 'launched') throw new HostError('NOPROGRAM', 'it has ended')
  const stat = await readStat(answer.pid)
  entry.identity = { pid: answer.pid, startTime: stat?.startTime ?? '' }
  return { identity: entry.identity, message: answer.message, exited: ended.promise }
}

/** The process waits: it goes on when everything is prepared, and is killed when that fails. */
async function goOn(client: LaunchClient, id: number, request: LaunchRequest, signal: AbortSignal) {
  try {
    await request.prepare?.()
  } catch (error) {
    if (client.server?.connected) client.server.send({ id, kind: 'kill' } satisfies LaunchCommand)
    throw error
  }
  return await sendCommand(client, { id, kind: 'goOn' }, request.timeoutMs, signal)
}

async function runInteractive(
  client: LaunchClient,
  request: InteractiveRequest,
  streams: CommandStreams,
  signal: AbortSignal,
): Promise<number> {
  const { clock } = client
  const id = client.nextId++
  const session = new IncomingSession()
  client.sessions.set(id, session)
  const send = (command: LaunchCommand) => {
    if (client.server?.connected) client.server.send(command)
  }
  try {
    const noSize = { size: undefined, sizes: streams.sizes }
    const { size, sizes } = request.tty ? await takeFirstSize(clock, streams.sizes, signal) : noSize
    const asked = { ...request, stdin: streams.stdin !== undefined, size }
    await sendCommand(client, { id, kind: 'session', request: asked }, startSessionMs, signal)
    const resize = (size: TerminalSize) => send({ id, kind: 'resize', size })
    const kill = () => send({ id, kind: 'kill' })
    const deps = { clock, sockets: session.sockets, exited: session.exited.promise, resize, kill }
    return await runSession(deps, { ...streams, sizes }, signal)
  } finally {
    for (const socket of session.sockets.values()) socket.destroy()
    client.sessions.delete(id)
  }
}

/** Sends a command and waits for its answer. Without an answer in time, the process that was started for it is killed. */
async function sendCommand(
  client: LaunchClient,
  command: LaunchCommand,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<LaunchMessage> {
  const { clock, waiting } = client
  const { id } = command
  using deadline = clock.deadline(timeoutMs, signal)
  const answer = Promise.withResolvers<LaunchMessage>()
  waiting.set(id, answer)
  const late = () => answer.reject(new HostError('TIMEOUT', 'the process said nothing in time', { certain: false }))
  if (deadline.signal.aborted) late()
  deadline.signal.addEventListener('abort', late, { once: true })
  const server = openServer(client)
  server.channel?.ref()
  try {
    server.send(command)
    const message = await answer.promise
    if (message.kind === 'failed') throw new HostError('NOPROGRAM', message.message)
    return message
  } catch (error) {
    if (server.connected) server.send({ id, kind: 'kill' } satisfies LaunchCommand)
    throw error
  } finally {
    waiting.delete(id)
    if (waiting.size === 0) server.channel?.unref()
  }
}

function openServer(client: LaunchClient): ChildProcess {
  if (client.server) return client.server
  const file = import.meta.url.endsWith('.ts') ? './launch-server.ts' : './launch-server.js'
  const env = { PATH: searchPathOf(), NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '' }
  const server = fork(new URL(file, import.meta.url), {
    execArgv: [],
    env,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  // Only our own file sends messages here.
  server.on('message', (message, socket) => onMessage(client, message as LaunchMessage, socket as Socket | undefined))
  server.once('exit', () => onServerExit(client))
  server.on('error', () => onServerExit(client))
  server.unref()
  server.channel?.unref()
  client.server = server
  return server
}

function onMessage(client: LaunchClient, message: LaunchMessage, socket: Socket | undefined): void {
  const { id, kind } = message
  const session = client.sessions.get(id)
  if (kind === 'stream') {
    // An error event without a listener would end the process; readers get the error anyway.
    socket?.on('error', () => {})
    if (session && socket) session.sockets.set(message.name, socket)
    else socket?.destroy()
    return
  }
  if (session && kind === 'ended') session.exited.resolve(message.exitCode)
  if (kind === 'exited') {
    client.running.get(id)?.resolve()
    client.running.delete(id)
    return
  }
  client.waiting.get(id)?.resolve(message)
  client.waiting.delete(id)
}

function onServerExit(client: LaunchClient): void {
  client.server = undefined
  const error = new HostError('WORKER', 'the process that starts others has ended', { certain: false })
  for (const { reject } of client.waiting.values()) reject(error)
  client.waiting.clear()
  for (const session of client.sessions.values()) session.lose(error)
  // Its children live on without a parent of ours: their end is found by polling from here on.
  for (const { identity, resolve } of client.running.values()) if (identity) void client.gone(identity).then(resolve)
  client.running.clear()
}
