// What is the built-in driver, without its socket? Records, images and loop devices of one data directory on one host.
// The model host runs it too: `setSize` is the one thing that it does to an image beside the host's port.
import { join } from 'node:path/posix'
import type { Clock } from '../../clock/clock.ts'
import { createDriverHandlers } from '../../csi/kit/driver.ts'
import { defaultOvercommit } from '../../csi/kit/space.ts'
import type { DriverHandlers } from '../../csi/service.ts'
import type { Host } from '../../host/host.ts'
import type { SetSize } from './images.ts'
import type { SpaceGuard } from './guard.ts'
import { createSpaceGuard } from './guard.ts'
import { heal } from './heal.ts'
import { createImageStorage } from './images.ts'
import { createLoopNode } from './loops.ts'
import type { DiskLayout } from './records.ts'
import { createDiskRecords, layoutOf } from './records.ts'
import type { Stages } from './stages.ts'
import { createStages } from './stages.ts'

export const localDriverName = 'local.hawser.dev'

export interface StorageOptions {
  readonly dataDirectory: string
  readonly nodeId: string
  /** `local`: volumes belong to this node. `shared`: nodes of one machine share the directory and attach. */
  readonly mode: 'local' | 'shared'
  readonly name?: string
  /** Capacity for all volumes together; absent: the free space of the filesystem. */
  readonly capacityBytes?: bigint
  /** How many bytes of thin volumes may be promised for each byte of the disk. */
  readonly overcommit?: number
  readonly maxVolumesPerNode?: bigint
  readonly version?: string
}

interface LocalDriverDeps {
  readonly host: Host
  readonly clock: Clock
  readonly setSize: SetSize
}

export interface LocalDriver {
  readonly handlers: DriverHandlers
  /** Looks at the disk only when it is told to (watchSpace). */
  readonly guard: SpaceGuard
}

const minimumVolumeBytes = 1n << 20n
const maximumVolumeBytes = 1n << 44n

export async function createLocalDriver(
  { host, clock, setSize }: LocalDriverDeps,
  options: StorageOptions,
  signal: AbortSignal,
): Promise<LocalDriver> {
  const overcommit = options.overcommit ?? defaultOvercommit
  const name = options.name ?? localDriverName
  const layout = layoutOf(options.dataDirectory)
  const stages = createStages(host.files, layout)
  const records = createDiskRecords(host.files, layout)
  await prepare(host, layout, options.nodeId, signal)
  await thawAll(host, records, stages, signal)
  // Where nodes share the directory, another process may be staging right now.
  if (options.mode === 'local') await heal({ host, layout, records, stages }, options.nodeId, signal)
  const guard = createSpaceGuard({ host, clock, layout, records, stages })
  const handlers = createDriverHandlers({
    clock,
    host,
    records,
    storage: createImageStorage({ host, layout, records, stages, setSize, guard, overcommit }),
    node: createLoopNode(host, layout, stages, guard),
    settings: {
      name,
      version: options.version ?? '0.1.0',
      nodeId: options.nodeId,
      workDirectory: options.dataDirectory,
      attach: options.mode === 'shared',
      multiNode: true,
      maxVolumesPerNode: options.maxVolumesPerNode ?? 0n,
      minimumVolumeBytes,
      maximumVolumeBytes,
      ...(options.mode === 'local' && { topologyKey: `topology.${name}/node` }),
      ...(options.capacityBytes !== undefined && { capacityBytes: options.capacityBytes }),
    },
  })
  return { handlers, guard }
}

async function prepare(host: Host, layout: DiskLayout, nodeId: string, signal: AbortSignal): Promise<void> {
  for (const directory of [layout.volumes, layout.snapshots, layout.nodes]) {
    await host.files.mkdirAll(directory, 0o700, signal)
  }
  await host.files.writeFile(join(layout.nodes, nodeId), '', { mode: 0o600 }, signal)
}

/** A driver that was killed while copying may have left a filesystem frozen; its writers would wait for ever. */
async function thawAll(
  host: Host,
  records: ReturnType<typeof createDiskRecords>,
  stages: Stages,
  signal: AbortSignal,
): Promise<void> {
  for (const volume of await records.volumes(signal)) {
    for (const { path } of await stages.of(volume.id, signal)) {
      if (!(await host.mounts.isMountPoint(path, signal).catch(() => false))) continue
      // Answers an error when it was not frozen: that is the usual case.
      await host.run({ argv: ['fsfreeze', '--unfreeze', path], timeoutMs: 30_000 }, signal).catch(() => {})
    }
  }
}
