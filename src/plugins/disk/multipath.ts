// Which device-mapper device joins several paths to one disk, and which disks does it join? Read from sysfs (DVC-1, DVC-2).

import { basename, join } from 'node:path/posix'
import type { Files, Host } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'

/** Where the kernel tells about devices; tests give a tree of their own. */
export interface DeviceTree {
  readonly sys: string
  readonly dev: string
}
export const realDeviceTree: DeviceTree = { sys: '/sys', dev: '/dev' }

type TreeFiles = Pick<Files, 'readDir' | 'realpath' | 'exists' | 'writeFile' | 'readText'>

/** "/dev/dm-3" for a path of a multipath disk, '' for other disks. A dm device is its own parent. */
export async function multipathParent(
  files: TreeFiles,
  tree: DeviceTree,
  device: string,
  signal: AbortSignal,
): Promise<string> {
  const resolved = await files.realpath(device, signal)
  const name = basename(resolved)
  if (resolved !== join(tree.dev, name)) return ''
  if (name.startsWith('dm-')) return resolved
  const candidates = (await names(files, join(tree.sys, 'block'), signal)).filter((one) => one.startsWith('dm-'))
  for (const candidate of candidates) {
    if (await files.exists(join(tree.sys, 'block', candidate, 'slaves', name), signal)) return join(tree.dev, candidate)
  }
  return ''
}

/** The disks behind a dm device; the device itself if it is none. */
export async function pathsOf(
  files: TreeFiles,
  tree: DeviceTree,
  device: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const name = basename(device)
  if (!name.startsWith('dm-')) return [device]
  return (await names(files, join(tree.sys, 'block', name, 'slaves'), signal)).map((slave) => join(tree.dev, slave))
}

/** Removes a disk from the kernel: `echo 1 > /sys/block/<disk>/device/delete`. A disk that is gone is fine. */
export async function deleteDisk(
  files: TreeFiles,
  tree: DeviceTree,
  device: string,
  signal: AbortSignal,
): Promise<void> {
  const name = basename(await files.realpath(device, signal).catch(() => device))
  const control = join(tree.sys, 'block', name, 'device', 'delete')
  if (await files.exists(control, signal)) await files.writeFile(control, '1', { mode: 0o200 }, signal)
}

/** Removes the multipath map; answers the problem, '' if there was none. Without the tool there is no map to remove. */
export async function flushMultipath(host: Pick<Host, 'run'>, device: string, signal: AbortSignal): Promise<string> {
  try {
    const result = await host.run({ argv: ['multipath', '-f', device], timeoutMs: 60_000 }, signal)
    if (result.exitCode === 0) return ''
    return `${result.stdout}${result.stderr}`.trim() || `exit status ${result.exitCode}`
  } catch (error) {
    if (!hasCode(error, 'NOPROGRAM')) throw error
    return ''
  }
}

export async function names(
  files: Pick<Files, 'readDir'>,
  path: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  try {
    return await files.readDir(path, signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
    throw error
  }
}
