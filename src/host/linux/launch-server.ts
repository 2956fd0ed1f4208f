// Who forks? This small process of its own: forking the agent itself, with its hundreds of megabytes, would stop it for
// many milliseconds each time. It starts what it is told, reports what descriptor 3 said, and when a child has gone.
// When the agent dies it ends too; what it launched lives on.
import { spawn } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { errorText } from '../../telemetry/error-text.ts'
import type { LaunchRequest, RunRequest } from '../processes.ts'
import type { LaunchCommand, LaunchMessage, SessionRequest } from './launch-messages.ts'
import type { Session } from './launch-session.ts'
import { createStartProcess } from './start-process.ts'
import type { StartProcess } from './start-process.ts'

interface LaunchServer {
  readonly startProcess: StartProcess
  /** Process groups of children whose answer the agent still waits for; undefined while one is being started. */
  readonly unanswered: Map<number, number | undefined>
  /** Descriptor 3 of launched processes that wait to be told to go on. */
  readonly ready: Map<number, Duplex>
  /** Processes whose streams are open; undefined while one is being started. */
  readonly sessions: Map<number, Session | undefined>
}

const messageLimit = 16_384
const outputLimit = 10_240
/** How long output is still read when a process has gone: its children may hold the pipe open. */
const lastOutputMs = 100

main()

function main(): void {
  endLikeOthers()
  closeInherited()
  const server: LaunchServer = {
    startProcess: createStartProcess(),
    unanswered: new Map(),
    ready: new Map(),
    sessions: new Map(),
  }
  process.on('message', (command: LaunchCommand) => {
    try {
      perform(server, command)
    } catch (error) {
      send({ id: command.id, kind: 'failed', message: errorText(error) })
    }
  })
  process.on('disconnect', () => {
    // Sessions end with the agent that passed their streams on; containers live on.
    for (const session of server.sessions.values()) session?.kill()
    process.exit(0)
  })
}

/** The agent may be the last process that the kernel should end; what runs in containers is not, and inherits it from here. */
function endLikeOthers(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '0')
  } catch {
    // It may not be lowered here, and then it protects nobody.
  }
}

/** What the agent was started with (a lock, a pipe of its shell) would reach every container. What Node opens does not. */
function closeInherited(): void {
  const closedOnExec = 0o2000000
  for (const name of readdirSync('/proc/self/fd')) {
    const descriptor = Number(name)
    try {
      const [, flags = ''] = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, 'utf8')) ?? []
      if (descriptor > 2 && (Number.parseInt(flags, 8) & closedOnExec) === 0) closeSync(descriptor)
    } catch {
      // the one that read the directory
    }
  }
}

function perform(server: LaunchServer, command: LaunchCommand): void {
  const { id } = command
  switch (command.kind) {
    case 'launch':
      return launch(server, id, command.request)
    case 'goOn':
      return goOn(server, id)
    case 'run':
      return void run(server, id, command.request)
    case 'session':
      return void openSession(server, id, command.request)
    case 'resize':
      return server.sessions.get(id)?.resize(command.size)
    case 'kill':
      return kill(server, id)
    default:
      return command satisfies never
  }
}

function send(message: LaunchMessage, socket?: Socket): void {
  // With a callback a failure is no crash: the agent may have died this very moment.
  if (process.connected) process.send?.(message, socket, { keepOpen: false }, () => {})
}

function launch({ unanswered, ready }: LaunchServer, id: number, request: Omit<LaunchRequest, 'prepare'>): void {
  const [program, ...args] = request.argv
  const output = openSync(request.outputFile, 'a', 0o640)
  try {
    const child = spawn(program, args, {
      detached: true,
      env: { ...request.env },
      cwd: '/',
      stdio: ['ignore', output, output, 'pipe'],
    })
    child.once('error', (error) => send({ id, kind: 'failed', message: error.message }))
    child.once('exit', () => {
      unanswered.delete(id)
      send({ id, kind: 'exited' })
    })
    if (child.pid !== undefined) unanswered.set(id, child.pid)
    const pipe = child.stdio[3] as Duplex // a pipe, as asked for; Node makes it a pair of sockets
    let text = ''
    const end = () => {
      pipe.removeAllListeners()
      pipe.on('error', () => {})
      pipe.destroy()
      unanswered.delete(id)
      ready.delete(id)
      if (child.pid !== undefined) send({ id, kind: 'launched', pid: child.pid, message: text.slice(0, messageLimit) })
    }
    pipe.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8')
      if (/^started\n/m.test(text) || text.length > messageLimit) return end()
      if (!/^ready\n/m.test(text)) return
      text = ''
      ready.set(id, pipe)
      send({ id, kind: 'ready' })
    })
    pipe.on('end', end)
    pipe.on('error', end)
  } finally {
    closeSync(output)
  }
}

function goOn({ ready }: LaunchServer, id: number): void {
  const pipe = ready.get(id)
  ready.delete(id)
  if (pipe) pipe.write('go\n')
  else send({ id, kind: 'failed', message: 'it ended before it was told to go on' })
}

async function run({ unanswered, startProcess }: LaunchServer, id: number, request: RunRequest): Promise<void> {
  unanswered.set(id, undefined)
  try {
    const { makePipe } = await import('./terminals.ts')
    const { read, write } = makePipe()
    let output = ''
    const socket = new Socket({ fd: read })
    const end = (exitCode: number) => {
      if (!unanswered.delete(id)) return
      socket.destroy()
      send({ id, kind: 'ended', exitCode, output: output.slice(0, outputLimit) })
    }
    socket.on('data', (chunk: Buffer) => {
      if (output.length < outputLimit) output += chunk.toString('utf8')
    })
    socket.on('error', () => {})
    const exited = Promise.withResolvers<number>()
    const pid = await startProcess(request, [undefined, write, write], exited.resolve).finally(() => closeSync(write))
    if (!unanswered.has(id)) killGroup(pid)
    unanswered.set(id, pid)
    const exitCode = await exited.promise
    if (socket.readableEnded) return end(exitCode)
    socket.once('end', () => end(exitCode))
    setTimeout(() => end(exitCode), lastOutputMs)
  } catch (error) {
    unanswered.delete(id)
    send({ id, kind: 'failed', message: errorText(error) })
  }
}

/** The module is loaded with the first session: terminals need libc, and most nodes never see one. */
async function openSession(
  { sessions, startProcess }: LaunchServer,
  id: number,
  request: SessionRequest,
): Promise<void> {
  sessions.set(id, undefined)
  try {
    const { startSession } = await import('./launch-session.ts')
    // It may have been killed meanwhile.
    if (!sessions.has(id)) return send({ id, kind: 'ended', exitCode: 137, output: '' })
    const onExit = (exitCode: number) => {
      sessions.delete(id)
      send({ id, kind: 'ended', exitCode, output: '' })
    }
    const onStream: Parameters<typeof startSession>[2]['onStream'] = (name, socket) =>
      send({ id, kind: 'stream', name }, socket)
    const session = await startSession(startProcess, request, { onStream, onExit })
    // It may have been killed, or may have ended, meanwhile.
    if (!sessions.has(id)) session.kill()
    else sessions.set(id, session)
    send({ id, kind: 'sessionStarted' })
  } catch (error) {
    sessions.delete(id)
    send({ id, kind: 'failed', message: errorText(error) })
  }
}

function kill({ unanswered, ready, sessions }: LaunchServer, id: number): void {
  // It may have left the group: at the end of the file it gives up.
  ready.get(id)?.destroy()
  ready.delete(id)
  const group = unanswered.get(id)
  unanswered.delete(id)
  if (group !== undefined) killGroup(group)
  const session = sessions.get(id)
  if (session) session.kill()
  else sessions.delete(id)
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL')
  } catch {
    // it has gone by itself
  }
}
