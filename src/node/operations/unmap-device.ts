// How does a raw block device leave the node? UPD-1 … UPD-3, BLOCK-6: never while a pod's device node lies in its global map.
import { join } from 'node:path/posix'
import { hasCode } from '../../host/host-error.ts'
import type { Host } from '../../host/host.ts'
import { refused } from '../../volume/effect.ts'
import { pluginLabel } from '../../volume/identity.ts'
import { subjects } from '../../volume/messages.ts'
import type { Operation } from '../../volume/operation.ts'
import type { ActualEvent } from '../volumes/actual.ts'
import { mapperOf, noMapper } from './map.ts'
import type { DeviceWork, OperationDeps } from './steps.ts'
import { checkDeviceFree } from './steps.ts'

export const unmapDevice: Operation<DeviceWork, OperationDeps, ActualEvent> = {
  name: 'unmap_device',
  label: 'UnmapDevice',
  key: ({ volume }) => [volume],
  subject: ({ volume, node, planned }) => subjects.attached(planned.spec.name, volume, node),
  plugin: ({ planned }) => pluginLabel(planned.plugin, planned.spec),
  async run({ volume, planned }, { registry, host, devices }, { step, emit }, signal) {
    const { spec, devicePath } = planned
    const { name, plugin } = await step('FindMapperPluginByName', () => registry.byName(planned.plugin))
    const mapper = await step('BlockVolumeMapper', () => mapperOf(name, plugin, spec), {
      prefix: `UnmapDevice.FindMapperPluginByName ${noMapper}`,
    })
    const globalMapPath = planned.device.path || mapper.globalMapPath(spec)
    const references = await step('GetDeviceBindMountRefs', () => deviceNodesIn(host, globalMapPath, signal), {
      prefix: 'UnmapDevice.GetDeviceBindMountRefs check failed',
    })
    const unreferenced = () => {
      if (references.length === 0) return
      const text = `the device "${globalMapPath}" is still referenced from other Pods [${references.join(' ')}]`
      throw refused('DeviceReferenced', text, 'untried')
    }
    await step('References', unreferenced, { prefix: 'UnmapDevice failed' })
    emit({ kind: 'deviceUnmountFailed', volume })
    await step('TearDownDevice', async () => mapper.tearDownDevice?.({ spec, globalMapPath, devicePath }, signal))
    await step('RemoveMapPath', () => host.files.removeTree(globalMapPath, signal))
    await step('DeviceOpened', () => checkDeviceFree(host, devicePath, signal), {
      prefix: 'UnmapDevice failed',
    })
    await step('ForgetDevice', () => devices.drop(volume, signal), {
      done: () => ({ kind: 'deviceUnmounted', volume }),
      prefix: 'UnmapDevice failed',
    })
  },
}

/** A missing directory has no references: setting up never got that far. */
async function deviceNodesIn({ files }: Host, directory: string, signal: AbortSignal): Promise<readonly string[]> {
  const found: string[] = []
  try {
    for (const name of await files.readDir(directory, signal)) {
      const { kind } = await files.lstat(join(directory, name), signal)
      if (kind === 'blockDevice') found.push(name)
    }
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
  return found
}
