// What do drivers say of the health of a volume, and of the storage behind them? Names instead of enum numbers; statuses
// that we do not know are skipped (CSI-71).
import {
  StorageHealthErrorType,
  VolumeCapability_AccessMode_Mode as AccessMode,
  VolumeHealthErrorType,
} from './generated/csi_pb.ts'
import { plainText } from './answers.ts'
import type { NodeGetStorageHealthResponse, VolumeHealth } from './generated/csi_pb.ts'

export interface HealthEntry {
  readonly status: 'Degraded' | 'Inaccessible' | 'DataLoss'
  readonly reason: string
  readonly message: string
}

/** What is wrong with the storage behind a driver; without mode or access it concerns all volumes. */
export interface StorageHealthEntry {
  readonly status: 'StorageDegraded' | 'StorageUnreachable'
  readonly reason: string
  readonly message: string
  readonly volumeMode?: 'Block' | 'Filesystem'
  readonly accessMode?: string
}

const volumeNames: ReadonlyMap<number, HealthEntry['status']> = new Map([
  [VolumeHealthErrorType.DEGRADED, 'Degraded'],
  [VolumeHealthErrorType.INACCESSIBLE, 'Inaccessible'],
  [VolumeHealthErrorType.DATA_LOSS, 'DataLoss'],
])
const storageNames: ReadonlyMap<number, StorageHealthEntry['status']> = new Map([
  [StorageHealthErrorType.STORAGE_DEGRADED, 'StorageDegraded'],
  [StorageHealthErrorType.STORAGE_UNREACHABLE, 'StorageUnreachable'],
])
const accessModes: ReadonlyMap<number, string> = new Map([
  [AccessMode.SINGLE_NODE_WRITER, 'ReadWriteOnce'],
  [AccessMode.SINGLE_NODE_MULTI_WRITER, 'ReadWriteOnce'],
  [AccessMode.SINGLE_NODE_SINGLE_WRITER, 'ReadWriteOncePod'],
  [AccessMode.MULTI_NODE_READER_ONLY, 'ReadOnlyMany'],
  [AccessMode.MULTI_NODE_MULTI_WRITER, 'ReadWriteMany'],
])
const volumeModes = { block: 'Block', mount: 'Filesystem' } as const

export function readHealth(health: VolumeHealth | undefined): readonly HealthEntry[] {
  return (health?.healthStatuses ?? []).flatMap(({ status, reason, message }) => {
    const name = volumeNames.get(status)
    return name === undefined ? [] : [{ status: name, reason: plainText(reason), message: plainText(message) }]
  })
}

export function readStorageHealth({ backendHealth }: NodeGetStorageHealthResponse): readonly StorageHealthEntry[] {
  return backendHealth.flatMap(({ status, reason, message, volumeCapability }) => {
    const name = storageNames.get(status)
    if (name === undefined) return []
    const kind = volumeCapability?.accessType.case
    const accessMode = accessModes.get(volumeCapability?.accessMode?.mode ?? 0)
    const concerns = { ...(kind && { volumeMode: volumeModes[kind] }), ...(accessMode && { accessMode }) }
    return [{ status: name, reason: plainText(reason), message: plainText(message), ...concerns }]
  })
}
