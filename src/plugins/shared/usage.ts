// How full is a volume? The two ways of counting: the whole filesystem, or one tree in it (METRIC-2, METRIC-3).

import { refused } from '../../volume/effect.ts'
import type { NodePluginDeps } from './deps.ts'
import type { Usage } from '../../volume/plugin.ts'
import type { VolumeSpec } from '../../volume/spec.ts'

type Deps = Pick<NodePluginDeps, 'host' | 'clock'>

/** The filesystem at the path is the volume's own: its numbers are the volume's numbers. */
export async function filesystemUsage({ host, clock }: Deps, path: string, signal: AbortSignal): Promise<Usage> {
  if (path === '') throw refused('NoPathDefined', 'no path defined for disk usage metrics.', 'none')
  const { capacityBytes, availableBytes, usedBytes, inodes, inodesFree, inodesUsed } = await host.filesystems.usage(
    path,
    signal,
  )
  return { time: clock.now(), capacityBytes, availableBytes, usedBytes, inodes, inodesFree, inodesUsed }
}

/** The volume is a directory among others: what it uses is counted, what is left is the filesystem's. */
export async function treeUsage(deps: Deps, path: string, signal: AbortSignal): Promise<Usage> {
  const whole = await filesystemUsage(deps, path, signal)
  const { usedBytes, inodesUsed } = await deps.host.filesystems.treeUsage(path, signal)
  return { ...whole, usedBytes, inodesUsed }
}

/** A mounted volume has its filesystem's numbers; a block device only a size (METRIC-4). */
export function volumeUsage(deps: Deps, spec: VolumeSpec, path: string, signal: AbortSignal): Promise<Usage> {
  return spec.mode === 'Block' ? deviceUsage(deps, path, signal) : filesystemUsage(deps, path, signal)
}

async function deviceUsage({ host, clock }: Deps, device: string, signal: AbortSignal): Promise<Usage> {
  return { time: clock.now(), capacityBytes: await host.devices.sizeBytes(device, signal) }
}
