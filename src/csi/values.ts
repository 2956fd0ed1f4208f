// Which plain values travel in and out of CSI calls? Names instead of enum numbers, bigint sizes (WIRE-1), and the
// two translations of Kubernetes access modes: one for node calls, one for controller calls.
import type {
  ControllerServiceCapability_RPC_Type,
  NodeServiceCapability_RPC_Type,
  PluginCapability_Service_Type,
  VolumeCapability_AccessMode_Mode,
} from './generated/csi_pb.ts'
import type { PersistentVolumeSpec } from '../api/generated/types.ts'
import { CsiError } from './codes.ts'

export type Strings = Readonly<Record<string, string>>

export type PluginCapabilityName = keyof typeof PluginCapability_Service_Type
export type ControllerCapabilityName = keyof typeof ControllerServiceCapability_RPC_Type
export type NodeCapabilityName = keyof typeof NodeServiceCapability_RPC_Type
export type AccessModeName = keyof typeof VolumeCapability_AccessMode_Mode

interface MountAccess {
  readonly kind: 'mount'
  readonly fsType: string
  readonly mountFlags: readonly string[]
  /** Decimal group id, when the driver applies it (VOLUME_MOUNT_GROUP). */
  readonly mountGroup?: string
}

export interface Capability {
  readonly access: MountAccess | { readonly kind: 'block' }
  readonly mode: AccessModeName
}

export interface Segments {
  readonly segments: Strings
}

export type ContentSource =
  | { readonly kind: 'snapshot'; readonly snapshotId: string }
  | { readonly kind: 'volume'; readonly volumeId: string }

export interface Usage {
  readonly availableBytes?: bigint
  readonly capacityBytes?: bigint
  readonly usedBytes?: bigint
  readonly inodesFree?: bigint
  readonly inodes?: bigint
  readonly inodesUsed?: bigint
  readonly condition?: { readonly abnormal: boolean; readonly message: string }
}

/** The known names of a list of enum numbers; numbers we do not know are skipped (WIRE-2). */
export function namesOf<Name extends string>(
  numbers: Iterable<number | undefined>,
  table: Readonly<Record<Name, number>>,
): ReadonlySet<Name> {
  const byNumber = new Map(Object.entries<number>(table).map(([name, number]) => [number, name as Name]))
  const names = new Set<Name>()
  for (const number of numbers) {
    const name = number === undefined ? undefined : byNumber.get(number)
    if (name !== undefined && number !== 0) names.add(name)
  }
  return names
}

type ClaimAccessMode = 'ReadWriteOnce' | 'ReadOnlyMany' | 'ReadWriteMany' | 'ReadWriteOncePod'

/** CSI-19: on the node only the first access mode counts (WART-19, kept). */
export function nodeAccessMode(modes: readonly string[] | undefined, singleNodeMultiWriter: boolean): AccessModeName {
  const first = modes?.[0] ?? 'ReadWriteOnce'
  switch (first) {
    case 'ReadWriteOnce':
      return singleNodeMultiWriter ? 'SINGLE_NODE_MULTI_WRITER' : 'SINGLE_NODE_WRITER'
    case 'ReadWriteOncePod':
      return singleNodeMultiWriter ? 'SINGLE_NODE_SINGLE_WRITER' : 'SINGLE_NODE_WRITER'
    case 'ReadOnlyMany':
      return 'MULTI_NODE_READER_ONLY'
    case 'ReadWriteMany':
      return 'MULTI_NODE_MULTI_WRITER'
    default:
      return 'UNKNOWN'
  }
}

/** SIDE-12: at the controller the whole list decides. */
export function controllerAccessMode(modes: readonly string[], singleNodeMultiWriter: boolean): AccessModeName {
  const has = (mode: ClaimAccessMode) => modes.includes(mode)
  if (has('ReadWriteOncePod')) {
    if (modes.length > 1) throw invalid('ReadWriteOncePod may not be combined with other access modes')
    return singleNodeMultiWriter ? 'SINGLE_NODE_SINGLE_WRITER' : 'SINGLE_NODE_WRITER'
  }
  if (has('ReadWriteMany')) return 'MULTI_NODE_MULTI_WRITER'
  if (has('ReadOnlyMany')) {
    if (has('ReadWriteOnce')) throw invalid('CSI does not support ReadOnlyMany and ReadWriteOnce on one volume')
    return 'MULTI_NODE_READER_ONLY'
  }
  if (has('ReadWriteOnce')) return singleNodeMultiWriter ? 'SINGLE_NODE_MULTI_WRITER' : 'SINGLE_NODE_WRITER'
  throw invalid(`unsupported access modes ${modes.join(', ') || '(none)'}`)
}

function invalid(details: string): CsiError {
  return new CsiError('INVALID_ARGUMENT', details)
}

/** What a PersistentVolume asks of the controller service: access mode, and file system or block device. */
export function controllerCapability(spec: PersistentVolumeSpec, multiWriter: boolean): Capability {
  const mode = controllerAccessMode(spec.accessModes ?? [], multiWriter)
  if (spec.volumeMode === 'Block') return { access: { kind: 'block' }, mode }
  return { mode, access: { kind: 'mount', fsType: spec.csi?.fsType ?? '', mountFlags: spec.mountOptions ?? [] } }
}
