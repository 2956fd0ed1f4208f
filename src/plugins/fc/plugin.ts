// The plugin `kubernetes.io/fc`: a disk behind Fibre Channel adapters (FC-1 … FC-4).

import { basename, join } from 'node:path/posix'
import { cleanMountPoint, mountSource } from '../../host/clean-mount-point.ts'
import { globalDevicePath, globalPluginPath } from '../../volume/paths.ts'
import type { BlockMapper, DeviceMounter, NodePlugin } from '../../volume/plugin.ts'
import { definePlugin } from '../../volume/plugin.ts'
import type { VolumeSource, VolumeSpec } from '../../volume/spec.ts'
import { formalAttacher } from '../disk/formal-attacher.ts'
import type { DeviceTree } from '../disk/multipath.ts'
import { realDeviceTree } from '../disk/multipath.ts'
import type { NetworkDiskDeps } from '../disk/network-disk.ts'
import { createNetworkDisk, mountNetworkDisk } from '../disk/network-disk.ts'
import { translated } from '../shared/errors.ts'
import {
  diskOf,
  directoryName,
  fcName,
  findDisk,
  identityOf,
  parseDirectoryName,
  releaseDisk,
  sourceOf,
} from './disk.ts'

export interface FcPluginDeps extends NetworkDiskDeps {
  readonly deviceTree?: DeviceTree
}

const releaseTries = 12
const releasePauseMs = 10_000

export default definePlugin({
  name: fcName,
  source: 'fc',
  traits: { takesMountOptions: true, remountOnPodUpdate: false },
  volumeName: (spec) => identityOf(spec.source.value),
  node: createFcPlugin,
  cluster: () => formalAttacher,
})

export function createFcPlugin(deps: FcPluginDeps): NodePlugin {
  const { host, root } = deps
  const disks = { host, tree: deps.deviceTree ?? realDeviceTree }
  const waitForAttach = ({ spec }: { readonly spec: VolumeSpec }, signal: AbortSignal): Promise<string> =>
    translated(() => findDisk(disks, diskOf(sourceOf(spec)), signal))
  const release = (device: string, signal: AbortSignal): Promise<void> =>
    releasePatiently(deps, () => releaseDisk(disks, device, signal), signal)
  const device: DeviceMounter = {
    path: (spec) => globalPluginPath(root, fcName, directoryName(diskOf(sourceOf(spec)))),
    waitForAttach,
    mount: (request, signal) =>
      translated(() => mountNetworkDisk(deps, request, sourceOf(request.spec).fsType, signal)),
    unmount: ({ path }, signal) =>
      translated(async () => {
        const source = await mountSource(host, path, signal)
        await cleanMountPoint(host, path, {}, signal)
        await release(source, signal)
      }),
  }
  const block: BlockMapper = {
    globalMapPath: (spec) => join(globalDevicePath(root, fcName), directoryName(diskOf(sourceOf(spec)))),
    waitForAttach,
    tearDownDevice: ({ devicePath }, signal) => translated(() => release(devicePath, signal)),
  }
  return createNetworkDisk(deps, { name: fcName, device, block, mapDepth: 1, sourceOf: sourceAt })
}

/** There is no metadata file; the directory's name tells all that is known (FC-2). */
function sourceAt(globalPath: string): VolumeSource {
  const disk = parseDirectoryName(basename(globalPath))
  const value = disk.kind === 'target' ? { targetWWNs: disk.wwns, lun: Number(disk.lun) } : { wwids: disk.wwids }
  return { kind: 'fc', value }
}

/** Buffers may take a while to drain; ten seconds between tries, two minutes in all (FC-4). */
async function releasePatiently(
  { clock }: FcPluginDeps,
  call: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call()
    } catch (error) {
      if (attempt >= releaseTries || signal.aborted) throw error
      await clock.sleep(releasePauseMs, signal)
    }
  }
}
