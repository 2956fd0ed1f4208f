// Which directories must lie in a volume because something is mounted inside it? Another volume, or the same one again
// (NEST-1, NEST-2). Pure.

import { relative } from 'node:path/posix'
import type { Pod } from '../../api/generated/types.ts'
import { cleanPath } from '../../host/clean-path.ts'
import { refused } from '../../volume/effect.ts'

/** Paths relative to the volume, sorted, parents before children. */
export function nestedMountPoints(volumeName: string, pod: Pod): readonly string[] {
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec
  const found = new Set<string>()
  for (const { volumeMounts = [] } of [...initContainers, ...containers, ...ephemeralContainers]) {
    const own = volumeMounts.filter(({ name }) => name === volumeName).map(({ mountPath }) => cleanPath(mountPath))
    const all = volumeMounts.map(({ mountPath }) => cleanPath(mountPath))
    for (const path of own) {
      if (path.startsWith('../'))
        throw refused('InvalidMountPath', `mount path ${path} must not start with ../`, 'untried')
      for (const inner of nestedIn(path, all)) found.add(relative(path, inner))
    }
  }
  return [...found].sort()
}

/** Mount paths below `path`; those that lie in another of them belong to the volume there. */
function nestedIn(path: string, all: readonly string[]): readonly string[] {
  const inside = all.filter((other) => isInside(other, path)).sort()
  const outermost: string[] = []
  for (const other of inside) if (!outermost.some((outer) => isInside(other, outer))) outermost.push(other)
  return outermost
}

function isInside(path: string, directory: string): boolean {
  return path !== directory && path.startsWith(directory.endsWith('/') ? directory : `${directory}/`)
}
