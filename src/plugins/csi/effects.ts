// Did a driver do what it answered OK to? The node looks at its own mount table and sizes. What cannot be seen there is believed.
import { relative, join } from 'node:path/posix'
import type { Host } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import type { ErrorTag } from '../../volume/effect.ts'
import { VolumeError } from '../../volume/effect.ts'
import { isMounted } from './saved-data.ts'

type Looks = Pick<Host, 'files' | 'mounts'>

/**
 * A pod must not write into an empty directory of the node's own disk in place of its volume. A driver that fills the
 * directory itself, without a mount, is fine.
 */
export async function checkPublished(
  host: Looks,
  { target, staging }: { readonly target: string; readonly staging: string },
  signal: AbortSignal,
): Promise<void> {
  if (!(await isMounted(host.mounts, target, signal))) {
    if (await isEmptyOrMissing(host, target, signal))
      throw withoutEffect('NodePublishVolume', `nothing is mounted at ${target}`)
    return
  }
  // Only the mount table is asked: what is mounted here may hang.
  if (staging === '' || (await isMounted(host.mounts, staging, signal))) return
  if (!(await showsDirectory(host, target, staging, signal))) return
  if (await isEmptyOrMissing(host, staging, signal))
    throw withoutEffect('NodeStageVolume', `nothing is mounted at ${staging}, and the pod would get that directory`, [
      'notStaged',
    ])
}

/** A device's file: a device node, or something bound over it. */
export async function checkMapped(host: Looks, target: string, signal: AbortSignal): Promise<void> {
  const found = await host.files.lstat(target, signal).catch(ifMissing)
  if (found === undefined) throw withoutEffect('NodePublishVolume', `there is nothing at ${target}`)
  if (found.kind === 'file' && found.sizeBytes === 0 && !(await isMounted(host.mounts, target, signal)))
    throw withoutEffect('NodePublishVolume', `the file at ${target} is empty, and no device`)
}

export async function checkGone({ mounts }: Looks, call: string, path: string, signal: AbortSignal): Promise<void> {
  if (await isMounted(mounts, path, signal)) throw withoutEffect(call, `${path} is still mounted`)
}

/** A filesystem may be smaller than its volume, and another call may have grown it before; so only a clear case counts. */
export function hasNotGrown(
  capacity: { readonly before: bigint; readonly after: bigint },
  { oldBytes, newBytes }: { readonly oldBytes: bigint; readonly newBytes: bigint },
): boolean {
  const { before, after } = capacity
  return after > 0n && after <= before && after <= oldBytes && after * 4n < newBytes * 3n
}

export function withoutEffect(call: string, found: string, tags: readonly ErrorTag[] = []): VolumeError {
  const message = `the driver answered OK to ${call}, but ${found}`
  return new VolumeError('WithoutEffect', message, { effect: 'unknown', tags })
}

async function isEmptyOrMissing({ files }: Looks, path: string, signal: AbortSignal): Promise<boolean> {
  const found = await files.lstat(path, signal).catch(ifMissing)
  if (found === undefined) return true
  return found.kind === 'directory' && (await files.readDir(path, signal)).length === 0
}

function ifMissing(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT', 'ENOTDIR')) throw error
}

/** Is `directory`, which is no mount point, what the mount at `target` shows? */
async function showsDirectory({ mounts }: Looks, target: string, directory: string, signal: AbortSignal) {
  const shown = await mounts.info(target, signal)
  const around = await mounts.info(directory, signal)
  return shown.device === around.device && shown.root === join(around.root, relative(around.mountPoint, directory))
}
