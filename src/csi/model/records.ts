// Where does the model driver keep its records? In two maps, shared by all nodes of the modelled storage.
import type { Records, SnapshotRecord, VolumeRecord } from '../kit/backend.ts'

export interface MemoryRecords extends Records {
  readonly volumeMap: Map<string, VolumeRecord>
  readonly snapshotMap: Map<string, SnapshotRecord>
  readonly nodeIds: Set<string>
}

export function createMemoryRecords(): MemoryRecords {
  const volumeMap = new Map<string, VolumeRecord>()
  const snapshotMap = new Map<string, SnapshotRecord>()
  const nodeIds = new Set<string>()
  return {
    volumeMap,
    snapshotMap,
    nodeIds,
    volume: async (id) => volumeMap.get(id),
    volumes: async () => [...volumeMap.values()],
    putVolume: async (record) => void volumeMap.set(record.id, record),
    removeVolume: async (id) => void volumeMap.delete(id),
    snapshot: async (id) => snapshotMap.get(id),
    snapshots: async () => [...snapshotMap.values()],
    putSnapshot: async (record) => void snapshotMap.set(record.id, record),
    removeSnapshot: async (id) => void snapshotMap.delete(id),
    nodes: async () => [...nodeIds],
  }
}
