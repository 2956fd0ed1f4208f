// The plugin `kubernetes.io/iscsi`: a disk of a storage network (ISCSI-1 … ISCSI-10). The node itself logs in;
// attaching on the control plane's side is a formality.

import { join } from 'node:path/posix'
import type { Pod } from '../../api/types.ts'
import { cleanMountPoint, isMounted, unmountAll } from '../../host/clean-mount-point.ts'
import { globalDevicePath, globalPluginPath } from '../../volume/paths.ts'
import type { BlockMapper, DeviceMounter, NodePlugin, RestoreRequest } from '../../volume/plugin.ts'
import { definePlugin } from '../../volume/plugin.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { NodePluginDeps } from '../shared/deps.ts'
import { bindForPod, mountDisk, ownQuietly } from '../disk/device-mount.ts'
import { names, realDeviceTree } from '../disk/multipath.ts'
import type { DeviceTree } from '../disk/multipath.ts'
import { formalAttacher } from '../disk/formal-attacher.ts'
import { findMapDirectory } from '../disk/restore-block.ts'
import { refuse, translated } from '../shared/errors.ts'
import { createKeyedLock } from '../shared/keyed-lock.ts'
import { mountOptionsOf } from '../shared/mount-options.ts'
import { restoredVolume } from '../shared/restored.ts'
import { volumeUsage } from '../shared/usage.ts'
import { chapOf } from './chap.ts'
import { loadConfig, saveConfig } from './saved-config.ts'
import { login, logout } from './session.ts'
import type { IscsiTarget } from './target.ts'
import { iscsiName, mapDirectory, mountDirectory, parseDirectory, sourceOf, targetOf } from './target.ts'

export interface IscsiDeps extends Pick<NodePluginDeps, 'host' | 'root' | 'clock' | 'client'> {
  readonly deviceTree?: DeviceTree
}

export default definePlugin({
  name: iscsiName,
  source: 'iscsi',
  traits: { mountOptions: true, remountOnPodUpdate: false, accessModes: ['ReadWriteOnce', 'ReadOnlyMany'] },
  volumeName: ({ source: { value } }) => `${value.targetPortal}:${value.iqn}:${value.lun}`,
  node: createIscsiPlugin,
  cluster: () => formalAttacher,
})

export function createIscsiPlugin(deps: IscsiDeps): NodePlugin {
  const { host, root } = deps
  const session = { host, clock: deps.clock, tree: deps.deviceTree ?? realDeviceTree }
  // Two disks of one target share its session: logging in and out wait for each other (ISCSI-5).
  const lock = createKeyedLock()
  const waitForAttach = (
    { spec, pod }: { readonly spec: VolumeSpec; readonly pod: Pod },
    signal: AbortSignal,
  ): Promise<string> =>
    translated(async () => {
      const target = targetOf(spec)
      const chap = await chapOf(deps.client, spec, pod, signal)
      return lock.run(target.iqn, () => login(session, target, chap, signal))
    })
  const detach = async (path: string, target: IscsiTarget, device: string, signal: AbortSignal): Promise<void> => {
    await lock.run(target.iqn, async () =>
      logout(session, target, device, (await usersOf(deps, target, signal)) <= 1, signal),
    )
    await host.files.removeTree(path, signal)
  }
  const device: DeviceMounter = {
    path: (spec) => mountDirectory(root, targetOf(spec)),
    waitForAttach,
    mount: ({ spec, path, devicePath }, signal) =>
      translated(async () => {
        if (await isMounted(host, path, signal)) return
        await host.files.mkdirAll(path, 0o750, signal)
        await saveConfig(host.files, path, targetOf(spec), signal)
        const options = mountOptionsOf(spec, spec.readOnly ? ['ro'] : ['rw'])
        await mountDisk(
          host,
          { device: devicePath, target: path, fsType: sourceOf(spec).fsType ?? '', options },
          signal,
        )
      }),
    unmount: ({ path }, signal) =>
      translated(async () => {
        if (!(await host.files.exists(path, signal))) return
        const source = (await isMounted(host, path, signal)) ? (await host.mounts.info(path, signal)).source : ''
        await unmountAll(host, path, {}, signal)
        const target = (await loadConfig(host.files, path, signal)) ?? parseDirectory(path)
        if (target === undefined) throw refuse('MetadataMissing', `${path} does not tell which iscsi disk it is`)
        await detach(path, target, source, signal)
      }),
  }
  const block: BlockMapper = {
    globalMapPath: (spec) => mapDirectory(root, targetOf(spec)),
    waitForAttach,
    setUpDevice: ({ spec, globalMapPath }, signal) =>
      translated(async () => {
        await host.files.mkdirAll(globalMapPath, 0o750, signal)
        await saveConfig(host.files, globalMapPath, targetOf(spec), signal)
        return ''
      }),
    tearDownDevice: ({ globalMapPath, devicePath }, signal) =>
      translated(async () => {
        if (!(await host.files.exists(globalMapPath, signal))) return
        const target = (await loadConfig(host.files, globalMapPath, signal)) ?? parseDirectory(globalMapPath)
        if (target === undefined)
          throw refuse('MetadataMissing', `${globalMapPath} does not tell which iscsi disk it is`)
        await detach(globalMapPath, target, devicePath, signal)
      }),
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
        const target = found === undefined ? undefined : parseDirectory(found)
        if (target === undefined)
          throw refuse('NotRestorable', `no global mount of ${request.path} was found`, 'untried')
        const { portals, iqn, lun } = target
        const value = { targetPortal: portals[0], iqn, lun: Number(lun), iscsiInterface: target.initialInterface }
        return restoredVolume(request, { kind: 'iscsi', value })
      }),
  }
}

/** ISCSI-9: the pod's mount is a bind of a mount below the plugin's directory; a mapped device is found by its number. */
async function globalPathOf(
  { host, root }: IscsiDeps,
  request: RestoreRequest,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { mode, path, pod } = request
  if (mode === 'Block')
    return findMapDirectory(host.files, globalDevicePath(root, iscsiName), 2, { pod, link: path }, signal)
  const references = await host.mounts.references(path, signal)
  return references.find((one) => one.startsWith(`${globalPluginPath(root, iscsiName)}/`))
}

/** How many disks of this portal and target have a directory here, mounted or mapped (ISCSI-8). */
async function usersOf({ host, root }: IscsiDeps, target: IscsiTarget, signal: AbortSignal): Promise<number> {
  const prefix = `${target.portals[0]}-${target.iqn}-lun-`
  let users = 0
  for (const base of [globalPluginPath(root, iscsiName), globalDevicePath(root, iscsiName)]) {
    const directory = join(base, `iface-${target.interface}`)
    users += (await names(host.files, directory, signal)).filter((name) => name.startsWith(prefix)).length
  }
  return users
}
