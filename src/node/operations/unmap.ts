// How does a raw block volume leave a pod? UMP-1, UMP-2, BLOCK-4: doubt first, then the holder, the link, the bind, the plugin.
import { join } from 'node:path/posix'
import { pluginLabel } from '../../volume/identity.ts'
import { subjects } from '../../volume/messages.ts'
import type { Operation } from '../../volume/operation.ts'
import { podDeviceDirectory } from '../../volume/paths.ts'
import type { ActualEvent } from '../volumes/actual.ts'
import { unmapBlock } from './block-map.ts'
import { mapperOf, noMapper } from './map.ts'
import type { OperationDeps, UnmountWork } from './steps.ts'

export const unmapVolume: Operation<UnmountWork, OperationDeps, ActualEvent> = {
  name: 'unmap_volume',
  label: 'UnmapVolume',
  key: ({ actual, mount }) => [actual.volume, mount.pod],
  subject: ({ actual, mount }) => subjects.mounted(actual.volume, mount.pod),
  plugin: ({ actual, mount }) => pluginLabel(actual.plugin, mount.spec),
  async run({ actual, mount }, { registry, host, root }, { step, emit }, signal) {
    const { volume } = actual
    const { pod, spec } = mount
    const { name, plugin } = await step('FindMapperPluginByName', () => registry.byName(actual.plugin))
    const mapper = await step('BlockVolumeMapper', () => mapperOf(name, plugin, spec), {
      prefix: `UnmapVolume.FindMapperPluginByName ${noMapper}`,
    })
    // The path stored when it was mapped wins over what the plugin would choose today.
    const globalMapPath = actual.device.path || (await step('GetGlobalMapPath', () => mapper.globalMapPath(spec)))
    emit({ kind: 'unmountFailed', volume, pod })
    const link = join(podDeviceDirectory(root, pod, actual.plugin), spec.name)
    await step('UnmapBlockVolume', () => unmapBlock(host, join(globalMapPath, pod), link, signal))
    const request = { spec, pod, volumeName: spec.name }
    await step('UnmapPodDevice', async () => mapper.unmapPodDevice?.(request, signal), {
      done: () => ({ kind: 'unmounted', volume, pod }),
    })
  },
}
