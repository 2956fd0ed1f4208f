// What must a container runtime do? Start and stop containers, run commands in them, keep records, and report when one ends.
// A runtime keeps its own records across restarts of the agent; `restore` is how we learn of them.
import type { Pod } from '../../api/generated/types.ts'
import type { PodUid } from '../../api/names.ts'
import type { CommandStreams } from '../../streams/remote-command.ts'
import type { ContainerWords } from './entrypoints.ts'

export interface Runtime {
  /** For node.status.nodeInfo.containerRuntimeVersion, such as `hawser-processes://1`. */
  readonly version: string
  /** Containers that an earlier agent process started, running or ended: for each, the start before its latest, then its latest. */
  restore(signal: AbortSignal): Promise<readonly ContainerRecord[]>
  /** The words that a container runs. Throws a NoCommandError if nobody knows them; without this, its command and args. */
  commandLine?(container: ContainerWords): readonly string[]
  /** Answers when the container runs (it may have ended again by then). A failure has started nothing. */
  start(request: ContainerRequest, signal: AbortSignal): Promise<ContainerRecord>
  /** Asks it to end, waits for the grace, then ends it with all its children. Resolves when it is gone. */
  stop(request: StopRequest, signal: AbortSignal): Promise<void>
  /** Runs a command inside a running container, as the container's own user. A non-zero exit is an answer. */
  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult>
  /** The same with its streams open: resolves with the exit code, and kills the command when the signal aborts. */
  runInteractive(request: InteractiveRequest, streams: CommandStreams, signal: AbortSignal): Promise<number>
  /** Writes to the stdin of the container's own process, if it has one. With `once`, its stdin ends afterwards. */
  writeStdin(request: WriteStdinRequest, input: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>
  /** Forgets a pod whose containers are gone, with its files. */
  removePod(pod: PodUid, signal: AbortSignal): Promise<void>
  /** Fields of a pod that have no effect with this runtime, one sentence each. */
  unheldWishes?(pod: Pod): readonly string[]
  /** The listener is called with every change of a container. */
  subscribe(listener: (record: ContainerRecord) => void): Disposable
}

export interface ContainerRecord {
  readonly pod: PodUid
  readonly name: string
  /** 0 for the first start, one more for each restart. */
  readonly attempt: number
  readonly id: string
  readonly startedAt: number
  /** namespace/name of its pod, where that is known: after a restart, no pod with its uid may exist any more. */
  readonly owner?: string
  /** Its termination grace, for an agent that finds it without its pod. */
  readonly graceMs?: number
  readonly exit?: ContainerExit
}

export interface ContainerExit {
  readonly code: number
  readonly at: number
  readonly reason: string
  readonly message?: string
}

/** As whom, where and with which variables a container's processes run. */
export interface ProcessSettings {
  readonly env: Readonly<Record<string, string>>
  readonly workingDirectory: string
  readonly user?: number
  readonly group?: number
  readonly groups: readonly number[]
  /** Lower case, without `cap_`. Absent: all; then it also sees the machine's devices and may change the kernel's settings. */
  readonly capabilities?: readonly string[]
  /** Programs with the setuid bit give nothing. */
  readonly noNewPrivileges?: boolean
}

export interface ContainerRequest extends ProcessSettings {
  readonly pod: PodUid
  readonly podName: string
  readonly namespace: string
  readonly name: string
  readonly attempt: number
  readonly graceMs: number
  readonly argv: readonly string[]
  readonly readOnlyRoot: boolean
  /** It sees the machine's processes; otherwise only its own. */
  readonly hostPid?: boolean
  /** Its stdin can be written to; otherwise it reads /dev/null. */
  readonly stdin?: boolean
  readonly mounts: readonly ContainerMount[]
  readonly devices: readonly ContainerDevice[]
}

export interface ContainerMount {
  readonly source: string
  readonly target: string
  readonly readOnly: boolean
  readonly recursiveReadOnly: boolean
  readonly propagation: 'None' | 'HostToContainer' | 'Bidirectional'
}

export interface ContainerDevice {
  readonly source: string
  readonly target: string
}

export interface StopRequest {
  readonly pod: PodUid
  readonly name: string
  readonly graceMs: number
}

interface ExecRequest extends ProcessSettings {
  readonly pod: PodUid
  readonly name: string
  readonly argv: readonly string[]
  readonly timeoutMs: number
}

export interface InteractiveRequest extends ProcessSettings {
  readonly pod: PodUid
  readonly name: string
  readonly argv: readonly string[]
  readonly tty: boolean
}

export interface WriteStdinRequest {
  readonly pod: PodUid
  readonly name: string
  readonly once: boolean
}

interface ExecResult {
  readonly exitCode: number
  readonly output: string
}
