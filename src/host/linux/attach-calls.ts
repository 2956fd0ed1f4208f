// How do mounts get into a container that is being set up? This thread copies each source into a detached tree, gives it its
// attributes, enters the container's mount namespace, walks to the target by descriptors, and attaches the tree there.
//
// 1. No path leads to the host's root while a target is looked for: setup has dropped it, and so has this thread.
// 2. A mount has all its attributes before anybody can see it.
// 3. One component is opened at a time and no link is followed by the kernel. Links count only on the container's own root
//    layer; whoever writes to a volume decides about nothing outside of it.
// 4. The thread comes back to the host's namespace, or it ends.
import { normalize } from 'node:path/posix'
import type { MountInside, NamespaceContent, ProtectedPaths } from '../processes.ts'
import { HostError, hasCode } from '../host-error.ts'
import * as libc from './libc.ts'

const MOUNT_ATTR_RDONLY = 0x1n
const MOUNT_ATTR_NODEV = 0x4n
const propagations = { private: 1n << 18n, slave: 1n << 19n, shared: 1n << 20n } as const
const kindMask = 0o170000
const [directoryKind, linkKind] = [0o040000, 0o120000]
const mostLinks = 40
/** A directory may be removed between its making and its opening; somebody who does that again and again is refused. */
const mostTries = 5

export const attachCalls = {
  /** `namespace` is an open mount namespace whose root no longer leads to the host's. */
  attachMounts(namespace: number, inside: NamespaceContent): void {
    const trees: { readonly tree: number; readonly mount: MountInside }[] = []
    const opened = new Set<number>()
    try {
      for (const mount of inside.mounts) {
        const tree = inWords(mount, () => copyTree(mount))
        opened.add(tree)
        trees.push({ tree, mount })
      }
      insideNamespace(namespace, () => {
        protect(inside.protectedPaths)
        for (const { tree, mount } of trees) inWords(mount, () => attach(tree, mount.target))
        makeWorkingDirectory(inside.workingDirectory)
        if (inside.readOnlyRoot) makeRootReadOnly()
      })
    } finally {
      for (const descriptor of opened) libc.close(descriptor)
    }
  },
}

function inWords<T>({ target }: MountInside, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof HostError)) throw error
    const old = hasCode(error, 'ENOSYS') ? ' (Linux 5.12 or newer is needed)' : ''
    throw new HostError(error.code, `cannot mount at ${target}: ${error.message}${old}`, { path: target, cause: error })
  }
}

function copyTree({ source, readOnly, recursiveReadOnly, noDevices, propagation }: MountInside): number {
  const tree = libc.openTreeClone(libc.AT_FDCWD, source, libc.AT_RECURSIVE)
  try {
    const set = noDevices ? MOUNT_ATTR_NODEV : 0n
    libc.setMountAttributes(tree, { set, clear: 0n, propagation: propagations[propagation], recursive: true })
    if (readOnly) libc.setMountAttributes(tree, { set: MOUNT_ATTR_RDONLY, clear: 0n, recursive: recursiveReadOnly })
    return tree
  } catch (error) {
    libc.close(tree)
    throw error
  }
}

/** Threads of one process share their root directory unless they part; only then may one of them change its namespace. */
function insideNamespace(namespace: number, work: () => void): void {
  libc.unshareFilesystemState()
  libc.umask(0o022)
  const own = libc.open('/proc/thread-self/ns/mnt', libc.O_RDONLY)
  try {
    libc.enterMountNamespace(namespace)
    try {
      work()
    } finally {
      comeBack(own)
    }
  } finally {
    libc.close(own)
  }
}

function comeBack(own: number): void {
  try {
    libc.enterMountNamespace(own)
  } catch {
    // It must never answer another question: every path it names is a path of the container.
    process.exit(1)
  }
}

/** Only the kernel writes names in /proc, so these may be looked up by path. */
function protect({ readOnly, masked }: ProtectedPaths): void {
  for (const path of readOnly) cover(path, path, true)
  for (const path of masked) cover('/dev/null', path, false)
}

function cover(source: string, target: string, readOnly: boolean): void {
  try {
    libc.close(libc.open(target, libc.O_PATH | libc.O_NOFOLLOW))
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return
    throw error
  }
  const tree = libc.openTreeClone(libc.AT_FDCWD, source, libc.AT_RECURSIVE)
  try {
    if (readOnly) libc.setMountAttributes(tree, { set: MOUNT_ATTR_RDONLY, clear: 0n, recursive: true })
    libc.moveMount(tree, target)
  } finally {
    libc.close(tree)
  }
}

function attach(tree: number, target: string): void {
  // It would lie over the root, and the container's processes have the one below.
  if (normalize(`/${target}`) === '/')
    throw new HostError('EINVAL', "a volume cannot be mounted at /, the container's root", { path: target })
  const isDirectory = kindOf(tree) === directoryKind
  const place = openTarget(target, isDirectory)
  try {
    libc.moveMountOnto(tree, place)
  } finally {
    libc.close(place)
  }
}

/** Where a link in a volume leads, the container's user goes by itself. */
function makeWorkingDirectory(path: string): void {
  try {
    libc.close(openTarget(path, true))
  } catch (error) {
    if (hasCode(error, 'ELOOP')) return
    if (!(error instanceof HostError)) throw error
    const text = `cannot make the working directory ${path}: ${error.message}`
    throw new HostError(error.code, text, { path, cause: error })
  }
}

function makeRootReadOnly(): void {
  const root = libc.open('/', libc.O_PATH | libc.O_DIRECTORY)
  try {
    libc.setMountAttributes(root, { set: MOUNT_ATTR_RDONLY, clear: 0n, recursive: false })
  } finally {
    libc.close(root)
  }
}

/** The way so far, as open directories: `..` goes back to the one we came from, wherever it was moved meanwhile. */
function openTarget(target: string, isDirectory: boolean): number {
  const way = [libc.open('/', libc.O_PATH | libc.O_DIRECTORY)]
  const rootMount = mountIdOf(way[0]!)
  const left = target.split('/').filter((name) => name !== '' && name !== '.')
  try {
    for (let links = 0; left.length > 0;) {
      const name = left.shift()!
      if (name === '..') {
        if (way.length > 1) libc.close(way.pop()!)
        continue
      }
      const make = left.length > 0 || isDirectory ? 'directory' : 'file'
      const entry = openOrMake(way.at(-1)!, name, make)
      if (kindOf(entry) !== linkKind) {
        way.push(entry)
        continue
      }
      const linkTarget = followable(entry, name, rootMount, ++links)
      if (linkTarget.startsWith('/')) for (const descriptor of way.splice(1)) libc.close(descriptor)
      left.unshift(...linkTarget.split('/').filter((part) => part !== '' && part !== '.'))
    }
    return way.pop()!
  } finally {
    for (const descriptor of way) libc.close(descriptor)
  }
}

function openOrMake(directory: number, name: string, kind: 'directory' | 'file'): number {
  for (let tries = 1; ; tries++) {
    try {
      return libc.openat(directory, name, libc.O_PATH | libc.O_NOFOLLOW)
    } catch (error) {
      if (!hasCode(error, 'ENOENT') || tries === mostTries) throw error
    }
    try {
      if (kind === 'directory') libc.mkdirat(directory, name, 0o755)
      else libc.close(libc.openat(directory, name, libc.O_WRONLY | libc.O_CREAT | libc.O_EXCL | libc.O_NOFOLLOW, 0o644))
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error
    }
  }
}

/** Where a link leads, if it is one of the container's own root layer. Closes its descriptor. */
function followable(link: number, name: string, rootMount: bigint, count: number): string {
  try {
    if (mountIdOf(link) !== rootMount)
      throw new HostError('ELOOP', `${name} is a link inside a volume, and such links are not followed`, { path: name })
    if (count > mostLinks) throw new HostError('ELOOP', `${name}: too many links`, { path: name })
    return libc.readlinkOf(link)
  } finally {
    libc.close(link)
  }
}

const statFlags = libc.AT_EMPTY_PATH | libc.AT_STATX_DONT_SYNC | libc.AT_NO_AUTOMOUNT
const kindOf = (descriptor: number) => libc.statx(descriptor, '', statFlags).mode & kindMask
const mountIdOf = (descriptor: number) => libc.statx(descriptor, '', statFlags, libc.STATX_MNT_ID).mountId
