// How does Linux start, find and end long-lived processes? Detached children, /proc, and signals to groups.
import { close, open } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { Clock } from '../../clock/clock.ts'
import { HostError } from '../host-error.ts'
import type { MountNamespace, Processes, ProcessIdentity } from '../processes.ts'
import { writePipe } from './exec-sessions.ts'
import { createLaunchClient } from './launch-client.ts'
import { mountNamespaceOf, readStat } from './proc.ts'
import type { WorkerPool } from './worker-pool.ts'
import { createWorkerPool } from './worker-pool.ts'

const pollMs = 1_000
/** Whether a pid still means the same process costs more to ask, and is asked less often. */
const identityMs = 30_000
const sweepMs = 10
/** A source or a target may lie on a server that does not answer. */
const attachTimeoutMs = 60_000
const never = new AbortController().signal
const [openFile, closeFile] = [promisify(open), promisify(close)]

/** Disposing leaves threads behind that hang in the kernel, so that the process can end. */
export function createLinuxProcesses({ clock }: { readonly clock: Clock }): Processes & AsyncDisposable {
  const isAlive = async ({ pid, startTime }: ProcessIdentity) => {
    const found = await readStat(pid)
    return found !== undefined && found.startTime === startTime && found.state !== 'Z' && found.state !== 'X'
  }
  const watcher = createWatcher(clock, isAlive)
  const gone = async (identity: ProcessIdentity, signal: AbortSignal) => {
    if (await isAlive(identity)) await watcher.gone(identity, signal)
  }
  const killer = createNamespaceKiller(clock)
  // Threads that enter other namespaces answer no other questions.
  const pool = createWorkerPool({ threads: 1 })
  return {
    isAlive,
    ...createLaunchClient({ clock, gone: (identity) => gone(identity, never) }),
    writePipe,
    gone,
    async signalGroup(identity, name) {
      // The leader may be gone while its group lives on; the group's number stays taken until the last member dies.
      const found = await readStat(identity.pid)
      if (found !== undefined && found.startTime !== identity.startTime) return
      kill(-identity.pid, name)
    },
    mountNamespace: (identity) => holdNamespace(identity, { isAlive, kill: killer.kill, pool }),
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  }
}

interface NamespaceDeps {
  readonly isAlive: Processes['isAlive']
  readonly kill: (name: string) => Promise<number>
  readonly pool: WorkerPool
}

async function holdNamespace(
  identity: ProcessIdentity,
  { isAlive, kill, pool }: NamespaceDeps,
): Promise<MountNamespace | undefined> {
  const descriptor = await openFile(`/proc/${identity.pid}/ns/mnt`, 'r').catch(() => undefined) // gone, which is an answer
  if (descriptor === undefined) return undefined
  const name = await mountNamespaceOf(identity.pid)
  // Only now is it certain that the pid meant this process when the file was opened.
  if (name === undefined || !(await isAlive(identity))) return void (await closeFile(descriptor))
  let held = true
  const kills = new Set<Promise<number>>()
  return {
    async attach(inside, signal) {
      if (!held) throw new HostError('CLOSED', 'the mount namespace is no longer held')
      if (name === (await mountNamespaceOf('self')))
        throw new HostError('EINVAL', `process ${identity.pid} has no mount namespace of its own`)
      // A start that hung is not tried again on the same volumes: each try would leave a thread behind.
      const path = inside.mounts.map(({ source }) => source).join(' ')
      await pool.call('attachMounts', [descriptor, inside], { path, timeoutMs: attachTimeoutMs }, signal)
    },
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

/** Polls all processes that are no children of ours with one timer; asking whether a pid is in use costs a microsecond. */
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

/** Reading all of /proc costs milliseconds, so all requests within 10 ms share one reading. */
function createNamespaceKiller(clock: Clock) {
  let waiting = new Map<string, { killed: number; readonly resolve: ((killed: number) => void)[] }>()
  const sweep = async () => {
    const asked = waiting
    waiting = new Map()
    const own = await mountNamespaceOf('self')
    for (const name of await readdir('/proc')) {
      if (!/^\d+$/.test(name)) continue
      const namespace = await mountNamespaceOf(name)
      const entry = namespace === undefined || namespace === own ? undefined : asked.get(namespace)
      if (!entry) continue
      kill(Number(name), 'SIGKILL')
      entry.killed++
    }
    for (const { killed, resolve } of asked.values()) for (const done of resolve) done(killed)
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

function kill(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as { code?: string }).code !== 'ESRCH') throw error
  }
}
