// What may we ask of the operating system? The port that plugins, the node agent and CSI build on.
// Linux implements it in `linux/`, the simulator's twin in `model/`; both pass `test/contracts/host.ts`.

import type { Distrust } from './trusted-path.ts'

/**
 * Everything below obeys four rules:
 * 1. Every call takes a signal last and has a deadline of its own; a call never blocks the event loop.
 * 2. A call on a path that hangs delays only other calls on that same path.
 * 3. Failures are `HostError`s; `certain: false` means the call may still take effect.
 * 4. Paths are absolute. Nothing here ever goes through a shell.
 */
export interface Host {
  readonly files: Files
  readonly mounts: Mounts
  readonly devices: Devices
  readonly filesystems: Filesystems
  /** Runs a program to its end. A non-zero exit is an answer, not an error. */
  run(command: Command, signal: AbortSignal): Promise<CommandResult>
}

// ---- files ---------------------------------------------------------------------------------------------------------

export type FileKind = 'directory' | 'file' | 'symlink' | 'socket' | 'fifo' | 'blockDevice' | 'charDevice'

export interface FileStat {
  readonly kind: FileKind
  /** Permission bits with setuid, setgid and sticky: 0 … 0o7777. */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly sizeBytes: number
  readonly inode: bigint
  readonly links: number
  /** "major:minor" of the filesystem the entry lies on. */
  readonly device: string
  /** "major:minor" of the device the entry *is*; empty unless it is a device node. */
  readonly deviceNode: string
  readonly modifiedMs: number
}

export interface Files {
  /** One directory with exactly this mode (the umask does not matter). EEXIST if there is anything. */
  mkdir(path: string, mode: number, signal: AbortSignal): Promise<void>
  /** The same, but missing parents are made first, with a mode of their own. */
  mkdirDeep(path: string, modes: DeepModes, signal: AbortSignal): Promise<void>
  /** The directory and its missing parents, each with exactly this mode. What exists stays as it is. */
  mkdirAll(path: string, mode: number, signal: AbortSignal): Promise<void>
  /** The same for several directories of one, in one trip to the system. */
  mkdirEach(base: string, names: readonly string[], mode: number, signal: AbortSignal): Promise<void>
  readFile(path: string, signal: AbortSignal): Promise<Uint8Array>
  readText(path: string, signal: AbortSignal): Promise<string>
  writeFile(path: string, data: Uint8Array | string, options: WriteOptions, signal: AbortSignal): Promise<void>
  /** Names only, without a stat of any entry: a dead mount below must not hang the listing. */
  readDir(path: string, signal: AbortSignal): Promise<string[]>
  /** Follows symbolic links. */
  stat(path: string, signal: AbortSignal): Promise<FileStat>
  lstat(path: string, signal: AbortSignal): Promise<FileStat>
  /** False only for ENOENT and ENOTDIR. A path on a dead mount throws (see `isDeadMount`), for it does exist. */
  exists(path: string, signal: AbortSignal): Promise<boolean>
  symlink(target: string, path: string, signal: AbortSignal): Promise<void>
  readlink(path: string, signal: AbortSignal): Promise<string>
  realpath(path: string, signal: AbortSignal): Promise<string>
  rename(from: string, to: string, signal: AbortSignal): Promise<void>
  /** Follows links; use it only where nobody else can plant one. */
  chmod(path: string, mode: number, signal: AbortSignal): Promise<void>
  /** Never follows links. -1 leaves an owner as it is. */
  lchown(path: string, uid: number, gid: number, signal: AbortSignal): Promise<void>
  rmdir(path: string, signal: AbortSignal): Promise<void>
  unlink(path: string, signal: AbortSignal): Promise<void>
  /** Removes one file, link or empty directory. Nothing there is success; a full directory is ENOTEMPTY. */
  remove(path: string, signal: AbortSignal): Promise<void>
  /** Deletes a tree by descriptor. A mount point inside stops it with EBUSY: no mount is ever crossed or removed. */
  removeTree(path: string, signal: AbortSignal): Promise<void>
  /** Deletes the empty directories of a tree, crossing no mount; a file stops it with ENOTEMPTY, also in the root's place. */
  removeEmptyTree(path: string, signal: AbortSignal): Promise<void>
  /** Calls the listener with changed paths below the directory until disposed. Changes may be merged. */
  watch(path: string, listener: (path: string) => void, signal: AbortSignal): Promise<Disposable>
  /**
   * Opens what `relative` names below `root`, atomically: symbolic links are followed only while they stay below
   * the root, `..` and absolute links out of it are EXDEV, magic links ELOOP. The handle pins the file found.
   */
  openBeneath(root: string, relative: string, signal: AbortSignal): Promise<OpenPath>
  /** Makes missing directories below `root` by descriptor; existing directories are fine, other things ENOTDIR. */
  mkdirBeneath(root: string, relative: string, mode: number, signal: AbortSignal): Promise<void>
  /**
   * Writes a set of new files below `root` by descriptor, parents included (0755): nothing that somebody plants there
   * meanwhile is followed or overwritten. EEXIST if a file is there already.
   */
  writeTree(root: string, entries: readonly TreeEntry[], signal: AbortSignal): Promise<void>
  /**
   * Every entry below `root` but the directories that hold others, following nothing. Other kinds have no bytes. EFBIG for more
   * than 16 MiB or 100,000 entries, EXDEV for a mount inside.
   */
  readTree(root: string, signal: AbortSignal): Promise<readonly FoundEntry[]>
  /** Who else could change what lies at the path, or on the way to it; `trusted-path.ts` has the rules. */
  distrust(path: string, signal: AbortSignal): Promise<Distrust | undefined>
  /** The fsGroup walk by descriptor: children first, the root last, no mount entered; see `ownership.ts` for the rules. */
  setGroup(request: GroupRequest, signal: AbortSignal): Promise<GroupResult>
}

export interface DeepModes {
  readonly mode: number
  readonly parentMode: number
}

export interface WriteOptions {
  readonly mode: number
  /** Missing parents are made, each with exactly this mode. */
  readonly parentMode?: number
  /** Temporary file, fsync, rename, fsync of the directory: after a crash the file is all old or all new. */
  readonly durable?: boolean
  /** EEXIST if there is anything at the path. */
  readonly exclusive?: boolean
}

/** A file held open by its inode. `path` leads to it as long as it is open, whatever happens to its names. */
export interface OpenPath extends AsyncDisposable {
  readonly path: string
  readonly stat: FileStat
  close(): Promise<void>
}

export interface TreeEntry {
  readonly path: string
  readonly bytes: Uint8Array
  readonly mode: number
  readonly uid?: number
}
export interface FoundEntry {
  readonly path: string
  readonly kind: FileKind
  readonly bytes: Uint8Array
}

interface GroupRequest {
  readonly root: string
  readonly gid: number
  readonly readOnly: boolean
  /** Called from time to time with the number of entries done so far. */
  readonly onProgress?: (done: number) => void
}
export interface GroupResult {
  readonly entries: number
  /** Entries whose owner or mode could not be changed (FSG-3: such failures do not stop the walk). */
  readonly refused: number
}

// ---- mounts --------------------------------------------------------------------------------------------------------

export type Propagation = 'private' | 'shared' | 'slave' | 'unbindable'

export interface MountRequest {
  readonly source: string
  readonly target: string
  readonly type: string
  /** As after `mount -o`: flag words become flags, the rest goes to the filesystem. */
  readonly options: readonly string[]
  /** Options that no message may show. */
  readonly secretOptions?: readonly string[]
  readonly timeoutMs?: number
}

export interface BindRequest {
  readonly source: string | OpenPath
  readonly target: string
  readonly readOnly?: boolean
  /** With submounts. Together with `readOnly` the submounts become read-only too. */
  readonly recursive?: boolean
  /** Further per-mount options: nosuid, nodev, noexec, noatime, relatime, nodiratime, … */
  readonly options?: readonly string[]
}

export interface MountInfo {
  readonly id: bigint
  readonly parentId: bigint
  readonly mountPoint: string
  /** The directory of the filesystem that is seen at the mount point. */
  readonly root: string
  readonly device: string
  readonly type: string
  readonly source: string
  /** Per-mount options: ro, nosuid, … */
  readonly options: readonly string[]
  /** Options of the filesystem itself: size=…, context=…, … */
  readonly superOptions: readonly string[]
  readonly propagation: Propagation
}

export interface Mounts {
  mount(request: MountRequest, signal: AbortSignal): Promise<void>
  /** One atomic step: the new mount point appears with all its options or not at all, and keeps the source's flags. */
  bind(request: BindRequest, signal: AbortSignal): Promise<void>
  /** Changes options of the filesystem mounted at `target`, as in `mount -o remount,size=…`. */
  remount(target: string, options: readonly string[], signal: AbortSignal): Promise<void>
  setPropagation(
    target: string,
    to: Propagation,
    options: { readonly recursive: boolean },
    signal: AbortSignal,
  ): Promise<void>
  /** Makes the mount that holds `path` shared with all below; binds `path` onto itself first if it is none (MOUNT-24). */
  makeShared(path: string, signal: AbortSignal): Promise<void>
  /** Success too if nothing is mounted there or the path is gone. `force` and `lazy` are umount2's flags. */
  unmount(
    target: string,
    options: { readonly force?: boolean; readonly lazy?: boolean; readonly timeoutMs?: number },
    signal: AbortSignal,
  ): Promise<void>
  /** Asks the kernel about this one path; does not follow a last symbolic link. ENOENT if there is nothing. */
  isMountPoint(path: string, signal: AbortSignal): Promise<boolean>
  /** Does the filesystem at `path` answer within this time? False for servers that are gone or hang. */
  answers(path: string, timeoutMs: number, signal: AbortSignal): Promise<boolean>
  /** The mount that holds `path` (the topmost one). Does not read the mount table. */
  info(path: string, signal: AbortSignal): Promise<MountInfo>
  /** Every mount. For restart and diagnosis, not for each operation. */
  list(signal: AbortSignal): Promise<readonly MountInfo[]>
  /** Other mount points that show the same directory of the same filesystem as `path` (MOUNT-17). */
  references(path: string, signal: AbortSignal): Promise<readonly string[]>
}

// ---- devices -------------------------------------------------------------------------------------------------------

export interface LoopRequest {
  readonly file: string
  readonly readOnly: boolean
  /** Let the kernel free the device when its last user closes it. */
  readonly autoClear?: boolean
  readonly directIo?: boolean
}

export interface Devices {
  sizeBytes(device: string, signal: AbortSignal): Promise<bigint>
  isReadOnly(device: string, signal: AbortSignal): Promise<boolean>
  /** Opens with O_EXCL: true if a mount or another holder has the block device (MOUNT-23). */
  isInUse(device: string, signal: AbortSignal): Promise<boolean>
  /** "/dev/loopN" now backed by the file or block device. */
  attachLoop(request: LoopRequest, signal: AbortSignal): Promise<string>
  /** Success too if the device is free already. */
  detachLoop(device: string, signal: AbortSignal): Promise<void>
  /** The loop devices backed by the file of this path (as the kernel names it). */
  loopsOf(file: string, signal: AbortSignal): Promise<readonly string[]>
  /** Tells the loop device that its file has grown. */
  refreshLoop(device: string, signal: AbortSignal): Promise<void>
  /** Flushes the device's buffers (`blockdev --flushbufs`). */
  flush(device: string, signal: AbortSignal): Promise<void>
}

// ---- filesystems ---------------------------------------------------------------------------------------------------

/** What a block device holds. `unknown` has something on it that must not be overwritten (partitions, members). */
export type DiskContent =
  | { readonly kind: 'blank' }
  | { readonly kind: 'filesystem'; readonly type: string }
  | { readonly kind: 'unknown'; readonly description: string }

export interface CheckResult {
  readonly kind: 'clean' | 'corrected' | 'errorsLeft' | 'failed' | 'unavailable'
  readonly exitCode: number
  readonly output: string
}

export interface DiskUsage {
  readonly capacityBytes: bigint
  readonly availableBytes: bigint
  readonly usedBytes: bigint
  readonly inodes: bigint
  readonly inodesFree: bigint
  readonly inodesUsed: bigint
  /** Name of the filesystem where we know the number ('tmpfs', 'hugetlbfs', 'ext', 'xfs', 'btrfs', 'nfs', …). */
  readonly type: string
}

export interface Filesystems {
  detect(device: string, signal: AbortSignal): Promise<DiskContent>
  /** Runs mkfs.<type>; extra options come before the device. Refuses a device that `detect` does not call blank. */
  make(
    request: { readonly device: string; readonly type: string; readonly options?: readonly string[] },
    signal: AbortSignal,
  ): Promise<void>
  check(device: string, signal: AbortSignal): Promise<CheckResult>
  /** Grows the filesystem to its device. Unformatted is no error and no growth (RESIZE-1). */
  grow(request: { readonly device: string; readonly mountPath: string }, signal: AbortSignal): Promise<boolean>
  /** Could `grow` do anything? (RESIZE-2) */
  mayGrow(device: string, mountPath: string, signal: AbortSignal): Promise<boolean>
  /** statfs: the whole filesystem that holds the path (METRIC-3). */
  usage(path: string, signal: AbortSignal): Promise<DiskUsage>
  /** du: what this tree alone uses; what is mounted inside is skipped, hard links are counted once (METRIC-2). */
  treeUsage(path: string, signal: AbortSignal): Promise<{ readonly usedBytes: bigint; readonly inodesUsed: bigint }>
}

// ---- programs ------------------------------------------------------------------------------------------------------

export interface Command {
  /** Program and arguments; the program is looked up in PATH unless it is a path. */
  readonly argv: readonly [string, ...string[]]
  readonly timeoutMs: number
  readonly input?: string
  /** Added to a minimal environment (PATH, LC_ALL=C). */
  readonly env?: Readonly<Record<string, string>>
  /** Arguments that no message may show, by position in argv. */
  readonly secretArguments?: readonly number[]
  /** More output than this is cut off (default 1 MiB). */
  readonly maxOutputBytes?: number
}
export interface CommandResult {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}
