// How does a volume with a file system reach a pod? Checks, the device once per node, then the pod's own directory, then its
// size (MNT-1 … MNT-16). Each step says next to itself what its outcome lets us say of the world.
import { hasTag } from '../../volume/effect.ts'
import { mountKey, pluginLabel } from '../../volume/identity.ts'
import type { Operation } from '../../volume/operation.ts'
import { podVolumePath } from '../../volume/paths.ts'
import type { DeviceMounter } from '../../volume/plugin.ts'
import type { ActualEvent } from '../volumes/actual.ts'
import { expandOnMount } from './expand.ts'
import type { MountWork, OperationDeps } from './steps.ts'
import {
  checkMountOptions,
  checkNodeAffinity,
  checkSinglePodWriter,
  mountSubject,
  notifyPod,
  ownershipOf,
  recorded,
  tellMismatch,
  waitForAttachMs,
} from './steps.ts'

export const mountVolume: Operation<MountWork, OperationDeps, ActualEvent> = {
  name: 'volume_mount',
  label: 'MountVolume',
  failureReason: 'FailedMount',
  key: ({ desired, mount }) => mountKey(desired.volume, mount.uid, desired.attachable || desired.deviceMountable),
  subject: mountSubject,
  plugin: ({ desired, mount }) => pluginLabel(desired.plugin, mount.spec),
  async run(work, deps, report, signal) {
    const { step } = report
    const { desired, mount } = work
    const { spec, pod, uid } = mount
    const { volume, group, label } = desired
    const labelled = label.mounted === '' ? {} : { seLinuxLabel: label.mounted }
    const { name, traits, plugin } = await step('FindPluginBySpec', () => deps.registry.find(spec))
    await step('NodeAffinity', () => checkNodeAffinity(spec, deps.ownNode()), {
      prefix: 'MountVolume.NodeAffinity check failed',
    })
    await step('NewMounter', () => plugin.prepare?.(spec, signal), {
      prefix: 'MountVolume.NewMounter initialization failed',
    })
    await step('MountOptionSupport', () => checkMountOptions(spec, traits.takesMountOptions), {
      prefix: 'MountVolume.MountOptionSupport check failed',
    })
    await step('SinglePodWriter', () => checkSinglePodWriter(spec, uid, work.actual()), {
      prefix: 'MountVolume.SetUp failed',
    })
    const device = plugin.device?.(spec)
    const devicePath = device
      ? await step('WaitForAttach', () => waitForDevice(work, device, deps, signal))
      : (work.actual()?.devicePath ?? '')
    const ownership = ownershipOf(pod)
    if (plugin.health) deps.attempted(volume, uid)
    const staged = work.actual()?.device.presence === 'present'
    // Where it is mounted already, only an expansion asks for the path (MNT-10).
    const asked = staged ? { prefix: 'MountVolume.GetDeviceMountPath failed for expansion' } : {}
    const deviceMountPath = device && (await step('GetDeviceMountPath', () => device.path(spec), asked))
    if (device && deviceMountPath !== undefined && !staged) {
      const { fsGroup } = ownership
      const grouped = fsGroup === undefined ? {} : { fsGroup }
      const request = { spec, pod, devicePath, path: deviceMountPath, ...grouped, ...labelled }
      const record = { volume, plugin: name, spec, path: deviceMountPath }
      const mountDevice = () => tellMismatch(deps, spec, () => device.mount(request, signal))
      await step('MountDevice', () => recorded(deps, record, work.actual(), mountDevice, signal), {
        done: () => ({ kind: 'deviceMounted', volume, path: deviceMountPath, devicePath, label: label.mounted }),
        failed: () => ({ kind: 'deviceMountFailed', volume }),
        uncertain: () => ({ kind: 'deviceUncertain', volume, path: deviceMountPath, devicePath, label: label.mounted }),
      })
    }
    const target = podVolumePath(deps.root, uid, name, spec.name)
    const request = {
      spec,
      pod,
      target,
      ownership,
      devicePath,
      ...(deviceMountPath === undefined ? {} : { deviceMountPath }),
      ...labelled,
      foundOnDisk: work.actual()?.pods.get(uid)?.foundOnDisk ?? false,
      remount: work.remount,
      notify: notifyPod(deps, pod),
    }
    // Set up, the volume is there and must be undone some day, but no pod may use it before it has its size.
    const mounted = { volume, pod: uid, spec, group, label: label.mounted }
    const known = { ...mounted, generation: -1 }
    const setUp = () => tellMismatch(deps, spec, () => plugin.mount(request, signal))
    await step('SetUp', () => doubtMissingDevice(setUp, () => report.emit({ kind: 'deviceFoundMissing', volume })), {
      done: () => ({ kind: 'setUp', ...known }),
      failed: () => ({ kind: 'mountFailed', volume, pod: uid }),
      uncertain: () => ({ kind: 'mountUncertain', ...known }),
    })
    const paths = { path: plugin.path?.(spec, target) ?? target, stagingPath: deviceMountPath ?? '', devicePath }
    await step('NodeExpand', () => expandOnMount(work, deps, paths, report, signal), {
      prefix: 'MountVolume.Setup failed while expanding volume',
      done: () => ({ kind: 'mounted', ...mounted, generation: mount.generation }),
    })
    observeWholeMount(work, deps)
  },
}

/** What the plugin found missing on this node is set up again by the next try. */
async function doubtMissingDevice(setUp: () => Promise<void>, doubt: () => void): Promise<void> {
  try {
    await setUp()
  } catch (error) {
    if (hasTag(error, 'notStaged')) doubt()
    throw error
  }
}

/** The wait ends early when the pod is gone; nothing was mounted yet, so nothing is in doubt (MNT-6, WA-27). */
export async function waitForDevice(
  work: MountWork,
  device: Pick<DeviceMounter, 'waitForAttach'>,
  { clock }: Pick<OperationDeps, 'clock'>,
  signal: AbortSignal,
): Promise<string> {
  const known = work.actual()?.devicePath ?? ''
  if (!device.waitForAttach) return known
  using deadline = clock.deadline(waitForAttachMs, AbortSignal.any([signal, work.abandoned]))
  return await device.waitForAttach({ spec: work.mount.spec, devicePath: known, pod: work.mount.pod }, deadline.signal)
}

/** From the pod's request to the mounted volume (MNT-14, MEA-2). */
function observeWholeMount({ desired, mount }: MountWork, { metrics, clock }: OperationDeps): void {
  const total = metrics.histogram('volume_operation_total_seconds', 'Storage operation end to end duration', [
    'plugin_name',
    'operation_name',
  ] as const)
  const labels = { plugin_name: pluginLabel(desired.plugin, mount.spec), operation_name: 'overall_volume_mount' }
  total.observe(labels, (clock.now() - mount.requestedAt) / 1000)
}
