// What does the node remember of a CSI volume on disk? `vol_data.json`, one flat object of strings beside the mount:
// unmounting works from it alone (CSI-7, CSI-9, CSI-11). Written whole or not at all (WART-6).
import { dirname, join } from 'node:path/posix'
import type { Files, Host } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import { readIfThere } from '../../host/read-if-there.ts'
import { asVolumeError, VolumeError } from '../../volume/effect.ts'

export interface SavedData {
  readonly driverName: string
  readonly volumeHandle: string
  readonly specVolID?: string
  readonly nodeName?: string
  readonly attachmentID?: string
  readonly volumeLifecycleMode?: 'Persistent' | 'Ephemeral'
  readonly seLinuxMountContext?: string
}

const savedDataName = 'vol_data.json'

export async function saveData(files: Files, directory: string, data: SavedData, signal: AbortSignal): Promise<void> {
  const sorted = Object.fromEntries(Object.entries(data).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  const text = `${JSON.stringify(sorted)}\n`
  await files.writeFile(join(directory, savedDataName), text, { mode: 0o644, durable: true }, signal)
}

/** Undefined when there is no file; a file that cannot be understood is an error. */
async function loadData(files: Files, directory: string, signal: AbortSignal): Promise<SavedData | undefined> {
  const path = join(directory, savedDataName)
  const text = await readIfThere(files, path, signal)
  return text === undefined ? undefined : parseData(path, text)
}

/** The same, but a damaged file is replaced by what the agent itself knows of the volume (WART-6). */
export async function loadDataOr(
  files: Files,
  directory: string,
  known: SavedData | undefined,
  signal: AbortSignal,
): Promise<SavedData | undefined> {
  try {
    return await loadData(files, directory, signal)
  } catch (error) {
    if (known && error instanceof VolumeError && error.code === 'SavedDataBroken') return known
    throw error
  }
}

export const hasData = (files: Files, directory: string, signal: AbortSignal): Promise<boolean> =>
  files.exists(join(directory, savedDataName), signal)

/** Without metadata the driver must not be called: nobody knows the volume's id (CSI-9). */
export async function requireData(files: Files, directory: string, signal: AbortSignal): Promise<SavedData> {
  const data = await loadData(files, directory, signal)
  if (data) return data
  const path = join(directory, savedDataName)
  const message = `kubernetes.io/csi: failed to open volume data file [${path}]: open ${path}: no such file or directory`
  throw new VolumeError('SavedDataMissing', message, { effect: 'untried' })
}

function parseData(path: string, text: string): SavedData {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (cause) {
    throw new VolumeError('SavedDataBroken', `kubernetes.io/csi: failed to parse volume data file [${path}]`, {
      effect: 'untried',
      cause,
    })
  }
  const { driverName, volumeHandle } = (parsed ?? {}) as Partial<Record<string, unknown>>
  if (typeof driverName !== 'string' || typeof volumeHandle !== 'string') {
    throw new VolumeError('SavedDataBroken', `kubernetes.io/csi: volume data file [${path}] names no volume`, {
      effect: 'untried',
    })
  }
  return parsed as SavedData // the two members everything depends on were checked
}

/** If nothing is mounted at `path`, the directory, its metadata and the parent go; else nothing is touched, and that is an error (CSI-11). */
export async function removeMountDirectory(
  { files, mounts }: Pick<Host, 'files' | 'mounts'>,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  if (await isMounted(mounts, path, signal))
    throw new VolumeError('DeviceInUse', `${path} is still mounted`, { effect: 'unknown' })
  await files.remove(path, signal)
  const parent = dirname(path)
  await files.remove(join(parent, savedDataName), signal)
  await files.remove(parent, signal)
}

/**
 * The driver refused for good, so what was prepared for it is removed. If it cannot be removed, or the driver has mounted
 * something there all the same, the failure is no longer one that left nothing behind.
 */
export async function failedFor(error: unknown, remove: () => Promise<void>): Promise<never> {
  if (asVolumeError(error).effect !== 'none') throw error
  return removedFor(error, remove)
}

/** The driver was not even asked: the same, unless an earlier call may have staged something there (`keep`). */
export async function notAskedFor(
  error: unknown,
  keep: () => Promise<boolean>,
  remove: () => Promise<void>,
): Promise<never> {
  if (asVolumeError(error).effect !== 'untried') throw error
  return removedFor(error, async () => {
    if (!(await keep())) await remove()
  })
}

async function removedFor(error: unknown, remove: () => Promise<void>): Promise<never> {
  const { code, message, tags } = asVolumeError(error)
  try {
    await remove()
  } catch {
    throw new VolumeError(code, message, { effect: 'unknown', tags, cause: error })
  }
  throw error
}

export async function isMounted(mounts: Host['mounts'], path: string, signal: AbortSignal): Promise<boolean> {
  try {
    return await mounts.isMountPoint(path, signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false
    throw error
  }
}
