// How are whole trees walked inside a worker thread? Always by descriptor: an entry that turns into a symbolic link or a
// mount point between two steps is never followed. Names are bytes, so entries that are not UTF-8 are handled too.

import * as fs from 'node:fs'
import type { FoundEntry, GroupResult, TreeEntry } from '../host.ts'
import { kindOf } from './file-calls.ts'
import { hasCode } from '../host-error.ts'
import { groupMode } from '../ownership.ts'
import * as libc from './libc.ts'
import { removeEmptyTree, removeTree } from './remove-tree.ts'
import type { WalkContext } from './tree-walk.ts'
import { checkDepth, descriptorPath, directoryFlags, entryNames } from './tree-walk.ts'

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

function writeTree(root: string, entries: readonly TreeEntry[], context: WalkContext): void {
  const base = libc.open(root, directoryFlags)
  try {
    for (const entry of entries) {
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

function readTree(root: string, context: WalkContext): FoundEntry[] {
  const found: FoundEntry[] = []
  const visit = (directory: number, prefix: string, depth: number): void => {
    checkDepth(depth)
    const names = entryNames(directory)
    if (names.length === 0 && prefix !== '')
      found.push({ path: prefix.slice(0, -1), kind: 'directory', bytes: new Uint8Array(0) })
    for (const name of names) {
      context.checkCancelled()
      const path = `${prefix}${name.toString()}`
      const kind = kindOf(libc.statx(directory, name, libc.AT_SYMLINK_NOFOLLOW | libc.AT_NO_AUTOMOUNT).mode)
      if (kind !== 'directory' && kind !== 'file') {
        found.push({ path, kind, bytes: new Uint8Array(0) })
        continue
      }
      const entry = libc.openat(
        directory,
        name,
        libc.O_RDONLY | libc.O_NOFOLLOW | libc.O_NONBLOCK | (kind === 'directory' ? libc.O_DIRECTORY : 0),
      )
      try {
        if (kind === 'directory') visit(entry, `${path}/`, depth + 1)
        else found.push({ path, kind, bytes: fs.readFileSync(entry) })
      } finally {
        libc.close(entry)
      }
    }
  }
  const base = libc.open(root, directoryFlags)
  try {
    visit(base, '', 0)
  } finally {
    libc.close(base)
  }
  return found
}

// ---- measuring -----------------------------------------------------------------------------------------------------

function treeUsage(path: string, context: WalkContext): { usedBytes: bigint; inodesUsed: bigint } {
  const root = libc.open(path, directoryFlags & ~libc.O_NOFOLLOW)
  const seen = new Set<bigint>()
  const top = libc.statx(root, '', libc.AT_EMPTY_PATH)
  let usedBytes = top.blocks * 512n
  let inodesUsed = 1n
  const visit = (directory: number, depth: number): void => {
    checkDepth(depth)
    for (const name of entryNames(directory)) {
      context.checkCancelled()
      const stat = ignoringGone(() => libc.statx(directory, name, libc.AT_SYMLINK_NOFOLLOW | libc.AT_NO_AUTOMOUNT))
      if (stat === undefined || stat.dev !== top.dev) continue
      if (stat.links > 1 && (stat.mode & 0o170000) !== 0o040000) {
        if (seen.has(stat.inode)) continue
        seen.add(stat.inode)
      }
      usedBytes += stat.blocks * 512n
      inodesUsed += 1n
      if ((stat.mode & 0o170000) !== 0o040000) continue
      const child = ignoringGone(() => libc.openat(directory, name, directoryFlags))
      if (child === undefined) continue
      try {
        visit(child, depth + 1)
      } finally {
        libc.close(child)
      }
    }
  }
  try {
    visit(root, 0)
  } finally {
    libc.close(root)
  }
  return { usedBytes, inodesUsed }
}

function ignoringGone<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    if (!hasCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP')) throw error
    return undefined
  }
}

// ---- group ownership -----------------------------------------------------------------------------------------------

function setGroup(path: string, gid: number, readOnly: boolean, context: WalkContext): GroupResult {
  let entries = 0
  let refused = 0
  const count = (ok: boolean): void => {
    entries += 1
    if (!ok) refused += 1
    if (entries % 500 === 0) context.progress(entries)
  }
  const visit = (directory: number, depth: number): void => {
    checkDepth(depth)
    for (const name of entryNames(directory)) {
      context.checkCancelled()
      const stat = libc.statx(directory, name, libc.AT_SYMLINK_NOFOLLOW | libc.AT_NO_AUTOMOUNT)
      if ((stat.mode & 0o170000) === 0o040000) {
        const child = libc.openat(directory, name, directoryFlags)
        try {
          visit(child, depth + 1)
          count(changeOne(child, '', libc.AT_EMPTY_PATH, stat, gid, readOnly))
        } finally {
          libc.close(child)
        }
      } else count(changeOne(directory, name, libc.AT_SYMLINK_NOFOLLOW, stat, gid, readOnly))
    }
  }
  const root = libc.open(path, directoryFlags & ~libc.O_NOFOLLOW & ~libc.O_DIRECTORY)
  try {
    const stat = libc.statx(root, '', libc.AT_EMPTY_PATH)
    if ((stat.mode & 0o170000) === 0o040000) visit(root, 0)
    count(changeOne(root, '', libc.AT_EMPTY_PATH, stat, gid, readOnly))
  } finally {
    libc.close(root)
  }
  return { entries, refused }
}

/** The order matters: chown clears setuid and setgid, so the mode is set after it (and only where it differs). */
function changeOne(
  at: number,
  name: libc.Text,
  flags: number,
  stat: libc.Statx,
  gid: number,
  readOnly: boolean,
): boolean {
  const format = stat.mode & 0o170000
  const wanted = groupMode(stat.mode & 0o7777, { directory: format === 0o040000, readOnly })
  try {
    if (stat.gid !== gid) libc.fchownat(at, name, -1, gid, flags)
    if (format === 0o120000 || (wanted === (stat.mode & 0o7777) && stat.gid === gid)) return true
    libc.fchmodat2(at, name, wanted, flags)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return true
    return hasCode(error, 'ENOSYS') && chmodOnOlderKernel(at, name, wanted)
  }
}

/** Before Linux 6.6: pin the entry, make sure that it is no link, and change it through its descriptor. */
function chmodOnOlderKernel(at: number, name: libc.Text, mode: number): boolean {
  const pinned = name === '' ? at : libc.openat(at, name, libc.O_PATH | libc.O_NOFOLLOW)
  try {
    if ((libc.statx(pinned, '', libc.AT_EMPTY_PATH).mode & 0o170000) !== 0o120000)
      fs.chmodSync(descriptorPath(pinned), mode)
    return true
  } catch {
    return false
  } finally {
    if (pinned !== at) libc.close(pinned)
  }
}
