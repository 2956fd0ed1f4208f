// How does Linux start, find and end long-lived processes? Detached children, /proc, and signals to groups.
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import { close, open } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { Clock } from '../../clock/clock.ts'
import type { CommandStreams } from '../../streams/remote-command.ts'
import type { TerminalSize } from '../../streams/terminal-sizes.ts'
import { HostError } from '../host-error.ts'
import type { LaunchNews, LaunchOrder } from './launch-server.ts'
import type {
  ConverseRequest,
  Launched,
  LaunchRequest,
  MountNamespace,
  Processes,
  ProcessIdentity,
  RunRequest,
  RunResult,
} from '../processes.ts'
import { holdTalk, IncomingTalk, speak, takeFirstSize } from './talks.ts'

const startTalkMs = 30_000
const pollMs = 1_000
/** Whether a number still means the same process costs more to ask, and is asked less often. */
const identityMs = 30_000
const sweepMs = 10
const never = new AbortController().signal
const [openFile, closeFile] = [promisify(open), promisify(close)]

export function createLinuxProcesses({ clock }: { readonly clock: Clock }): Processes {
  const isAlive = async ({ pid, startTime }: ProcessIdentity) => {
    const found = await readStat(pid)
    return found !== undefined && found.startTime === startTime && found.state !== 'Z' && found.state !== 'X'
  }
  const watcher = createWatcher(clock, isAlive)
  const gone = async (identity: ProcessIdentity, signal: AbortSignal) => {
    if (await isAlive(identity)) await watcher.gone(identity, signal)
  }
  const killer = createNamespaceKiller(clock)
  const { launch, run, converse } = createLauncher(clock, (identity) => gone(identity, never))
  return {
    isAlive,
    launch,
    run,
    converse,
    speak,
    gone,
    async signalGroup(identity, name) {
      // The leader may be gone while its group lives on; the group's number stays taken until the last member dies.
      const found = await readStat(identity.pid)
      if (found !== undefined && found.startTime !== identity.startTime) return
      kill(-identity.pid, name)
    },
    mountNamespace: (identity) => holdNamespace(identity, isAlive, killer.kill),
  }
}

async function holdNamespace(
  identity: ProcessIdentity,
  isAlive: Processes['isAlive'],
  kill: (name: string) => Promise<number>,
): Promise<MountNamespace | undefined> {
  const descriptor = await openFile(`/proc/${identity.pid}/ns/mnt`, 'r').catch(() => undefined) // gone, which is an answer
  if (descriptor === undefined) return undefined
  const name = await namespaceOf(identity.pid)
  // Only now is it sure that the number meant this process when it was opened.
  if (name === undefined || !(await isAlive(identity))) return void (await closeFile(descriptor))
  let held = true
  const kills = new Set<Promise<number>>()
  return {
    async killAll() {
      if (!held) return 0
      const running = kill(name)
      kills.add(running)
      return await running
    },
    async [Symbol.asyncDispose]() {
      if (!held) return
      held = false
      await Promise.all(kills)
      await closeFile(descriptor)
    },
  }
}

/** One timer for all processes that are no children of ours; to ask whether a number is in use costs a microsecond. */
function createWatcher(clock: Clock, isAlive: (identity: ProcessIdentity) => Promise<boolean>) {
  const watched = new Set<{ readonly identity: ProcessIdentity; checkedAt: number; readonly resolve: () => void }>()
  let ticking = false
  const tick = async () => {
    for (const one of [...watched]) {
      const checkDue = clock.now() - one.checkedAt >= identityMs
      if (checkDue) one.checkedAt = clock.now()
      if (isInUse(one.identity.pid) && !(checkDue && !(await isAlive(one.identity)))) continue
      watched.delete(one)
      one.resolve()
    }
    ticking = watched.size > 0
    if (ticking) clock.at(clock.now() + pollMs, () => void tick())
  }
  return {
    gone: (identity: ProcessIdentity, signal: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        const onAbort = () => {
          watched.delete(one)
          reject(signal.reason)
        }
        if (signal.aborted) return reject(signal.reason)
        const done = () => {
          signal.removeEventListener('abort', onAbort)
          resolve()
        }
        const one = { identity, checkedAt: clock.now(), resolve: done }
        signal.addEventListener('abort', onAbort, { once: true })
        watched.add(one)
        if (ticking) return
        ticking = true
        clock.at(clock.now() + pollMs, () => void tick())
      }),
  }
}

function isInUse(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false // ESRCH; we are root, so nothing else
  }
}

/** Reading all of /proc costs milliseconds, so that everybody who asks within a few of them shares one reading. */
function createNamespaceKiller(clock: Clock) {
  let waiting = new Map<string, { killed: number; readonly resolve: ((killed: number) => void)[] }>()
  const sweep = async () => {
    const asked = waiting
    waiting = new Map()
    const own = await namespaceOf('self')
    for (const name of await readdir('/proc')) {
      if (!/^\d+$/.test(name)) continue
      const namespace = await namespaceOf(name)
      const entry = namespace === undefined || namespace === own ? undefined : asked.get(namespace)
      if (!entry) continue
      kill(Number(name), 'SIGKILL')
      entry.killed++
    }
    for (const { killed, resolve } of asked.values()) for (const tell of resolve) tell(killed)
  }
  return {
    kill(namespace: string): Promise<number> {
      if (waiting.size === 0) clock.at(clock.now() + sweepMs, () => void sweep())
      const entry = waiting.get(namespace) ?? { killed: 0, resolve: [] }
      waiting.set(namespace, entry)
      return new Promise((resolve) => void entry.resolve.push(resolve))
    },
  }
}

/** The process that forks for us, made when it is first needed and made again when it died. */
function createLauncher(clock: Clock, gone: (identity: ProcessIdentity) => Promise<void>) {
  let server: ChildProcess | undefined
  let nextId = 1
  const waiting = new Map<number, { resolve(news: LaunchNews): void; reject(error: Error): void }>()
  const running = new Map<number, { identity: ProcessIdentity | undefined; resolve(): void }>()

  const talks = new Map<number, IncomingTalk>()

  const hear = (news: LaunchNews, socket: Socket | undefined) => {
    const talk = talks.get(news.id)
    if (news.kind === 'stream') {
      // An error that nobody hears would end the process; whoever reads hears of it anyway.
      socket?.on('error', () => {})
      if (talk && socket) talk.sockets.set(news.name, socket)
      else socket?.destroy()
      return
    }
    if (talk && news.kind === 'ended') talk.exited.resolve(news.exitCode)
    if (news.kind === 'exited') {
      running.get(news.id)?.resolve()
      running.delete(news.id)
      return
    }
    waiting.get(news.id)?.resolve(news)
    waiting.delete(news.id)
  }
  const lost = () => {
    server = undefined
    const error = new HostError('WORKER', 'the process that starts others has ended', { certain: false })
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
    for (const talk of talks.values()) talk.lose()
    // Its children live on and are nobody's: from here on they are looked at from time to time.
    for (const { identity, resolve } of running.values()) if (identity) void gone(identity).then(resolve)
    running.clear()
  }
  const open = (): ChildProcess => {
    if (server) return server
    const file = import.meta.url.endsWith('.ts') ? './launch-server.ts' : './launch-server.js'
    const env = { PATH: process.env['PATH'] ?? '', NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '' }
    const opened = fork(new URL(file, import.meta.url), {
      execArgv: [],
      env,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    opened.on('message', (news, socket) => hear(news as LaunchNews, socket as Socket | undefined)) // only our own file speaks here
    opened.once('exit', lost)
    opened.on('error', lost)
    opened.unref()
    opened.channel?.unref()
    server = opened
    return opened
  }
  /** Sends an order and waits for its answer; an answer that comes too late is nobody's, and so is who would give it. */
  const order = async (id: number, send: LaunchOrder, timeoutMs: number, signal: AbortSignal): Promise<LaunchNews> => {
    using deadline = clock.deadline(timeoutMs, signal)
    const answer = Promise.withResolvers<LaunchNews>()
    waiting.set(id, answer)
    const late = () => answer.reject(new HostError('TIMEOUT', 'the process said nothing in time', { certain: false }))
    if (deadline.signal.aborted) late()
    deadline.signal.addEventListener('abort', late, { once: true })
    const opened = open()
    opened.channel?.ref()
    try {
      opened.send(send)
      const news = await answer.promise
      if (news.kind === 'failed') throw new HostError('NOPROGRAM', news.message)
      return news
    } catch (error) {
      if (opened.connected) opened.send({ id, kind: 'kill' } satisfies LaunchOrder)
      throw error
    } finally {
      waiting.delete(id)
      if (waiting.size === 0) opened.channel?.unref()
    }
  }
  return {
    async launch(request: LaunchRequest, signal: AbortSignal): Promise<Launched> {
      const id = nextId++
      const ended = Promise.withResolvers<void>()
      const entry = { identity: undefined as ProcessIdentity | undefined, resolve: ended.resolve }
      running.set(id, entry)
      const news = await order(id, { id, kind: 'launch', request }, request.timeoutMs, signal)
      if (news.kind !== 'launched') throw new HostError('NOPROGRAM', 'it has ended')
      const stat = await readStat(news.pid)
      entry.identity = { pid: news.pid, startTime: stat?.startTime ?? '' }
      return { identity: entry.identity, message: news.message, exited: ended.promise }
    },
    async run(request: RunRequest, signal: AbortSignal): Promise<RunResult> {
      const id = nextId++
      const news = await order(id, { id, kind: 'run', request }, request.timeoutMs, signal)
      if (news.kind !== 'ended') throw new HostError('NOPROGRAM', 'it could not be started')
      return { exitCode: news.exitCode, output: news.output }
    },
    async converse(request: ConverseRequest, streams: CommandStreams, signal: AbortSignal): Promise<number> {
      const id = nextId++
      const talk = new IncomingTalk()
      talks.set(id, talk)
      const say = (order: LaunchOrder) => {
        if (server?.connected) server.send(order)
      }
      try {
        const noSize = { size: undefined, sizes: streams.sizes }
        const { size, sizes } = request.tty ? await takeFirstSize(clock, streams.sizes, signal) : noSize
        const asked = { ...request, stdin: streams.stdin !== undefined, size }
        await order(id, { id, kind: 'talk', request: asked }, startTalkMs, signal)
        const resize = (size: TerminalSize) => say({ id, kind: 'resize', size })
        const kill = () => say({ id, kind: 'kill' })
        const deps = { clock, sockets: talk.sockets, exited: talk.exited.promise, resize, kill }
        return await holdTalk(deps, { ...streams, sizes }, signal)
      } finally {
        for (const socket of talk.sockets.values()) socket.destroy()
        talks.delete(id)
      }
    },
  }
}

async function readStat(pid: number): Promise<{ readonly state: string; readonly startTime: string } | undefined> {
  try {
    const text = await readFile(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0] ?? '', startTime: fields[19] ?? '' }
  } catch {
    return undefined // gone, which is an answer
  }
}

async function namespaceOf(pid: number | string): Promise<string | undefined> {
  try {
    return await readlink(`/proc/${pid}/ns/mnt`)
  } catch {
    return undefined // gone, or a kernel thread
  }
}

function kill(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as { code?: string }).code !== 'ESRCH') throw error
  }
}
