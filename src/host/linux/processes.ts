// How does Linux start, find and end long-lived processes? Detached children, /proc, and signals to groups.
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import type { Clock } from '../../clock/clock.ts'
import { HostError } from '../host-error.ts'
import type { Launched, LaunchRequest, Processes, ProcessIdentity } from '../processes.ts'

const pollMs = 1_000
const sweepMs = 10
const messageLimit = 16_384

export function createLinuxProcesses({ clock }: { readonly clock: Clock }): Processes {
  const isAlive = async ({ pid, startTime }: ProcessIdentity) => {
    const found = await readStat(pid)
    return found !== undefined && found.startTime === startTime && found.state !== 'Z' && found.state !== 'X'
  }
  const killer = createNamespaceKiller(clock)
  return {
    isAlive,
    launch: (request, signal) => launch(clock, request, signal),
    async gone(identity, signal) {
      while (await isAlive(identity)) await clock.sleep(pollMs, signal)
    },
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

async function launch(clock: Clock, request: LaunchRequest, signal: AbortSignal): Promise<Launched> {
  const output = openSync(request.outputFile, 'a', 0o640)
  try {
    const [program, ...args] = request.argv
    const child = spawn(program, args, {
      detached: true,
      env: { ...request.env },
      cwd: '/',
      stdio: ['ignore', output, output, 'pipe'],
    })
    const exited = new Promise<void>((resolve) => {
      child.once('exit', () => resolve())
      child.once('error', () => resolve())
    })
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', (error) => reject(new HostError('NOPROGRAM', error.message, { cause: error })))
    })
    child.unref()
    const pid = child.pid!
    const stat = await readStat(pid)
    const message = await spoken(clock, child.stdio[3] as Readable, request.timeoutMs, signal) // a pipe, as asked for
    return { identity: { pid, startTime: stat?.startTime ?? '' }, message, exited }
  } finally {
    closeSync(output)
  }
}

/** The first line, or everything up to the end. */
async function spoken(clock: Clock, pipe: Readable, timeoutMs: number, signal: AbortSignal): Promise<string> {
  using deadline = clock.deadline(timeoutMs, signal)
  return await new Promise<string>((resolve, reject) => {
    let text = ''
    const end = (settle: () => void) => {
      deadline.signal.removeEventListener('abort', onAbort)
      pipe.removeAllListeners()
      pipe.on('error', () => {})
      pipe.destroy()
      settle()
    }
    const onAbort = () =>
      end(() => reject(new HostError('TIMEOUT', 'the process said nothing in time', { certain: false })))
    pipe.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8')
      if (text.startsWith('started\n') || text.length > messageLimit) end(() => resolve(text.slice(0, messageLimit)))
    })
    pipe.on('end', () => end(() => resolve(text)))
    pipe.on('error', () => end(() => resolve(text)))
    if (deadline.signal.aborted) onAbort()
    else deadline.signal.addEventListener('abort', onAbort, { once: true })
  })
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
