// Which system calls do we make ourselves, and how? Thin bindings through koffi, used inside worker threads (locks and the very end of a process apart).
// Numbers below 424 differ between architectures and go through libc's functions; newer ones are the same everywhere.

import koffi from 'koffi'
import { readlinkSync } from 'node:fs'
import { getSystemErrorName } from 'node:util'
import { HostError } from '../host-error.ts'
import { callFailure } from './error-text.ts'

export const AT_FDCWD = -100
export const AT_SYMLINK_NOFOLLOW = 0x100
export const AT_REMOVEDIR = 0x200
export const AT_NO_AUTOMOUNT = 0x800
export const AT_EMPTY_PATH = 0x1000
export const AT_STATX_DONT_SYNC = 0x4000
export const AT_RECURSIVE = 0x8000

export const O_RDONLY = 0
export const O_RDWR = 2
export const O_WRONLY = 1
export const O_CREAT = 0o100
export const O_EXCL = 0o200
export const O_NONBLOCK = 0o4000
const O_CLOEXEC = 0o2000000
export const O_PATH = 0o10000000
// These two differ on arm64.
export const O_DIRECTORY = process.arch === 'arm64' ? 0o40000 : 0o200000
export const O_NOFOLLOW = process.arch === 'arm64' ? 0o100000 : 0o400000

export const RESOLVE_NO_XDEV = 0x01
export const RESOLVE_NO_MAGICLINKS = 0x02
export const RESOLVE_NO_SYMLINKS = 0x04
export const RESOLVE_BENEATH = 0x08

const libc = koffi.load('libc.so.6')
const natives = {
  mount: libc.func('mount', 'int', ['const void*', 'const void*', 'const void*', 'unsigned long', 'const void*']),
  umount2: libc.func('umount2', 'int', ['const void*', 'int']),
  open: libc.func('open', 'int', ['const void*', 'int', 'int']),
  openat: libc.func('openat', 'int', ['int', 'const void*', 'int', 'int']),
  close: libc.func('close', 'int', ['int']),
  mkdirat: libc.func('mkdirat', 'int', ['int', 'const void*', 'unsigned int']),
  unlinkat: libc.func('unlinkat', 'int', ['int', 'const void*', 'int']),
  renameat: libc.func('renameat', 'int', ['int', 'const void*', 'int', 'const void*']),
  fchownat: libc.func('fchownat', 'int', ['int', 'const void*', 'int', 'int', 'int']),
  statx: libc.func('statx', 'int', ['int', 'const void*', 'int', 'unsigned int', 'void*']),
  ioctlNumber: libc.func('ioctl', 'int', ['int', 'unsigned long', 'long']),
  ioctlBuffer: libc.func('ioctl', 'int', ['int', 'unsigned long', 'void*']),
  exit: libc.func('_exit', 'void', ['int']),
  unshare: libc.func('unshare', 'int', ['int']),
  setns: libc.func('setns', 'int', ['int', 'int']),
  umask: libc.func('umask', 'unsigned int', ['unsigned int']),
  readlinkat: libc.func('readlinkat', 'long', ['int', 'const void*', 'void*', 'size_t']),
  flock: libc.func('flock', 'int', ['int', 'int']),
  syscall3: libc.func('syscall', 'long', ['long', 'int', 'const void*', 'unsigned int']),
  syscallOpenat2: libc.func('syscall', 'long', ['long', 'int', 'const void*', 'void*', 'size_t']),
  syscallMoveMount: libc.func('syscall', 'long', ['long', 'int', 'const void*', 'int', 'const void*', 'unsigned int']),
  syscallSetAttributes: libc.func('syscall', 'long', ['long', 'int', 'const void*', 'unsigned int', 'void*', 'size_t']),
  syscallStatmount: libc.func('syscall', 'long', ['long', 'void*', 'void*', 'size_t', 'unsigned int']),
  syscallFchmodat2: libc.func('syscall', 'long', ['long', 'int', 'const void*', 'unsigned int', 'unsigned int']),
}

/** Ends the process without waiting for its threads. */
export function exitNow(code: number): void {
  natives.exit(code)
}

/** Locks an open file for its holder alone, without waiting; false when another has it. Freed when the last copy is closed. */
export function tryLock(descriptor: number): boolean {
  const exclusiveNow = 6 // LOCK_EX | LOCK_NB
  if ((natives.flock(descriptor, exclusiveNow) as number) === 0) return true
  if (getSystemErrorName(-koffi.errno()) === 'EAGAIN') return false
  check(-1, 'flock', String(descriptor))
  return false
}

/** A path or name as the kernel takes it. Buffers keep names that are not UTF-8 intact. */
export type Text = string | Uint8Array

export function mount(source: Text | null, target: Text, type: Text | null, flags: number, data: Text | null): void {
  const result = natives.mount(textOrNull(source), text(target), textOrNull(type), flags, textOrNull(data)) as number
  check(result, 'mount', target)
}

export function umount2(target: Text, flags: number): void {
  check(natives.umount2(text(target), flags) as number, 'umount', target)
}

export function open(path: Text, flags: number): number {
  return check(natives.open(text(path), flags | O_CLOEXEC, 0) as number, 'open', path)
}

export function openat(directory: number, name: Text, flags: number, mode = 0): number {
  return check(natives.openat(directory, text(name), flags | O_CLOEXEC, mode) as number, 'openat', name, directory)
}

export function openat2(directory: number, name: Text, flags: number, resolve: number): number {
  const how = Buffer.alloc(24)
  how.writeBigUInt64LE(BigInt(flags | O_CLOEXEC), 0)
  how.writeBigUInt64LE(BigInt(resolve), 16)
  return check(Number(natives.syscallOpenat2(437, directory, text(name), how, 24)), 'openat2', name, directory)
}

export function close(descriptor: number): void {
  check(natives.close(descriptor) as number, 'close', String(descriptor))
}

export function mkdirat(directory: number, name: Text, mode: number): void {
  check(natives.mkdirat(directory, text(name), mode) as number, 'mkdirat', name, directory)
}

export function unlinkat(directory: number, name: Text, flags: number): void {
  check(natives.unlinkat(directory, text(name), flags) as number, 'unlinkat', name, directory)
}

export function renameat(from: number, name: Text, to: number, newName: Text): void {
  check(natives.renameat(from, text(name), to, text(newName)) as number, 'renameat', name, from)
}

export function fchownat(directory: number, name: Text, uid: number, gid: number, flags: number): void {
  check(natives.fchownat(directory, text(name), uid, gid, flags) as number, 'fchownat', name, directory)
}

/** chmod without following a link: the entry named is the entry changed. Needs Linux 6.6. */
export function fchmodat2(directory: number, name: Text, mode: number, flags: number): void {
  check(Number(natives.syscallFchmodat2(452, directory, text(name), mode, flags)), 'fchmodat2', name, directory)
}

export interface Statx {
  readonly attributes: bigint
  readonly links: number
  readonly uid: number
  readonly gid: number
  readonly mode: number
  readonly inode: bigint
  readonly size: bigint
  readonly blocks: bigint
  readonly modifiedMs: number
  readonly rdev: string
  readonly dev: string
  readonly mountId: bigint
}

const STATX_BASIC_STATS = 0x7ff
export const STATX_MNT_ID = 0x1000
export const STATX_MNT_ID_UNIQUE = 0x4000
export const STATX_ATTR_MOUNT_ROOT = 0x2000n

export function statx(directory: number, name: Text, flags: number, extra = 0): Statx {
  const buffer = Buffer.alloc(256)
  check(
    natives.statx(directory, text(name), flags, STATX_BASIC_STATS | extra, buffer) as number,
    'statx',
    name,
    directory,
  )
  return {
    attributes: buffer.readBigUInt64LE(8),
    links: buffer.readUInt32LE(16),
    uid: buffer.readUInt32LE(20),
    gid: buffer.readUInt32LE(24),
    mode: buffer.readUInt16LE(28),
    inode: buffer.readBigUInt64LE(32),
    size: buffer.readBigUInt64LE(40),
    blocks: buffer.readBigUInt64LE(48),
    modifiedMs: Number(buffer.readBigInt64LE(112)) * 1000 + buffer.readUInt32LE(120) / 1e6,
    rdev: `${buffer.readUInt32LE(128)}:${buffer.readUInt32LE(132)}`,
    dev: `${buffer.readUInt32LE(136)}:${buffer.readUInt32LE(140)}`,
    mountId: buffer.readBigUInt64LE(144),
  }
}

export function ioctlNumber(descriptor: number, request: number, argument: number): number {
  return check(natives.ioctlNumber(descriptor, request, argument) as number, 'ioctl', `0x${request.toString(16)}`)
}

export function ioctlBuffer(descriptor: number, request: number, argument: Uint8Array): number {
  return check(natives.ioctlBuffer(descriptor, request, argument) as number, 'ioctl', `0x${request.toString(16)}`)
}

/** A detached copy of the mount at a path; it belongs to nobody until it is moved somewhere. */
export function openTreeClone(directory: number, path: Text, flags: number): number {
  const OPEN_TREE_CLONE = 1
  return check(
    Number(natives.syscall3(428, directory, text(path), OPEN_TREE_CLONE | O_CLOEXEC | flags)),
    'open_tree',
    path,
  )
}

export function moveMount(tree: number, target: Text): void {
  const MOVE_MOUNT_F_EMPTY_PATH = 4
  check(
    Number(natives.syscallMoveMount(429, tree, text(''), AT_FDCWD, text(target), MOVE_MOUNT_F_EMPTY_PATH)),
    'move_mount',
    target,
  )
}

/** Attaches a detached copy at an open file or directory: what that was named when it was opened no longer matters. */
export function moveMountOnto(tree: number, place: number): void {
  const bothEmpty = 0x4 | 0x40 // MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH
  check(Number(natives.syscallMoveMount(429, tree, text(''), place, text(''), bothEmpty)), 'move_mount', '', place)
}

export interface MountAttributes {
  /** MOUNT_ATTR_* bits. */
  readonly set: bigint
  readonly clear: bigint
  /** MS_SHARED, MS_SLAVE, …; as it is unless told. */
  readonly propagation?: bigint
  readonly recursive: boolean
}

export function setMountAttributes(tree: number, { set, clear, propagation = 0n, recursive }: MountAttributes): void {
  const attributes = Buffer.alloc(32)
  attributes.writeBigUInt64LE(set, 0)
  attributes.writeBigUInt64LE(clear, 8)
  attributes.writeBigUInt64LE(propagation, 16)
  const flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0)
  check(Number(natives.syscallSetAttributes(442, tree, text(''), flags, attributes, 32)), 'mount_setattr', '')
}

/** From here on this thread has a root, a working directory and a umask of its own. */
export function unshareFilesystemState(): void {
  const CLONE_FS = 0x200
  check(natives.unshare(CLONE_FS) as number, 'unshare', 'CLONE_FS')
}

/** Moves this thread alone to another mount namespace; its root is then the root there. */
export function enterMountNamespace(namespace: number): void {
  const CLONE_NEWNS = 0x20000
  check(natives.setns(namespace, CLONE_NEWNS) as number, 'setns', String(namespace))
}

export function umask(mask: number): void {
  natives.umask(mask)
}

/** Where an open link leads. */
export function readlinkOf(link: number): string {
  const buffer = Buffer.alloc(4096)
  const length = check(Number(natives.readlinkat(link, text(''), buffer, buffer.length)), 'readlinkat', '', link)
  return buffer.toString('utf8', 0, length)
}

/** statmount(2): the raw answer about one mount, or undefined where it is gone meanwhile. */
export function statmount(mountId: bigint, mask: bigint): Buffer | undefined {
  const request = mountIdRequest(mountId, mask)
  for (let size = 4096; ; size *= 4) {
    const buffer = Buffer.alloc(size)
    const result = Number(natives.syscallStatmount(457, request, buffer, size, 0))
    if (result === 0) return buffer
    const code = errnoName()
    if (code === 'ENOENT') return undefined
    if (code !== 'EOVERFLOW' || size > 1 << 22) throw new HostError(code, `statmount of ${mountId}: ${code}`)
  }
}

/** listmount(2): the ids of all mounts of our namespace. */
export function listmount(): bigint[] {
  const LSMT_ROOT = 0xffff_ffff_ffff_ffffn
  const ids: bigint[] = []
  const page = 4096
  const buffer = Buffer.alloc(page * 8)
  for (let last = 0n; ;) {
    const count = check(
      Number(natives.syscallStatmount(458, mountIdRequest(LSMT_ROOT, last), buffer, page, 0)),
      'listmount',
      '',
    )
    for (let index = 0; index < count; index += 1) ids.push(buffer.readBigUInt64LE(index * 8))
    if (count < page) return ids
    last = ids.at(-1) ?? 0n
  }
}

function mountIdRequest(mountId: bigint, parameter: bigint): Buffer {
  const request = Buffer.alloc(24)
  request.writeUInt32LE(24, 0)
  request.writeBigUInt64LE(mountId, 8)
  request.writeBigUInt64LE(parameter, 16)
  return request
}

function check(result: number, what: string, path: Text, directory = AT_FDCWD): number {
  if (result >= 0) return result
  const code = errnoName()
  const shown = expected.has(code) ? decoded(path) : pathBelow(directory, path)
  throw new HostError(code, callFailure(what, shown, code), { path: shown })
}

/** Walks answer these by themselves, many times a tree; finding out where they stand would be lost work. */
const expected: ReadonlySet<string> = new Set(['ENOENT', 'EEXIST', 'EISDIR', 'ENOTDIR', 'ENOTEMPTY', 'EAGAIN'])

/** What people call an entry of an open directory. */
export function pathBelow(directory: number, name: Text): string {
  const shown = decoded(name)
  if (directory < 0 || shown.startsWith('/')) return shown
  const base = readlinkSync(`/proc/self/fd/${directory}`)
  return shown === '' ? base : `${base}/${shown}`
}

const decoded = (path: Text) => (typeof path === 'string' ? path : Buffer.from(path).toString())

function errnoName(): string {
  return getSystemErrorName(-koffi.errno())
}

function text(value: Text): Uint8Array {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value
  if (bytes.includes(0)) throw new HostError('EINVAL', 'a path holds a zero byte')
  const terminated = Buffer.alloc(bytes.length + 1)
  terminated.set(bytes)
  return terminated
}

function textOrNull(value: Text | null): Uint8Array | null {
  return value === null ? null : text(value)
}
