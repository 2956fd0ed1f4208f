// What is a file in the model? Inodes in filesystems, without names of their own; names live in directories.
// Deterministic: inode numbers count up, nothing asks the real system.

import type { FileKind, FileStat } from '../host.ts'
import { HostError } from '../host-error.ts'
import type { ModelDisk } from './disks.ts'

export interface Inode {
  readonly filesystem: ModelFilesystem
  readonly number: bigint
  readonly kind: FileKind
  mode: number
  uid: number
  gid: number
  modifiedMs: number
  bytes: Uint8Array
  /** Of directories. */
  readonly entries: Map<string, Inode>
  /** Of symbolic links. */
  readonly target: string
  /** Of device nodes: "major:minor". */
  readonly deviceNode: string
  /** A file that can back a loop device. */
  disk: ModelDisk | undefined
  /** Where it hangs; undefined for roots and for deleted ones. */
  parent: Inode | undefined
  name: string
}

export interface ModelFilesystem {
  readonly type: string
  readonly source: string
  readonly device: string
  readonly root: Inode
  capacityBytes: bigint
  usedBytes: bigint
  readOnly: boolean
  options: readonly string[]
  nextInode: bigint
}

export interface NewInode {
  readonly kind: FileKind
  readonly mode: number
  readonly target?: string
  readonly deviceNode?: string
  readonly now: number
}

export function createFilesystem(facts: {
  type: string
  source: string
  device: string
  capacityBytes: bigint
  options?: readonly string[]
}): ModelFilesystem {
  const filesystem = { ...facts, options: facts.options ?? [], usedBytes: 0n, readOnly: false, nextInode: 2n }
  // The root refers to its filesystem and the filesystem to its root: tied here once, never changed again.
  const whole = filesystem as unknown as { -readonly [K in keyof ModelFilesystem]: ModelFilesystem[K] }
  whole.root = createInode(whole, { kind: 'directory', mode: 0o755, now: 0 })
  return whole
}

function createInode(filesystem: ModelFilesystem, wanted: NewInode): Inode {
  return {
    filesystem,
    number: filesystem.nextInode++,
    kind: wanted.kind,
    mode: wanted.mode,
    uid: 0,
    gid: 0,
    modifiedMs: wanted.now,
    bytes: new Uint8Array(0),
    entries: new Map(),
    target: wanted.target ?? '',
    deviceNode: wanted.deviceNode ?? '',
    disk: undefined,
    parent: undefined,
    name: '',
  }
}

/** A new entry; a directory with the setgid bit hands its group on. */
export function addEntry(directory: Inode, name: string, wanted: NewInode): Inode {
  const { filesystem } = directory
  // A directory that was deleted while it is still mounted elsewhere takes nothing new.
  if (isDeleted(directory)) throw new HostError('ENOENT', `the directory of ${name} was deleted`, { path: name })
  if (blockBytes(0, wanted.kind) > filesystem.capacityBytes - filesystem.usedBytes) throw noSpace(name)
  const inode = createInode(filesystem, wanted)
  filesystem.usedBytes += blockBytes(0, wanted.kind)
  if ((directory.mode & 0o2000) !== 0) inode.gid = directory.gid
  link(directory, name, inode)
  return inode
}

export function isDeleted(inode: Inode): boolean {
  return inode.parent === undefined && inode !== inode.filesystem.root
}

export function link(directory: Inode, name: string, inode: Inode): void {
  directory.entries.set(name, inode)
  inode.parent = directory
  inode.name = name
}

export function unlink(directory: Inode, name: string): void {
  const inode = directory.entries.get(name)
  if (inode === undefined) return
  directory.entries.delete(name)
  inode.parent = undefined
  inode.filesystem.usedBytes -= blockBytes(inode.bytes.length, inode.kind)
}

export function writeBytes(inode: Inode, bytes: Uint8Array, now: number): void {
  const growth = blockBytes(bytes.length, inode.kind) - blockBytes(inode.bytes.length, inode.kind)
  const { filesystem } = inode
  if (growth > filesystem.capacityBytes - filesystem.usedBytes) throw noSpace(inode.name)
  filesystem.usedBytes += growth
  inode.bytes = Uint8Array.from(bytes)
  inode.modifiedMs = now
}

export function statOf(inode: Inode): FileStat {
  const size = inode.kind === 'symlink' ? inode.target.length : (inode.disk?.sizeBytes ?? inode.bytes.length)
  return {
    kind: inode.kind,
    mode: inode.mode,
    uid: inode.uid,
    gid: inode.gid,
    sizeBytes: Number(size),
    inode: inode.number,
    links: inode.kind === 'directory' ? 2 : 1,
    device: inode.filesystem.device,
    deviceNode: inode.deviceNode,
    modifiedMs: inode.modifiedMs,
  }
}

/** The path of an inode inside its own filesystem. */
export function pathInFilesystem(inode: Inode): string {
  // What was deleted has no path; the kernel marks it so that it equals no other.
  if (isDeleted(inode)) return `/${inode.name}//deleted-${inode.number}`
  const parts: string[] = []
  for (let current = inode; current.parent !== undefined; current = current.parent) parts.unshift(current.name)
  return `/${parts.join('/')}`
}

export function isBelow(inode: Inode, ancestor: Inode): boolean {
  for (let current: Inode | undefined = inode; current !== undefined; current = current.parent) {
    if (current === ancestor) return true
  }
  return false
}

export function blockBytes(length: number, kind: FileKind): bigint {
  if (kind === 'directory') return 4096n
  return BigInt(Math.ceil(length / 4096) * 4096)
}

function noSpace(name: string): HostError {
  return new HostError('ENOSPC', `no space left on device: ${name}`, { path: name })
}
