// How is a part of a volume shown to a container, although the container may write to it? (SUBPATH-1 … SUBPATH-10)
// The part is opened by one call that cannot leave the volume, and the bind mount is made from that open descriptor:
// whatever a writer does to names meanwhile, the container sees what was checked.

import { dirname, join, parse, relative } from 'node:path/posix'
import { cleanMountPoint, isMounted, unmountAll } from './clean-mount-point.ts'
import type { FileStat, Host, OpenPath } from './host.ts'
import { HostError, hasCode, isDeadMount } from './host-error.ts'

export interface SubPathRequest {
  /** Where the volume is mounted; controlled by us, not by the container. */
  readonly volumePath: string
  /** Relative, after expansion of subPathExpr. */
  readonly subPath: string
  /** `pods/<uid>/volume-subpaths/<volume>/<container>/<index>` (SUBPATH-7). */
  readonly target: string
  /** Directories between this one and the target are removed again if empty after a failure (SUBPATH-9). */
  readonly podDirectory: string
}

type SubPathHost = Pick<Host, 'files' | 'mounts'>

const partsName = 'volume-subpaths'

export interface SubPathProblem {
  readonly kind: 'absolute' | 'leaves' | 'notAName'
  /** For users. */
  readonly words: string
}

/** Why a subPath is not accepted: it must be relative and must not leave the volume (SUBPATH-2). */
export function subPathProblem(subPath: string): SubPathProblem | undefined {
  if (subPath.startsWith('/')) return { kind: 'absolute', words: 'must not be an absolute path' }
  if (subPath.split('/').includes('..')) return { kind: 'leaves', words: "must not contain '..'" }
  return subPath.includes('\0') ? { kind: 'notAName', words: 'must not contain a zero byte' } : undefined
}

/**
 * SUBPATH-3: makes a part that is missing, with the mode of the volume's root. Where it cannot be told whether the part is
 * there, nothing is made; whether it may be shown is for the binding to find out.
 */
export async function createSubPath(
  host: SubPathHost,
  { volumePath, subPath }: Pick<SubPathRequest, 'volumePath' | 'subPath'>,
  signal: AbortSignal,
): Promise<void> {
  const root = await host.files.realpath(volumePath, signal)
  const found = await host.files.stat(join(root, subPath), signal).catch((error: unknown) => error)
  if (!hasCode(found, 'ENOENT')) return
  const { mode } = await host.files.stat(root, signal)
  await inside(host, root, subPath, (path) => host.files.mkdirBeneath(root, path, mode & 0o7777, signal), signal)
}

/** Binds the part to the target. A target that shows the very same file already is left as it is. */
export async function bindSubPath(host: SubPathHost, request: SubPathRequest, signal: AbortSignal): Promise<void> {
  const problem = subPathProblem(request.subPath)
  if (problem !== undefined) throw new HostError('EINVAL', `subPath "${request.subPath}" ${problem.words}`)
  // The volume's own path may lead through links of the administrator (hostPath): they are resolved once, here.
  const root = await host.files.realpath(request.volumePath, signal)
  const open = (path: string) => host.files.openBeneath(root, path, signal)
  await using source = await inside(host, root, request.subPath, open, signal)
  if (await alreadyBound(host, source.stat, request.target, signal)) return
  try {
    await prepareTarget(host, source, request.target, signal)
    await host.mounts.bind({ source, target: request.target }, signal)
  } catch (error) {
    await undo(host, request).catch(() => undefined)
    throw error
  }
}

/** Removes all sub-path mounts of one volume of a pod; must succeed before the volume itself is unmounted (SUBPATH-10). */
export async function cleanSubPaths(
  host: SubPathHost,
  podDirectory: string,
  volumeName: string,
  signal: AbortSignal,
): Promise<void> {
  const base = join(podDirectory, partsName)
  const volume = join(base, volumeName)
  for (const container of await namesIn(host, volume, signal)) {
    const directory = join(volume, container)
    if ((await host.files.lstat(directory, signal)).kind !== 'directory') continue
    for (const entry of await namesIn(host, directory, signal))
      await cleanMountPoint(host, join(directory, entry), {}, signal)
    await host.files.rmdir(directory, signal)
  }
  await removeIfEmpty(host, volume, signal)
  await removeIfEmpty(host, base, signal)
}

/**
 * Those of every volume: some volumes leave nothing else by which an agent that starts anew could know of them (HOST-2).
 * For a pod that has ended.
 */
export async function cleanAllSubPaths(host: SubPathHost, podDirectory: string, signal: AbortSignal): Promise<void> {
  for (const volume of await namesIn(host, join(podDirectory, partsName), signal))
    await cleanSubPaths(host, podDirectory, volume, signal)
}

/**
 * SUBPATH-4, SUBPATH-6: a link may be written as an absolute path, or leave the volume and come back; where it leads
 * decides. The kernel refuses such links on the way down, so the place they lead to is found first and then reached
 * without them: a link that is changed in between leads nowhere else.
 */
async function inside<T>(
  host: SubPathHost,
  root: string,
  subPath: string,
  act: (path: string) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  try {
    return await act(subPath)
  } catch (error) {
    if (!hasCode(error, 'EXDEV')) throw error
    const place = await resolvedPlace(host, join(root, subPath), signal).catch(() => undefined)
    if (place === undefined || (place !== root && !place.startsWith(join(root, '/')))) throw error
    return await act(relative(root, place) || '.')
  }
}

/** Links are resolved as far as there is something; what is to be made below is kept as it is written. */
async function resolvedPlace(host: SubPathHost, path: string, signal: AbortSignal): Promise<string> {
  try {
    return await host.files.realpath(path, signal)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
    const { base, dir } = parse(path)
    return join(await resolvedPlace(host, dir, signal), base)
  }
}

async function alreadyBound(
  host: SubPathHost,
  source: FileStat,
  target: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (!(await isMounted(host, target, signal))) return false
  try {
    const present = await host.files.lstat(target, signal)
    if (present.inode === source.inode && present.device === source.device) return true
  } catch (error) {
    if (!isDeadMount(error)) throw error
  }
  // Another file is bound there (it was replaced in the volume): running containers keep it, new ones get the new.
  await host.mounts.unmount(target, { lazy: true }, signal)
  await unmountAll(host, target, {}, signal)
  return false
}

async function prepareTarget(host: SubPathHost, source: OpenPath, target: string, signal: AbortSignal): Promise<void> {
  const wanted = source.stat.kind === 'directory' ? 'directory' : 'file'
  await host.files.mkdirAll(dirname(target), 0o750, signal)
  const present = await host.files.lstat(target, signal).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  })
  if (present?.kind === wanted) return
  if (present !== undefined) await host.files.remove(target, signal)
  if (wanted === 'directory') await host.files.mkdir(target, 0o750, signal)
  else await host.files.writeFile(target, '', { mode: 0o640, exclusive: true }, signal)
}

async function undo(host: SubPathHost, request: SubPathRequest): Promise<void> {
  const { signal } = new AbortController()
  await cleanMountPoint(host, request.target, {}, signal)
  for (
    let directory = dirname(request.target);
    directory.startsWith(`${request.podDirectory}/`);
    directory = dirname(directory)
  ) {
    await host.files.rmdir(directory, signal)
  }
}

async function namesIn(host: SubPathHost, path: string, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return await host.files.readDir(path, signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
    throw error
  }
}

async function removeIfEmpty(host: SubPathHost, path: string, signal: AbortSignal): Promise<void> {
  try {
    await host.files.rmdir(path, signal)
  } catch (error) {
    if (!hasCode(error, 'ENOENT', 'ENOTEMPTY', 'ENOTDIR')) throw error
  }
}
