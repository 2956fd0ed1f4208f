// What do all walks through a tree share? Entries are read by descriptor, a few at a time; no link is followed and no mount
// entered; depth and descriptors are limited, and a walk can be cancelled. Whoever fills a volume decides what we meet.

import * as fs from 'node:fs'
import { HostError, hasCode } from '../host-error.ts'
import * as libc from './libc.ts'

/** What a walk may ask of its worker: stop if cancelled, report how far it is. */
export interface WalkContext {
  checkCancelled(): void
  progress(done: number): void
}

export const directoryFlags = libc.O_RDONLY | libc.O_DIRECTORY | libc.O_NOFOLLOW
export const withinOneMount = libc.RESOLVE_NO_XDEV | libc.RESOLVE_NO_SYMLINKS | libc.RESOLVE_BENEATH
const entryFlags = libc.AT_SYMLINK_NOFOLLOW | libc.AT_NO_AUTOMOUNT

const maximumDepth = 100_000
/** So many of the directories that a walk has entered are held open; it comes back to the others through `..`. */
const heldOpen = 64

/** What is done with each entry. A directory is left after everything in it. */
export interface Visitor {
  entry(directory: number, name: Buffer, stat: libc.Statx): void
  leave(directory: number, stat: libc.Statx): void
}

interface Level {
  /** Undefined while it is closed. */
  descriptor: number | undefined
  readonly stat: libc.Statx
  /** Directories still to be entered: names as latin1, which keeps every byte. */
  readonly directories: string[]
}

/**
 * Walks everything below an open directory, and leaves that directory last. Memory does not grow with the number of files, only
 * with the number of directories in one directory. What is mounted inside is not part of the tree and left out.
 */
export function walkTree(root: number, context: WalkContext, visitor: Visitor): void {
  const levels: Level[] = []
  const enter = (descriptor: number, stat: libc.Statx): void => {
    if (levels.length > maximumDepth)
      throw new HostError('ELOOP', `the tree is deeper than ${maximumDepth} directories`)
    const level: Level = { descriptor, stat, directories: [] }
    levels.push(level)
    const far = levels.at(-1 - heldOpen)
    if (far?.descriptor !== undefined && far !== levels[0]) {
      libc.close(far.descriptor)
      far.descriptor = undefined
    }
    for (const name of entries(descriptor)) {
      context.checkCancelled()
      const found = ignoringGone(() => libc.statx(descriptor, name, entryFlags))
      if (found === undefined || isMountRoot(found)) continue
      if (isDirectory(found)) level.directories.push(name.toString('latin1'))
      else visitor.entry(descriptor, name, found)
    }
  }
  try {
    enter(root, libc.statx(root, '', libc.AT_EMPTY_PATH))
    while (levels.length > 0) {
      const level = levels.at(-1)!
      const name = level.directories.pop()
      if (name !== undefined) {
        const child = openChild(level.descriptor!, Buffer.from(name, 'latin1'))
        if (child !== undefined) enter(child, libc.statx(child, '', libc.AT_EMPTY_PATH))
        continue
      }
      const above = levels.at(-2)
      if (above && above.descriptor === undefined) above.descriptor = openAbove(level, above)
      visitor.leave(level.descriptor!, level.stat)
      levels.pop()
      if (levels.length > 0) libc.close(level.descriptor!)
    }
  } finally {
    for (const { descriptor } of levels.slice(1)) if (descriptor !== undefined) libc.close(descriptor)
  }
}

/** Undefined where a link, a file or a mount has taken the directory's place meanwhile. */
function openChild(parent: number, name: Buffer): number | undefined {
  try {
    return libc.openat2(parent, name, directoryFlags, withinOneMount)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP', 'EXDEV')) return undefined
    throw error
  }
}

/** A directory that was moved elsewhere during the walk has another one above it: the walk ends rather than go there. */
function openAbove(level: Level, above: Level): number {
  const descriptor = libc.openat(level.descriptor!, '..', directoryFlags)
  const { inode, dev } = libc.statx(descriptor, '', libc.AT_EMPTY_PATH)
  if (inode === above.stat.inode && dev === above.stat.dev) return descriptor
  libc.close(descriptor)
  throw new HostError('EAGAIN', 'a directory was moved out of its parent during the walk')
}

/** The names in a directory, as bytes and a thousand at a time: a directory may have ten million. */
export function* entries(directory: number): Generator<Buffer> {
  // Node takes this encoding; its types know those for strings only.
  const options = { encoding: 'buffer' as BufferEncoding, bufferSize: 1_024 }
  const opened = fs.opendirSync(descriptorPath(directory), options)
  try {
    for (let entry = opened.readSync(); entry !== null; entry = opened.readSync()) yield entry.name as unknown as Buffer
  } finally {
    opened.closeSync()
  }
}

/** At most so many names, for walks that change the directory meanwhile. */
export function firstNames(directory: number, limit = 4_096): Buffer[] {
  return entries(directory).take(limit).toArray()
}

export function descriptorPath(descriptor: number): string {
  return `/proc/self/fd/${descriptor}`
}

export const isDirectory = ({ mode }: libc.Statx) => (mode & 0o170000) === 0o040000

const mountRootAttribute = 0x2000n
const isMountRoot = ({ attributes }: libc.Statx) => (attributes & mountRootAttribute) !== 0n

function ignoringGone<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    if (!hasCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP')) throw error
    return undefined
  }
}
