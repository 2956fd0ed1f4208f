// How do containers run without a container engine? As real processes in their own mount namespace: they see the host's
// root with a private layer above it, and their volumes at their places. Images are names only; nothing is pulled.
//
// What is kept in <directory>/<pod>/<container>/<attempt>/: record.json and a token (ours), begun (the token, taken), pid and
// exit (the supervisor's, see launcher.ts). After a restart of the agent these files are the truth; a pid counts only with
// its start time.
import { join } from 'node:path/posix'
import type { PodUid } from '../../api/names.ts'
import { podUid } from '../../api/names.ts'
import type { Clock } from '../../clock/clock.ts'
import { hasCode } from '../../host/host-error.ts'
import type { Host } from '../../host/host.ts'
import type { MountNamespace, Processes, ProcessIdentity } from '../../host/processes.ts'
import type { Log } from '../../telemetry/log.ts'
import { delayedAbort } from './delayed-abort.ts'
import { enterScript, setupScript, superviseScript } from './launcher.ts'
import type { ContainerExit, ContainerMount, ContainerRecord, ContainerRequest, Runtime } from './port.ts'
import { argvInside, privilegesOf, variablesOf } from './process-command.ts'
import { latestAttempts, lostExit, parseExit, parseIdentity, parseRecord, tokenOf } from './records.ts'
import type { SavedRecord } from './records.ts'
import { createTurns } from './turns.ts'

export interface ProcessRuntimeDeps {
  readonly host: Host
  readonly processes: Processes
  readonly clock: Clock
  readonly log: Log
  /** Where container records lie; made private so that nothing mounted below it reaches the host. */
  readonly directory: string
  /** `<logs>/<namespace>_<pod>_<uid>/<container>/<attempt>.log` */
  readonly logDirectory: string
  /** Directories of the node that no container may see. */
  readonly hidden: readonly string[]
}

interface Live {
  record: ContainerRecord
  readonly directory: string
  readonly process: ProcessIdentity | undefined
  readonly namespace: MountNamespace | undefined
  readonly gone: Promise<void>
  end(exit: ContainerExit): void
}

const startTimeoutMs = 60_000
const parallelStarts = 2
/** A start that takes longer waits for something (a dead server, most likely) and no longer counts as work. */
const slowStartMs = 1_000
/** How long a start that nobody wants any more may take to come to its end by itself. */
const unwantedStartMs = 2_000
const killMs = 2_000
/** The directory of a pod that is being removed has this before its name. */
const going = '.going-'
/** Between the token and the pid a supervisor forks once. */
const beginMs = 5_000

export function createProcessRuntime(deps: ProcessRuntimeDeps): Runtime & AsyncDisposable {
  const { host, processes, clock, log } = deps
  const { files } = host
  const live = new Map<string, Live>()
  const listeners = new Set<(record: ContainerRecord) => void>()
  const stopping = new AbortController()
  const turn = createTurns({ clock, limit: parallelStarts, slowMs: slowStartMs })
  let prepared: Promise<void> | undefined
  const keyFor = (pod: PodUid, name: string) => `${pod}/${name}`
  const tell = (record: ContainerRecord) => {
    for (const listener of [...listeners]) listener(record)
  }
  const prepare = (signal: AbortSignal) =>
    (prepared ??= (async () => {
      await files.mkdirAll(deps.directory, 0o700, signal)
      if (await host.mounts.isMountPoint(deps.directory, signal)) return
      await host.mounts.bind({ source: deps.directory, target: deps.directory }, signal)
      await host.mounts.setPropagation(deps.directory, 'private', { recursive: false }, signal)
    })())

  /** Enters a container into the books; its end is noticed from here on. */
  const keep = (
    record: ContainerRecord,
    directory: string,
    process: ProcessIdentity | undefined,
    namespace: MountNamespace | undefined,
    childGone?: Promise<void>,
  ) => {
    const { promise: gone, resolve } = Promise.withResolvers<void>()
    const entry: Live = {
      record,
      directory,
      process,
      namespace,
      gone,
      end(exit) {
        if (entry.record.exit) return
        entry.record = { ...entry.record, exit }
        resolve()
        tell(entry.record)
      },
    }
    live.set(keyFor(record.pod, record.name), entry)
    if (record.exit) resolve()
    else if (process) void follow(entry, process, childGone)
    return entry
  }
  const follow = async (entry: Live, process: ProcessIdentity, childGone: Promise<void> | undefined) => {
    try {
      // The supervisor writes the code after the process has gone, and is gone itself a moment later.
      await (childGone ?? processes.gone(process, stopping.signal))
      const exit = await exitOf(entry, stopping.signal)
      // Children that left the group die with their container, as they would in a real one.
      await entry.namespace?.killAll()
      await entry.namespace?.[Symbol.asyncDispose]()
      entry.end(exit)
    } catch (error) {
      if (!stopping.signal.aborted) log.error('container lost', { container: entry.record.id, error })
    }
  }
  const exitOf = async ({ directory, process }: Live, signal: AbortSignal): Promise<ContainerExit> => {
    for (let tries = 0; tries < 20; tries++) {
      const exit = parseExit(await readOrNothing(files, join(directory, 'exit'), signal))
      if (exit) return exit
      if (process && (await processes.isAlive(process))) await processes.gone(process, signal)
      else await clock.sleep(50, signal)
    }
    return lostExit(clock.now())
  }

  return {
    version: 'hawser-processes://1',
    async restore(signal) {
      await prepare(signal)
      const found: ContainerRecord[] = []
      for (const pod of await names(files, deps.directory, signal)) {
        if (pod.startsWith(going)) {
          await finishRemoval(join(deps.directory, pod), signal)
          continue
        }
        for (const name of await names(files, join(deps.directory, pod), signal)) {
          for (const attempt of latestAttempts(await names(files, join(deps.directory, pod, name), signal))) {
            const directory = join(deps.directory, pod, name, String(attempt))
            const record = await adopt(directory, podUid(pod), name, attempt, signal)
            if (record) found.push(record)
          }
        }
      }
      return found
    },
    start: (request, signal) =>
      turn(async () => {
        // While it waited for its turn the pod may have gone.
        signal.throwIfAborted()
        await prepare(stopping.signal)
        using patience = delayedAbort(clock, signal, unwantedStartMs)
        const record = await launchContainer(request, AbortSignal.any([stopping.signal, patience.signal]))
        tell(record)
        return record
      }),
    async stop({ pod, name, graceMs }, signal) {
      const entry = live.get(keyFor(pod, name))
      if (!entry || entry.record.exit) return
      if (!entry.process) {
        const exit: ContainerExit = { code: 0, at: clock.now(), reason: 'Completed' }
        // On a full disk it ends all the same; a later life of the agent would end it once more.
        await files
          .writeFile(join(entry.directory, 'exit'), `0 ${exit.at}\n`, { mode: 0o600 }, signal)
          .catch((error: unknown) => log.warn('an end was not written down', { container: entry.record.id, error }))
        return entry.end(exit)
      }
      if (graceMs > 0) {
        await processes.signalGroup(entry.process, 'SIGTERM')
        using deadline = clock.deadline(graceMs, signal)
        if (await goneBy(entry.gone, deadline.signal)) return
        signal.throwIfAborted()
      }
      await processes.signalGroup(entry.process, 'SIGKILL')
      await entry.namespace?.killAll()
      if (!(await goneBy(entry.gone, signal))) signal.throwIfAborted()
    },
    async exec(request, signal) {
      const argv = argvInside(request, processOf(request))
      return await processes.run({ argv, env: variablesOf(request), timeoutMs: request.timeoutMs }, signal)
    },
    async converse(request, streams, signal) {
      const { tty, user: owner = 0 } = request
      const env = tty ? { TERM: 'xterm', ...request.env } : request.env
      const argv = argvInside(request, processOf(request))
      return await processes.converse({ argv, env: variablesOf({ env }), tty, owner }, streams, signal)
    },
    async speak(request, input, signal) {
      processOf(request)
      const { directory } = live.get(keyFor(request.pod, request.name))!
      await processes.speak(join(directory, 'stdin'), input, signal).catch((error: unknown) => {
        if (hasCode(error, 'ENOENT')) throw new Error(`container ${request.name} reads no input`)
        throw error
      })
      if (request.once) await processes.speak(join(directory, 'detach'), oneLine(), signal)
    },
    async removePod(pod, signal) {
      // Logs first: while there are records, a later life of the agent still knows of the pod.
      for (const name of await names(files, deps.logDirectory, signal))
        if (name.endsWith(`_${pod}`)) await files.removeTree(join(deps.logDirectory, name), signal)
      for (const [key, entry] of live) if (entry.record.pod === pod) live.delete(key)
      // In one go: of half a pod a later life would find no record, and nobody would ever take its directories away.
      const aside = join(deps.directory, `${going}${pod}`)
      await files.removeTree(aside, signal) // a pod of that uid that came back after a removal which failed
      await files.rename(join(deps.directory, pod), aside, signal).catch((error: unknown) => {
        if (!hasCode(error, 'ENOENT')) throw error
      })
      await files.removeTree(aside, signal)
    },
    subscribe(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('the agent is stopping; containers run on'))
      for (const { namespace } of live.values()) await namespace?.[Symbol.asyncDispose]()
    },
  }

  function processOf({ pod, name }: { readonly pod: PodUid; readonly name: string }): ProcessIdentity {
    const { record, process } = live.get(keyFor(pod, name)) ?? {}
    if (!record || record.exit) throw new Error(`container ${name} does not run`)
    if (!process) throw new Error(`container ${name} has no command, so there is no process to run beside`)
    return process
  }

  async function launchContainer(request: ContainerRequest, signal: AbortSignal): Promise<ContainerRecord> {
    const { pod, name, attempt } = request
    const directory = join(deps.directory, pod, name, String(attempt))
    const id = `hawser://${pod}/${name}/${attempt}`
    const owner = `${request.namespace}/${request.podName}`
    const { graceMs } = request
    const record: ContainerRecord = { pod, name, attempt, id, startedAt: clock.now(), owner, graceMs }
    await files.mkdirAll(directory, 0o700, signal)
    const saved = { startedAt: record.startedAt, pause: request.argv.length === 0, owner, graceMs }
    await files.writeFile(join(directory, tokenOf(saved)), '', { mode: 0o600 }, signal)
    await files.writeFile(join(directory, 'record.json'), JSON.stringify(saved), { mode: 0o600 }, signal)
    if (saved.pause) return keep(record, directory, undefined, undefined).record

    const logs = join(deps.logDirectory, `${request.namespace}_${request.podName}_${pod}`, name)
    await files.mkdirAll(logs, 0o755, signal)
    const outputFile = join(logs, `${attempt}.log`)
    const launched = await launch(request, directory, tokenOf(saved), outputFile, signal).catch(
      async (error: unknown) => {
        await endHalfStarted(directory)
        throw error
      },
    )
    if (!launched.message.startsWith('started\n')) {
      await launched.exited
      await files.removeTree(directory, signal)
      throw new Error(launched.message.trim() || 'the container could not be set up')
    }
    const process = await identityIn(directory, signal)
    const namespace = process && (await processes.mountNamespace(process))
    return keep(record, directory, process ?? launched.identity, namespace, launched.exited).record
  }

  async function launch(
    request: ContainerRequest,
    directory: string,
    token: string,
    outputFile: string,
    signal: AbortSignal,
  ) {
    const { argv, env } = await commandOf(request, directory, token, signal)
    return await processes.launch({ argv, env, outputFile, timeoutMs: startTimeoutMs }, signal)
  }

  /** A start that hangs is ended for good: its container must not come to life when nobody knows of it any more. */
  async function endHalfStarted(directory: string): Promise<void> {
    using deadline = clock.deadline(killMs, new AbortController().signal)
    const process = await identityIn(directory, deadline.signal)
    if (process) {
      await using namespace = await processes.mountNamespace(process)
      await processes.signalGroup(process, 'SIGKILL')
      await namespace?.killAll()
      await processes.gone(process, deadline.signal).catch(() => {})
    }
    await files.removeTree(directory, deadline.signal)
  }

  /** The whole command line: supervise → unshare → setup → (setpriv) → enter → the container's command. */
  async function commandOf(request: ContainerRequest, directory: string, token: string, signal: AbortSignal) {
    const binds = await Promise.all(
      [...request.mounts]
        .sort((a, b) => depth(a.target) - depth(b.target))
        .map((mount) => bindArguments(mount, signal)),
    )
    for (const { source, target } of request.devices)
      binds.push([await files.realpath(source, signal), target, 'device'])
    const unchanged = request.mounts.some(({ propagation }) => propagation === 'Bidirectional')
    const ownDev = request.devices.length > 0 || request.mounts.some(({ target }) => target.startsWith('/dev/'))
    const argv: [string, ...string[]] = ['/bin/sh', '-c', superviseScript, 'hawser-supervise', directory, token]
    argv.push(request.stdin ? '1' : '')
    argv.push('unshare', '--mount', '--propagation', unchanged ? 'unchanged' : 'slave', '--')
    argv.push('/bin/sh', '-c', setupScript, 'hawser-setup', directory, deps.hidden.join(':'))
    argv.push(request.readOnlyRoot ? '1' : '', ownDev ? '1' : '', request.workingDirectory)
    argv.push(privilegesOf(request), enterScript, String(binds.length), ...binds.flat(), ...request.argv)
    return { argv, env: variablesOf(request) }
  }

  async function bindArguments(mount: ContainerMount, signal: AbortSignal): Promise<string[]> {
    const propagation = { None: 'rprivate', HostToContainer: 'rslave', Bidirectional: 'rshared' }[mount.propagation]
    const readOnly = !mount.readOnly ? '' : mount.recursiveReadOnly ? ',rro' : ',ro'
    return [await files.realpath(mount.source, signal), mount.target, `${propagation}${readOnly}`]
  }

  /** A container of an earlier life: still there, ended, or never quite begun. */
  async function adopt(directory: string, pod: PodUid, name: string, attempt: number, signal: AbortSignal) {
    const text = await readOrNothing(files, join(directory, 'record.json'), signal)
    const saved = parseRecord(text) ?? (await recordOfLiving(directory, signal))
    if (!saved || (!saved.pause && (await neverBegan(directory, saved, signal)))) {
      // The agent died before the container began; its next start uses the same attempt.
      await files.removeTree(directory, signal)
      return undefined
    }
    const process = await identityIn(directory, signal)
    const told = parseExit(await readOrNothing(files, join(directory, 'exit'), signal))
    const exit = told ?? (saved.pause || process ? undefined : lostExit(clock.now()))
    const { pause: _pause, ...rest } = saved
    const record: ContainerRecord = { pod, name, attempt, id: `hawser://${pod}/${name}/${attempt}`, ...rest }
    if (exit) return keep({ ...record, exit }, directory, process, undefined).record
    if (!process) return keep(record, directory, undefined, undefined).record
    return keep(record, directory, process, await processes.mountNamespace(process)).record
  }

  /** What cannot be removed now keeps nobody from starting; the next life tries again. */
  async function finishRemoval(path: string, signal: AbortSignal): Promise<void> {
    await files.removeTree(path, signal).catch((error: unknown) => {
      signal.throwIfAborted()
      log.warn('what is left of a container could not be removed', { path, error })
    })
  }

  /** Whatever became of its record: a process that lives must not be started a second time. */
  async function recordOfLiving(directory: string, signal: AbortSignal): Promise<SavedRecord | undefined> {
    const process = await identityIn(directory, signal)
    return process && (await processes.isAlive(process)) ? { startedAt: clock.now(), pause: false } : undefined
  }

  /** Takes the token away from a supervisor that is still on its way; one that has taken it will write its pid in a moment. */
  async function neverBegan(directory: string, saved: SavedRecord, signal: AbortSignal): Promise<boolean> {
    const written = async () =>
      (await identityIn(directory, signal)) !== undefined || (await files.exists(join(directory, 'exit'), signal))
    if (await written()) return false
    const token = join(directory, tokenOf(saved))
    const taken = await files.rename(token, `${token}.void`, signal).then(
      () => false,
      (error: unknown) => {
        if (hasCode(error, 'ENOENT')) return true
        throw error
      },
    )
    for (let waited = 0; taken && waited < beginMs; waited += 50) {
      if (await written()) return false
      await clock.sleep(50, signal)
    }
    return true
  }

  async function identityIn(directory: string, signal: AbortSignal): Promise<ProcessIdentity | undefined> {
    return parseIdentity(await readOrNothing(files, join(directory, 'pid'), signal))
  }
}

/** True when the container went within the time. */
async function goneBy(gone: Promise<void>, signal: AbortSignal): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>()
  signal.addEventListener('abort', () => resolve(false), { once: true })
  return await Promise.race([gone.then(() => true), late])
}

async function* oneLine(): AsyncGenerator<Uint8Array, void, undefined> {
  yield Buffer.from('\n')
}

const depth = (path: string) => path.split('/').filter(Boolean).length

async function names(files: Host['files'], path: string, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return await files.readDir(path, signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
    throw error
  }
}

async function readOrNothing(files: Host['files'], path: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    return await files.readText(path, signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}
