// How does a volume leave a pod? UMT-1 … UMT-4: first the sub-path mounts that show parts of it, then the volume itself.
// Any failed tear-down makes doubt: the undoing may have begun, so the next pod must set up again.
import { cleanSubPaths } from '../../host/subpaths.ts'
import { pluginLabel } from '../../volume/identity.ts'
import { subjects } from '../../volume/messages.ts'
import type { Operation } from '../../volume/operation.ts'
import { podDirectory, podVolumePath, subPathsDirectory } from '../../volume/paths.ts'
import type { ActualEvent } from '../volumes/actual.ts'
import type { OperationDeps, UnmountWork } from './steps.ts'

export const unmountVolume: Operation<UnmountWork, OperationDeps, ActualEvent> = {
  name: 'volume_unmount',
  label: 'UnmountVolume',
  key: ({ actual, mount }) => [actual.volume, mount.pod],
  subject: ({ actual, mount }) => subjects.mounted(actual.volume, mount.pod),
  plugin: ({ actual, mount }) => pluginLabel(actual.plugin, mount.spec),
  async run({ actual, mount }, { registry, host, root }, { step }, signal) {
    const { volume } = actual
    const { pod, spec } = mount
    const { plugin } = await step('FindPluginByName', () => registry.byName(actual.plugin))
    const subPaths = async () => {
      if (!(await host.files.exists(subPathsDirectory(root, pod), signal))) return
      await cleanSubPaths(host, podDirectory(root, pod), spec.name, signal)
    }
    await step('subPaths', subPaths, {
      prefix: 'error cleaning subPath mounts',
    })
    const target = podVolumePath(root, pod, actual.plugin, spec.name)
    const doubt = (): ActualEvent => ({ kind: 'unmountFailed', volume, pod })
    await step('TearDown', () => plugin.unmount({ volumeName: spec.name, pod, target, spec }, signal), {
      done: () => ({ kind: 'unmounted', volume, pod }),
      failed: doubt,
      deferred: doubt,
      uncertain: doubt,
    })
  },
}
