// How does a volume with a file system reach a pod? Checks, the device once per node, then the pod's own directory, then its
// size (MNT-1 … MNT-16). Each step says next to itself what its outcome lets us say of the world.
import { hasTag } from '../../volume/effect.ts'
import type { PluginName } from '../../api/names.ts'
import { mountKey, pluginLabel } from '../../volume/identity.ts'
import type { Operation, Report } from '../../volume/operation.ts'
import { podVolumePath } from '../../volume/paths.ts'
import type { DeviceMounter, Ownership } from '../../volume/plugin.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
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
    const attached = device && (await attachDevice({ ...work, name, device }, deps, report, signal))
    const devicePath = attached ?? work.actual()?.devicePath ?? ''
    const ownership = ownershipOf(pod)
    if (plugin.health) deps.attempted(volume, uid)
    const deviceMountPath =
      device && (await mountDevice({ ...work, name, device, devicePath, ownership }, deps, report, signal))
    const target = podVolumePath(deps.root, uid, name, spec.name)
    const request = {
      spec,
      pod,
      target,
      ownership,
      devicePath,
      ...(deviceMountPath === undefined ? {} : { deviceMountPath }),
      ...labelledAs(label.mounted),
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

interface DeviceStage<Part> extends MountWork {
  readonly name: PluginName
  readonly device: Part
}

const isStaged = (work: MountWork) => work.actual()?.device.presence === 'present'

/** Waits for the device. Where waiting connects it, it is written down first, and there to be undone from then on. */
export async function attachDevice(
  stage: DeviceStage<Waiting & { path(spec: VolumeSpec): string }>,
  deps: OperationDeps,
  { step }: Report<ActualEvent>,
  signal: AbortSignal,
): Promise<string> {
  const { device, name, desired, mount } = stage
  const { volume, label } = desired
  const wait = () => waitForDevice(stage, device, deps, signal)
  if (!device.connects || isStaged(stage)) return await step('WaitForAttach', wait)
  const connected = (devicePath: string): ActualEvent => ({
    kind: 'deviceUncertain',
    ...{ volume, path: device.path(mount.spec), devicePath, label: label.mounted },
  })
  const connect = () => {
    const record = { volume, plugin: name, spec: mount.spec, path: device.path(mount.spec), connects: device.connects! }
    return recorded(deps, record, stage.actual(), wait, signal)
  }
  return await step('WaitForAttach', connect, { done: connected, uncertain: () => connected('') })
}

/** Mounts the device once per node; answers where. */
async function mountDevice(
  stage: DeviceStage<DeviceMounter> & { readonly devicePath: string; readonly ownership: Ownership },
  deps: OperationDeps,
  { step }: Report<ActualEvent>,
  signal: AbortSignal,
): Promise<string> {
  const { device, name, devicePath, ownership, desired, mount } = stage
  const { spec, pod } = mount
  const { volume, label } = desired
  const staged = isStaged(stage)
  // Where it is mounted already, only an expansion asks for the path (MNT-10).
  const asked = staged ? { prefix: 'MountVolume.GetDeviceMountPath failed for expansion' } : {}
  const path = await step('GetDeviceMountPath', () => device.path(spec), asked)
  if (staged) return path
  const grouped = ownership.fsGroup === undefined ? {} : { fsGroup: ownership.fsGroup }
  const request = { spec, pod, devicePath, path, ...grouped, ...labelledAs(label.mounted) }
  const connects = device.connects ? { connects: device.connects } : {}
  const record = { volume, plugin: name, spec, path, ...connects }
  const call = () => tellMismatch(deps, spec, () => device.mount(request, signal))
  const known = { volume, path, devicePath, label: label.mounted }
  await step('MountDevice', () => recorded(deps, record, stage.actual(), call, signal), {
    done: () => ({ kind: 'deviceMounted', ...known }),
    failed: () => (device.connects ? undefined : { kind: 'deviceMountFailed', volume }),
    uncertain: () => ({ kind: 'deviceUncertain', ...known }),
  })
  return path
}

const labelledAs = (label: string) => (label === '' ? {} : { seLinuxLabel: label })
type Waiting = Pick<DeviceMounter, 'waitForAttach' | 'connects'>

/** The wait ends early when the pod is gone; nothing was mounted yet, so nothing is in doubt (MNT-6, WA-27). */
async function waitForDevice(
  work: MountWork,
  device: Waiting,
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
