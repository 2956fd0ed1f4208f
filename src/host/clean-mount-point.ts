// How is a mount point taken away for good? Unmount, then remove the empty directory; user data is never deleted (MOUNT-13, MOUNT-14).
// A mount whose server is dead is unmounted with force, then lazily, so that it cannot hold its pod for ever (WART-27).

import type { Host } from './host.ts'
import { hasCode, isDeadMount } from './host-error.ts'

export interface CleanOptions {
  /** How long a plain unmount may take before force is used (NFS-3). */
  readonly forceAfterMs?: number
}

const answerMs = 2000
const forceMs = 10_000

export type CleanHost = Pick<Host, 'files' | 'mounts'>

/** The path is neither a mount point nor there any more when this returns. */
export async function cleanMountPoint(
  host: CleanHost,
  path: string,
  options: CleanOptions,
  signal: AbortSignal,
): Promise<void> {
  if (!(await isThere(host, path, signal))) return
  await unmountAll(host, path, options, signal)
  await host.files.remove(path, signal)
}

/** Is the path a mount point? False if it does not exist; true if it exists on a dead mount. */
export async function isMounted(host: CleanHost, path: string, signal: AbortSignal): Promise<boolean> {
  try {
    return await host.mounts.isMountPoint(path, signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false
    if (isDeadMount(error)) return true
    throw error
  }
}

/**
 * The same question from who would mount there. Silence is no proof of a mount: taken for one, a pod would write to the disk
 * below it. The table is proof, and reading it never hangs.
 */
export async function isAlreadyMounted(host: CleanHost, path: string, signal: AbortSignal): Promise<boolean> {
  try {
    return await host.mounts.isMountPoint(path, signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false
    if (isDeadMount(error) && (await entryAt(host, path, signal)) !== undefined) return true
    throw error
  }
}

/** What is mounted at the path: a device, an export; '' if nothing is. A mount that has died is looked up in the table. */
export async function mountSource(host: CleanHost, path: string, signal: AbortSignal): Promise<string> {
  if (!(await isMounted(host, path, signal))) return ''
  try {
    return (await host.mounts.info(path, signal)).source
  } catch (error) {
    if (!isDeadMount(error)) throw error
    return (await entryAt(host, path, signal))?.source ?? ''
  }
}

async function entryAt(host: CleanHost, path: string, signal: AbortSignal) {
  return (await host.mounts.list(signal)).findLast(({ mountPoint }) => mountPoint === path)
}

/** Unmounts everything stacked at the path: escalating from plain to force to lazy where a server does not answer. */
export async function unmountAll(
  host: CleanHost,
  path: string,
  options: CleanOptions,
  signal: AbortSignal,
): Promise<void> {
  for (let layer = 0; layer < 16; layer += 1) {
    await unmountOne(host, path, options.forceAfterMs ?? 60_000, signal)
    if (!(await isMounted(host, path, signal))) return
  }
}

async function unmountOne(host: CleanHost, path: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
  try {
    await host.mounts.unmount(path, { timeoutMs }, signal)
  } catch (error) {
    // Busy may mean that a program works in there: then it stays. But calls that hang on a dead server, our own among
    // them, make it busy as well; such a mount has to go.
    const dead = isDeadMount(error) || (hasCode(error, 'EBUSY') && !(await host.mounts.answers(path, answerMs, signal)))
    if (!dead) throw error
    await host.mounts.unmount(path, { force: true, timeoutMs: forceMs }, signal).catch(() => undefined)
    if (await isMounted(host, path, signal)) await host.mounts.unmount(path, { lazy: true, timeoutMs: forceMs }, signal)
  }
}

/** A path on a mount that has died exists. */
export async function isThere(host: CleanHost, path: string, signal: AbortSignal): Promise<boolean> {
  try {
    await host.files.lstat(path, signal)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false
    if (isDeadMount(error)) return true
    throw error
  }
}
