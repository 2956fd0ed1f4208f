// How are file questions answered inside a worker thread? Plain synchronous calls; the worker may hang, nobody else does.
// Only plain data goes in and out: these functions are called across threads.

import * as fs from 'node:fs'
import { dirname, join } from 'node:path/posix'
import type { DeepModes, FileKind, FileStat, WriteOptions } from '../host.ts'
import { HostError, hasCode } from '../host-error.ts'
import * as libc from './libc.ts'
import { isAbsent } from './absence.ts'
import { callFailure } from './error-text.ts'
import type { Distrust } from '../trusted-path.ts'
import { distrustOf } from './trusted-path.ts'

export const fileCalls = {
  mkdir(path: string, mode: number): void {
    fs.mkdirSync(path, { mode })
    setExactMode(path, mode)
  },

  mkdirDeep(path: string, { mode, parentMode }: DeepModes): void {
    try {
      fs.mkdirSync(path, { mode })
    } catch (error) {
      // Most parents are there: they are made only when they are missed.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      mkdirAll(dirname(path), parentMode)
      fs.mkdirSync(path, { mode })
    }
    setExactMode(path, mode)
  },

  mkdirAll,

  mkdirEach(base: string, names: readonly string[], mode: number): void {
    mkdirAll(base, mode)
    for (const name of names) mkdirAll(join(base, name), mode)
  },

  readFile(path: string): Uint8Array {
    return fs.readFileSync(path)
  },

  writeFile(path: string, data: Uint8Array, options: WriteOptions): void {
    const { parentMode } = options
    if (parentMode !== undefined) mkdirAll(dirname(path), parentMode)
    if (options.durable === true) return writeDurably(path, data, options)
    const descriptor = fs.openSync(path, options.exclusive === true ? 'wx' : 'w', options.mode)
    try {
      fs.writeFileSync(descriptor, data)
      fs.fchmodSync(descriptor, options.mode)
    } finally {
      fs.closeSync(descriptor)
    }
  },

  readDir(path: string): string[] {
    return fs.readdirSync(path)
  },

  stat(path: string): FileStat {
    return toFileStat(libc.statx(libc.AT_FDCWD, path, libc.AT_STATX_DONT_SYNC))
  },

  lstat(path: string): FileStat {
    return toFileStat(libc.statx(libc.AT_FDCWD, path, libc.AT_STATX_DONT_SYNC | libc.AT_SYMLINK_NOFOLLOW))
  },

  exists(path: string): boolean {
    try {
      libc.statx(libc.AT_FDCWD, path, libc.AT_STATX_DONT_SYNC)
      return true
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'ENOTDIR')) throw error
      return false
    }
  },

  distrust: (path: string): Distrust | undefined => distrustOf(path),

  symlink(target: string, path: string): void {
    fs.symlinkSync(target, path)
  },

  readlink(path: string): string {
    return fs.readlinkSync(path)
  },

  realpath(path: string): string {
    return fs.realpathSync.native(path)
  },

  rename(from: string, to: string): void {
    fs.renameSync(from, to)
  },

  chmod(path: string, mode: number): void {
    fs.chmodSync(path, mode)
  },

  lchown(path: string, uid: number, gid: number): void {
    libc.fchownat(libc.AT_FDCWD, path, uid, gid, libc.AT_SYMLINK_NOFOLLOW)
  },

  rmdir(path: string): void {
    fs.rmdirSync(path)
  },

  unlink(path: string): void {
    fs.unlinkSync(path)
  },

  remove(path: string): void {
    try {
      libc.unlinkat(libc.AT_FDCWD, path, 0)
    } catch (error) {
      if (hasCode(error, 'ENOENT', 'ENOTDIR') || isAbsent(libc.AT_FDCWD, path)) return
      if (!hasCode(error, 'EISDIR')) throw error
      libc.unlinkat(libc.AT_FDCWD, path, libc.AT_REMOVEDIR)
    }
  },

  openBeneath(root: string, relative: string): { descriptor: number; stat: FileStat } {
    const directory = libc.open(root, libc.O_PATH | libc.O_DIRECTORY | libc.O_NOFOLLOW)
    try {
      const descriptor = openBelow(directory, relative, libc.O_PATH)
      return { descriptor, stat: toFileStat(libc.statx(descriptor, '', libc.AT_EMPTY_PATH)) }
    } finally {
      libc.close(directory)
    }
  },

  mkdirBeneath,

  closeDescriptor(descriptor: number): void {
    libc.close(descriptor)
  },
}

function toFileStat(answer: libc.Statx): FileStat {
  const kind = kindOf(answer.mode)
  return {
    kind,
    mode: answer.mode & 0o7777,
    uid: answer.uid,
    gid: answer.gid,
    sizeBytes: Number(answer.size),
    inode: answer.inode,
    links: answer.links,
    device: answer.dev,
    deviceNode: kind === 'blockDevice' || kind === 'charDevice' ? answer.rdev : '',
    modifiedMs: answer.modifiedMs,
  }
}

export function kindOf(mode: number): FileKind {
  switch (mode & 0o170000) {
    case 0o040000:
      return 'directory'
    case 0o120000:
      return 'symlink'
    case 0o140000:
      return 'socket'
    case 0o010000:
      return 'fifo'
    case 0o060000:
      return 'blockDevice'
    case 0o020000:
      return 'charDevice'
    default:
      return 'file'
  }
}

function mkdirAll(path: string, mode: number): void {
  makeWithParents(path, mode, true)
}

/** Parents are made once: a directory that was deleted while mounted elsewhere exists and still takes nothing new. */
function makeWithParents(path: string, mode: number, parents: boolean): void {
  try {
    fs.mkdirSync(path, { mode })
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if ((code === 'ENOENT' || code === 'ENOTDIR') && parents && dirname(path) !== path) {
      makeWithParents(dirname(path), mode, true)
      return makeWithParents(path, mode, false)
    }
    if (code !== 'EEXIST') throw error
    // Of a long path the part is named that is in the way.
    if (!fs.statSync(path).isDirectory())
      throw new HostError('ENOTDIR', callFailure('mkdir', path, 'ENOTDIR'), { path })
    return
  }
  setExactMode(path, mode)
}

/** By descriptor: the directory just made is the one changed, or nothing is (somebody may swap it for a link). */
function setExactMode(path: string, mode: number): void {
  const made = libc.open(path, libc.O_RDONLY | libc.O_DIRECTORY | libc.O_NOFOLLOW)
  try {
    fs.fchmodSync(made, mode)
  } finally {
    libc.close(made)
  }
}

/** Invariant: at every moment the path holds all of the old bytes or all of the new ones, also after a power cut. */
function writeDurably(path: string, data: Uint8Array, options: WriteOptions): void {
  const temporary = join(dirname(path), `.${process.pid}.${process.hrtime.bigint()}.tmp`)
  try {
    const descriptor = fs.openSync(temporary, 'wx', options.mode)
    try {
      fs.writeFileSync(descriptor, data)
      fs.fchmodSync(descriptor, options.mode)
      fs.fsyncSync(descriptor)
    } finally {
      fs.closeSync(descriptor)
    }
    // link(2) refuses to replace; rename(2) would not.
    if (options.exclusive === true) fs.linkSync(temporary, path)
    else fs.renameSync(temporary, path)
  } finally {
    fs.rmSync(temporary, { force: true })
  }
  const directory = fs.openSync(dirname(path), 'r')
  try {
    fs.fsyncSync(directory)
  } finally {
    fs.closeSync(directory)
  }
}

function openBelow(directory: number, relative: string, flags: number): number {
  const name = relative === '' ? '.' : relative
  // EAGAIN: somebody renamed directories while the kernel walked; a patient attacker may do so for long, we give up.
  for (let attempt = 0; ; attempt += 1) {
    try {
      return libc.openat2(directory, name, flags, libc.RESOLVE_BENEATH | libc.RESOLVE_NO_MAGICLINKS)
    } catch (error) {
      if (!hasCode(error, 'EAGAIN') || attempt >= 32) throw error
    }
  }
}

function mkdirBeneath(root: string, relative: string, mode: number): void {
  let current = libc.open(root, libc.O_RDONLY | libc.O_DIRECTORY | libc.O_NOFOLLOW)
  try {
    let walked = ''
    for (const name of relative.split('/').filter((part) => part !== '' && part !== '.')) {
      walked = walked === '' ? name : `${walked}/${name}`
      // Existing parts may be links inside the volume, so they are resolved from the root; only a part that was
      // missing is made, in the directory we hold, by its bare name (WART-11).
      const next = openOrMake(root, walked, current, name, mode)
      libc.close(current)
      current = next
    }
  } finally {
    libc.close(current)
  }
}

function openOrMake(root: string, walked: string, parent: number, name: string, mode: number): number {
  const directoryFlags = libc.O_RDONLY | libc.O_DIRECTORY
  const base = libc.open(root, libc.O_PATH | libc.O_DIRECTORY | libc.O_NOFOLLOW)
  try {
    return openBelow(base, walked, directoryFlags)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  } finally {
    libc.close(base)
  }
  try {
    libc.mkdirat(parent, name, mode)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    return libc.openat(parent, name, directoryFlags | libc.O_NOFOLLOW)
  }
  const made = libc.openat(parent, name, directoryFlags | libc.O_NOFOLLOW)
  fs.fchmodSync(made, mode)
  return made
}
