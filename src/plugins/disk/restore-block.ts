// To which disk does a pod's block device belong, after a restart? The directory whose file for this pod is the same device
// as the one the pod's link points at (BLOCK-7).

import { dirname, join } from 'node:path/posix'
import type { PodUid } from '../../api/names.ts'
import type { Files } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import { names } from './multipath.ts'

type SearchFiles = Pick<Files, 'readDir' | 'stat' | 'lstat'>

/** The global map directory below `base` (searched `depth` levels deep), or undefined. */
export async function findMapDirectory(
  files: SearchFiles,
  base: string,
  depth: number,
  wanted: { readonly pod: PodUid; readonly link: string },
  signal: AbortSignal,
): Promise<string | undefined> {
  const device = (await deviceAt(files, wanted.link, signal)) ?? ''
  if (device === '') return undefined
  let level = [base]
  for (let step = 0; step <= depth; step += 1) {
    for (const directory of level) {
      if ((await deviceAt(files, join(directory, wanted.pod), signal)) === device)
        return dirname(join(directory, wanted.pod))
    }
    const next: string[] = []
    for (const directory of level)
      next.push(...(await names(files, directory, signal)).map((name) => join(directory, name)))
    level = next
  }
  return undefined
}

async function deviceAt(files: SearchFiles, path: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { kind, deviceNode } = await files.stat(path, signal)
    return kind === 'blockDevice' ? deviceNode : undefined
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR', 'ENXIO')) return undefined
    throw error
  }
}
