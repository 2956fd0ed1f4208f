// How does a device leave the node? UMD-1 … UMD-6: never under another mount of it, and it must be closed afterwards.
import { refused } from '../../volume/effect.ts'
import { pluginLabel } from '../../volume/identity.ts'
import { subjects } from '../../volume/messages.ts'
import type { Operation } from '../../volume/operation.ts'
import type { ActualEvent } from '../volumes/actual.ts'
import type { DeviceWork, OperationDeps } from './steps.ts'
import { checkDeviceFree } from './steps.ts'

export const unmountDevice: Operation<DeviceWork, OperationDeps, ActualEvent> = {
  name: 'unmount_device',
  label: 'UnmountDevice',
  key: ({ volume }) => [volume],
  subject: ({ volume, node, planned }) => subjects.attached(planned.spec.name, volume, node),
  plugin: ({ planned }) => pluginLabel(planned.plugin, planned.spec),
  async run({ volume, planned }, { registry, host, devices }, { step }, signal) {
    const { spec, devicePath } = planned
    const device = await step('FindDeviceMountablePluginByName', () => {
      const found = registry.byName(planned.plugin).plugin.device?.(spec)
      if (!found) throw refused('NoDeviceMounter', `plugin ${planned.plugin} mounts no devices`, 'untried')
      return found
    })
    // The stored path wins: it is where the device was mounted, whatever the plugin would choose today (UMD-2).
    const path =
      planned.device.path ||
      (await step('GetDeviceMountPath', () => device.path(spec), { prefix: 'GetDeviceMountPath failed' }))
    await step('GetDeviceMountRefs', () => checkReferences(path, (at) => host.mounts.references(at, signal)), {
      prefix: 'GetDeviceMountRefs check failed',
    })
    const doubt = (): ActualEvent => ({ kind: 'deviceUnmountFailed', volume })
    await step('UnmountDevice', () => device.unmount({ path, spec }, signal), {
      failed: doubt,
      deferred: doubt,
      uncertain: doubt,
      prefix: 'UnmountDevice failed',
    })
    await step('DeviceOpened', () => checkDeviceFree(host, devicePath, signal), {
      uncertain: doubt,
      prefix: 'UnmountDevice failed',
    })
    await step('ForgetDevice', () => devices.drop(volume, signal), {
      done: () => ({ kind: 'deviceUnmounted', volume }),
      prefix: 'UnmountDevice failed',
    })
  },
}

/** UMD-3, MOUNT-18: a reference outside the plugins' own tree means that somebody else still looks at the device. */
export async function checkReferences(
  path: string,
  references: (path: string) => Promise<readonly string[]>,
): Promise<void> {
  const from = path.indexOf('/plugins/kubernetes.io/')
  const own = from < 0 ? path : path.slice(from)
  const foreign = (await references(path)).filter((reference) => !reference.includes(own))
  if (foreign.length === 0) return
  const text = `the device mount path "${path}" is still mounted by other references [${foreign.join(' ')}]`
  throw refused('DeviceReferenced', text, 'untried')
}
