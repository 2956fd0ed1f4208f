// The plugin `kubernetes.io/fc`: a disk behind Fibre Channel adapters (FC-1 … FC-4).

import { basename, join } from 'node:path/posix'
import { cleanMountPoint, isMounted } from '../../host/clean-mount-point.ts'
import { globalDevicePath, globalPluginPath } from '../../volume/paths.ts'
import type { BlockMapper, DeviceMounter, NodePlugin, RestoreRequest } from '../../volume/plugin.ts'
import { definePlugin } from '../../volume/plugin.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { NodePluginDeps } from '../shared/deps.ts'
import { bindForPod, mountDisk, ownQuietly } from '../disk/device-mount.ts'
import { formalAttacher } from '../disk/formal-attacher.ts'
import type { DeviceTree } from '../disk/multipath.ts'
import { realDeviceTree } from '../disk/multipath.ts'
import { findMapDirectory } from '../disk/restore-block.ts'
import { refuse, translated } from '../shared/errors.ts'
import { mountOptionsOf } from '../shared/mount-options.ts'
import { restoredVolume } from '../shared/restored.ts'
import { volumeUsage } from '../shared/usage.ts'
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

export interface FcPluginDeps extends Pick<NodePluginDeps, 'host' | 'root' | 'clock'> {
  readonly deviceTree?: DeviceTree
}

const releaseTries = 12
const releasePauseMs = 10_000

export default definePlugin({
  name: fcName,
  source: 'fc',
  traits: { mountOptions: true, remountOnPodUpdate: false, accessModes: ['ReadWriteOnce', 'ReadOnlyMany'] },
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
    mount: ({ spec, path, devicePath }, signal) =>
      translated(() => {
        const options = mountOptionsOf(spec, spec.readOnly ? ['ro'] : ['rw'])
        return mountDisk(
          host,
          { device: devicePath, target: path, fsType: sourceOf(spec).fsType ?? '', options },
          signal,
        )
      }),
    unmount: ({ path }, signal) =>
      translated(async () => {
        const mounted = await isMounted(host, path, signal)
        const source = mounted ? (await host.mounts.info(path, signal)).source : ''
        await cleanMountPoint(host, path, {}, signal)
        await release(source, signal)
      }),
  }
  const block: BlockMapper = {
    globalMapPath: (spec) => join(globalDevicePath(root, fcName), directoryName(diskOf(sourceOf(spec)))),
    waitForAttach,
    tearDownDevice: ({ devicePath }, signal) => translated(() => release(devicePath, signal)),
  }
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
    restore: (request, signal) =>
      translated(async () => {
        const found = await globalPathOf(deps, request, signal)
        if (found === undefined)
          throw refuse('NotRestorable', `no global mount of ${request.path} was found`, 'untried')
        const disk = parseDirectoryName(basename(found))
        const value = disk.kind === 'target' ? { targetWWNs: disk.wwns, lun: Number(disk.lun) } : { wwids: disk.wwids }
        return restoredVolume(request, { kind: 'fc', value })
      }),
  }
}

async function globalPathOf(
  { host, root }: FcPluginDeps,
  request: RestoreRequest,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { mode, path, pod } = request
  if (mode === 'Block')
    return findMapDirectory(host.files, globalDevicePath(root, fcName), 1, { pod, link: path }, signal)
  const references = await host.mounts.references(path, signal)
  return references.find((one) => one.startsWith(`${globalPluginPath(root, fcName)}/`))
}

/** FC-4: buffers may take a while to drain; ten seconds between tries, two minutes in all. */
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
