// The plugins of FlexVolume drivers, one per driver (FLEX-8 … FLEX-12): each command of the driver, or the usual action
// where the driver does not support the command.

import { join } from 'node:path/posix'
import { pluginName } from '../../api/names.ts'
import type { PluginName } from '../../api/names.ts'
import { cleanMountPoint, isAlreadyMounted, isMounted, isThere } from '../../host/clean-mount-point.ts'
import type { Host } from '../../host/host.ts'
import { refused } from '../../volume/effect.ts'
import { globalPluginPath } from '../../volume/paths.ts'
import type {
  Attacher,
  ClusterPlugin,
  DeviceMounter,
  ExpandRequest,
  MountRequest,
  NodePlugin,
  PluginDefinition,
} from '../../volume/plugin.ts'
import { definePlugin } from '../../volume/plugin.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { NodePluginDeps } from '../shared/deps.ts'
import { ownQuietly } from '../disk/device-mount.ts'
import { formatAndMount } from '../disk/format-and-mount.ts'
import { translated } from '../shared/errors.ts'
import { filesystemUsage } from '../shared/usage.ts'
import type { FlexDriver } from './driver-call.ts'
import { mountParameters, optionsJson, sourceOf } from './options.ts'

export type FlexNodeDeps = Pick<NodePluginDeps, 'host' | 'root' | 'client' | 'clock'>
export interface FlexClusterDeps {
  /** The root of the only node of this process; absent where there are none, or several. */
  readonly root?: string
}
type Definition = PluginDefinition<'flexVolume', FlexNodeDeps, FlexClusterDeps>

export function flexPlugin(driver: FlexDriver): Definition {
  const name = pluginName(driver.name)
  return definePlugin<'flexVolume', FlexNodeDeps, FlexClusterDeps>({
    name,
    source: 'flexVolume',
    traits: { takesMountOptions: false, remountOnPodUpdate: false },
    volumeName: (spec) => spec.name,
    supports: (spec) => spec.source.value.driver === driver.name,
    node: (deps) => createFlexNode(deps, driver),
    cluster: (deps) => createFlexCluster(deps, driver),
  })
}

function createFlexNode(deps: FlexNodeDeps, driver: FlexDriver): NodePlugin {
  const { host } = deps
  const { attach, supportsMetrics, requiresFSResize } = driver.capabilities
  const device = attach ? createDeviceMounter(deps, driver) : undefined
  return {
    attachable: () => attach,
    readOnly: (spec) => spec.readOnly,
    device: () => device,
    mount: (request, signal) => translated(() => mount(deps, driver, request, signal)),
    unmount: ({ target }, signal) => translated(() => unmountWith(deps, driver, 'unmount', target, signal)),
    restore: async ({ volumeName }) => ({
      name: volumeName,
      from: 'pod',
      mode: 'Filesystem',
      readOnly: false,
      source: { kind: 'flexVolume', value: { driver: driver.name } },
    }),
    expand: (request, signal) => translated(() => expandFilesystem(host, driver, request, signal)),
    requiresResize: () => requiresFSResize,
    ...(supportsMetrics
      ? {
          usage: ({ path }: { readonly path: string }, signal: AbortSignal) =>
            translated(() => filesystemUsage(deps, path, signal)),
        }
      : {}),
  }
}

function createDeviceMounter(deps: FlexNodeDeps, driver: FlexDriver): DeviceMounter {
  const { host, root } = deps
  return {
    path: (spec) => globalPath(root, driver, spec),
    waitForAttach: ({ spec, devicePath }, signal) =>
      translated(async () => {
        const answer = await driver.call('waitforattach', { words: [devicePath, optionsJson(spec)] }, signal)
        return answer === undefined ? devicePath : answer.device
      }),
    mount: ({ spec, path, devicePath }, signal) =>
      translated(() =>
        intoDirectory(host, path, signal, async () => {
          const answer = await driver.call('mountdevice', { words: [path, devicePath, optionsJson(spec)] }, signal)
          if (answer !== undefined || devicePath === '') return
          const options = [spec.readOnly ? 'ro' : 'rw']
          await formatAndMount(
            host,
            { device: devicePath, target: path, fsType: sourceOf(spec).fsType ?? '', options },
            signal,
          )
        }),
      ),
    unmount: ({ path }, signal) => translated(() => unmountWith(deps, driver, 'unmountdevice', path, signal)),
  }
}

async function mount(
  deps: FlexNodeDeps,
  driver: FlexDriver,
  request: MountRequest,
  signal: AbortSignal,
): Promise<void> {
  const { host, root, client } = deps
  const { spec, pod, target, ownership } = request
  await intoDirectory(host, target, signal, async () => {
    // Read only now: a volume that is mounted does not need its Secret any more, and it may be gone.
    const about = { pod, fsGroup: ownership.fsGroup }
    const answer = await driver.call('mount', await mountParameters(client, spec, target, about, signal), signal)
    if (answer === undefined)
      await host.mounts.bind({ source: globalPath(root, driver, spec), target, readOnly: spec.readOnly }, signal)
  })
  if (!spec.readOnly && driver.capabilities.fsGroup) await ownQuietly(deps, request, signal)
}

/** Nothing to do if it is mounted; the directory is removed again if the mount fails (FLEX-10). */
async function intoDirectory(
  host: Host,
  target: string,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  if (await isAlreadyMounted(host, target, signal)) return
  await host.files.mkdirAll(target, 0o750, signal)
  try {
    await work()
  } catch (error) {
    const { signal: own } = new AbortController()
    const left = await isMounted(host, target, own).catch(() => true)
    if (!left) await host.files.remove(target, own).catch(() => undefined)
    throw error
  }
}

/** A missing path is unmounted already; a directory that the driver leaves behind is removed (FLEX-11). */
async function unmountWith(
  { host }: FlexNodeDeps,
  driver: FlexDriver,
  command: 'unmount' | 'unmountdevice',
  target: string,
  signal: AbortSignal,
): Promise<void> {
  if (!(await isThere(host, target, signal))) return
  const answer = await driver.call(command, { words: [target] }, signal)
  if (answer === undefined) return cleanMountPoint(host, target, {}, signal)
  if (await isMounted(host, target, signal))
    throw refused(
      'StillMounted',
      `FlexVolume driver ${driver.name} said that it unmounted ${target}, but it is still mounted`,
      'unknown',
    )
  await host.files.remove(target, signal)
}

async function expandFilesystem(
  host: Host,
  driver: FlexDriver,
  request: ExpandRequest,
  signal: AbortSignal,
): Promise<bigint> {
  const { spec, newBytes, oldBytes, devicePath = '', stagingPath = '' } = request
  if (spec.from !== 'persistentVolume')
    throw refused('NotSupported', 'only persistent volumes can be expanded', 'none', ['notSupported'])
  const parameters = [optionsJson(spec), devicePath, stagingPath, String(newBytes), String(oldBytes)]
  const answer = await driver.call('expandfs', { words: parameters }, signal)
  if (answer === undefined && spec.mode !== 'Block' && devicePath !== '') {
    if (await host.filesystems.mayGrow(devicePath, stagingPath, signal))
      await host.filesystems.grow({ device: devicePath, mountPath: stagingPath }, signal)
  }
  return newBytes
}

function createFlexCluster({ root }: FlexClusterDeps, driver: FlexDriver): ClusterPlugin {
  const attacher: Attacher = {
    attach: ({ spec, node }, signal) =>
      translated(async () => (await driver.call('attach', { words: [optionsJson(spec), node] }, signal))?.device ?? ''),
    detach: ({ volumeName, node }, signal) =>
      translated(async () => void (await driver.call('detach', { words: [volumeName, node] }, signal))),
    verify: ({ specs, node }, signal) =>
      translated(() =>
        Promise.all(
          specs.map(
            async (spec) =>
              (await driver.call('isattached', { words: [optionsJson(spec), node] }, signal))?.attached ?? true,
          ),
        ),
      ),
  }
  const { attach, requiresFSResize } = driver.capabilities
  return {
    ...(attach ? { attacher: () => attacher, attacherByName: () => attacher } : {}),
    expand: ({ spec, newBytes, oldBytes }, signal) =>
      translated(async () => {
        // Kubernetes' control plane knows no root directory; its drivers get the end of the path only.
        const path = root === undefined ? mountsPath(driver, spec) : globalPath(root, driver, spec)
        const answer = await driver.call(
          'expandvolume',
          { words: [optionsJson(spec), path, String(newBytes), String(oldBytes)] },
          signal,
        )
        return answer?.volumeNewSize ?? newBytes
      }),
    requiresResize: () => requiresFSResize,
  }
}

/** The driver's slash stays, so it makes two levels (FLEX-9). */
function globalPath(root: string, driver: FlexDriver, spec: VolumeSpec): string {
  return join(globalPluginPath(root, 'kubernetes.io/flexvolume' as PluginName), mountsPath(driver, spec))
}

const mountsPath = (driver: FlexDriver, spec: VolumeSpec): string => join(driver.name, 'mounts', spec.name)
