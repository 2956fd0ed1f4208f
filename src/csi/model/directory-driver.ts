// What would a well-behaved driver do with data? Volumes are directories of a host, snapshots and clones are copies of them; on
// the model host or a real one. `hawser lab` finds nothing wrong with it; examples/broken-drivers puts defects into it.
import type { Clock } from '../../clock/clock.ts'
import type { NodeBackend, StorageBackend, VolumeRecord } from '../kit/backend.ts'
import { createDriverHandlers } from '../kit/driver.ts'
import { createMemoryRecords } from './records.ts'
import type { MemoryRecords } from './records.ts'
import type { DriverHandlers } from '../service.ts'
import type { Host } from '../../host/host.ts'

export interface DirectoryDriverDeps {
  readonly host: Pick<Host, 'files' | 'mounts' | 'filesystems' | 'devices'>
  readonly clock: Clock
  readonly name: string
  readonly nodeId: string
  /** Exists already. */
  readonly dataDirectory: string
}

export interface DirectoryDriver extends DirectoryDriverDeps {
  readonly handlers: DriverHandlers
  readonly records: MemoryRecords
  /** Where the files of a volume or snapshot lie. */
  path(id: string): string
}

export function createDirectoryDriver(deps: DirectoryDriverDeps): DirectoryDriver {
  const { host, clock, dataDirectory, name, nodeId } = deps
  const records = createMemoryRecords()
  records.nodeIds.add(nodeId)
  const path = (id: string) => `${dataDirectory}/${id}`
  const settings = {
    ...{ name, version: '1', nodeId, workDirectory: `${dataDirectory}/work` },
    ...{ attach: true, multiNode: true, maxVolumesPerNode: 0n },
    ...{ minimumVolumeBytes: 1n << 20n, maximumVolumeBytes: 1n << 40n },
  }
  const handlers = createDriverHandlers({
    ...{ settings, clock, records, host },
    storage: directories(host, path),
    node: binds(host, path),
  })
  return { ...deps, handlers, records, path }
}

type Path = (id: string) => string

function directories({ files }: DirectoryDriverDeps['host'], path: Path): StorageBackend {
  return {
    async create({ id, source }, signal) {
      if (await files.exists(path(id), signal)) return
      if (source) await copyTree(files, path(source.id), path(id), signal)
      else await files.mkdirAll(path(id), 0o755, signal)
    },
    exists: ({ id }, signal) => files.exists(path(id), signal),
    remove: ({ id }, signal) => removed(files, path(id), signal),
    grow: async () => {},
    async snapshot({ id }, source, signal) {
      if (!(await files.exists(path(id), signal))) await copyTree(files, path(source.id), path(id), signal)
    },
    snapshotExists: ({ id }, signal) => files.exists(path(id), signal),
    removeSnapshot: ({ id }, signal) => removed(files, path(id), signal),
    availableBytes: async () => 1n << 40n,
  }
}

function binds({ files, mounts }: DirectoryDriverDeps['host'], path: Path): NodeBackend {
  const isMounted = (at: string, signal: AbortSignal) => mounts.isMountPoint(at, signal).catch(() => false)
  return {
    async stage({ volume, path: at, readOnly }, signal) {
      await files.mkdirAll(at, 0o750, signal)
      if (!(await isMounted(at, signal))) await mounts.bind({ source: path(volume.id), target: at, readOnly }, signal)
    },
    isStaged: (_volume, at, signal) => isMounted(at, signal),
    async unstage(_volume, at, signal) {
      if (await isMounted(at, signal)) await mounts.unmount(at, {}, signal)
    },
    device: async (volume: VolumeRecord) => path(volume.id),
    grow: async () => {},
  }
}

async function removed(files: Host['files'], path: string, signal: AbortSignal): Promise<void> {
  if (await files.exists(path, signal)) await files.removeTree(path, signal)
}

/** Files and directories; the lab writes nothing else. */
async function copyTree(files: Host['files'], from: string, to: string, signal: AbortSignal): Promise<void> {
  await files.mkdirAll(to, 0o755, signal)
  for (const name of await files.readDir(from, signal)) {
    const [source, target] = [`${from}/${name}`, `${to}/${name}`]
    if ((await files.stat(source, signal)).kind === 'directory') await copyTree(files, source, target, signal)
    else await files.writeFile(target, await files.readFile(source, signal), { mode: 0o644 }, signal)
  }
}
