// What do we know of the volumes on this node? One record per volume; presence of a record means "attached" (KA-2).
//
// The rules about doubt live here and nowhere else (DEV-1 … DEV-4, VSP-1 … VSP-4, KA-*):
// 1. Only doubt resolves to absent; what is certain is made absent by an unmount alone.
// 2. A certain mount is not made doubtful by a second attempt, however that one ends (INV-9).
// 3. Doubt found on disk survives a failed retry: it was there before us and must be undone some day. So does what a call of
//    ours has set up for certain and that is not ready yet: a later call that changes nothing does not take it away.
// 4. A failed unmount makes doubt, whatever its error: the undoing may have begun.
// 5. A device that is found missing, though its mount had succeeded, is doubtful as if found on disk: it is set up again.
// 6. A record goes only when no pod is on it and the device is known absent (INV-4).
import type { PluginName, PodUid, UniqueVolumeName } from '../../api/names.ts'
import type { World } from '../../loop/world.ts'
import { createWorld } from '../../loop/world.ts'
import type { VolumeSpec } from '../../volume/spec.ts'

type Presence = 'absent' | 'uncertain' | 'present'

interface ActualDevice {
  readonly presence: Presence
  /** The staging or global map path; empty while never mounted. */
  readonly path: string
  /** Doubt that came from disk, not from an attempt of ours. */
  readonly foundOnDisk: boolean
}

export interface ActualMount {
  readonly pod: PodUid
  /** `unready`: set up, but without its size no pod may use it. */
  readonly presence: 'uncertain' | 'unready' | 'present'
  readonly spec: VolumeSpec
  readonly foundOnDisk: boolean
  /** Which of the desired generations the last complete mount saw. */
  readonly generation: number
  readonly group: string
}

export interface ActualVolume {
  readonly volume: UniqueVolumeName
  readonly plugin: PluginName
  readonly spec: VolumeSpec
  readonly attachable: 'yes' | 'no' | 'unknown'
  /** An earlier life of the agent left it here. */
  readonly restored: boolean
  readonly devicePath: string
  readonly device: ActualDevice
  /** The SELinux label it is mounted with; undefined before the first mount (KA-6). */
  readonly label: string | undefined
  /** Found on disk, and node.status has not been asked yet where its device is (RCS-7). */
  readonly devicePathUnread: boolean
  /** Size the claim had when it was last made to fit; 0 while unknown. */
  readonly sizeBytes: bigint
  readonly expansion: {
    /** The driver refuses to grow it while in use: not again on this node (EXN-8c). */
    readonly refusedInUse: boolean
    readonly failedFinally: boolean
    /** The last in-use expansion ended without growing; look again only when something changed (WA-24). */
    readonly deferred: { readonly bytes: bigint; readonly claimChanges: number } | undefined
  }
  readonly pods: ReadonlyMap<PodUid, ActualMount>
}

interface At {
  readonly volume: UniqueVolumeName
}
interface AtPod extends At {
  readonly pod: PodUid
}

interface FoundEvent extends At {
  readonly kind: 'foundOnDisk'
  readonly plugin: PluginName
  readonly spec: VolumeSpec
  readonly pod: PodUid | undefined
  /** Path of the device's mount if the volume has a device stage. */
  readonly devicePath: string | undefined
  readonly label?: string
}

export type ActualEvent =
  | (At & {
      readonly kind: 'attached'
      readonly plugin: PluginName
      readonly spec: VolumeSpec
      readonly attachable: boolean
      readonly devicePath: string
      readonly sizeBytes: bigint
    })
  | (At & {
      readonly kind: 'deviceMounted' | 'deviceUncertain'
      readonly path: string
      readonly devicePath: string
      readonly label?: string
    })
  | (At & { readonly kind: 'deviceMountFailed' | 'deviceUnmountFailed' | 'deviceFoundMissing' | 'deviceUnmounted' })
  | (AtPod & {
      readonly kind: 'mounted' | 'setUp' | 'mountUncertain'
      readonly spec: VolumeSpec
      readonly generation: number
      readonly group: string
      readonly label?: string
    })
  | (AtPod & { readonly kind: 'mountFailed' | 'unmountFailed' | 'unmounted' })
  | (At & { readonly kind: 'sized' | 'resized'; readonly bytes: bigint })
  | (At & { readonly kind: 'expansionRefused' | 'expansionFailed' })
  | (At & { readonly kind: 'expansionDeferred'; readonly bytes: bigint; readonly claimChanges: number })
  | FoundEvent
  | (At & { readonly kind: 'nodeStatusRead'; readonly attached: boolean; readonly devicePath: string })
  | (At & { readonly kind: 'forgotten' })

export type ActualWorld = World<UniqueVolumeName, ActualVolume, ActualEvent>

export function createActualWorld(): ActualWorld {
  return createWorld<UniqueVolumeName, ActualVolume, ActualEvent>((event) => event.volume, reduceActual)
}

export function reduceActual(item: ActualVolume | undefined, event: ActualEvent): ActualVolume | undefined {
  if (event.kind === 'attached') return attached(item, event)
  if (event.kind === 'foundOnDisk') return foundOnDisk(item, event)
  // Everything else is said of a volume we hold; an answer that comes too late changes nothing (TA-46).
  if (!item) return undefined
  switch (event.kind) {
    case 'deviceMounted':
      return withDevice(item, 'present', event)
    case 'deviceUncertain':
      return item.device.presence === 'absent' ? withDevice(item, 'uncertain', event) : item
    case 'deviceMountFailed':
      return item.device.presence === 'uncertain' && !item.device.foundOnDisk ? deviceAbsent(item) : item
    case 'deviceUnmountFailed':
      return item.device.presence === 'present'
        ? { ...item, device: { ...item.device, presence: 'uncertain' as const, foundOnDisk: false } }
        : item
    case 'deviceFoundMissing':
      return item.device.presence === 'present'
        ? { ...item, device: { ...item.device, presence: 'uncertain' as const, foundOnDisk: true } }
        : item
    case 'deviceUnmounted':
      return deviceAbsent(item)
    case 'mounted':
    case 'setUp':
    case 'mountUncertain':
      return withMount(item, event)
    case 'mountFailed':
      return mountFailed(item, event.pod)
    case 'unmountFailed':
      return doubtMount(item, event.pod)
    case 'unmounted':
      return withoutMount(item, event.pod)
    case 'sized':
      return item.sizeBytes === 0n ? { ...item, sizeBytes: event.bytes } : item
    case 'resized':
      return item.sizeBytes === event.bytes ? item : { ...item, sizeBytes: event.bytes }
    case 'expansionRefused':
      return { ...item, expansion: { ...item.expansion, refusedInUse: true } }
    case 'expansionFailed':
      return { ...item, expansion: { ...item.expansion, failedFinally: true } }
    case 'expansionDeferred': {
      const { bytes, claimChanges } = event
      return { ...item, expansion: { ...item.expansion, deferred: { bytes, claimChanges } } }
    }
    case 'nodeStatusRead':
      return nodeStatusRead(item, event)
    case 'forgotten':
      return item.pods.size === 0 && item.device.presence === 'absent' ? undefined : item
    default:
      return event satisfies never
  }
}

/** Which volumes does a pod hold, surely or not? Kept up to date with the world, so that nobody walks all volumes. */
export function heldByPod(world: ActualWorld): (pod: PodUid) => readonly ActualVolume[] {
  const byPod = new Map<PodUid, Set<UniqueVolumeName>>()
  world.subscribe((volume, event) => {
    if (!('pod' in event) || event.pod === undefined) return
    const names = byPod.get(event.pod) ?? new Set()
    // A record with pods is never forgotten: what leaves a pod is told with its name.
    if (world.items.get(volume)?.pods.has(event.pod) === true) byPod.set(event.pod, names.add(volume))
    else if (names.delete(volume) && names.size === 0) byPod.delete(event.pod)
  })
  return (pod) =>
    Array.from(byPod.get(pod) ?? [], (volume) => world.items.get(volume)).filter((item) => item !== undefined)
}

export function isPresent(item: ActualVolume | undefined, pod: PodUid): boolean {
  return item?.pods.get(pod)?.presence === 'present'
}

const noDevice: ActualDevice = { presence: 'absent', path: '', foundOnDisk: false }
const noExpansion: ActualVolume['expansion'] = { refusedInUse: false, failedFinally: false, deferred: undefined }

/** An attached volume that we know already gets a new device path and nothing else (KA-3). */
function attached(item: ActualVolume | undefined, event: Extract<ActualEvent, { kind: 'attached' }>): ActualVolume {
  if (item) {
    const sizeBytes = item.sizeBytes === 0n ? event.sizeBytes : item.sizeBytes
    return { ...item, devicePath: event.devicePath || item.devicePath, sizeBytes }
  }
  const { volume, plugin, spec, devicePath, sizeBytes } = event
  return {
    volume,
    plugin,
    spec,
    attachable: event.attachable ? 'yes' : 'no',
    restored: false,
    devicePath,
    device: noDevice,
    label: undefined,
    devicePathUnread: false,
    sizeBytes,
    expansion: noExpansion,
    pods: new Map(),
  }
}

/** RCS-6, KA-12: doubt about the pod and about the device; what is known already stays. */
function foundOnDisk(item: ActualVolume | undefined, event: FoundEvent): ActualVolume {
  const { volume, plugin, spec, pod } = event
  const base: ActualVolume = item ?? {
    volume,
    plugin,
    spec,
    attachable: 'unknown',
    restored: true,
    devicePath: '',
    device: noDevice,
    label: event.label,
    devicePathUnread: true,
    sizeBytes: 0n,
    expansion: noExpansion,
    pods: new Map(),
  }
  const device: ActualDevice =
    event.devicePath !== undefined && base.device.presence === 'absent'
      ? { presence: 'uncertain', path: event.devicePath, foundOnDisk: true }
      : base.device
  if (pod === undefined || base.pods.has(pod)) return { ...base, device }
  const mount: ActualMount = { pod, presence: 'uncertain', spec, foundOnDisk: true, generation: -1, group: '' }
  return { ...base, device, pods: new Map(base.pods).set(pod, mount) }
}

/** Device path and label survive unless new ones are given (KA-9, TA-40). */
function withDevice(
  item: ActualVolume,
  presence: Presence,
  { path, devicePath, label }: Extract<ActualEvent, { kind: 'deviceMounted' | 'deviceUncertain' }>,
): ActualVolume {
  const foundOnDisk = presence === 'present' ? false : item.device.foundOnDisk
  const device = { presence, path, foundOnDisk }
  return { ...item, devicePath: devicePath || item.devicePath, label: label || item.label, device }
}

function deviceAbsent(item: ActualVolume): ActualVolume {
  return item.device.presence === 'absent' ? item : { ...item, device: noDevice }
}

function withMount(
  given: ActualVolume,
  event: Extract<ActualEvent, { kind: 'mounted' | 'setUp' | 'mountUncertain' }>,
): ActualVolume {
  const item = given.label === undefined && event.label !== undefined ? { ...given, label: event.label } : given
  const before = item.pods.get(event.pod)
  if (before && event.kind === 'mountUncertain') return item
  if (before?.presence === 'present' && event.kind === 'setUp') return item
  const { pod, spec, group } = event
  const generation = event.kind === 'mounted' ? event.generation : -1
  // Only a mount that came to its end makes it ours (KA-4): until then a pod may be using what an earlier life left (MNT-11).
  const foundOnDisk = event.kind === 'setUp' && before?.foundOnDisk === true
  const mount: ActualMount = { pod, presence: presenceAfter[event.kind], spec, foundOnDisk, generation, group }
  return { ...item, pods: new Map(item.pods).set(pod, mount) }
}

const presenceAfter = { mounted: 'present', setUp: 'unready', mountUncertain: 'uncertain' } as const

function mountFailed(item: ActualVolume, pod: PodUid): ActualVolume {
  const before = item.pods.get(pod)
  return before?.presence === 'uncertain' && !before.foundOnDisk ? withoutMount(item, pod) : item
}

function doubtMount(item: ActualVolume, pod: PodUid): ActualVolume {
  const before = item.pods.get(pod)
  if (before?.presence !== 'present') return item
  return { ...item, pods: new Map(item.pods).set(pod, { ...before, presence: 'uncertain', generation: -1 }) }
}

function withoutMount(item: ActualVolume, pod: PodUid): ActualVolume {
  if (!item.pods.has(pod)) return item
  const pods = new Map(item.pods)
  pods.delete(pod)
  return { ...item, pods }
}

/** The first answer wins (KA-13, TA-45). */
function nodeStatusRead(item: ActualVolume, event: Extract<ActualEvent, { kind: 'nodeStatusRead' }>): ActualVolume {
  if (!item.devicePathUnread) return item
  return {
    ...item,
    devicePathUnread: false,
    attachable: item.attachable === 'unknown' ? (event.attached ? 'yes' : 'no') : item.attachable,
    devicePath: event.attached && item.device.presence !== 'absent' ? event.devicePath : item.devicePath,
  }
}
