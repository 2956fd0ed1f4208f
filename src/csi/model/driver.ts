// What would a well-behaved driver do? An in-memory storage system that obeys the specification, reachable by function
// calls: one storage, any number of nodes, each with a host of its own (the model host in the simulator).
import type { Clock } from '../../clock/clock.ts'
import type { Host } from '../../host/host.ts'
import { fail } from '../kit/checks.ts'
import type { NodeBackend, StorageBackend, VolumeRecord } from '../kit/backend.ts'
import { createDriverHandlers } from '../kit/driver.ts'
import type { DriverSettings } from '../kit/driver.ts'
import { directTransport } from '../service.ts'
import type { DriverHandlers, Transport } from '../service.ts'
import { createMemoryRecords } from './records.ts'
import type { MemoryRecords } from './records.ts'

export interface ModelStorage {
  readonly records: MemoryRecords
  /** What the storage holds beyond its records: to be compared with them by leak checks. */
  readonly allocated: ReadonlySet<string>
  /** Volume id → attributes last changed; filled only with `modifies`. */
  readonly attributes: ReadonlyMap<string, Readonly<Record<string, string>>>
  /** Volume id → what is wrong with it; told only with `tellsConditions`. */
  readonly ill: Map<string, string>
  /** The driver's services as one node runs them. */
  onNode(node: { readonly nodeId: string; readonly host: ModelNodeHost }): DriverHandlers
}

type ModelNodeHost = Pick<Host, 'files' | 'mounts' | 'filesystems' | 'devices'>

export interface ModelOptions extends Partial<Omit<DriverSettings, 'nodeId' | 'name' | 'workDirectory'>> {
  readonly name?: string
  readonly clock: Clock
  /** Directory on each node's host where the model keeps what it "mounts". */
  readonly dataDirectory?: string
  /** Names of attributes that may be changed; absent: none, and the capability is not offered. */
  readonly modifies?: readonly string[]
  /** Offer VOLUME_CONDITION. */
  readonly tellsConditions?: boolean
}

export const modelDriverName = 'model.hawser.dev'

export function createModelStorage(options: ModelOptions): ModelStorage {
  const records = createMemoryRecords()
  const dataDirectory = options.dataDirectory ?? '/var/lib/model-driver'
  const allocated = new Set<string>()
  const attributes = new Map<string, Readonly<Record<string, string>>>()
  const ill = new Map<string, string>()
  const { modifies } = options
  const storage: StorageBackend = {
    create: async (record) => void allocated.add(record.id),
    exists: async (record) => allocated.has(record.id),
    remove: async (record) => void allocated.delete(record.id),
    grow: async () => {},
    snapshot: async (snapshot) => void allocated.add(snapshot.id),
    snapshotExists: async (snapshot) => allocated.has(snapshot.id),
    removeSnapshot: async (snapshot) => void allocated.delete(snapshot.id),
    availableBytes: async () => options.maximumVolumeBytes ?? 1n << 50n,
    ...(modifies && {
      modify: async ({ id }: VolumeRecord, parameters: Readonly<Record<string, string>>) => {
        const unknown = Object.keys(parameters).filter((name) => !modifies.includes(name))
        if (unknown.length > 0) throw fail('INVALID_ARGUMENT', `unknown attributes ${unknown.join(', ')}`)
        attributes.set(id, { ...attributes.get(id), ...parameters })
      },
    }),
    ...(options.tellsConditions && {
      condition: async ({ id }: VolumeRecord) => ({ abnormal: ill.has(id), message: ill.get(id) ?? 'well' }),
    }),
  }
  return {
    records,
    allocated,
    attributes,
    ill,
    onNode({ nodeId, host }) {
      records.nodeIds.add(nodeId)
      const settings: DriverSettings = {
        name: options.name ?? modelDriverName,
        version: options.version ?? '1',
        nodeId,
        workDirectory: dataDirectory,
        attach: options.attach ?? true,
        multiNode: options.multiNode ?? true,
        maxVolumesPerNode: options.maxVolumesPerNode ?? 0n,
        minimumVolumeBytes: options.minimumVolumeBytes ?? 1n << 20n,
        maximumVolumeBytes: options.maximumVolumeBytes ?? 1n << 50n,
        ...(options.topologyKey !== undefined && { topologyKey: options.topologyKey }),
        ...(options.capacityBytes !== undefined && { capacityBytes: options.capacityBytes }),
      }
      const node = modelNode(host, dataDirectory)
      return createDriverHandlers({ settings, clock: options.clock, records, storage, node, host })
    },
  }
}

/** A connection to a model driver that cannot break by itself; give it faults with `withFaults`. */
export function modelConnection(transport: Transport | DriverHandlers) {
  return {
    transport: typeof transport === 'function' ? transport : directTransport(transport),
    onLost: never,
    onReady: never,
    [Symbol.dispose]: () => {},
  }
}

const never = () => ({ [Symbol.dispose]: () => {} })

function modelNode(host: ModelNodeHost, dataDirectory: string): NodeBackend {
  const backing = (volume: VolumeRecord) => `${dataDirectory}/${volume.id}`
  const mounted = (path: string, signal: AbortSignal) => host.mounts.isMountPoint(path, signal).catch(() => false)
  return {
    async stage({ volume, path, access }, signal) {
      if (access.kind === 'block') return host.files.mkdirAll(dataDirectory, 0o750, signal)
      await host.files.mkdirAll(backing(volume), 0o750, signal)
      await host.files.mkdirAll(path, 0o750, signal)
      if (await mounted(path, signal)) return
      await host.mounts.bind({ source: backing(volume), target: path }, signal)
    },
    isStaged: (_volume, path, signal) => mounted(path, signal),
    async unstage(_volume, path, signal) {
      if (await mounted(path, signal)) await host.mounts.unmount(path, {}, signal)
    },
    async device(volume, _readOnly, signal) {
      const file = `${backing(volume)}.device`
      if (!(await host.files.exists(file, signal))) await host.files.writeFile(file, '', { mode: 0o600 }, signal)
      return file
    },
    async grow(volume, _path, signal) {
      if (signal.aborted) throw fail('CANCELLED', `growing ${volume.id} was cancelled`)
    },
  }
}
