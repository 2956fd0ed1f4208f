// What does the driver know after a restart? One JSON file per volume, snapshot and node, written whole or not at all.
// Several processes may read them at once (mode `shared`); a volume's file is written by whoever serves its call.
import { join } from 'node:path/posix'
import type { Records, SnapshotRecord, VolumeRecord } from '../../csi/kit/backend.ts'
import type { Files } from '../../host/host.ts'
import { readIfThere } from '../../host/read-if-there.ts'

export interface DiskLayout {
  readonly volumes: string
  readonly snapshots: string
  readonly nodes: string
  volume(id: string): string
  snapshot(id: string): string
}

export function layoutOf(dataDirectory: string): DiskLayout {
  const volumes = join(dataDirectory, 'volumes')
  const snapshots = join(dataDirectory, 'snapshots')
  return {
    volumes,
    snapshots,
    nodes: join(dataDirectory, 'nodes'),
    volume: (id) => join(volumes, safeName(id)),
    snapshot: (id) => join(snapshots, safeName(id)),
  }
}

const recordName = 'record.json'
/** The file that holds the contents of a volume or snapshot. */
export const imageName = 'image'

export function createDiskRecords(files: Files, layout: DiskLayout): Records {
  const put = async (directory: string, record: object, signal: AbortSignal) => {
    await files.mkdirAll(directory, 0o700, signal)
    await files.writeFile(join(directory, recordName), encode(record), { mode: 0o600, durable: true }, signal)
  }
  const all = async <T>(
    parent: string,
    read: (id: string, signal: AbortSignal) => Promise<T | undefined>,
    signal: AbortSignal,
  ) => {
    const names = (await files.readDir(parent, signal)).toSorted()
    const records = await Promise.all(names.map((id) => read(id, signal)))
    return records.filter((record) => record !== undefined)
  }
  const volume = async (id: string, signal: AbortSignal) =>
    isSafe(id) ? decodeVolume(await readIfThere(files, join(layout.volume(id), recordName), signal)) : undefined
  const snapshot = async (id: string, signal: AbortSignal) =>
    isSafe(id) ? decodeSnapshot(await readIfThere(files, join(layout.snapshot(id), recordName), signal)) : undefined
  return {
    volume,
    snapshot,
    volumes: (signal) => all(layout.volumes, volume, signal),
    snapshots: (signal) => all(layout.snapshots, snapshot, signal),
    putVolume: (record, signal) => put(layout.volume(record.id), record, signal),
    putSnapshot: (record, signal) => put(layout.snapshot(record.id), record, signal),
    removeVolume: async (id, signal) => (isSafe(id) ? removeRecord(files, layout.volume(id), signal) : undefined),
    removeSnapshot: async (id, signal) => (isSafe(id) ? removeRecord(files, layout.snapshot(id), signal) : undefined),
    nodes: (signal) => files.readDir(layout.nodes, signal),
  }
}

/** The record goes after everything else that lies beside it, so that a removal that fails can be repeated. */
async function removeRecord(files: Files, directory: string, signal: AbortSignal): Promise<void> {
  if (!(await files.exists(directory, signal))) return
  for (const name of await files.readDir(directory, signal)) {
    // Storage is removed by who made it, never from here.
    if (name !== recordName && name !== imageName) await files.removeTree(join(directory, name), signal)
  }
  await files.remove(join(directory, recordName), signal)
  await files.remove(directory, signal)
}

/** Ids come from the wire and become directory names. */
const isSafe = (id: string) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(id)

function safeName(id: string): string {
  if (!isSafe(id)) throw new Error(`${JSON.stringify(id)} is not an id of this driver`)
  return id
}

function encode(record: object): string {
  return `${JSON.stringify(record, (_key, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))}\n`
}

function decodeVolume(text: string | undefined): VolumeRecord | undefined {
  if (text === undefined) return undefined
  const record = JSON.parse(text) as Omit<VolumeRecord, 'capacityBytes'> & { capacityBytes: string } // written by encode
  return { ...record, capacityBytes: BigInt(record.capacityBytes) }
}

function decodeSnapshot(text: string | undefined): SnapshotRecord | undefined {
  if (text === undefined) return undefined
  const record = JSON.parse(text) as Omit<SnapshotRecord, 'sizeBytes'> & { sizeBytes: string } // written by encode
  return { ...record, sizeBytes: BigInt(record.sizeBytes) }
}
