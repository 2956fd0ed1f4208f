// How does the model answer file questions? Like Linux, root and umask 0 assumed; every change tells the watchers.

import { dirname, join } from 'node:path/posix'
import type { FileStat, Files, FoundEntry, GroupResult, OpenPath, TreeEntry } from '../host.ts'
import { HostError } from '../host-error.ts'
import { groupMode } from '../ownership.ts'
import type { Distrust } from '../trusted-path.ts'
import { judgePath } from '../trusted-path.ts'
import type { MountTable, Position } from './mount-table.ts'
import { checkWritable } from './mount-table.ts'
import type { Inode, NewInode } from './tree.ts'
import { addEntry, isBelow, isDeleted, link, statOf, unlink, writeBytes } from './tree.ts'

export interface ModelFilesDeps {
  readonly table: MountTable
  readonly now: () => number
}

interface Model extends ModelFilesDeps {
  readonly watchers: Set<{ readonly path: string; readonly listener: (path: string) => void }>
}

export function createModelFiles(deps: ModelFilesDeps): Files {
  const model: Model = { ...deps, watchers: new Set() }
  return { ...directoryCalls(model), ...fileCalls(model), ...entryCalls(model), ...treeCalls(model) }
}

function directoryCalls(model: Model): Pick<Files, 'mkdir' | 'mkdirDeep' | 'mkdirAll' | 'mkdirEach' | 'readDir'> {
  const { table } = model
  return {
    mkdir: async (path, mode, signal) =>
      checked(signal, path, () => void make(model, path, { kind: 'directory', mode })),
    mkdirDeep: async (path, { mode, parentMode }, signal) =>
      checked(signal, path, () => {
        mkdirAll(model, dirname(path), parentMode)
        make(model, path, { kind: 'directory', mode })
      }),
    mkdirAll: async (path, mode, signal) => checked(signal, path, () => mkdirAll(model, path, mode)),
    mkdirEach: async (base, names, mode, signal) =>
      checked(signal, base, () => {
        for (const name of names) mkdirAll(model, join(base, name), mode)
      }),
    readDir: async (path, signal) =>
      checked(signal, path, () => {
        const { inode } = table.resolve(path)
        if (inode.kind !== 'directory') throw failure('ENOTDIR', path)
        return [...inode.entries.keys()]
      }),
  }
}

function fileCalls(model: Model): Pick<Files, 'readFile' | 'readText' | 'writeFile' | 'stat' | 'lstat' | 'exists'> {
  const { table, now } = model
  return {
    readFile: async (path, signal) => checked(signal, path, () => readBytes(table, path)),
    readText: async (path, signal) => checked(signal, path, () => new TextDecoder().decode(readBytes(table, path))),
    writeFile: async (path, data, { mode, parentMode, exclusive }, signal) =>
      checked(signal, path, () => {
        if (parentMode !== undefined) mkdirAll(model, dirname(path), parentMode)
        const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
        const { inode, mount, parent, name } = table.find(path, { follow: exclusive !== true })
        if (inode !== undefined && exclusive === true) throw failure('EEXIST', path)
        if (inode?.kind === 'directory') throw failure('EISDIR', path)
        if (inode === undefined && isDeleted(parent.inode)) throw failure('ENOENT', path)
        checkWritable(inode === undefined ? parent : { mount, inode }, path)
        const file = inode ?? addEntry(parent.inode, name, { kind: 'file', mode, now: now() })
        writeBytes(file, bytes, now())
        file.mode = mode
        notifyWatchers(model, parent, name)
      }),
    stat: async (path, signal) => checked(signal, path, () => statOf(table.resolve(path).inode)),
    lstat: async (path, signal) => checked(signal, path, () => statOf(table.resolve(path, { follow: false }).inode)),
    exists: async (path, signal) => checked(signal, path, () => existing(() => table.resolve(path)) !== undefined),
  }
}

function entryCalls(
  model: Model,
): Pick<Files, 'symlink' | 'readlink' | 'realpath' | 'rename' | 'chmod' | 'lchown' | 'rmdir' | 'unlink' | 'remove'> {
  const { table } = model
  return {
    symlink: async (target, path, signal) =>
      checked(signal, path, () => void make(model, path, { kind: 'symlink', mode: 0o777, target })),
    readlink: async (path, signal) =>
      checked(signal, path, () => {
        const { inode } = table.resolve(path, { follow: false })
        if (inode.kind !== 'symlink') throw failure('EINVAL', path)
        return inode.target
      }),
    realpath: async (path, signal) => checked(signal, path, () => table.pathOf(table.resolve(path))),
    rename: async (from, to, signal) => checked(signal, to, () => rename(model, from, to)),
    chmod: async (path, mode, signal) =>
      checked(signal, path, () => {
        const position = table.resolve(path)
        checkWritable(position, path)
        position.inode.mode = mode
      }),
    lchown: async (path, uid, gid, signal) =>
      checked(signal, path, () => {
        const position = table.resolve(path, { follow: false })
        checkWritable(position, path)
        if (uid !== -1) position.inode.uid = uid
        if (gid !== -1) position.inode.gid = gid
        if (position.inode.kind !== 'directory') position.inode.mode = withoutSetId(position.inode.mode)
      }),
    rmdir: async (path, signal) => checked(signal, path, () => removeOne(model, path, 'directory')),
    unlink: async (path, signal) => checked(signal, path, () => removeOne(model, path, 'file')),
    remove: async (path, signal) =>
      checked(signal, path, () => {
        if (existing(() => table.resolve(path, { follow: false })) !== undefined) removeOne(model, path, 'any')
      }),
  }
}

function treeCalls(
  model: Model,
): Pick<
  Files,
  | 'removeTree'
  | 'removeEmptyTree'
  | 'watch'
  | 'openBeneath'
  | 'mkdirBeneath'
  | 'writeTree'
  | 'readTree'
  | 'distrust'
  | 'setGroup'
> {
  const { table, now, watchers } = model
  return {
    removeTree: async (path, signal) => checked(signal, path, () => removeTree(model, path, true)),
    removeEmptyTree: async (path, signal) => checked(signal, path, () => removeTree(model, path, false)),
    watch: async (path, listener, signal) =>
      checked(signal, path, () => {
        const watcher = { path: table.pathOf(table.resolve(path)), listener }
        watchers.add(watcher)
        signal.addEventListener('abort', () => watchers.delete(watcher), { once: true })
        return { [Symbol.dispose]: () => void watchers.delete(watcher) }
      }),
    openBeneath: async (root, relative, signal) =>
      checked(
        signal,
        join(root, relative),
        () => new ModelOpenPath(table, table.resolve(relative, { beneath: table.resolve(root, { follow: false }) })),
      ),
    mkdirBeneath: async (root, relative, mode, signal) =>
      checked(signal, join(root, relative), () =>
        mkdirBeneath(table, root, relative, { kind: 'directory', mode, now: now() }),
      ),
    writeTree: async (root, entries, signal) =>
      checked(signal, root, () => {
        const beneath = table.resolve(root, { follow: false })
        for (const entry of entries) writeEntry(table, beneath, entry, now())
      }),
    readTree: async (root, signal) =>
      checked(signal, root, () => readTree(table.resolve(root, { follow: false }).inode, '')),
    distrust: async (path, signal) => checked(signal, path, () => distrustOf(table, path)),
    setGroup: async ({ root, gid, readOnly }, signal) =>
      checked(signal, root, () => setGroup(table.resolve(root).inode, gid, readOnly)),
  }
}

/** Everything of the model is done by root. */
function distrustOf(table: MountTable, path: string): Distrust | undefined {
  const walk = judgePath(path, [0])
  let step = walk.next()
  while (step.done !== true) {
    const { value } = step
    const inode = existing(() => table.resolve(value, { follow: false }).inode)
    step = walk.next(inode && { ...inode, ...(inode.kind === 'symlink' ? { target: inode.target } : {}) })
  }
  return step.value
}

function notifyWatchers({ table, watchers }: Model, parent: Position, name: string): void {
  const path = join(table.pathOf(parent), name)
  for (const watcher of watchers) {
    if (path === watcher.path || path.startsWith(`${watcher.path}/`))
      queueMicrotask(() => watchers.has(watcher) && watcher.listener(path))
  }
}

function make(model: Model, path: string, wanted: Omit<NewInode, 'now'>): Inode {
  const { parent, name, inode } = model.table.find(path, { follow: false })
  if (inode !== undefined) throw failure('EEXIST', path)
  if (isDeleted(parent.inode)) throw failure('ENOENT', path)
  checkWritable(parent, path)
  const made = addEntry(parent.inode, name, { ...wanted, now: model.now() })
  notifyWatchers(model, parent, name)
  return made
}

function removeOne(model: Model, path: string, kind: 'file' | 'directory' | 'any'): void {
  const { table } = model
  const { parent, name, inode, mount } = table.find(path, { follow: false })
  // The order of these questions is the kernel's.
  if (name !== '') checkWritable(parent, path)
  if (inode === undefined) throw failure('ENOENT', path)
  if (kind === 'file' && inode.kind === 'directory') throw failure('EISDIR', path)
  if (kind === 'directory' && inode.kind !== 'directory') throw failure('ENOTDIR', path)
  if (name === '' || mount !== parent.mount || table.isCovered(inode)) throw failure('EBUSY', path)
  if (inode.entries.size > 0) throw failure('ENOTEMPTY', path)
  unlink(parent.inode, name)
  notifyWatchers(model, parent, name)
}

function readBytes(table: MountTable, path: string): Uint8Array {
  const { inode } = table.resolve(path)
  if (inode.kind === 'directory') throw failure('EISDIR', path)
  return Uint8Array.from(inode.bytes)
}

function mkdirAll(model: Model, path: string, mode: number): void {
  const { table } = model
  const found = existing(() => table.resolve(path))
  if (found !== undefined) {
    if (found.inode.kind !== 'directory') throw failure('ENOTDIR', path)
    return
  }
  if (dirname(path) !== path) mkdirAll(model, dirname(path), mode)
  // A link that leads nowhere is neither a directory nor a place for one.
  if (table.find(path, { follow: false }).inode !== undefined) table.resolve(path)
  make(model, path, { kind: 'directory', mode })
}

export class ModelOpenPath implements OpenPath {
  readonly path: string
  readonly stat: FileStat
  readonly position: Position
  readonly #table: MountTable
  readonly #handle: number

  constructor(table: MountTable, position: Position) {
    this.#table = table
    this.#handle = table.hold(position)
    this.position = position
    this.path = `/proc/1/fd/${this.#handle}`
    this.stat = statOf(position.inode)
  }

  async close(): Promise<void> {
    this.#table.release(this.#handle)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

/** Runs one synchronous piece of the model; given up calls never begin. */
export function checked<T>(signal: AbortSignal, path: string, work: () => T): T {
  if (signal.aborted)
    throw new HostError('ABORTED', `given up before it began: ${path}`, { path, cause: signal.reason })
  return work()
}

function failure(code: string, path: string): HostError {
  return new HostError(code, `${code}: ${path}`, { path })
}

function existing<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    if (error instanceof HostError && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return undefined
    throw error
  }
}

/** The order of these questions is the kernel's: it decides which of several errors is told. */
function rename(model: Model, from: string, to: string): void {
  const { table } = model
  const old = table.find(from, { follow: false })
  const place = table.find(to, { follow: false })
  if (old.name === '' || place.name === '') throw failure('EBUSY', from)
  if (old.parent.mount !== place.parent.mount) throw failure('EXDEV', to)
  checkWritable(place.parent, to)
  // The entries themselves, not what is mounted on them.
  const inode = old.parent.inode.entries.get(old.name)
  const replaced = place.parent.inode.entries.get(place.name)
  if (inode === undefined) throw failure('ENOENT', from)
  if (isBelow(place.parent.inode, inode)) throw failure('EINVAL', to)
  if (replaced !== undefined && isBelow(old.parent.inode, replaced)) throw failure('ENOTEMPTY', to)
  if (inode === replaced) return
  if (replaced !== undefined && replaced.kind !== 'directory' && inode.kind === 'directory')
    throw failure('ENOTDIR', to)
  if (replaced?.kind === 'directory' && inode.kind !== 'directory') throw failure('EISDIR', to)
  if (table.isCovered(inode) || (replaced !== undefined && table.isCovered(replaced))) throw failure('EBUSY', to)
  if (replaced !== undefined && replaced.entries.size > 0) throw failure('ENOTEMPTY', to)
  if (replaced !== undefined) unlink(place.parent.inode, place.name)
  old.parent.inode.entries.delete(old.name)
  link(place.parent.inode, place.name, inode)
  notifyWatchers(model, old.parent, old.name)
  notifyWatchers(model, place.parent, place.name)
}

function removeTree(model: Model, path: string, files: boolean): void {
  const { table } = model
  const position = existing(() => table.resolve(path, { follow: false }))
  if (position === undefined) return
  const found = table.find(path, { follow: false })
  if (found.mount !== found.parent.mount) throw failure('EBUSY', path)
  if (!files && position.inode.kind !== 'directory') throw failure('ENOTEMPTY', path)
  for (const name of position.inode.entries.keys()) removeTree(model, join(path, name), files)
  removeOne(model, path, 'any')
}

function mkdirBeneath(table: MountTable, root: string, relative: string, wanted: NewInode): void {
  const beneath = table.resolve(root, { follow: false })
  let walked = ''
  for (const name of relative.split('/').filter((part) => part !== '' && part !== '.')) {
    walked = walked === '' ? name : `${walked}/${name}`
    const entry = table.find(walked, { beneath, follow: false })
    const found = existing(() => table.find(walked, { beneath })) ?? { ...entry, inode: undefined }
    if (found.inode === undefined) {
      // A link that leads nowhere is never followed to make something where it leads.
      if (entry.inode !== undefined) throw failure('ENOTDIR', walked)
      checkWritable(found.parent, walked)
      addEntry(found.parent.inode, found.name, wanted)
    } else if (found.inode.kind !== 'directory') throw failure('ENOTDIR', walked)
  }
}

function writeEntry(table: MountTable, beneath: Position, entry: TreeEntry, now: number): void {
  let { inode } = beneath
  checkWritable(beneath, entry.path)
  const parts = entry.path.split('/')
  const name = parts.pop() ?? ''
  for (const part of parts) {
    const next = inode.entries.get(part) ?? addEntry(inode, part, { kind: 'directory', mode: 0o755, now })
    if (next.kind !== 'directory' || table.isCovered(next)) throw failure('ENOTDIR', entry.path)
    inode = next
  }
  if (inode.entries.has(name)) throw failure('EEXIST', entry.path)
  const file = addEntry(inode, name, { kind: 'file', mode: entry.mode, now })
  writeBytes(file, entry.bytes, now)
  if (entry.uid !== undefined) file.uid = entry.uid
}

function readTree(inode: Inode, prefix: string): FoundEntry[] {
  return [...inode.entries].flatMap(([name, child]): FoundEntry[] => {
    const path = `${prefix}${name}`
    if (child.kind === 'directory' && child.entries.size > 0) return readTree(child, `${path}/`)
    return [{ path, kind: child.kind, bytes: Uint8Array.from(child.bytes) }]
  })
}

/** A file that changes hands loses setuid, and setgid if its group may execute it. */
function withoutSetId(mode: number): number {
  return mode & ((mode & 0o010) === 0 ? ~0o4000 : ~0o6000)
}

function setGroup(inode: Inode, gid: number, readOnly: boolean): GroupResult {
  let entries = 0
  const visit = (one: Inode): void => {
    for (const child of one.entries.values()) visit(child)
    entries += 1
    one.gid = gid
    if (one.kind !== 'symlink') one.mode = groupMode(one.mode, { directory: one.kind === 'directory', readOnly })
  }
  visit(inode)
  return { entries, refused: 0 }
}
