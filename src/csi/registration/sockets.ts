// Which plugin sockets lie in the watched directory? Each one that appears is registered, each one that goes or is
// made anew is unregistered first (REG-1 … REG-3). Driven by changes; a failed socket is retried with back-off.
import { basename, join } from 'node:path/posix'
import { operationBackoff } from '../../clock/backoff.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Host } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import { requireTrusted } from '../../host/trusted-path.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Handshake, Registered } from './handshake.ts'

export interface SocketWatch extends AsyncDisposable {
  /** Looks at the directory again. Called by the file watch; also useful when a driver's connection was lost. */
  rescan(signal: AbortSignal): Promise<void>
  readonly registered: ReadonlyMap<string, { readonly driver: string }>
}

export interface SocketWatchDeps {
  readonly host: Pick<Host, 'files'>
  readonly clock: Clock
  readonly log: Log
  readonly handshake: Handshake
  /** `<root>/plugins_registry` */
  readonly directory: string
}

const workers = 4
const maxDepth = 8

export async function watchSockets(deps: SocketWatchDeps, signal: AbortSignal): Promise<SocketWatch> {
  const { host, clock, log, handshake, directory } = deps
  await using stack = new AsyncDisposableStack()
  const desired = new Map<string, string>() // path → identity of the socket
  const registered = new Map<string, { identity: string; entry: Registered; driver: string }>()

  const loop = stack.use(
    createKeyLoop<string>({
      name: 'plugin-registration',
      clock,
      workers,
      backoff: operationBackoff,
      async look(path, stop) {
        const present = registered.get(path)
        if (present && present.identity !== desired.get(path)) {
          registered.delete(path)
          await handshake.unregister(present.entry, stop)
          log.info('plugin unregistered', { driver: present.driver, socket: path })
        }
        const identity = desired.get(path)
        if (identity === undefined || registered.has(path)) return
        await requireTrusted(host.files, path, `the plugin socket ${path}`, stop)
        const entry = await handshake.register(path, stop)
        registered.set(path, { identity, entry, driver: entry.driver.name })
        entry.driver.onLost(() => void rescan(stop).catch(() => {}))
        log.info('plugin registered', { driver: entry.driver.name, socket: path, endpoint: entry.driver.endpoint })
        // It may have gone or changed while we were talking to it.
        if (desired.get(path) !== identity) loop.wake(path)
      },
      onError: (path, error, retryAt) => log.warn('plugin registration failed', { socket: path, error, retryAt }),
    }),
  )
  const rescan = async (stop: AbortSignal) => {
    const found = new Map<string, string>()
    await walk(host, directory, found, 0, stop)
    for (const path of new Set([...desired.keys(), ...found.keys()])) {
      if (desired.get(path) === found.get(path)) continue
      const identity = found.get(path)
      if (identity === undefined) desired.delete(path)
      else desired.set(path, identity)
      loop.forget(path)
      loop.wake(path)
    }
  }
  const scans = stack.use(
    createKeyLoop<'scan'>({
      name: 'plugin-directory',
      clock,
      workers: 1,
      look: (_key, stop) => rescan(stop),
      onError: (_key, error) => log.warn('plugin directory cannot be read', { directory, error }),
    }),
  )
  await host.files.mkdirAll(directory, 0o755, signal)
  // The watch stands before the first walk, so that no socket is missed (REG-1).
  stack.use(await host.files.watch(directory, () => scans.wake('scan'), signal))
  await rescan(signal)
  const owned = stack.move()
  return { rescan, registered, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** Links are followed, hidden names skipped, directories entered, everything but sockets ignored. */
async function walk(
  host: Pick<Host, 'files'>,
  directory: string,
  found: Map<string, string>,
  depth: number,
  signal: AbortSignal,
): Promise<void> {
  if (depth > maxDepth) return
  const names = await host.files.readDir(directory, signal).catch(emptyIfGone)
  for (const path of names.map((name) => join(directory, name))) {
    if (basename(path).startsWith('.')) continue
    const stat = await host.files.stat(path, signal).catch(() => undefined)
    if (stat?.kind === 'directory') await walk(host, path, found, depth + 1, signal)
    else if (stat?.kind === 'socket') found.set(path, `${stat.device}:${stat.inode}:${stat.modifiedMs}`)
  }
}

function emptyIfGone(error: unknown): string[] {
  if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
  throw error
}
