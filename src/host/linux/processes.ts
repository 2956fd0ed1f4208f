// How does Linux start, find and end long-lived processes? Detached children, /proc, and signals to groups.
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import type { Clock } from '../../clock/clock.ts'
import { HostError } from '../host-error.ts'
import type { Launched, LaunchRequest, Processes, ProcessIdentity } from '../processes.ts'

const pollMs = 1_000
const messageLimit = 16_384

export function createLinuxProcesses({ clock }: { readonly clock: Clock }): Processes {
  const isAlive = async ({ pid, startTime }: ProcessIdentity) => {
    const found = await readStat(pid)
    return found !== undefined && found.startTime === startTime && found.state !== 'Z' && found.state !== 'X'
  }
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
    async killNamespace(namespace) {
      if (namespace === (await namespaceOf('self'))) return 0
      let killed = 0
      for (const name of await readdir('/proc')) {
        if (!/^\d+$/.test(name) || (await namespaceOf(name)) !== namespace) continue
        kill(Number(name), 'SIGKILL')
        killed++
      }
      return killed
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
