// Which FlexVolume drivers are installed right now? The driver directory, read once and then watched (FLEX-1, FLEX-2).
// One broken driver does not hide a good one; it is tried again when its program changes, and after a while.

import { join } from 'node:path/posix'
import { backoff } from '../../clock/backoff.ts'
import { isWithin } from '../../clock/clock.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Files, Host } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { Log } from '../../telemetry/log.ts'
import { names } from '../disk/multipath.ts'
import type { FlexDriver } from './driver-call.ts'
import { startDriver } from './driver-call.ts'

export const defaultDriverDirectory = '/usr/libexec/kubernetes/kubelet-plugins/volume/exec'

/**
 * How soon a driver that failed to start is tried again. Kubernetes tries on the next lookup; our lookups do not wait for
 * programs.
 */
const startBackoff = { firstMs: 500, capMs: 30_000 } as const
/** A driver may keep writing files in its own directory: it is not started again more often than this. */
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
  /** Looks at all drivers again; resolves when all changes seen so far are processed. */
  probe(): Promise<void>
}

interface Known {
  /** Fingerprints of the program and of the files beside it. */
  readonly program: string
  readonly beside: string
  /** `found` was called and `gone` was not: an update that does not start leaves the old driver registered. */
  readonly found: boolean
  /** Failed starts since the program last changed. */
  readonly failures: number
  readonly startedAt: number
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

  const enqueue = (): Promise<void> => {
    if (!queued) {
      queued = true
      tail = tail.then(watchAndLook).catch((error: unknown) => {
        if (!signal.aborted) log.warn('FlexVolume drivers could not be looked for', { error: errorText(error) })
      })
    }
    return tail
  }
  /** The directory itself may have been removed; then it is made again and watched anew. */
  async function watchAndLook(): Promise<void> {
    queued = false
    if (watch === undefined || !(await host.files.exists(directory, signal))) {
      watch?.[Symbol.dispose]()
      await host.files.mkdirAll(directory, 0o755, signal)
      watch = await host.files.watch(directory, () => void enqueue(), signal)
    }
    const folders = await driverFolders(deps, signal)
    alarm?.[Symbol.dispose]()
    const next = await lookAtAll(deps, known, folders, signal)
    if (next < Infinity && !signal.aborted) alarm = clock.at(next, () => void enqueue())
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

/** `vendor~driver`, each with a program of the driver's name in it. */
async function driverFolders({ host, directory }: FlexProberDeps, signal: AbortSignal): Promise<readonly string[]> {
  const entries = await names(host.files, directory, signal)
  return entries.filter((name) => !name.startsWith('.') && name.includes('~'))
}

/** Answers when to look again though nothing changes; Infinity: not before something does. */
async function lookAtAll(
  deps: FlexProberDeps,
  known: Map<string, Known>,
  folders: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  for (const folder of [...known.keys()]) if (!folders.includes(folder)) forget(deps, known, folder)
  let next = Infinity
  for (const folder of folders) next = Math.min(next, await lookAt(deps, known, folder, signal))
  return next
}

async function lookAt(
  deps: FlexProberDeps,
  known: Map<string, Known>,
  folder: string,
  signal: AbortSignal,
): Promise<number> {
  const { host, clock, log, directory } = deps
  const name = driverName(folder)
  const executable = join(directory, folder, folder.slice(folder.lastIndexOf('~') + 1))
  const program = await stateOfProgram(host.files, executable, signal)
  const before = known.get(folder)
  if (program === undefined) {
    forget(deps, known, folder)
    return Infinity
  }
  const same = before?.program === program ? before : undefined
  if (same !== undefined) {
    const beside = await stateBeside(host.files, join(directory, folder), signal)
    if (same.failures === 0 && same.beside === beside) return Infinity
    if (isWithin(clock.now(), same.startedAt, same.restsUntil)) return same.restsUntil
  }
  const driver = await startDriver(host, { name, executable }, signal).catch((error: unknown) => {
    log.warn('a FlexVolume driver does not start', { driver: name, error: errorText(error) })
  })
  // Read after the start: files that a driver writes while it starts must not start it again.
  const beside = await stateBeside(host.files, join(directory, folder), signal)
  const found = driver !== undefined || before?.found === true
  const failures = driver === undefined ? (same?.failures ?? 0) + 1 : 0
  const startedAt = clock.now()
  const restsUntil = startedAt + (failures === 0 ? restMs : backoff(failures, startBackoff))
  known.set(folder, { program, beside, found, failures, startedAt, restsUntil })
  if (driver !== undefined) deps.found(driver)
  return failures === 0 ? Infinity : restsUntil
}

function forget(deps: FlexProberDeps, known: Map<string, Known>, folder: string): void {
  const isFound = known.get(folder)?.found === true
  known.delete(folder)
  if (isFound) deps.gone(driverName(folder))
}

/** `vendor~driver` → `vendor/driver` */
function driverName(folder: string): string {
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

/** Any file in its directory may be a part of the driver; names that start with a dot are none (FLEX-2). */
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
