// How does Linux answer file questions? Every call goes to a worker thread; nothing here touches a path itself.

import * as fs from 'node:fs'
import { join } from 'node:path/posix'
import type { FileStat, Files, OpenPath } from '../host.ts'
import { HostError } from '../host-error.ts'
import type { WorkerPool } from './worker-pool.ts'

export function createLinuxFiles(pool: WorkerPool): Files {
  const readFile: Files['readFile'] = (path, signal) => pool.call('readFile', [path], { path }, signal)
  return {
    mkdir: (path, mode, signal) => pool.call('mkdir', [path, mode], { path }, signal),
    mkdirDeep: (path, modes, signal) => pool.call('mkdirDeep', [path, modes], { path }, signal),
    mkdirAll: (path, mode, signal) => pool.call('mkdirAll', [path, mode], { path }, signal),
    mkdirEach: (base, names, mode, signal) => pool.call('mkdirEach', [base, names, mode], { path: base }, signal),
    readFile,
    readText: async (path, signal) => Buffer.from(await readFile(path, signal)).toString(),
    writeFile: (path, data, options, signal) =>
      pool.call('writeFile', [path, typeof data === 'string' ? Buffer.from(data) : data, options], { path }, signal),
    readDir: (path, signal) => pool.call('readDir', [path], { path }, signal),
    stat: (path, signal) => pool.call('stat', [path], { path }, signal),
    lstat: (path, signal) => pool.call('lstat', [path], { path }, signal),
    exists: (path, signal) => pool.call('exists', [path], { path }, signal),
    symlink: (target, path, signal) => pool.call('symlink', [target, path], { path }, signal),
    readlink: (path, signal) => pool.call('readlink', [path], { path }, signal),
    realpath: (path, signal) => pool.call('realpath', [path], { path }, signal),
    rename: (from, to, signal) => pool.call('rename', [from, to], { path: to }, signal),
    chmod: (path, mode, signal) => pool.call('chmod', [path, mode], { path }, signal),
    lchown: (path, uid, gid, signal) => pool.call('lchown', [path, uid, gid], { path }, signal),
    rmdir: (path, signal) => pool.call('rmdir', [path], { path }, signal),
    unlink: (path, signal) => pool.call('unlink', [path], { path }, signal),
    remove: (path, signal) => pool.call('remove', [path], { path }, signal),
    removeTree: (path, signal) => pool.call('removeTree', [path], { path, walk: true }, signal),
    removeEmptyTree: (path, signal) => pool.call('removeEmptyTree', [path], { path, walk: true }, signal),
    watch: watchTree,
    async openBeneath(root, relative, signal) {
      const { descriptor, stat } = await pool.call(
        'openBeneath',
        [root, relative],
        { path: join(root, relative) },
        signal,
      )
      return new LinuxOpenPath(pool, descriptor, stat)
    },
    mkdirBeneath: (root, relative, mode, signal) =>
      pool.call('mkdirBeneath', [root, relative, mode], { path: join(root, relative) }, signal),
    writeTree: (root, entries, signal) => pool.call('writeTree', [root, entries], { path: root }, signal),
    readTree: (root, signal) => pool.call('readTree', [root], { path: root }, signal),
    distrust: (path, signal) => pool.call('distrust', [path], { path }, signal),
    setGroup: ({ root, gid, readOnly, onProgress }, signal) =>
      pool.call(
        'setGroup',
        [root, gid, readOnly],
        { path: root, walk: true, ...(onProgress === undefined ? {} : { onProgress }) },
        signal,
      ),
  }
}

/** A descriptor of the whole process, so every worker thread may use it. */
export class LinuxOpenPath implements OpenPath {
  readonly path: string
  readonly stat: FileStat
  readonly descriptor: number
  readonly #pool: WorkerPool
  #open = true

  constructor(pool: WorkerPool, descriptor: number, stat: FileStat) {
    this.#pool = pool
    this.descriptor = descriptor
    this.stat = stat
    this.path = `/proc/${process.pid}/fd/${descriptor}`
  }

  async close(): Promise<void> {
    if (!this.#open) return
    this.#open = false
    await this.#pool.call(
      'closeDescriptor',
      [this.descriptor],
      { path: '', escape: true },
      new AbortController().signal,
    )
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

/** inotify through fs.watch; only for our own directories (drivers, sockets), never for a volume that may hang. */
async function watchTree(path: string, listener: (path: string) => void, signal: AbortSignal): Promise<Disposable> {
  let watcher: fs.FSWatcher
  try {
    watcher = fs.watch(path, { recursive: true, persistent: false, signal }, (_event, name) =>
      listener(name === null ? path : join(path, name)),
    )
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new HostError(code ?? 'EIO', message, { path, cause: error })
  }
  // A directory that vanishes is a change like any other; who watches looks again and finds it gone.
  watcher.on('error', () => listener(path))
  return { [Symbol.dispose]: () => watcher.close() }
}
