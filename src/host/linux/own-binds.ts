// Directories bound onto themselves (a node's root must be a shared mount): ours to undo when nothing is left below,
// never the user's own mounts. A file remembers which are ours, also over a crash.
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Host } from '../host.ts'

export interface OwnBinds {
  /** Call before the directory is bound. */
  watch(directory: string, signal: AbortSignal): Promise<void>
  /** Unmounts what is ours and empty; what is still used stays for the next start. */
  undo(): Promise<void>
}

export function createOwnBinds(host: Pick<Host, 'mounts'>, dataDirectory: string): OwnBinds {
  const folder = join(dataDirectory, 'own-binds')
  const marker = (directory: string) => join(folder, encodeURIComponent(directory))
  const directories: string[] = []
  const unmount = async (directory: string, signal: AbortSignal) => {
    if (!(await host.mounts.isMountPoint(directory, signal))) return
    const below = (await host.mounts.list(signal)).some(({ mountPoint }) => mountPoint.startsWith(`${directory}/`))
    // Without a mount below, a socket of a driver that ends after us is all that could keep it busy.
    await host.mounts.unmount(directory, { lazy: !below }, signal)
  }
  return {
    async watch(directory, signal) {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      mkdirSync(directory, { recursive: true, mode: 0o750 })
      if (!(await host.mounts.isMountPoint(directory, signal))) writeFileSync(marker(directory), '')
      directories.push(directory)
    },
    async undo() {
      const signal = new AbortController().signal
      for (const directory of directories.splice(0).toReversed()) {
        if (!existsSync(marker(directory))) continue
        try {
          await unmount(directory, signal)
          rmSync(marker(directory))
        } catch {
          // A mount below keeps it busy: pods go on running, and the next start finds them through this very mount.
        }
      }
    },
  }
}
