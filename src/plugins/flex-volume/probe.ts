// Which FlexVolume drivers are installed right now? The driver directory, read once and then watched (FLEX-1, FLEX-2).
// One broken driver does not hide a good one; it is tried again when its directory changes, or when somebody asks.

import { join } from 'node:path/posix'
import type { Host } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import type { Log } from '../../telemetry/log.ts'
import { names } from '../disk/multipath.ts'
import { messageOf } from '../shared/errors.ts'
import type { FlexDriver } from './driver-call.ts'
import { startDriver } from './driver-call.ts'

export const defaultDriverDirectory = '/usr/libexec/kubernetes/kubelet-plugins/volume/exec'

export interface FlexProberDeps {
  readonly host: Pick<Host, 'files' | 'run'>
  readonly log: Log
  readonly directory: string
  /** A driver is there, or has changed. */
  readonly found: (driver: FlexDriver) => void
  readonly gone: (name: string) => void
}

export interface FlexProber extends AsyncDisposable {
  /** Looks again at everything; resolves when all changes seen so far are worked in. */
  probe(): Promise<void>
}

interface Known {
  /** What tells one state of the program from another. */
  readonly fingerprint: string
  readonly started: boolean
}

export async function startFlexProber(deps: FlexProberDeps, signal: AbortSignal): Promise<FlexProber> {
  const { host, log, directory } = deps
  const known = new Map<string, Known>()
  let tail: Promise<void> = Promise.resolve()
  let queued = false
  let watch: Disposable | undefined

  async function look(): Promise<void> {
    queued = false
    const folders = (await names(host.files, directory, signal)).filter(
      (name) => !name.startsWith('.') && name.includes('~'),
    )
    for (const folder of folders) await lookAt(folder)
    for (const [folder, { started }] of known) {
      if (folders.includes(folder)) continue
      known.delete(folder)
      if (started) deps.gone(driverName(folder))
    }
  }
  async function lookAt(folder: string): Promise<void> {
    const name = driverName(folder)
    const executable = join(directory, folder, folder.slice(folder.lastIndexOf('~') + 1))
    const fingerprint = await fingerprintOf(executable)
    const before = known.get(folder)
    if (fingerprint === undefined) {
      known.delete(folder)
      if (before?.started === true) deps.gone(name)
      return
    }
    if (before?.fingerprint === fingerprint && before.started) return
    try {
      const driver = await startDriver(host, { name, executable }, signal)
      known.set(folder, { fingerprint, started: true })
      deps.found(driver)
    } catch (error) {
      known.set(folder, { fingerprint, started: false })
      log.warn('a FlexVolume driver does not start', { driver: name, error: messageOf(error) })
    }
  }
  async function fingerprintOf(path: string): Promise<string | undefined> {
    try {
      const stat = await host.files.stat(path, signal)
      return stat.kind === 'file' ? `${stat.inode} ${stat.sizeBytes} ${stat.modifiedMs}` : undefined
    } catch (error) {
      if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
      throw error
    }
  }
  const enqueue = (): Promise<void> => {
    if (!queued) {
      queued = true
      tail = tail.then(watchAndLook).catch((error: unknown) => {
        if (!signal.aborted) log.warn('FlexVolume drivers could not be looked for', { error: messageOf(error) })
      })
    }
    return tail
  }
  /** The directory itself may have been removed; then it is made again and watched anew. */
  async function watchAndLook(): Promise<void> {
    if (watch === undefined || !(await host.files.exists(directory, signal))) {
      watch?.[Symbol.dispose]()
      await host.files.mkdirAll(directory, 0o755, signal)
      watch = await host.files.watch(directory, () => void enqueue(), signal)
    }
    await look()
  }

  await enqueue()
  return {
    probe: enqueue,
    async [Symbol.asyncDispose]() {
      watch?.[Symbol.dispose]()
      await tail
    },
  }
}

/** `vendor~driver` → `vendor/driver` */
export function driverName(folder: string): string {
  return folder.replaceAll('~', '/')
}
