// How do pods get at a disk that is mounted once per node? The device mount, and a bind of it for each pod.
// Shared by local, iscsi and fc volumes (LOCAL-3, LOCAL-4; iscsi and fc do the same).

import type { Host } from '../../host/host.ts'
import { cleanMountPoint, isAlreadyMounted, isMounted } from '../../host/clean-mount-point.ts'
import type { Clock } from '../../clock/clock.ts'
import type { MountRequest } from '../../volume/plugin.ts'
import { ownWithNotice } from '../shared/ownership.ts'
import { formatAndMount } from './format-and-mount.ts'
import type { FormatRequest } from './format-and-mount.ts'

type DiskHost = Pick<Host, 'files' | 'mounts' | 'filesystems'>

/** Idempotent. If the mount fails, its directory is removed again. */
export async function mountDisk(host: DiskHost, request: FormatRequest, signal: AbortSignal): Promise<void> {
  await host.files.mkdirAll(request.target, 0o750, signal)
  if (await isAlreadyMounted(host, request.target, signal)) return
  try {
    await formatAndMount(host, request, signal)
  } catch (error) {
    await removeUnlessMounted(host, request.target)
    throw error
  }
}

export interface PodBindRequest {
  readonly source: string
  readonly target: string
  readonly options: readonly string[]
  readonly readOnly: boolean
}

/** Answers whether the bind is new. */
export async function bindForPod(host: DiskHost, request: PodBindRequest, signal: AbortSignal): Promise<boolean> {
  const { source, target, options, readOnly } = request
  if (await isAlreadyMounted(host, target, signal)) return false
  await host.files.mkdirAll(target, 0o750, signal)
  try {
    await host.mounts.bind({ source, target, options, readOnly }, signal)
  } catch (error) {
    await removeUnlessMounted(host, target)
    throw error
  }
  return true
}

/** iscsi, fc and flexVolume mount the volume even if its ownership cannot be changed (FSG-5). */
export async function ownQuietly(
  deps: { readonly host: DiskHost; readonly clock: Clock },
  { spec, target, ownership, notify }: MountRequest,
  signal: AbortSignal,
): Promise<void> {
  const request = { root: target, volumeName: spec.name, ownership, notify }
  await ownWithNotice({ files: deps.host.files, clock: deps.clock }, request, signal).catch(() => undefined)
}

/** After a failure: a mount whose outcome we do not know stays where the retry or the unmount will find it. */
async function removeUnlessMounted(host: DiskHost, path: string): Promise<void> {
  const { signal } = new AbortController()
  try {
    if (!(await isMounted(host, path, signal))) await cleanMountPoint(host, path, {}, signal)
  } catch {
    // The first error is the one to report.
  }
}
