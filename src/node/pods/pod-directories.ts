// What lies on disk for a pod? Its directory with those that every pod has; all of it goes when the pod goes.
import { join } from 'node:path/posix'
import type { PodUid } from '../../api/names.ts'
import type { Host } from '../../host/host.ts'
import { cleanAllSubPaths } from '../../host/subpaths.ts'
import { podDirectory } from '../../volume/paths.ts'

interface Place {
  readonly host: Host
  readonly root: string
}

/** What exists stays as it is. */
export async function makeDirectories({ host, root }: Place, uid: PodUid, signal: AbortSignal): Promise<void> {
  await host.files.mkdirEach(podDirectory(root, uid), ['volumes', 'plugins'], 0o750, signal)
}

/** Only empty directories go from where volumes were; nothing crosses a mount; a file there stops the removal (LAYOUT-11). */
export async function removeDirectories({ host, root }: Place, uid: PodUid, signal: AbortSignal): Promise<void> {
  const base = podDirectory(root, uid)
  if (!(await host.files.exists(base, signal))) return
  await cleanAllSubPaths(host, base, signal)
  for (const part of ['volumes', 'volumeDevices', 'volume-subpaths']) {
    const directory = join(base, part)
    if (await host.files.exists(directory, signal)) await host.files.removeEmptyTree(directory, signal)
  }
  await host.files.removeTree(base, signal)
}
