// How are long-lived processes started, found again and ended? The port behind the `processes` runtime.
// A process is named by pid and start time: a pid alone may belong to somebody else by now.
import type { CommandStreams } from '../streams/remote-command.ts'

export interface ProcessIdentity {
  readonly pid: number
  /** Field 22 of /proc/<pid>/stat, in clock ticks since boot. */
  readonly startTime: string
}

export interface LaunchRequest {
  readonly argv: readonly [string, ...string[]]
  /** The whole environment; nothing of ours is inherited. */
  readonly env: Readonly<Record<string, string>>
  /** Standard output and standard error are appended here. */
  readonly outputFile: string
  /** How long the process may take to write to descriptor 3, before and after it is told to go on. */
  readonly timeoutMs: number
  /**
   * Called when the process has written `ready` to descriptor 3. The process reads `go` there when this is done; when it fails,
   * or when we die, it reads the end of the file.
   */
  prepare?(): Promise<void>
}

export interface Launched {
  readonly identity: ProcessIdentity
  /** What the child wrote to its descriptor 3 before closing it, or until `started`, if that came first. */
  readonly message: string
  /** Resolves when this child of ours is gone. */
  readonly exited: Promise<void>
}

/** Whose rights a command has. */
export interface ProcessRights {
  readonly user?: number
  readonly group?: number
  readonly groups: readonly number[]
  /** Lower case, without `cap_`. Absent: all. */
  readonly capabilities?: readonly string[]
  /** Programs with the setuid bit give nothing. */
  readonly noNewPrivileges?: boolean
}

/** A process with a mount namespace of its own; a command begins beside it, with these rights already. */
export interface InsideRequest {
  readonly process: ProcessIdentity
  readonly rights: ProcessRights
}

export interface RunRequest {
  readonly argv: readonly [string, ...string[]]
  readonly inside?: InsideRequest
  /** The whole environment; nothing of ours is inherited. */
  readonly env: Readonly<Record<string, string>>
  /** It is killed with its group when it takes longer (TIMEOUT). */
  readonly timeoutMs: number
}

interface RunResult {
  readonly exitCode: number
  /** Standard output and standard error together, the first ten kilobytes. */
  readonly output: string
}

export interface InteractiveRequest {
  readonly argv: readonly [string, ...string[]]
  readonly inside?: InsideRequest
  /** The whole environment; nothing of ours is inherited. */
  readonly env: Readonly<Record<string, string>>
  /** A terminal of its own; then all its output is standard output. */
  readonly tty: boolean
  /** Whose streams they are: a process that changes its user opens /dev/stderr and its terminal by name. */
  readonly owner?: number
}

export interface Processes {
  /** Starts a process in a session of its own that lives on when we die; answers when it has written to descriptor 3. */
  launch(request: LaunchRequest, signal: AbortSignal): Promise<Launched>
  /** Runs a process to its end. A non-zero exit is an answer, not an error. */
  run(request: RunRequest, signal: AbortSignal): Promise<RunResult>
  /**
   * Runs a process with its streams open, to its end; answers its exit code. When the signal aborts it is killed, with
   * everything of its session; when one of its listeners fails, too.
   */
  runInteractive(request: InteractiveRequest, streams: CommandStreams, signal: AbortSignal): Promise<number>
  /** Writes into a named pipe until the input ends; fails with ENXIO when nobody reads it, ENOENT when there is none. */
  writePipe(pipe: string, input: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>
  isAlive(identity: ProcessIdentity): Promise<boolean>
  /** Resolves when the process is gone, also for processes that are no children of ours. */
  gone(identity: ProcessIdentity, signal: AbortSignal): Promise<void>
  /** Signals the process group led by this process; nothing happens when the process is gone. */
  signalGroup(identity: ProcessIdentity, name: 'SIGTERM' | 'SIGKILL' | 'SIGINT'): Promise<void>
  /** The mount namespace of a process, held until it is disposed of; undefined when the process is gone. */
  mountNamespace(identity: ProcessIdentity): Promise<MountNamespace | undefined>
}

/**
 * While it is held, its number cannot pass to another namespace: the kernel gives the number of one that is gone to the
 * very next one, and whoever lives there is somebody else. Holding it also holds its mounts, so let it go in time.
 */
export interface MountNamespace extends AsyncDisposable {
  /**
   * Attaches copies of mounts of ours at places in it, in this order. Its root must not lead to ours any more. A target is made
   * if it is missing; links on the way are followed only on the root's own filesystem, never inside an attached mount.
   */
  attach(inside: NamespaceContent, signal: AbortSignal): Promise<void>
  /** Kills every process in it; refuses our own. Answers how many there were. */
  killAll(): Promise<number>
}

export interface NamespaceContent {
  readonly mounts: readonly MountInside[]
  readonly protectedPaths: ProtectedPaths
  /** Made if it is missing, unless a link inside a mount leads to it. */
  readonly workingDirectory: string
  /** The root's own filesystem; the mounts have their own setting. */
  readonly readOnlyRoot: boolean
}

export interface MountInside {
  /** A path of the host: a directory, a file or a device. */
  readonly source: string
  /** An absolute path in the namespace. */
  readonly target: string
  readonly readOnly: boolean
  /** With `readOnly`: the mounts below it too. */
  readonly recursiveReadOnly: boolean
  /** Device files on it cannot be used. */
  readonly noDevices: boolean
  readonly propagation: 'private' | 'slave' | 'shared'
}

/** Paths of /proc and /sys in the namespace; those that do not exist are left out. */
export interface ProtectedPaths {
  readonly readOnly: readonly string[]
  /** Files that read as empty. */
  readonly masked: readonly string[]
}
