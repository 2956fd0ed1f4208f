// What is mounted in the model, and where does a path lead? One mount namespace and its name resolution.

import { join } from 'node:path/posix'
import type { MountInfo, Propagation } from '../host.ts'
import { HostError } from '../host-error.ts'
import type { Inode, ModelFilesystem } from './tree.ts'
import { isBelow, pathInFilesystem } from './tree.ts'

export interface ModelMount {
  readonly id: bigint
  readonly parent: ModelMount | undefined
  /** The directory or file of the parent mount that it covers. */
  readonly on: Inode | undefined
  readonly root: Inode
  readonly filesystem: ModelFilesystem
  /** ro, nosuid, … */
  options: readonly string[]
  propagation: Propagation
}

/** Where a walk stands: an inode as seen through one mount. */
export interface Position {
  readonly mount: ModelMount
  readonly inode: Inode
}

export interface ResolveOptions {
  /** Follow a symbolic link at the end (default true). */
  readonly follow?: boolean
  /** Refuse to leave this place: `..` above it and absolute links are EXDEV. */
  readonly beneath?: Position
}

export class MountTable {
  readonly rootMount: ModelMount
  readonly #covering = new Map<Inode, ModelMount[]>()
  readonly #all = new Map<bigint, ModelMount>()
  readonly #handles = new Map<number, Position>()
  #nextId = 1n
  #nextHandle = 10

  constructor(rootFilesystem: ModelFilesystem) {
    this.rootMount = this.#create(undefined, undefined, rootFilesystem.root, ['rw', 'relatime'])
  }

  // ---- resolving ---------------------------------------------------------------------------------------------------

  resolve(path: string, options: ResolveOptions = {}): Position {
    const found = this.find(path, options)
    if (found.inode === undefined) throw new HostError('ENOENT', `no such file or directory: ${path}`, { path })
    return { mount: found.mount, inode: found.inode }
  }

  /** The directory an entry lies in (links followed), the entry's name, and the entry if there is one. */
  find(
    path: string,
    options: ResolveOptions = {},
  ): { mount: ModelMount; parent: Position; name: string; inode: Inode | undefined } {
    const handle = /^\/proc\/1\/fd\/(\d+)(\/.*)?$/.exec(path)
    const held = handle === null ? undefined : this.#handles.get(Number(handle[1]))
    const start = options.beneath ?? held ?? this.#top({ mount: this.rootMount, inode: this.rootMount.root })
    const rest = handle === null ? path : (handle[2] ?? '')
    return this.#walk(start, rest, options, path, 0)
  }

  #walk(
    start: Position,
    path: string,
    options: ResolveOptions,
    whole: string,
    depth: number,
  ): ReturnType<MountTable['find']> {
    if (depth > 40) throw new HostError('ELOOP', `too many symbolic links: ${whole}`, { path: whole })
    const parts = path.split('/').filter((part) => part !== '' && part !== '.')
    let here = start
    for (const [index, part] of parts.entries()) {
      if (here.inode.kind !== 'directory') throw new HostError('ENOTDIR', `not a directory: ${whole}`, { path: whole })
      if (part === '..') {
        here = this.#up(here, options.beneath, whole)
        continue
      }
      const last = index === parts.length - 1
      const entry = here.inode.entries.get(part)
      if (entry === undefined && !last)
        throw new HostError('ENOENT', `no such file or directory: ${whole}`, { path: whole })
      // Something may be mounted on the link itself; then it is no link any more.
      const seen = entry === undefined ? undefined : this.#top({ mount: here.mount, inode: entry })
      if (entry?.kind === 'symlink' && seen?.inode === entry && (!last || options.follow !== false)) {
        const rest = [entry.target, ...parts.slice(index + 1)].join('/')
        return this.#walk(this.#linkStart(entry, here, options, whole), rest, options, whole, depth + 1)
      }
      if (seen === undefined) return { mount: here.mount, parent: here, name: part, inode: undefined }
      if (last) return { mount: seen.mount, parent: here, name: part, inode: seen.inode }
      here = seen
    }
    return { mount: here.mount, parent: here, name: '', inode: here.inode }
  }

  #linkStart(entry: Inode, here: Position, options: ResolveOptions, whole: string): Position {
    if (!entry.target.startsWith('/')) return here
    if (options.beneath !== undefined) throw new HostError('EXDEV', `leads out of its root: ${whole}`, { path: whole })
    return this.#top({ mount: this.rootMount, inode: this.rootMount.root })
  }

  #up(here: Position, beneath: Position | undefined, whole: string): Position {
    if (beneath !== undefined && here.inode === beneath.inode && here.mount === beneath.mount) {
      throw new HostError('EXDEV', `leads out of its root: ${whole}`, { path: whole })
    }
    let { mount, inode } = here
    while (inode === mount.root && mount.parent !== undefined && mount.on !== undefined) {
      inode = mount.on
      mount = mount.parent
    }
    return this.#top({ mount, inode: inode.parent ?? inode })
  }

  /** What is seen at a place: the last mount stacked on it. */
  #top(position: Position): Position {
    let current = position
    for (;;) {
      const cover = this.#covering.get(current.inode)?.findLast((mount) => mount.parent === current.mount)
      if (cover === undefined) return current
      current = { mount: cover, inode: cover.root }
    }
  }

  hold(position: Position): number {
    const number = this.#nextHandle++
    this.#handles.set(number, position)
    return number
  }

  release(handle: number): void {
    this.#handles.delete(handle)
  }

  held(handle: number): Position | undefined {
    return this.#handles.get(handle)
  }

  // ---- mounting ----------------------------------------------------------------------------------------------------

  attach(
    at: Position,
    root: Inode,
    options: readonly string[],
    propagation: Propagation = 'private',
    mismatch = 'ENOTDIR',
  ): ModelMount {
    if ((at.inode.kind === 'directory') !== (root.kind === 'directory')) {
      throw new HostError(mismatch, 'a directory is mounted on a directory, a file on a file')
    }
    return this.#create(at.mount, at.inode, root, options, propagation)
  }

  /** Copies the mounts below `source` under the new mount, as a recursive bind does. */
  attachSubmounts(source: Position, under: ModelMount, options: (old: readonly string[]) => readonly string[]): void {
    for (const child of this.mounts().filter((mount) => mount.parent === source.mount && mount !== under)) {
      if (child.on === undefined || !isBelow(child.on, source.inode)) continue
      const copy = this.#create(under, child.on, child.root, options(child.options), child.propagation)
      this.attachSubmounts({ mount: child, inode: child.root }, copy, options)
    }
  }

  detach(mount: ModelMount): void {
    for (const child of this.children(mount)) this.detach(child)
    this.#all.delete(mount.id)
    if (mount.on === undefined) return
    const left = (this.#covering.get(mount.on) ?? []).filter((other) => other !== mount)
    if (left.length === 0) this.#covering.delete(mount.on)
    else this.#covering.set(mount.on, left)
  }

  children(mount: ModelMount): ModelMount[] {
    return this.mounts().filter((other) => other.parent === mount)
  }

  mounts(): ModelMount[] {
    return [...this.#all.values()]
  }

  isCovered(inode: Inode): boolean {
    return this.#covering.has(inode)
  }

  isCoveredIn(position: Position): boolean {
    return (this.#covering.get(position.inode) ?? []).some((mount) => mount.parent === position.mount)
  }

  // ---- naming ------------------------------------------------------------------------------------------------------

  pathOf({ mount, inode }: Position): string {
    if (inode !== mount.root && inode.parent !== undefined)
      return join(this.pathOf({ mount, inode: inode.parent }), inode.name)
    if (mount.parent === undefined || mount.on === undefined) return '/'
    return this.pathOf({ mount: mount.parent, inode: mount.on })
  }

  infoOf(mount: ModelMount): MountInfo {
    return {
      id: mount.id,
      parentId: mount.parent?.id ?? 0n,
      mountPoint: this.pathOf({ mount, inode: mount.root }),
      root: pathInFilesystem(mount.root),
      device: mount.filesystem.device,
      type: mount.filesystem.type,
      source: mount.filesystem.source,
      options: mount.options,
      superOptions: [mount.filesystem.readOnly ? 'ro' : 'rw', ...mount.filesystem.options],
      propagation: mount.propagation,
    }
  }

  #create(
    parent: ModelMount | undefined,
    on: Inode | undefined,
    root: Inode,
    options: readonly string[],
    propagation: Propagation = 'private',
  ): ModelMount {
    const mount: ModelMount = {
      id: this.#nextId++,
      parent,
      on,
      root,
      filesystem: root.filesystem,
      options,
      propagation,
    }
    this.#all.set(mount.id, mount)
    if (on !== undefined) this.#covering.set(on, [...(this.#covering.get(on) ?? []), mount])
    return mount
  }
}

export function checkWritable({ mount, inode }: Position, path: string): void {
  if (mount.options.includes('ro') || inode.filesystem.readOnly) {
    throw new HostError('EROFS', `read-only file system: ${path}`, { path })
  }
}
