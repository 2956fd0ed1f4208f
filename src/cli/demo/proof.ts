// Is nothing left? Mounts, loop devices, processes' files: counted before and after, and removed only when empty.
import { existsSync, globSync, readFileSync, rmSync } from 'node:fs'
import { createLinuxHost } from '../../host/linux/linux-host.ts'
import { parseMountinfo } from '../../host/linux/mountinfo.ts'
import { readDirectory } from '../doctor/leftovers.ts'

export interface Leftovers {
  /** Mounts of volumes: the node agent's own shared roots are not counted. */
  readonly mounts: readonly string[]
  readonly loops: readonly string[]
  readonly images: readonly string[]
}

export function findLeftovers(directory: string): Leftovers {
  const { mounts, loops } = readDirectory(directory)
  return {
    mounts: mounts.map(({ mountPoint }) => mountPoint).filter((path) => /\/(pods|plugins)\//.test(path)),
    loops: loops.map(({ device }) => device),
    images: globSync('volumes/{volumes,snapshots}/*', { cwd: directory }),
  }
}

export const isEmpty = ({ mounts, loops, images }: Leftovers): boolean =>
  mounts.length + loops.length + images.length === 0

/** Takes down what is still mounted below the directory (deepest first), then its loop devices, then the directory. */
export async function removeEverything(directory: string): Promise<string[]> {
  const signal = new AbortController().signal
  await using host = createLinuxHost()
  const loops = readDirectory(directory).loops
  for (const path of mountsBelow(directory).toSorted((a, b) => b.length - a.length)) {
    await host.mounts
      .unmount(path, { lazy: false }, signal)
      .catch(() => host.mounts.unmount(path, { lazy: true }, signal))
  }
  for (const { device } of loops) await host.devices.detachLoop(device, signal).catch(() => {})
  const left = mountsBelow(directory)
  // Deletion never crosses a mount: with one left, the files stay and the user is told.
  if (left.length > 0) return left
  rmSync(directory, { recursive: true, force: true })
  return existsSync(directory) ? [directory] : []
}

export function mountsBelow(directory: string): string[] {
  return parseMountinfo(readFileSync('/proc/self/mountinfo', 'utf8'))
    .map(({ mountPoint }) => mountPoint)
    .filter((path) => path.startsWith(`${directory}/`))
}
