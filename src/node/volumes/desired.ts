// Which volumes should be on this node, for which pods? One record per volume; changes come only as events.
// Rules KD-1 … KD-8; errors per pod (KD-9) are kept by populate.ts, which makes them.
import type { PluginName, PodUid, UniqueVolumeName } from '../../api/names.ts'
import type { Pod } from '../../api/generated/types.ts'
import type { World } from '../../loop/world.ts'
import { createWorld } from '../../loop/world.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { WantedLabel } from './labels.ts'

export interface DesiredMount {
  readonly pod: Pod
  readonly uid: PodUid
  readonly spec: VolumeSpec
  /** Names in pod.spec.volumes; several may lead to one volume (ID-4). */
  readonly outerNames: readonly string[]
  readonly requestedAt: number
  /** Grows each time the plugin must set the volume up again (KA-11); compared with what the last mount saw. */
  readonly generation: number
  /** The pod's claim source says read-only (KP-8, EXN-2). */
  readonly readOnly: boolean
  /** claim.status.capacity.storage when the pod was processed; 0 without a claim. */
  readonly claimBytes: bigint
}

export interface DesiredVolume {
  readonly volume: UniqueVolumeName
  readonly plugin: PluginName
  readonly attachable: boolean
  readonly deviceMountable: boolean
  /** The API server confirmed that node.status.volumesInUse lists it (NSP-2, K2). */
  readonly reportedInUse: boolean
  /** Group of the volume's files, from annotation C-16. */
  readonly group: string
  /** The SELinux label its first pod brought (KD-6). */
  readonly label: WantedLabel
  /** pv.spec.capacity.storage; 0 while unknown or not to be grown. */
  readonly sizeBytes: bigint
  /** Grows each time its claim changes: what was put off for the claim's sake is looked at again. */
  readonly claimChanges: number
  readonly pods: ReadonlyMap<PodUid, DesiredMount>
}

export interface WantedEvent {
  readonly kind: 'wanted'
  readonly volume: UniqueVolumeName
  readonly plugin: PluginName
  readonly attachable: boolean
  readonly deviceMountable: boolean
  readonly group: string
  readonly label: WantedLabel
  readonly pod: Pod
  readonly uid: PodUid
  readonly spec: VolumeSpec
  readonly outerName: string
  readonly readOnly: boolean
  readonly claimBytes: bigint
  readonly at: number
}

interface RefreshEvent {
  readonly kind: 'refresh'
  readonly volume: UniqueVolumeName
  readonly pod: PodUid
  /** Contents changed, so that what failed before may succeed now; false when only time passed. */
  readonly changed: boolean
  readonly at: number
}

export type DesiredEvent =
  | WantedEvent
  | { readonly kind: 'released'; readonly volume: UniqueVolumeName; readonly pod: PodUid }
  | RefreshEvent
  | { readonly kind: 'claimChanged'; readonly volume: UniqueVolumeName }
  | { readonly kind: 'reported'; readonly volume: UniqueVolumeName; readonly inUse: boolean }
  | { readonly kind: 'attachability'; readonly volume: UniqueVolumeName; readonly attachable: boolean }
  | { readonly kind: 'sized'; readonly volume: UniqueVolumeName; readonly bytes: bigint }

export type DesiredWorld = World<UniqueVolumeName, DesiredVolume, DesiredEvent>

export function createDesiredWorld(): DesiredWorld {
  return createWorld<UniqueVolumeName, DesiredVolume, DesiredEvent>((event) => event.volume, reduceDesired)
}

function reduceDesired(item: DesiredVolume | undefined, event: DesiredEvent): DesiredVolume | undefined {
  switch (event.kind) {
    case 'wanted':
      return withPod(item ?? fresh(event), event)
    case 'released':
      return withoutPod(item, event.pod)
    case 'refresh': {
      const mount = item?.pods.get(event.pod)
      if (!item || !mount) return item
      const next = { ...mount, generation: mount.generation + 1, requestedAt: event.at }
      return { ...item, pods: new Map(item.pods).set(event.pod, next) }
    }
    case 'claimChanged':
      return item && { ...item, claimChanges: item.claimChanges + 1 }
    case 'reported':
      return change(item, 'reportedInUse', event.inUse)
    case 'attachability':
      return change(item, 'attachable', event.attachable)
    case 'sized':
      return change(item, 'sizeBytes', event.bytes)
    default:
      return event satisfies never
  }
}

/** Which volumes does a pod want? Kept up to date with the world, so that nobody walks all volumes. */
export function indexByPod(world: DesiredWorld): (pod: PodUid) => readonly DesiredVolume[] {
  const byPod = new Map<PodUid, Set<UniqueVolumeName>>()
  world.subscribe((volume, event) => {
    if (event.kind === 'wanted') byPod.set(event.uid, (byPod.get(event.uid) ?? new Set()).add(volume))
    if (event.kind !== 'released') return
    const names = byPod.get(event.pod)
    names?.delete(volume)
    if (names?.size === 0) byPod.delete(event.pod)
  })
  return (pod) =>
    Array.from(byPod.get(pod) ?? [], (volume) => world.items.get(volume)).filter((item) => item !== undefined)
}

/** Fields of the volume are set when it enters, and not again (KD-2). */
function fresh(event: WantedEvent): DesiredVolume {
  const { volume, plugin, attachable, deviceMountable, group, label } = event
  return {
    volume,
    plugin,
    attachable,
    deviceMountable,
    group,
    label,
    reportedInUse: false,
    sizeBytes: 0n,
    claimChanges: 0,
    pods: new Map(),
  }
}

/** The pod's part is rewritten on every call; its names add up and its request time stays (KD-2). */
function withPod(item: DesiredVolume, event: WantedEvent): DesiredVolume {
  const before = item.pods.get(event.uid)
  const names = before?.outerNames ?? []
  const outerNames = names.includes(event.outerName) ? names : [...names, event.outerName]
  const mount: DesiredMount = {
    pod: event.pod,
    uid: event.uid,
    spec: event.spec,
    outerNames,
    requestedAt: before?.requestedAt ?? event.at,
    generation: before?.generation ?? 0,
    readOnly: event.readOnly,
    claimBytes: event.claimBytes,
  }
  return { ...item, pods: new Map(item.pods).set(event.uid, mount) }
}

function withoutPod(item: DesiredVolume | undefined, pod: PodUid): DesiredVolume | undefined {
  if (!item?.pods.has(pod)) return item
  const pods = new Map(item.pods)
  pods.delete(pod)
  return pods.size === 0 ? undefined : { ...item, pods }
}

function change<K extends keyof DesiredVolume>(
  item: DesiredVolume | undefined,
  name: K,
  value: DesiredVolume[K],
): DesiredVolume | undefined {
  return !item || item[name] === value ? item : { ...item, [name]: value }
}
