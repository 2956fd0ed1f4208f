// How does a raw block volume reach a pod? MAP-1 … MAP-11, BLOCK-1 … BLOCK-3: the device is set up once per node, then bound
// under its global map directory, linked from the pod's directory and held open by a loop device.
import { join } from 'node:path/posix'
import type { PluginName } from '../../api/names.ts'
import type { Host } from '../../host/host.ts'
import { mountKey, pluginLabel } from '../../volume/identity.ts'
import { eventReasons } from '../../volume/messages.ts'
import type { Operation, Report } from '../../volume/operation.ts'
import { podDeviceDirectory } from '../../volume/paths.ts'
import type { BlockMapper, NodePlugin } from '../../volume/plugin.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { refused, VolumeError } from '../../volume/effect.ts'
import type { ActualEvent } from '../volumes/actual.ts'
import { mapBlock } from './block-map.ts'
import { expandOnMount } from './expand.ts'
import { attachDevice } from './mount.ts'
import type { MountWork, OperationDeps } from './steps.ts'
import { checkNodeAffinity, checkSinglePodWriter, mountSubject, notifyPod, recorded } from './steps.ts'

export const mapVolume: Operation<MountWork, OperationDeps, ActualEvent> = {
  name: 'map_volume',
  label: 'MapVolume',
  failureReason: 'FailedMapVolume',
  key: ({ desired, mount }) => mountKey(desired.volume, mount.uid, desired.attachable || desired.deviceMountable),
  subject: mountSubject,
  plugin: ({ desired, mount }) => pluginLabel(desired.plugin, mount.spec),
  async run(work, deps, report, signal) {
    const { step, emit } = report
    const { desired, mount } = work
    const { spec, pod, uid } = mount
    const { volume, group } = desired
    const { name, plugin, mapper } = await findMapper(work, deps, report)
    const globalMapPath = await step('GetGlobalMapPath', () => mapper.globalMapPath(spec))
    const waiting = { path: () => globalMapPath, ...mapperWait(mapper) }
    const attached = await attachDevice({ ...work, name, device: waiting }, deps, report, signal)
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
      const connects = mapper.connects ? { connects: mapper.connects } : {}
      const record = { volume, plugin: name, spec, path: globalMapPath, ...connects }
      const setUp = async () => mapper.setUpDevice?.(request, signal)
      await step('SetUpDevice', () => recorded(deps, record, work.actual(), setUp, signal), {
        failed: () => (mapper.connects ? undefined : { kind: 'deviceMountFailed', volume }),
        uncertain: () => ({ kind: 'deviceUncertain', volume, path: globalMapPath, devicePath }),
      })
    }
    emit(present(devicePath))
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
      () => expandOnMount(work, deps, { path: link, stagingPath, devicePath: real }, report, signal),
      {
        prefix: 'MapVolume.MarkVolumeAsMounted failed while expanding volume',
        done: () => ({ kind: 'mounted', volume, pod: uid, spec, generation: mount.generation, group }),
      },
    )
  },
}

/** Which plugin maps the device, and may it be mapped here and now? */
async function findMapper(work: MountWork, deps: OperationDeps, { step }: Report<ActualEvent>) {
  const { spec, uid } = work.mount
  const { name, plugin } = await step('FindMapperPluginBySpec', () => deps.registry.find(spec))
  const mapper = await step('BlockVolumeMapper', () => mapperOf(name, plugin, spec), {
    prefix: `MapVolume.FindMapperPluginBySpec ${noMapper}`,
  })
  // This one failure has the reason of a mount, not of a map (MAP-1).
  await step('NodeAffinity', () => checkNodeAffinity(spec, deps.ownNode()), {
    prefix: 'MapVolume.NodeAffinity check failed',
    reason: eventReasons.mountFailed,
  })
  await step('SinglePodWriter', () => checkSinglePodWriter(spec, uid, work.actual()), {
    prefix: 'MapVolume.SetUpDevice failed',
  })
  return { name, plugin, mapper }
}

const mapperWait = ({ waitForAttach, connects }: BlockMapper) => ({
  ...(waitForAttach ? { waitForAttach } : {}),
  ...(connects ? { connects } : {}),
})

/** TA-42: the words for all three operations on block volumes. */
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
