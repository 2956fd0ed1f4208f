// The plugin `kubernetes.io/iscsi`: a disk of a storage network (ISCSI-1 … ISCSI-10). The node itself logs in;
// attaching on the control plane's side is a formality.

import { join } from 'node:path/posix'
import type { Pod } from '../../api/generated/types.ts'
import { isAlreadyMounted, isThere, mountSource, unmountAll } from '../../host/clean-mount-point.ts'
import { HostError } from '../../host/host-error.ts'
import { refused, VolumeError } from '../../volume/effect.ts'
import { globalDevicePath, globalPluginPath } from '../../volume/paths.ts'
import type { BlockMapper, DeviceMounter, NodePlugin } from '../../volume/plugin.ts'
import { definePlugin } from '../../volume/plugin.ts'
import type { VolumeSource, VolumeSpec } from '../../volume/spec.ts'
import type { NodePluginDeps } from '../shared/deps.ts'
import { formalAttacher } from '../disk/formal-attacher.ts'
import { names, realDeviceTree } from '../disk/multipath.ts'
import type { DeviceTree } from '../disk/multipath.ts'
import type { NetworkDiskDeps } from '../disk/network-disk.ts'
import { createNetworkDisk, mountNetworkDisk } from '../disk/network-disk.ts'
import { translated } from '../shared/errors.ts'
import { createKeyedLock } from '../shared/keyed-lock.ts'
import { chapOf } from './chap.ts'
import { loadConfig, saveConfig } from './saved-config.ts'
import { login, logout } from './session.ts'
import type { IscsiTarget } from './target.ts'
import { iscsiName, mapDirectory, mountDirectory, parseDirectory, sourceOf, targetOf } from './target.ts'

export interface IscsiDeps extends NetworkDiskDeps, Pick<NodePluginDeps, 'client'> {
  readonly deviceTree?: DeviceTree
}

export default definePlugin({
  name: iscsiName,
  source: 'iscsi',
  traits: { takesMountOptions: true, remountOnPodUpdate: false },
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
      return lock.run(target.iqn, () => inDoubt(() => login(session, target, chap, signal)))
    })
  /** Also where nothing was mounted or mapped: the login may have been all that went well. */
  const detach = (path: string, target: IscsiTarget, device: string, signal: AbortSignal): Promise<void> =>
    lock.run(target.iqn, async () => {
      const others = (await usersOf(deps, target, signal)).filter((user) => user !== path)
      await logout(session, target, device, others.length === 0, signal)
      // Removed under the lock: the next disk of the target counts directories to learn whether it is the last.
      await host.files.removeTree(path, signal)
    })
  const device: DeviceMounter = {
    path: (spec) => mountDirectory(root, targetOf(spec)),
    connects: true,
    waitForAttach,
    mount: (request, signal) =>
      translated(async () => {
        const { spec, path } = request
        if (await isAlreadyMounted(host, path, signal)) return
        await host.files.mkdirAll(path, 0o750, signal)
        await saveConfig(host.files, path, targetOf(spec), signal)
        await mountNetworkDisk(deps, request, sourceOf(spec).fsType, signal)
      }),
    unmount: ({ path, spec }, signal) =>
      translated(async () => {
        const source = await mountSource(host, path, signal)
        if (await isThere(host, path, signal)) await unmountAll(host, path, {}, signal)
        const target = await targetAt(deps, path, spec, signal)
        await detach(path, target, source, signal)
      }),
  }
  const block: BlockMapper = {
    globalMapPath: (spec) => mapDirectory(root, targetOf(spec)),
    connects: true,
    waitForAttach,
    setUpDevice: ({ spec, globalMapPath }, signal) =>
      translated(async () => {
        await host.files.mkdirAll(globalMapPath, 0o750, signal)
        await saveConfig(host.files, globalMapPath, targetOf(spec), signal)
        return ''
      }),
    tearDownDevice: ({ spec, globalMapPath, devicePath }, signal) =>
      translated(async () => {
        const target = await targetAt(deps, globalMapPath, spec, signal)
        await detach(globalMapPath, target, devicePath, signal)
      }),
  }
  return createNetworkDisk(deps, { name: iscsiName, device, block, mapDepth: 2, sourceOf: sourceAt })
}

/** A login has many steps. One that the host refused says nothing of those before it. */
async function inDoubt<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    if (!(error instanceof HostError)) throw error
    throw new VolumeError('LoginFailed', error.message, { effect: 'unknown', cause: error })
  }
}

/**
 * Which disk does a directory belong to? Its saved file says so. Without it the spec does, if it belongs to this directory; the
 * directory's name tells all but the other portals (ISCSI-8, WART-6).
 */
async function targetAt(
  { host, root }: IscsiDeps,
  path: string,
  spec: VolumeSpec | undefined,
  signal: AbortSignal,
): Promise<IscsiTarget> {
  const saved = await loadConfig(host.files, path, signal)
  if (saved !== undefined) return saved
  const wanted = spec === undefined ? undefined : targetOf(spec)
  if (wanted !== undefined && [mountDirectory(root, wanted), mapDirectory(root, wanted)].includes(path)) return wanted
  const parsed = parseDirectory(path)
  if (parsed === undefined) throw refused('MetadataMissing', `${path} does not tell which iscsi disk it is`, 'unknown')
  return parsed
}

function sourceAt(globalPath: string): VolumeSource | undefined {
  const target = parseDirectory(globalPath)
  if (target === undefined) return undefined
  const { portals, iqn, lun } = target
  const value = { targetPortal: portals[0], iqn, lun: Number(lun), iscsiInterface: target.interface }
  return { kind: 'iscsi', value }
}

/** The directories of disks of this portal and target here, mounted or mapped, by whatever interface (ISCSI-8). */
async function usersOf(
  { host, root }: IscsiDeps,
  target: IscsiTarget,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const prefix = `${target.portals[0]}-${target.iqn}-lun-`
  const users: string[] = []
  for (const base of [globalPluginPath(root, iscsiName), globalDevicePath(root, iscsiName)]) {
    for (const face of (await names(host.files, base, signal)).filter((name) => name.startsWith('iface-'))) {
      const disks = (await names(host.files, join(base, face), signal)).filter((name) => name.startsWith(prefix))
      users.push(...disks.map((name) => join(base, face, name)))
    }
  }
  return users
}
