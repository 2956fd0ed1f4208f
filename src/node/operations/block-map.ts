// What stands between a device and a pod that uses it raw? A bind under the global map directory, a link from the pod's directory,
// and a loop device that holds it (BLOCK-2, BLOCK-4, BLOCK-8).
import { dirname } from 'node:path/posix'
import { hasCode } from '../../host/host-error.ts'
import type { FileStat, Host } from '../../host/host.ts'

export interface BlockMapping {
  readonly devicePath: string
  readonly mapPath: string
  readonly link: string
  readonly readOnly: boolean
}

/**
 * MAP-8, BLOCK-2: bind, link, hold. Each part is skipped or refreshed when it is there already. On the holder of a volume
 * that the pod may only read stands a second one, read-only, and that is what containers get (BLOCK-8): a bind cannot keep
 * anybody from writing to a device.
 */
export async function mapBlock(host: Host, mapping: BlockMapping, signal: AbortSignal): Promise<void> {
  const { files, mounts, devices } = host
  const { devicePath, mapPath, link, readOnly } = mapping
  await files.mkdirAll(dirname(mapPath), 0o750, signal)
  let found = await statAt(files, mapPath, signal)
  const { deviceNode } = await files.stat(devicePath, signal)
  if (found?.kind === 'blockDevice' && found.deviceNode !== deviceNode) {
    await letGo(host, mapPath, signal)
    found = await statAt(files, mapPath, signal)
  }
  if (found?.kind !== 'blockDevice') {
    if (!found) await files.writeFile(mapPath, '', { mode: 0o750 }, signal)
    await mounts.bind({ source: devicePath, target: mapPath }, signal)
  }
  await files.mkdirAll(dirname(link), 0o750, signal)
  await files.remove(link, signal)
  await files.symlink(devicePath, link, signal)
  const [held] = await devices.loopsOf(mapPath, signal)
  const holder = held ?? (await hold(devices, mapPath, signal))
  if (readOnly && (await readOnlyDevice(devices, holder, signal)) === undefined)
    await devices.attachLoop({ file: holder, readOnly: true }, signal)
}

/** BLOCK-4: the holder, the link, the bind. What is not there is done already. */
export async function unmapBlock(host: Host, mapPath: string, link: string, signal: AbortSignal): Promise<void> {
  const { files, mounts, devices } = host
  const mapped = await statAt(files, mapPath, signal)
  if (mapped) await detachHolders(devices, mapPath, signal)
  if ((await statAt(files, link, signal))?.kind === 'symlink') await files.unlink(link, signal)
  if (!mapped) return
  if (await mounts.isMountPoint(mapPath, signal)) await mounts.unmount(mapPath, {}, signal)
  await files.remove(mapPath, signal)
}

async function statAt(files: Host['files'], path: string, signal: AbortSignal): Promise<FileStat | undefined> {
  try {
    return await files.lstat(path, signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }
}

/**
 * While nobody looked, the volume came back under another number, and what is bound here leads to a device that is gone.
 * A container that still has it open keeps it; the next one gets the new device. So the unmount must not wait for it.
 */
async function letGo({ files, mounts, devices }: Host, mapPath: string, signal: AbortSignal): Promise<void> {
  await detachHolders(devices, mapPath, signal)
  if (await mounts.isMountPoint(mapPath, signal)) await mounts.unmount(mapPath, { lazy: true }, signal)
  else await files.remove(mapPath, signal)
}

/** The loop device that holds the pod's device node open, and what stands on it. */
async function detachHolders(devices: Host['devices'], mapPath: string, signal: AbortSignal): Promise<void> {
  for (const holder of await devices.loopsOf(mapPath, signal)) {
    for (const above of await devices.loopsOf(holder, signal)) await devices.detachLoop(above, signal)
    await devices.detachLoop(holder, signal)
  }
}

/** A device that cannot be written to at all is held for reading. */
async function hold(devices: Host['devices'], mapPath: string, signal: AbortSignal): Promise<string> {
  try {
    return await devices.attachLoop({ file: mapPath, readOnly: false }, signal)
  } catch (error) {
    if (!hasCode(error, 'EROFS', 'EACCES')) throw error
    return await devices.attachLoop({ file: mapPath, readOnly: true }, signal)
  }
}

/** What the kernel lets nobody write to: the holder itself, or the device that stands on it. */
export async function readOnlyDevice(
  devices: Host['devices'],
  holder: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const device of [holder, ...(await devices.loopsOf(holder, signal))])
    if (await devices.isReadOnly(device, signal)) return device
  return undefined
}
