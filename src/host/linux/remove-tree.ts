// How is a tree deleted inside a worker thread? By descriptor, never across a mount: an entry that turns into a symbolic link or a
// mount point between two steps is not followed.

import { HostError, hasCode } from '../host-error.ts'
import { isAbsent } from './absence.ts'
import * as libc from './libc.ts'
import type { WalkContext } from './tree-walk.ts'
import { directoryFlags, firstNames, withinOneMount } from './tree-walk.ts'

const moveUpDepth = 200
/** Directories that should be empty are our own, a few levels deep. */
const emptyDepth = 200

export function removeTree(path: string, context: WalkContext): void {
  removeRoot(path, (parent, name) => removeEntry(parent, name, (directory) => emptyDirectory(directory, context)))
}

export function removeEmptyTree(path: string, context: WalkContext): void {
  removeRoot(path, (parent, name) => removeEmpty(parent, name, context, 0))
}

function removeRoot(path: string, remove: (parent: number, name: Uint8Array) => void): void {
  const parent = openParent(path)
  if (parent === undefined) return
  try {
    remove(parent.descriptor, Buffer.from(parent.name))
  } finally {
    libc.close(parent.descriptor)
  }
}

function openParent(path: string): { descriptor: number; name: string } | undefined {
  const slash = path.replace(/\/+$/, '').lastIndexOf('/')
  const name = path.replace(/\/+$/, '').slice(slash + 1)
  if (name === '' || name === '.' || name === '..') throw new HostError('EINVAL', `will not remove ${path}`, { path })
  try {
    return { descriptor: libc.open(slash <= 0 ? '/' : path.slice(0, slash), libc.O_PATH | libc.O_DIRECTORY), name }
  } catch (error) {
    if (!hasCode(error, 'ENOENT', 'ENOTDIR')) throw error
    return undefined
  }
}

function removeEntry(parent: number, name: Uint8Array, empty: (directory: number) => void): void {
  try {
    libc.unlinkat(parent, name, 0)
    return
  } catch (error) {
    if (hasCode(error, 'ENOENT') || isAbsent(parent, name)) return
    if (!hasCode(error, 'EISDIR')) throw error
  }
  const directory = openDirectory(parent, name)
  if (directory === undefined) return
  try {
    empty(directory)
  } finally {
    libc.close(directory)
  }
  try {
    libc.unlinkat(parent, name, libc.AT_REMOVEDIR)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
}

/** EXDEV here means a mount point: it is reported as EBUSY, as rmdir would, and nothing below it is touched. */
function openDirectory(parent: number, name: Uint8Array): number | undefined {
  try {
    return libc.openat2(parent, name, directoryFlags, withinOneMount)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    if (!hasCode(error, 'EXDEV')) throw error
    const shown = libc.pathBelow(parent, name)
    throw new HostError('EBUSY', `${shown} is a mount point: not removed`, { path: shown, cause: error })
  }
}

/**
 * Deletes everything in a directory with a bounded number of descriptors, however deep it goes: beyond a depth nobody
 * needs, sub-directories are moved up (same filesystem, by descriptor) and deleted from there.
 */
function emptyDirectory(directory: number, context: WalkContext, depth = 0): void {
  // So many names at a time, until there are none: what was moved up comes with a later turn.
  for (let names = firstNames(directory); names.length > 0; names = firstNames(directory))
    for (const name of names) {
      context.checkCancelled()
      removeEntry(directory, name, (child) => {
        if (depth < moveUpDepth) emptyDirectory(child, context, depth + 1)
        else moveUp(child, directory, context)
      })
    }
}

function moveUp(child: number, directory: number, context: WalkContext): void {
  let moved = 0
  for (let names = firstNames(child); names.length > 0; names = firstNames(child))
    for (const name of names) {
      context.checkCancelled()
      if (unlinked(child, name)) continue
      checkNoMount(child, name)
      if (emptyDirectoryRemoved(child, name)) continue
      moved += 1
      libc.renameat(child, name, directory, freshName(directory, moved))
    }
}

function unlinked(parent: number, name: Uint8Array): boolean {
  try {
    libc.unlinkat(parent, name, 0)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return true
    if (!hasCode(error, 'EISDIR')) throw error
    return false
  }
}

function emptyDirectoryRemoved(parent: number, name: Uint8Array): boolean {
  try {
    libc.unlinkat(parent, name, libc.AT_REMOVEDIR)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return true
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
    return false
  }
}

function checkNoMount(parent: number, name: Uint8Array): void {
  const opened = openDirectory(parent, name)
  if (opened !== undefined) libc.close(opened)
}

function freshName(directory: number, number: number): string {
  for (let attempt = number; ; attempt += 1) {
    const name = `.hawser-delete-${process.pid}-${attempt}`
    try {
      libc.statx(directory, name, libc.AT_SYMLINK_NOFOLLOW)
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return name
      throw error
    }
  }
}

function removeEmpty(parent: number, name: Uint8Array, context: WalkContext, depth: number): void {
  if (depth > emptyDepth) throw new HostError('ELOOP', `the tree is deeper than ${emptyDepth} directories`)
  const directory = openAsDirectory(parent, name)
  if (directory === undefined) return
  try {
    for (let names = firstNames(directory); names.length > 0; names = firstNames(directory))
      for (const child of names) {
        context.checkCancelled()
        removeEmpty(directory, child, context, depth + 1)
      }
  } finally {
    libc.close(directory)
  }
  libc.unlinkat(parent, name, libc.AT_REMOVEDIR)
}

/** A file among directories that should be empty is somebody's data: stop, delete nothing (LAYOUT-11). */
function openAsDirectory(parent: number, name: Uint8Array): number | undefined {
  try {
    return openDirectory(parent, name)
  } catch (error) {
    if (!hasCode(error, 'ENOTDIR', 'ELOOP')) throw error
    const shown = libc.pathBelow(parent, name)
    throw new HostError('ENOTEMPTY', `${shown} is not an empty directory`, { path: shown, cause: error })
  }
}
