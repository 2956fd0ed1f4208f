// How do containers run without a container engine? As real processes in their own mount namespace: they see the host's
// root with a private layer above it, and their volumes at their places. Images are names only; nothing is pulled.
//
// What is kept in <directory>/<pod>/<container>/<attempt>/: record.json and a token (ours), begun (the token, taken), pid (written
// by the container's own setup before it reports "started") and exit (the supervisor's, see launcher.ts). After a restart of the agent these files are the truth; a pid counts only with
// its start time.
import { join } from 'node:path/posix'
import type { PodUid } from '../../api/names.ts'
import { unheldWishes } from '../../api/pod-promises.ts'
import { hasCode } from '../../host/host-error.ts'
import type { ProcessIdentity } from '../../host/processes.ts'
import { createListeners } from '../../loop/listeners.ts'
import { delayedAbort } from './delayed-abort.ts'
import { commandLineOf } from './entrypoints.ts'
import type { LiveContainer, ProcessRuntimeDeps, ProcessRuntimeState } from './live-containers.ts'
import { containerKey, listDirectory } from './live-containers.ts'
import type { Runtime, WriteStdinRequest } from './port.ts'
import { argvInside, rightsOf, variablesOf } from './process-command.ts'
import { removalPrefix, restoreContainers } from './restore-containers.ts'
import { startContainer } from './start-container.ts'
import { createTurns } from './turns.ts'

const parallelStarts = 2
/** A start that takes longer waits for something (a dead server, most likely) and no longer counts as work. */
const slowStartMs = 1_000
/** How long a start that nobody wants any more may take to finish by itself. */
const unwantedStartMs = 2_000

export function createProcessRuntime(deps: ProcessRuntimeDeps): Runtime & AsyncDisposable {
  const { processes, clock } = deps
  const state: ProcessRuntimeState = {
    ...deps,
    realHidden: deps.hidden,
    live: new Map(),
    listeners: createListeners(),
    stopping: new AbortController(),
  }
  const { live, listeners, stopping } = state
  const inTurn = createTurns({ clock, limit: parallelStarts, slowMs: slowStartMs })
  let prepared: Promise<void> | undefined
  const prepare = (signal: AbortSignal) => (prepared ??= prepareDirectory(state, signal))
  return {
    version: 'hawser-processes://1',
    unheldWishes,
    commandLine: (container) => commandLineOf(deps.entrypoints ?? [], container),
    async restore(signal) {
      await prepare(signal)
      return await restoreContainers(state, signal)
    },
    start: (request, signal) =>
      inTurn(async () => {
        // While it waited for its turn the pod may have gone.
        signal.throwIfAborted()
        await prepare(stopping.signal)
        using later = delayedAbort(clock, signal, unwantedStartMs)
        const record = await startContainer(state, request, AbortSignal.any([stopping.signal, later.signal]))
        listeners.tell(record)
        return record
      }),
    async stop({ pod, name, graceMs }, signal) {
      const entry = live.get(containerKey(pod, name))
      if (entry && !entry.record.exit) await stopContainer(state, entry, graceMs, signal)
    },
    async exec(request, signal) {
      const inside = { process: runningProcess(state, request), rights: rightsOf(request) }
      const [argv, env] = [argvInside(request), variablesOf(request)]
      return await processes.run({ argv, inside, env, timeoutMs: request.timeoutMs }, signal)
    },
    async runInteractive(request, streams, signal) {
      const { tty, user: owner = 0 } = request
      const env = tty ? { TERM: 'xterm', ...request.env } : request.env
      const inside = { process: runningProcess(state, request), rights: rightsOf(request) }
      const asked = { argv: argvInside(request), inside, env: variablesOf({ env }), tty, owner }
      return await processes.runInteractive(asked, streams, signal)
    },
    writeStdin: (request, input, signal) => writeStdin(state, request, input, signal),
    removePod: (pod, signal) => removePod(state, pod, signal),
    subscribe: listeners.listen,
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('the agent is stopping; containers run on'))
      for (const { namespace } of live.values()) await namespace?.[Symbol.asyncDispose]()
    },
  }
}

async function prepareDirectory(state: ProcessRuntimeState, signal: AbortSignal): Promise<void> {
  const { host, directory } = state
  await host.files.mkdirAll(directory, 0o700, signal)
  state.realHidden = await Promise.all(
    state.hidden.map((path) =>
      host.files.realpath(path, signal).catch((error: unknown) => {
        if (hasCode(error, 'ENOENT')) return path
        throw error
      }),
    ),
  )
  if (await host.mounts.isMountPoint(directory, signal)) return
  await host.mounts.bind({ source: directory, target: directory }, signal)
  await host.mounts.setPropagation(directory, 'private', { recursive: false }, signal)
}

async function stopContainer(
  state: ProcessRuntimeState,
  entry: LiveContainer,
  graceMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { processes, clock } = state
  if (entry.process === 'unknown') throw unknownProcess(entry)
  if (graceMs > 0) {
    await processes.signalGroup(entry.process, 'SIGTERM')
    using deadline = clock.deadline(graceMs, signal)
    if (await isGoneBefore(entry.gone, deadline.signal)) return
    signal.throwIfAborted()
  }
  await processes.signalGroup(entry.process, 'SIGKILL')
  await entry.namespace?.killAll()
  if (!(await isGoneBefore(entry.gone, signal))) signal.throwIfAborted()
}

async function isGoneBefore(gone: Promise<void>, signal: AbortSignal): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>()
  signal.addEventListener('abort', () => resolve(false), { once: true })
  return await Promise.race([gone.then(() => true), late])
}

interface ContainerName {
  readonly pod: PodUid
  readonly name: string
}

function runningContainer({ live }: ProcessRuntimeState, { pod, name }: ContainerName): LiveContainer {
  const entry = live.get(containerKey(pod, name))
  if (!entry || entry.record.exit) throw new Error(`container ${name} does not run`)
  return entry
}

function runningProcess(state: ProcessRuntimeState, container: ContainerName): ProcessIdentity {
  const entry = runningContainer(state, container)
  const { process } = entry
  if (process === 'unknown') throw unknownProcess(entry)
  return process
}

function unknownProcess({ record, directory }: LiveContainer): Error {
  return new Error(
    `the process of container ${record.name} is unknown: its pid could not be read from ${directory}/pid`,
  )
}

async function writeStdin(
  state: ProcessRuntimeState,
  request: WriteStdinRequest,
  input: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const { processes } = state
  runningProcess(state, request)
  const { directory } = runningContainer(state, request)
  await processes.writePipe(join(directory, 'stdin'), input, signal).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) throw new Error(`container ${request.name} reads no input`)
    throw error
  })
  // The supervisor holds stdin open until it reads a line from `detach`.
  if (request.once) await processes.writePipe(join(directory, 'detach'), oneLine(), signal)
}

async function* oneLine(): AsyncGenerator<Uint8Array, void, undefined> {
  yield Buffer.from('\n')
}

async function removePod(state: ProcessRuntimeState, pod: PodUid, signal: AbortSignal): Promise<void> {
  const { host, live, logDirectory, directory } = state
  const { files } = host
  // Logs first: while there are records, a restarted agent still knows of the pod.
  for (const name of await listDirectory(files, logDirectory, signal))
    if (name.endsWith(`_${pod}`)) await files.removeTree(join(logDirectory, name), signal)
  for (const [key, entry] of live) if (entry.record.pod === pod) live.delete(key)
  // Renamed first: of a half-removed pod a restarted agent would find no record, and its directories would stay for ever.
  const aside = join(directory, `${removalPrefix}${pod}`)
  await files.removeTree(aside, signal) // a pod of that uid that came back after a removal which failed
  await files.rename(join(directory, pod), aside, signal).catch((error: unknown) => {
    if (!hasCode(error, 'ENOENT')) throw error
  })
  await files.removeTree(aside, signal)
}
