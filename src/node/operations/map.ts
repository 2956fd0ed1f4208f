// How does a raw block volume reach a pod? MAP-1 … MAP-11, BLOCK-1 … BLOCK-3: the device is set up once per node, then bound
// under its global map directory, linked from the pod's directory and held open by a loop device.
import { dirname, join } from 'node:path/posix'
import type { PluginName } from '../../api/names.ts'
import { hasCode } from '../../host/host-error.ts'
import type { FileStat, Host } from '../../host/host.ts'
import { mountKey } from '../../volume/identity.ts'
import { eventReasons } from '../../volume/messages.ts'
import type { Operation } from '../../volume/operation.ts'
import { podDeviceDirectory } from '../../volume/paths.ts'
import type { BlockMapper, NodePlugin } from '../../volume/plugin.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { VolumeError } from '../../volume/effect.ts'
import type { ActualEvent } from '../volumes/actual.ts'
import { expandOnMount } from './expand.ts'
import { waitForDevice } from './mount.ts'
import type { MountWork, OperationDeps } from './steps.ts'
import {
  checkNodeAffinity,
  checkSinglePodWriter,
  mountSubject,
  notifyPod,
  pluginLabel,
  recorded,
  refused,
} from './steps.ts'

export const mapVolume: Operation<MountWork, OperationDeps, ActualEvent> = {
  name: 'map_volume',
  label: 'MapVolume',
  failureReason: 'FailedMapVolume',
  key: ({ desired, mount }) => mountKey(desired.volume, mount.uid, desired.attachable || desired.deviceMountable),
  subject: mountSubject,
  plugin: ({ desired, mount }) => pluginLabel(desired.plugin, mount.spec),
  async run(work, deps, step, signal) {
    const { desired, mount } = work
    const { spec, pod, uid } = mount
    const { volume, group } = desired
    const { name, plugin } = await step('FindMapperPluginBySpec', () => deps.registry.find(spec))
    const mapper = await step('BlockVolumeMapper', () => mapperOf(name, plugin, spec), {
      prefix: `MapVolume.FindMapperPluginBySpec ${noMapper}`,
    })
    // MAP-1: this one failure has the reason of a mount, not of a map.
    await step('NodeAffinity', () => checkNodeAffinity(spec, deps.ownNode()), {
      prefix: 'MapVolume.NodeAffinity check failed',
      reason: eventReasons.mountFailed,
    })
    await step('SinglePodWriter', () => checkSinglePodWriter(spec, uid, work.actual()), {
      prefix: 'MapVolume.SetUpDevice failed',
    })
    const globalMapPath = await step('GetGlobalMapPath', () => mapper.globalMapPath(spec))
    const attached = await step('WaitForAttach', () => waitForDevice(work, mapper, deps, signal))
    let devicePath = attached || mapper.devicePath?.(spec) || ''
    const request = { spec, pod, devicePath, globalMapPath }
    const present = (path: string): ActualEvent => ({
      kind: 'deviceMounted',
      volume,
      path: globalMapPath,
      devicePath: path,
    })
    if (plugin.health) deps.attempted(volume, uid)
    if (work.actual()?.device.presence !== 'present') {
      const record = { volume, plugin: name, spec, path: globalMapPath }
      const setUp = async () => mapper.setUpDevice?.(request, signal)
      await step('SetUpDevice', () => recorded(deps, record, work.actual(), setUp, signal), {
        failed: () => ({ kind: 'deviceMountFailed', volume }),
        uncertain: () => ({ kind: 'deviceUncertain', volume, path: globalMapPath, devicePath }),
      })
    }
    await step('MarkDeviceAsMounted', () => undefined, { done: () => present(devicePath) })
    const known = { volume, pod: uid, spec, generation: -1, group }
    const doubt = (): ActualEvent => ({ kind: 'mountUncertain', ...known })
    const there = (): ActualEvent => ({ kind: 'setUp', ...known })
    // From here on a failure leaves doubt, so that somebody undoes what was done (MAP-6).
    const doubts = { failed: doubt, uncertain: doubt, deferred: doubt }
    if (mapper.mapPodDevice) {
      const published = await step('MapPodDevice', () => mapper.mapPodDevice!(request, signal), {
        done: there,
        failed: () => ({ kind: 'mountFailed', volume, pod: uid }),
        uncertain: doubt,
      })
      if (published !== '') devicePath = published
    }
    const real = await step('EvalHostSymlinks', () => resolveDevice(deps.host, devicePath, signal), {
      ...doubts,
      ...(devicePath === '' ? { prefix: 'MapVolume failed' } : {}),
      done: (path) => (path === attached ? undefined : present(path)),
    })
    const podDirectory = podDeviceDirectory(deps.root, uid, name)
    const link = join(podDirectory, spec.name)
    const mapped = { devicePath: real, mapPath: join(globalMapPath, uid), link, readOnly: spec.readOnly }
    await step('MapBlockVolume', () => mapBlock(deps.host, mapped, signal), { ...doubts, done: there })
    const notify = notifyPod(deps, pod)
    const tell = (what: string, path: string) =>
      notify({
        type: 'Normal',
        reason: eventReasons.mounted,
        message: `MapVolume.MapPodDevice succeeded for volume "${spec.name}" ${what} "${path}"`,
      })
    tell('globalMapPath', globalMapPath)
    tell('volumeMapPath', podDirectory)
    const stagingPath = mapper.stagingPath?.(spec) ?? ''
    await step(
      'NodeExpand',
      () => expandOnMount(work, deps, { path: link, stagingPath, devicePath: real }, step, signal),
      {
        prefix: 'MapVolume.MarkVolumeAsMounted failed while expanding volume',
        done: () => ({ kind: 'mounted', volume, pod: uid, spec, generation: mount.generation, group }),
      },
    )
  },
}

/** T-42: the words for all three operations on block volumes. */
export const noMapper = 'failed to find BlockVolumeMapper plugin. Volume plugin is nil.'

export function mapperOf(name: PluginName, plugin: NodePlugin, spec: VolumeSpec): BlockMapper {
  const mapper = plugin.block?.(spec)
  if (!mapper) throw refused('NoBlockMapper', `plugin ${name} maps no block devices`, 'none')
  return mapper
}

async function resolveDevice(host: Host, devicePath: string, signal: AbortSignal): Promise<string> {
  if (devicePath === '') throw new VolumeError('NoDevice', 'device path of the volume is empty', { effect: 'none' })
  return await host.files.realpath(devicePath, signal)
}

interface BlockMapping {
  readonly devicePath: string
  readonly mapPath: string
  readonly link: string
  readonly readOnly: boolean
}

/**
 * MAP-8, BLOCK-2: bind, link, hold. Each part is skipped or refreshed when it is there already. On the holder of a volume
 * that the pod may only read stands a second one, read-only, and that is what containers get (BLOCK-8): a bind cannot keep
 * anybody from writing to a device.
 */
async function mapBlock(host: Host, mapping: BlockMapping, signal: AbortSignal): Promise<void> {
  const { files, mounts, devices } = host
  const { devicePath, mapPath, link, readOnly } = mapping
  await files.mkdirAll(dirname(mapPath), 0o750, signal)
  let found = await statAt(files, mapPath, signal)
  const { deviceNode } = await files.stat(devicePath, signal)
  if (found?.kind === 'blockDevice' && found.deviceNode !== deviceNode) {
    await letGo(host, mapPath, signal)
    found = await statAt(files, mapPath, signal)
  }
  if (found?.kind !== 'blockDevice') {
    if (!found) await files.writeFile(mapPath, '', { mode: 0o750 }, signal)
    await mounts.bind({ source: devicePath, target: mapPath }, signal)
  }
  await files.mkdirAll(dirname(link), 0o750, signal)
  await files.remove(link, signal)
  await files.symlink(devicePath, link, signal)
  const [held] = await devices.loopsOf(mapPath, signal)
  const holder = held ?? (await hold(devices, mapPath, signal))
  if (readOnly && (await readOnlyDevice(devices, holder, signal)) === undefined)
    await devices.attachLoop({ file: holder, readOnly: true }, signal)
}

async function statAt(files: Host['files'], path: string, signal: AbortSignal): Promise<FileStat | undefined> {
  try {
    return await files.lstat(path, signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/**
 * While nobody looked, the volume came back under another number, and what is bound here leads to a device that is gone.
 * A container that still has it open keeps it; the next one gets the new device. So the unmount must not wait for it.
 */
async function letGo({ files, mounts, devices }: Host, mapPath: string, signal: AbortSignal): Promise<void> {
  await detachHolders(devices, mapPath, signal)
  if (await mounts.isMountPoint(mapPath, signal)) await mounts.unmount(mapPath, { lazy: true }, signal)
  else await files.remove(mapPath, signal)
}

/** The loop device that holds the pod's device node open, and what stands on it. */
export async function detachHolders(devices: Host['devices'], mapPath: string, signal: AbortSignal): Promise<void> {
  for (const holder of await devices.loopsOf(mapPath, signal)) {
    for (const above of await devices.loopsOf(holder, signal)) await devices.detachLoop(above, signal)
    await devices.detachLoop(holder, signal)
  }
}

/** A device that cannot be written to at all is held for reading. */
async function hold(devices: Host['devices'], mapPath: string, signal: AbortSignal): Promise<string> {
  try {
    return await devices.attachLoop({ file: mapPath, readOnly: false }, signal)
  } catch (error) {
    if (!hasCode(error, 'EROFS', 'EACCES')) throw error
    return await devices.attachLoop({ file: mapPath, readOnly: true }, signal)
  }
}

/** What the kernel lets nobody write to: the holder itself, or the device that stands on it. */
export async function readOnlyDevice(
  devices: Host['devices'],
  holder: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const device of [holder, ...(await devices.loopsOf(holder, signal))])
    if (await devices.isReadOnly(device, signal)) return device
  return undefined
}
