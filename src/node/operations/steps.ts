// Which steps do several operations share? Checks before a mount, the words for subjects and metrics, device checks.
// Everything here either answers or throws a VolumeError that says what was left behind.
import type { NodeName, PodUid, UniqueVolumeName } from '../../api/names.ts'
import { matchesNodeSelector } from '../../api/node-selector.ts'
import type { Node, Pod } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import type { Recorder } from '../../client/recorder.ts'
import type { Clock } from '../../clock/clock.ts'
import { HostError, hasCode } from '../../host/host-error.ts'
import type { Host } from '../../host/host.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { isSinglePodWriter } from '../../volume/access.ts'
import { asVolumeError, hasTag, hostFailure, refused, VolumeError } from '../../volume/effect.ts'
import { eventReasons, subjects } from '../../volume/messages.ts'
import type { Subject } from '../../volume/messages.ts'
import type { Connecting, NodePlugin, Notify, Ownership } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { ActualMount, ActualVolume } from '../volumes/actual.ts'
import type { DesiredMount, DesiredVolume } from '../volumes/desired.ts'
import type { DeviceRecord, DeviceRecords } from '../volumes/device-records.ts'

/** What operations on a node are given. */
export interface OperationDeps {
  readonly host: Host
  readonly registry: Registry<NodePlugin>
  readonly client: Client
  readonly clock: Clock
  readonly recorder: Recorder
  readonly metrics: Metrics
  readonly root: string
  readonly node: NodeName
  readonly devices: DeviceRecords
  /** Called before a plugin that tells of its volumes' health is asked to mount one (MNT-16). */
  attempted(volume: UniqueVolumeName, pod: PodUid): void
  /** Our own Node as last heard; undefined before the first time. */
  ownNode(): Node | undefined
}

/** One volume for one pod, on its way in. */
export interface MountWork {
  readonly desired: DesiredVolume
  readonly mount: DesiredMount
  readonly remount: boolean
  /** Read again after every await: others change the record meanwhile (DES-11). */
  actual(): ActualVolume | undefined
  /** Aborts when the pod no longer wants the volume; only waits obey it (WA-27). */
  readonly abandoned: AbortSignal
}

/** One volume for one pod, on its way out. */
export interface UnmountWork {
  readonly actual: ActualVolume
  readonly mount: ActualMount
}

export interface DeviceWork {
  readonly volume: UniqueVolumeName
  readonly node: NodeName
  actual(): ActualVolume | undefined
  /** The record as it was when the work was planned, for names and keys. */
  readonly planned: ActualVolume
}

/** For so long a mount waits for its device to be attached (C-10). */
export const waitForAttachMs = 600_000

export function mountSubject({ desired, mount }: MountWork): Subject {
  return subjects.toMount(mount.spec.name, desired.volume, { name: mount.pod.metadata.name, uid: mount.uid })
}

/** A volume that is bound to other nodes is not mounted here (MNT-2). */
export function checkNodeAffinity(spec: VolumeSpec, node: Node | undefined): void {
  const required = spec.persistentVolume?.spec?.nodeAffinity?.required
  if (!required) return
  if (!node) throw refused('NodeUnknown', 'the node is not known yet', 'untried')
  if (!matchesNodeSelector(required, { name: node.metadata.name, labels: node.metadata.labels ?? {} }))
    throw refused('NodeAffinity', 'no matching NodeSelectorTerms', 'none')
}

/** Mount options are refused where the plugin would ignore them (MNT-4, PLUG-11, PLUG-12). */
export function checkMountOptions(spec: VolumeSpec, supported: boolean): void {
  if (supported || !spec.persistentVolume) return
  const { metadata, spec: fields } = spec.persistentVolume
  const annotated = metadata.annotations?.['volume.beta.kubernetes.io/mount-options'] ?? ''
  if (annotated === '' && (fields?.mountOptions ?? []).length === 0) return
  throw refused('MountOptions', 'mount options are not supported for this volume type', 'none')
}

/** Doubt counts as use. A spec without a PersistentVolume has no access modes (MNT-5, WA-21). */
export function checkSinglePodWriter(spec: VolumeSpec, pod: PodUid, actual: ActualVolume | undefined): void {
  if (!isSinglePodWriter(spec.persistentVolume)) return
  for (const other of actual?.pods.keys() ?? []) {
    if (other === pod) continue
    const text = 'volume uses the ReadWriteOncePod access mode and is already in use by another pod'
    throw refused('SinglePodWriter', text, 'none')
  }
}

/** The one user all containers run as, if there is exactly one (FSG-6). */
export function ownershipOf(pod: Pod): Ownership {
  const security = pod.spec?.securityContext
  const containers = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])]
  const users = new Set(containers.map((each) => each.securityContext?.runAsUser ?? security?.runAsUser))
  const [fsUser] = users
  return {
    ...(security?.fsGroup === undefined ? {} : { fsGroup: security.fsGroup }),
    ...(security?.fsGroupChangePolicy === undefined ? {} : { changePolicy: security.fsGroupChangePolicy }),
    ...(users.size !== 1 || fsUser === undefined ? {} : { fsUser }),
  }
}

export function notifyPod({ recorder }: Pick<OperationDeps, 'recorder'>, pod: Pod): Notify {
  return ({ type, reason, message }) => recorder.event({ kind: 'Pod', object: pod }, type, reason, message)
}

/** A filesystem that does not match is the volume's trouble too, not only the pod's (MNT-8a). */
export async function tellMismatch<T>(
  { recorder }: Pick<OperationDeps, 'recorder'>,
  spec: VolumeSpec,
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await call()
  } catch (error) {
    if (spec.persistentVolume && hasTag(error, 'filesystemMismatch')) {
      const text = `MountVolume failed for volume "${spec.name}" ${error instanceof Error ? error.message : ''}`
      recorder.event(
        { kind: 'PersistentVolume', object: spec.persistentVolume },
        'Warning',
        eventReasons.filesystemMismatch,
        text,
      )
    }
    throw error
  }
}

/**
 * Writes the device down before the call that makes it, and strikes it out again when certainly nothing was made (WA-9). A
 * device that its plugin connected stays written down until it is disconnected, whatever comes of the calls after that.
 */
export async function recorded<T>(
  { devices }: Pick<OperationDeps, 'devices'>,
  { connects, ...record }: DeviceRecord & Connecting,
  actual: ActualVolume | undefined,
  call: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  await devices.save(record, signal).catch((cause: unknown) => {
    // Nothing was asked of anybody yet: a full disk leaves no doubt, unless the record may have been written after all.
    throw cause instanceof HostError ? hostFailure(cause, 'untried') : cause
  })
  try {
    return await call()
  } catch (error) {
    const { effect } = asVolumeError(error)
    const { presence = 'absent', foundOnDisk = false } = actual?.device ?? {}
    const undone = effect === 'none' && !foundOnDisk && !connects
    const nothing = presence === 'absent' ? effect !== 'unknown' : undone
    if (nothing) await devices.drop(record.volume, signal)
    throw error
  }
}

/** A device that is still open after its unmount is not free. A path that is no device is none of ours (UMD-5). */
export async function checkDeviceFree(host: Host, devicePath: string, signal: AbortSignal): Promise<void> {
  if (devicePath === '') return
  try {
    const { kind } = await host.files.stat(devicePath, signal)
    if (kind !== 'blockDevice') return
    if (!(await host.devices.isInUse(devicePath, signal))) return
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR', 'ENXIO')) return
    throw error
  }
  throw new VolumeError('DeviceInUse', 'the device is in use when it was no longer expected to be in use', {
    effect: 'unknown',
  })
}
