// Which containers does the process runtime know, and when does one end? A record per container, a listener on its process,
// and everyone who subscribed is notified of the end.
import { join } from 'node:path/posix'
import type { PodUid } from '../../api/names.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Files, Host } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import type { MountNamespace, Processes, ProcessIdentity } from '../../host/processes.ts'
import { readIfThere } from '../../host/read-if-there.ts'
import type { Listeners } from '../../loop/listeners.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ImageEntrypoint } from './entrypoints.ts'
import type { ContainerExit, ContainerRecord } from './port.ts'
import { lostExit, parseExit, parseIdentity } from './records.ts'

export interface ProcessRuntimeDeps {
  readonly host: Host
  readonly processes: Processes
  readonly clock: Clock
  readonly log: Log
  /** Where container records lie; made private so that nothing mounted below it reaches the host. */
  readonly directory: string
  /** `<logs>/<namespace>_<pod>_<uid>/<container>/<attempt>.log` */
  readonly logDirectory: string
  /** Directories and files of the node that no container may see; links count as what they lead to. */
  readonly hidden: readonly string[]
  /** Programs of images, for containers without a command. */
  readonly entrypoints?: readonly ImageEntrypoint[] | undefined
}

export interface ProcessRuntimeState extends ProcessRuntimeDeps {
  /** The real paths of what is hidden. */
  realHidden: readonly string[]
  /** By pod uid and container name. */
  readonly live: Map<string, LiveContainer>
  readonly listeners: Listeners<[ContainerRecord]>
  /** Aborts when the agent stops; containers run on. */
  readonly stopping: AbortController
}

export interface LiveContainer {
  record: ContainerRecord
  readonly directory: string
  /** Unknown: its pid could not be read. */
  readonly process: ProcessIdentity | 'unknown'
  readonly namespace: MountNamespace | undefined
  /** Resolves when the container has ended. */
  readonly gone: Promise<void>
  end(exit: ContainerExit): void
}

interface NewContainer {
  readonly record: ContainerRecord
  readonly directory: string
  readonly process: ProcessIdentity | 'unknown'
  readonly namespace?: MountNamespace | undefined
  /** Resolves when its supervisor has gone, if that is a child of ours. */
  readonly supervisorGone?: Promise<void>
}

export const containerKey = (pod: PodUid, name: string) => `${pod}/${name}`

/** Keeps a container's record; its end is noticed from here on. */
export function addContainer(state: ProcessRuntimeState, container: NewContainer): ContainerRecord {
  const { record, directory, process, namespace } = container
  const { promise: gone, resolve } = Promise.withResolvers<void>()
  const entry: LiveContainer = {
    record,
    directory,
    process,
    namespace,
    gone,
    end(exit) {
      if (entry.record.exit) return
      entry.record = { ...entry.record, exit }
      resolve()
      state.listeners.tell(entry.record)
    },
  }
  state.live.set(containerKey(record.pod, record.name), entry)
  if (record.exit) resolve()
  else if (container.supervisorGone) void waitForEnd(state, entry, container.supervisorGone)
  else if (process !== 'unknown') void waitForEnd(state, entry, state.processes.gone(process, state.stopping.signal))
  return record
}

async function waitForEnd(state: ProcessRuntimeState, entry: LiveContainer, gone: Promise<void>): Promise<void> {
  const { signal } = state.stopping
  try {
    // The supervisor writes the code after the process has gone, and is gone itself a moment later.
    await gone
    const exit = await readExit(state, entry, signal)
    // Children that left the group die with their container, as they would in a real one.
    await entry.namespace?.killAll()
    await entry.namespace?.[Symbol.asyncDispose]()
    entry.end(exit)
  } catch (error) {
    if (!signal.aborted) state.log.error('container lost', { container: entry.record.id, error })
  }
}

async function readExit(
  { host, processes, clock }: ProcessRuntimeState,
  { directory, process }: LiveContainer,
  signal: AbortSignal,
): Promise<ContainerExit> {
  for (let tries = 0; tries < 20; tries++) {
    const exit = parseExit(await readIfThere(host.files, join(directory, 'exit'), signal))
    if (exit) return exit
    if (process !== 'unknown' && (await processes.isAlive(process))) await processes.gone(process, signal)
    else await clock.sleep(50, signal)
  }
  return lostExit(clock.now())
}

/** The process whose pid and start time the container's setup wrote down; in `pid` from the moment when it counts as begun. */
export async function readIdentity(
  files: Files,
  directory: string,
  signal: AbortSignal,
  file = 'pid',
): Promise<ProcessIdentity | undefined> {
  return parseIdentity(await readIfThere(files, join(directory, file), signal))
}

export async function listDirectory(files: Files, path: string, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return await files.readDir(path, signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
    throw error
  }
}
