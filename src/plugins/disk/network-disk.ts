// What do iscsi and fc disks share on a node? They are mounted or mapped once, bound for each pod, and found again by the
// name of their global directory. The plugins add how a disk is connected and released.

import type { PluginName } from '../../api/names.ts'
import { cleanMountPoint } from '../../host/clean-mount-point.ts'
import { globalDevicePath, globalPluginPath } from '../../volume/paths.ts'
import type { BlockMapper, DeviceMounter, DeviceMountRequest, NodePlugin, RestoreRequest } from '../../volume/plugin.ts'
import type { VolumeSource } from '../../volume/spec.ts'
import type { NodePluginDeps } from '../shared/deps.ts'
import { translated } from '../shared/errors.ts'
import { contextOf } from '../../host/selinux.ts'
import { refused } from '../../volume/effect.ts'
import { contextOption } from '../../volume/selinux.ts'
import { mountOptionsOf } from '../shared/mount-options.ts'
import { restoredVolume } from '../shared/restored.ts'
import { volumeUsage } from '../shared/usage.ts'
import { bindForPod, mountDisk, ownQuietly } from './device-mount.ts'
import { findMapDirectory } from './restore-block.ts'

export type NetworkDiskDeps = Pick<NodePluginDeps, 'host' | 'root' | 'clock'>

export interface NetworkDisk {
  readonly name: PluginName
  readonly device: DeviceMounter
  readonly block: BlockMapper
  /** How many levels below `volumeDevices` the global map directories lie. */
  readonly mapDepth: number
  /** What the name of a global directory tells about its disk; undefined if nothing. */
  sourceOf(globalPath: string): VolumeSource | undefined
}

export function createNetworkDisk(deps: NetworkDiskDeps, disk: NetworkDisk): NodePlugin {
  const { host } = deps
  const { device, block } = disk
  return {
    attachable: () => true,
    readOnly: (spec) => spec.readOnly,
    device: (spec) => (spec.mode === 'Filesystem' ? device : undefined),
    block: (spec) => (spec.mode === 'Block' ? block : undefined),
    mount: (request, signal) =>
      translated(async () => {
        const { spec, target, deviceMountPath } = request
        const source = deviceMountPath ?? device.path(spec)
        await bindForPod(host, { source, target, options: mountOptionsOf(spec), readOnly: spec.readOnly }, signal)
        if (!spec.readOnly) await ownQuietly(deps, request, signal)
      }),
    unmount: ({ target }, signal) => translated(() => cleanMountPoint(host, target, {}, signal)),
    usage: ({ spec, path }, signal) => translated(() => volumeUsage(deps, spec, path, signal)),
    seLinuxMount: () => true,
    async restoredLabel({ path, mode }, signal) {
      if (mode === 'Block') return undefined
      return contextOf((await host.mounts.info(path, signal)).superOptions)
    },
    restore: (request, signal) =>
      translated(async () => {
        const found = await globalPathOf(deps, disk, request, signal)
        const source = found === undefined ? undefined : disk.sourceOf(found)
        if (source === undefined)
          throw refused('NotRestorable', `no global mount of ${request.path} was found`, 'untried')
        return restoredVolume(request, source)
      }),
  }
}

/** The disk that waitForAttach found, mounted at its global path with the volume's options. */
export async function mountNetworkDisk(
  { host }: NetworkDiskDeps,
  { spec, path, devicePath, seLinuxLabel }: DeviceMountRequest,
  fsType: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const context = seLinuxLabel ? [contextOption(seLinuxLabel)] : []
  const options = mountOptionsOf(spec, [spec.readOnly ? 'ro' : 'rw', ...context])
  await mountDisk(host, { device: devicePath, target: path, fsType: fsType ?? '', options }, signal)
}

/** The pod's mount is a bind of a mount below the plugin's directory; a mapped device is found by its number (ISCSI-9). */
async function globalPathOf(
  { host, root }: NetworkDiskDeps,
  { name, mapDepth }: NetworkDisk,
  { mode, path, pod }: RestoreRequest,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (mode === 'Block')
    return findMapDirectory(host.files, globalDevicePath(root, name), mapDepth, { pod, link: path }, signal)
  const references = await host.mounts.references(path, signal)
  return references.find((one) => one.startsWith(`${globalPluginPath(root, name)}/`))
}
