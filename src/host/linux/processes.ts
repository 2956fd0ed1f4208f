// How does Linux start, find and end long-lived processes? Detached children, /proc, and signals to groups.
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { readdir, readFile, readlink } from 'node:fs/promises'
import type { Clock } from '../../clock/clock.ts'
import { HostError } from '../host-error.ts'
import type { LaunchNews, LaunchOrder } from './launch-server.ts'
import type { Launched, LaunchRequest, Processes, ProcessIdentity } from '../processes.ts'

const pollMs = 1_000
const sweepMs = 10
const never = new AbortController().signal

export function createLinuxProcesses({ clock }: { readonly clock: Clock }): Processes {
  const isAlive = async ({ pid, startTime }: ProcessIdentity) => {
    const found = await readStat(pid)
    return found !== undefined && found.startTime === startTime && found.state !== 'Z' && found.state !== 'X'
  }
  const gone = async (identity: ProcessIdentity, signal: AbortSignal) => {
    while (await isAlive(identity)) await clock.sleep(pollMs, signal)
  }
  const killer = createNamespaceKiller(clock)
  return {
    isAlive,
    launch: createLauncher(clock, (identity) => gone(identity, never)),
    gone,
    async signalGroup(identity, name) {
      // The leader may be gone while its group lives on; the group's number stays taken until the last member dies.
      const found = await readStat(identity.pid)
      if (found !== undefined && found.startTime !== identity.startTime) return
      kill(-identity.pid, name)
    },
    mountNamespace: namespaceOf,
    killNamespace: (namespace) => killer.kill(namespace),
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

  const hear = (news: LaunchNews) => {
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
    opened.on('message', (news) => hear(news as LaunchNews)) // only our own file speaks here
    opened.once('exit', lost)
    opened.on('error', lost)
    opened.unref()
    opened.channel?.unref()
    server = opened
    return opened
  }
  return async (request: LaunchRequest, signal: AbortSignal): Promise<Launched> => {
    using deadline = clock.deadline(request.timeoutMs, signal)
    const id = nextId++
    const ended = Promise.withResolvers<void>()
    const entry = { identity: undefined as ProcessIdentity | undefined, resolve: ended.resolve }
    running.set(id, entry)
    const answer = Promise.withResolvers<LaunchNews>()
    waiting.set(id, answer)
    const late = () => answer.reject(new HostError('TIMEOUT', 'the process said nothing in time', { certain: false }))
    deadline.signal.addEventListener('abort', late, { once: true })
    const opened = open()
    opened.channel?.ref()
    try {
      opened.send({ id, kind: 'launch', request } satisfies LaunchOrder)
      const news = await answer.promise
      if (news.kind !== 'launched')
        throw new HostError('NOPROGRAM', news.kind === 'failed' ? news.message : 'it has ended')
      const stat = await readStat(news.pid)
      entry.identity = { pid: news.pid, startTime: stat?.startTime ?? '' }
      return { identity: entry.identity, message: news.message, exited: ended.promise }
    } catch (error) {
      if (opened.connected) opened.send({ id, kind: 'kill' } satisfies LaunchOrder)
      throw error
    } finally {
      waiting.delete(id)
      if (waiting.size === 0) opened.channel?.unref()
    }
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
