// What does a driver author supply? Where records are kept and how storage is made; the kit does the protocol.
// Every method is idempotent: a crashed driver is asked the same thing again.

export interface VolumeRecord {
  readonly id: string
  readonly name: string
  readonly capacityBytes: bigint
  readonly parameters: Readonly<Record<string, string>>
  readonly source?: { readonly kind: 'snapshot' | 'volume'; readonly id: string }
  /** The node whose topology segment the volume lives in; absent when every node reaches it. */
  readonly node?: string
  /** Made by NodePublishVolume for one pod, removed by NodeUnpublishVolume. */
  readonly ephemeral?: boolean
  /** Nodes the volume is published to by the controller. */
  readonly attachments: Readonly<Record<string, Attachment>>
}

interface Attachment {
  readonly readOnly: boolean
  readonly shared: boolean
}

export interface SnapshotRecord {
  readonly id: string
  readonly name: string
  readonly sourceVolumeId: string
  readonly sizeBytes: bigint
  readonly createdMs: number
}

/** Durable for real drivers: what `put` has answered survives a crash. */
export interface Records {
  volume(id: string, signal: AbortSignal): Promise<VolumeRecord | undefined>
  volumes(signal: AbortSignal): Promise<readonly VolumeRecord[]>
  putVolume(record: VolumeRecord, signal: AbortSignal): Promise<void>
  /** Also what an earlier removal that failed has left. */
  removeVolume(id: string, signal: AbortSignal): Promise<void>
  snapshot(id: string, signal: AbortSignal): Promise<SnapshotRecord | undefined>
  snapshots(signal: AbortSignal): Promise<readonly SnapshotRecord[]>
  putSnapshot(record: SnapshotRecord, signal: AbortSignal): Promise<void>
  removeSnapshot(id: string, signal: AbortSignal): Promise<void>
  /** Ids of the nodes that may be published to. */
  nodes(signal: AbortSignal): Promise<readonly string[]>
}

export interface Room {
  readonly bytes: bigint
  /** Where the limit comes from, for the message of a refusal. */
  readonly limit: string
}

export interface StorageBackend {
  /** Throws INVALID_ARGUMENT for class parameters that it does not know; nothing was made yet. Absent: any will do. */
  checkParameters?(parameters: Readonly<Record<string, string>>): void
  create(record: VolumeRecord, signal: AbortSignal): Promise<void>
  /** Is the volume's storage there, whole? A create that fails never takes it away. */
  exists(record: VolumeRecord, signal: AbortSignal): Promise<boolean>
  remove(record: VolumeRecord, signal: AbortSignal): Promise<void>
  grow(record: VolumeRecord, sizeBytes: bigint, signal: AbortSignal): Promise<void>
  snapshot(snapshot: SnapshotRecord, source: VolumeRecord, signal: AbortSignal): Promise<void>
  snapshotExists(snapshot: SnapshotRecord, signal: AbortSignal): Promise<boolean>
  removeSnapshot(snapshot: SnapshotRecord, signal: AbortSignal): Promise<void>
  availableBytes(signal: AbortSignal): Promise<bigint>
  /** What may still be promised to volumes with these class parameters. Absent: there is no limit but `availableBytes`. */
  room?(parameters: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Room>
  /** Changes attributes of a volume in use; throws INVALID_ARGUMENT for those it does not know. Absent: not offered. */
  modify?(record: VolumeRecord, parameters: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void>
  /** How the volume is, as the storage sees it. Absent: not offered. */
  condition?(
    record: VolumeRecord,
    signal: AbortSignal,
  ): Promise<{ readonly abnormal: boolean; readonly message: string }>
}

export interface StageInput {
  readonly volume: VolumeRecord
  readonly path: string
  readonly access:
    | { readonly kind: 'block' }
    | { readonly kind: 'mount'; readonly fsType: string; readonly options: readonly string[] }
  readonly readOnly: boolean
}

export interface NodeBackend {
  /** Makes the volume's filesystem visible at `path` (a directory), or prepares its device for block access. */
  stage(input: StageInput, signal: AbortSignal): Promise<void>
  /** Is it staged there, so that somebody may be using it? A stage that fails is undone only if it was not. */
  isStaged(volume: VolumeRecord, path: string, signal: AbortSignal): Promise<boolean>
  /** Also undoes a stage that failed half-way. */
  unstage(volume: VolumeRecord, path: string, signal: AbortSignal): Promise<void>
  /** What a block publish binds to the target. */
  device(volume: VolumeRecord, readOnly: boolean, signal: AbortSignal): Promise<string>
  /** What a filesystem publish binds to the target; absent: what `stage` mounted at the staging path. */
  directory?(volume: VolumeRecord, signal: AbortSignal): Promise<string>
  /** After the controller has grown the storage: the filesystem at `path`, or the device, follows. */
  grow(volume: VolumeRecord, path: string, signal: AbortSignal): Promise<void>
  /** What is wrong with the storage below all volumes of this node. Absent: not offered. */
  health?(signal: AbortSignal): Promise<readonly StorageTrouble[]>
}

interface StorageTrouble {
  /** A word for programs, in CamelCase. */
  readonly reason: string
  readonly message: string
}
