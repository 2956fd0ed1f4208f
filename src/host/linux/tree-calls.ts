// How are whole trees walked inside a worker thread? Always by descriptor: an entry that turns into a symbolic link or a
// mount point between two steps is never followed. Names are bytes, so entries that are not UTF-8 are handled too.

import * as fs from 'node:fs'
import type { FoundEntry, GroupResult, TreeEntry } from '../host.ts'
import { kindOf } from './file-calls.ts'
import { HostError, hasCode } from '../host-error.ts'
import { groupMode } from '../ownership.ts'
import * as libc from './libc.ts'
import { removeEmptyTree, removeTree } from './remove-tree.ts'
import type { WalkContext } from './tree-walk.ts'
import { descriptorPath, directoryFlags, entries, isDirectory, walkTree, withinOneMount } from './tree-walk.ts'

export function treeCalls(context: WalkContext) {
  return {
    removeTree: (path: string) => removeTree(path, context),
    removeEmptyTree: (path: string) => removeEmptyTree(path, context),
    treeUsage: (path: string) => treeUsage(path, context),
    writeTree: (root: string, entries: readonly TreeEntry[]) => writeTree(root, entries, context),
    readTree: (root: string) => readTree(root, context),
    setGroup: (root: string, gid: number, readOnly: boolean) => setGroup(root, gid, readOnly, context),
  }
}

// ---- writing and reading -------------------------------------------------------------------------------------------

function writeTree(root: string, files: readonly TreeEntry[], context: WalkContext): void {
  const base = libc.open(root, directoryFlags)
  try {
    for (const entry of files) {
      context.checkCancelled()
      writeEntry(base, entry)
    }
  } finally {
    libc.close(base)
  }
}

function writeEntry(base: number, entry: TreeEntry): void {
  const parts = entry.path.split('/')
  const name = parts.pop() ?? ''
  let directory = libc.openat(base, '.', directoryFlags)
  try {
    for (const part of parts) {
      const next = enterDirectory(directory, part)
      libc.close(directory)
      directory = next
    }
    const file = libc.openat(directory, name, libc.O_WRONLY | libc.O_CREAT | libc.O_EXCL | libc.O_NOFOLLOW, 0o600)
    try {
      fs.writeFileSync(file, entry.bytes)
      if (entry.uid !== undefined) libc.fchownat(file, '', entry.uid, -1, libc.AT_EMPTY_PATH)
      fs.fchmodSync(file, entry.mode)
    } finally {
      libc.close(file)
    }
  } finally {
    libc.close(directory)
  }
}

function enterDirectory(parent: number, name: string): number {
  let made = true
  try {
    libc.mkdirat(parent, name, 0o755)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    made = false
  }
  const directory = libc.openat(parent, name, directoryFlags)
  if (made) fs.fchmodSync(directory, 0o755)
  return directory
}

/** What was written here before is a few files of a few megabytes at most; more is not ours. */
const maxReadBytes = 16 * 1024 * 1024
const maxReadEntries = 100_000

function readTree(root: string, context: WalkContext): FoundEntry[] {
  const found: FoundEntry[] = []
  let bytesRead = 0
  const visit = (directory: number, prefix: string, depth: number): void => {
    if (depth > maxReadDepth) throw new HostError('ELOOP', `the tree is deeper than ${maxReadDepth} directories`)
    let isEmpty = true
    for (const name of entries(directory)) {
      isEmpty = false
      context.checkCancelled()
      if (found.length >= maxReadEntries)
        throw new HostError('EFBIG', `the tree has more than ${maxReadEntries} entries`)
      const path = `${prefix}${name.toString()}`
      const stat = libc.statx(directory, name, libc.AT_SYMLINK_NOFOLLOW | libc.AT_NO_AUTOMOUNT)
      const kind = kindOf(stat.mode)
      if (kind !== 'directory' && kind !== 'file') {
        found.push({ path, kind, bytes: new Uint8Array(0) })
        continue
      }
      const flags = libc.O_RDONLY | libc.O_NOFOLLOW | libc.O_NONBLOCK | (kind === 'directory' ? libc.O_DIRECTORY : 0)
      const entry = libc.openat2(directory, name, flags, withinOneMount)
      try {
        if (kind === 'directory') visit(entry, `${path}/`, depth + 1)
        else {
          const bytes = readAtMost(entry, maxReadBytes - bytesRead)
          bytesRead += bytes.length
          found.push({ path, kind, bytes })
        }
      } finally {
        libc.close(entry)
      }
    }
    if (isEmpty && prefix !== '') found.push({ path: prefix.slice(0, -1), kind: 'directory', bytes: new Uint8Array(0) })
  }
  const base = libc.open(root, directoryFlags)
  try {
    visit(base, '', 0)
  } finally {
    libc.close(base)
  }
  return found
}

/** Each level holds two descriptors; paths of a payload are at most 4096 bytes, and deeper ones not ours. */
const maxReadDepth = 200

/** By the descriptor's own size, which may be a lie: never more than the limit is read. */
function readAtMost(file: number, limit: number): Uint8Array {
  const stat = libc.statx(file, '', libc.AT_EMPTY_PATH)
  if (kindOf(stat.mode) !== 'file' || stat.size > BigInt(limit))
    throw new HostError('EFBIG', `a file of ${stat.size} bytes is too large to be compared`)
  const buffer = Buffer.alloc(Number(stat.size))
  const length = fs.readSync(file, buffer, 0, buffer.length, 0)
  return buffer.subarray(0, length)
}

// ---- measuring -----------------------------------------------------------------------------------------------------

/** So many files with several names are remembered; one that comes after them is counted once for each of its names. */
const maxLinkedFiles = 1 << 20

function treeUsage(path: string, context: WalkContext): { usedBytes: bigint; inodesUsed: bigint } {
  const root = libc.open(path, directoryFlags & ~libc.O_NOFOLLOW)
  try {
    const seen = new Set<bigint>()
    let usedBytes = 0n
    let inodesUsed = 0n
    const count = ({ blocks }: libc.Statx): void => {
      usedBytes += blocks * 512n
      inodesUsed += 1n
    }
    walkTree(root, context, {
      entry(_directory, _name, stat) {
        if (stat.links > 1) {
          if (seen.has(stat.inode)) return
          if (seen.size < maxLinkedFiles) seen.add(stat.inode)
        }
        count(stat)
      },
      leave: (_directory, stat) => count(stat),
    })
    return { usedBytes, inodesUsed }
  } finally {
    libc.close(root)
  }
}

// ---- group ownership -----------------------------------------------------------------------------------------------

function setGroup(path: string, gid: number, readOnly: boolean, context: WalkContext): GroupResult {
  let done = 0
  let refused = 0
  const count = (ok: boolean): void => {
    done += 1
    if (!ok) refused += 1
    if (done % 500 === 0) context.progress(done)
  }
  // A file may be a pipe that nobody writes to: opening must not wait for one.
  const root = libc.open(path, (directoryFlags & ~libc.O_NOFOLLOW & ~libc.O_DIRECTORY) | libc.O_NONBLOCK)
  try {
    const stat = libc.statx(root, '', libc.AT_EMPTY_PATH)
    if (isDirectory(stat))
      walkTree(root, context, {
        entry: (directory, name, found) => count(changeEntry(directory, name, found, gid, readOnly)),
        leave: (directory, found) => count(changeOne(directory, found, gid, readOnly)),
      })
    else count(changeOne(root, stat, gid, readOnly))
  } finally {
    libc.close(root)
  }
  return { entries: done, refused }
}

/**
 * The entry is pinned before it is changed, and looked at again: the mode of one file is never given to another that has taken
 * its name. Most need no change and are not opened.
 */
function changeEntry(directory: number, name: Buffer, seen: libc.Statx, gid: number, readOnly: boolean): boolean {
  if (isDone(seen, gid, readOnly)) return true
  let pinned: number
  try {
    pinned = libc.openat2(directory, name, libc.O_PATH | libc.O_NOFOLLOW, withinOneMount)
  } catch (error) {
    return hasCode(error, 'ENOENT', 'EXDEV')
  }
  try {
    return changeOne(pinned, libc.statx(pinned, '', libc.AT_EMPTY_PATH), gid, readOnly)
  } finally {
    libc.close(pinned)
  }
}

function isDone(stat: libc.Statx, gid: number, readOnly: boolean): boolean {
  if (stat.gid !== gid) return false
  return isLink(stat) || wantedMode(stat, readOnly) === (stat.mode & 0o7777)
}

const isLink = ({ mode }: libc.Statx) => (mode & 0o170000) === 0o120000
const wantedMode = (stat: libc.Statx, readOnly: boolean) =>
  groupMode(stat.mode & 0o7777, { directory: isDirectory(stat), readOnly })

/** The order matters: chown clears setuid and setgid, so the mode is set after it (and only where it differs). */
function changeOne(pinned: number, stat: libc.Statx, gid: number, readOnly: boolean): boolean {
  if (isDone(stat, gid, readOnly)) return true
  const wanted = wantedMode(stat, readOnly)
  try {
    if (stat.gid !== gid) libc.fchownat(pinned, '', -1, gid, libc.AT_EMPTY_PATH)
    if (!isLink(stat)) libc.fchmodat2(pinned, '', wanted, libc.AT_EMPTY_PATH)
    return true
  } catch (error) {
    return hasCode(error, 'ENOSYS') && chmodOnOlderKernel(pinned, wanted)
  }
}

/** Before Linux 6.6: the pinned file is changed through its descriptor's name; it is no link. */
function chmodOnOlderKernel(pinned: number, mode: number): boolean {
  try {
    fs.chmodSync(descriptorPath(pinned), mode)
    return true
  } catch {
    return false
  }
}
