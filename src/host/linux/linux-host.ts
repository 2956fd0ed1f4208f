// How is the real host put together? One pool of worker threads, one way to run programs.
// Needs Linux 5.12 (mount_setattr); 6.14 answers questions about mounts without reading the mount table.

import type { Devices, Host } from '../host.ts'
import { createLinuxFiles } from './files.ts'
import { createLinuxFilesystems } from './filesystems.ts'
import { createLinuxMounts } from './mounts.ts'
import { createRun, searchPathOf } from './run.ts'
import type { PoolOptions, WorkerPool } from './worker-pool.ts'
import { createWorkerPool } from './worker-pool.ts'

export interface LinuxHostOptions extends PoolOptions {
  /** Where programs are looked for (default: our PATH). */
  readonly searchPath?: string
}

export interface LinuxHost extends Host, AsyncDisposable {
  /** Paths on which calls hang right now. */
  hung(): readonly string[]
}

export function createLinuxHost(options: LinuxHostOptions = {}): LinuxHost {
  const pool = createWorkerPool(options)
  const run = createRun(options)
  return {
    files: createLinuxFiles(pool),
    mounts: createLinuxMounts(pool, run, searchPathOf(options)),
    devices: createLinuxDevices(pool),
    filesystems: createLinuxFilesystems(pool, run),
    run,
    hung: () => pool.hung(),
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  }
}

function createLinuxDevices(pool: WorkerPool): Devices {
  return {
    sizeBytes: (device, signal) => pool.call('deviceSize', [device], { path: device }, signal),
    isReadOnly: (device, signal) => pool.call('deviceReadOnly', [device], { path: device }, signal),
    isInUse: (device, signal) => pool.call('deviceInUse', [device], { path: device }, signal),
    attachLoop: (request, signal) => pool.call('attachLoop', [request], { path: request.file }, signal),
    detachLoop: (device, signal) => pool.call('detachLoop', [device], { path: device }, signal),
    loopsOf: (file, signal) => pool.call('loopsOf', [file], { path: file }, signal),
    refreshLoop: (device, signal) => pool.call('refreshLoop', [device], { path: device }, signal),
    flush: (device, signal) => pool.call('flushDevice', [device], { path: device }, signal),
  }
}
