// Which FlexVolume drivers are installed right now? The driver directory, read once and then watched (FLEX-1, FLEX-2).
// One broken driver does not hide a good one; it is tried again when its program changes, and after a while.

import { join } from 'node:path/posix'
import { backoff } from '../../clock/backoff.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Files, Host } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import type { Log } from '../../telemetry/log.ts'
import { names } from '../disk/multipath.ts'
import { messageOf } from '../shared/errors.ts'
import type { FlexDriver } from './driver-call.ts'
import { startDriver } from './driver-call.ts'

export const defaultDriverDirectory = '/usr/libexec/kubernetes/kubelet-plugins/volume/exec'

/**
 * Upstream tries again on the next lookup. Ours cannot wait for a program; it is woken when the driver is there. The wait is
 * short enough for whoever has put right what the driver missed.
 */
const startBackoff = { firstMs: 500, capMs: 30_000 } as const
/** A driver may write beside itself all the time: so long at least it is left alone. */
const restMs = 10_000

export interface FlexProberDeps {
  readonly host: Pick<Host, 'files' | 'run'>
  readonly clock: Pick<Clock, 'now' | 'at'>
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
  /** What tells one state of the program from another, and one of what lies beside it. */
  readonly program: string
  readonly beside: string
  /** It was found by our user, and is not gone since: an update that does not start leaves the driver as it was. */
  readonly found: boolean
  /** How often it did not start since its program changed. */
  readonly failures: number
  /** Unless its program changes, it is not started again before this time. */
  readonly restsUntil: number
}

export async function startFlexProber(deps: FlexProberDeps, signal: AbortSignal): Promise<FlexProber> {
  const { host, clock, log, directory } = deps
  const known = new Map<string, Known>()
  let tail: Promise<void> = Promise.resolve()
  let queued = false
  let watch: Disposable | undefined
  let alarm: Disposable | undefined

  async function look(): Promise<void> {
    queued = false
    const folders = (await names(host.files, directory, signal)).filter(
      (name) => !name.startsWith('.') && name.includes('~'),
    )
    alarm?.[Symbol.dispose]()
    for (const [folder, { found }] of known) {
      if (folders.includes(folder)) continue
      known.delete(folder)
      if (found) deps.gone(driverName(folder))
    }
    let next = Infinity
    for (const folder of folders) next = Math.min(next, await lookAt(folder))
    if (next < Infinity && !signal.aborted) alarm = clock.at(next, () => void enqueue())
  }
  /** Answers when to look again though nothing changes. */
  async function lookAt(folder: string): Promise<number> {
    const name = driverName(folder)
    const executable = join(directory, folder, folder.slice(folder.lastIndexOf('~') + 1))
    const program = await stateOfProgram(host.files, executable, signal)
    const before = known.get(folder)
    if (program === undefined) {
      known.delete(folder)
      if (before?.found === true) deps.gone(name)
      return Infinity
    }
    const same = before?.program === program ? before : undefined
    if (same !== undefined) {
      const beside = await stateBeside(host.files, join(directory, folder), signal)
      if (same.failures === 0 && same.beside === beside) return Infinity
      if (clock.now() < same.restsUntil) return same.restsUntil
    }
    const driver = await startDriver(host, { name, executable }, signal).catch((error: unknown) => {
      log.warn('a FlexVolume driver does not start', { driver: name, error: messageOf(error) })
    })
    // Read afterwards: what a driver writes while it starts is no change that starts it again.
    const beside = await stateBeside(host.files, join(directory, folder), signal)
    const found = driver !== undefined || before?.found === true
    const failures = driver === undefined ? (same?.failures ?? 0) + 1 : 0
    const restsUntil = clock.now() + (failures === 0 ? restMs : backoff(failures, startBackoff))
    known.set(folder, { program, beside, found, failures, restsUntil })
    if (driver !== undefined) deps.found(driver)
    return failures === 0 ? Infinity : restsUntil
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
      alarm?.[Symbol.dispose]()
    },
  }
}

/** `vendor~driver` → `vendor/driver` */
export function driverName(folder: string): string {
  return folder.replaceAll('~', '/')
}

/** Undefined: there is no program. */
async function stateOfProgram(
  files: Pick<Files, 'stat'>,
  path: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const stat = await files.stat(path, signal)
    return stat.kind === 'file' ? `${stat.inode} ${stat.sizeBytes} ${stat.modifiedMs}` : undefined
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }
}

/** FLEX-2: any file in its directory may be a part of the driver; names that start with a dot are none. */
async function stateBeside(
  files: Pick<Files, 'readDir' | 'lstat'>,
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  const states: string[] = []
  for (const name of [...(await names(files, folder, signal))].sort()) {
    if (name.startsWith('.')) continue
    try {
      const { inode, sizeBytes, modifiedMs } = await files.lstat(join(folder, name), signal)
      states.push(`${name} ${inode} ${sizeBytes} ${modifiedMs}`)
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'ENOTDIR')) throw error
    }
  }
  return states.join('\n')
}
