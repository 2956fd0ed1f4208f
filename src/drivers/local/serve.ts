// How is the built-in driver started? Data directory, records, images and loop devices behind one CSI socket.
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createSystemClock } from '../../clock/system-clock.ts'
import { createDriverHandlers } from '../../csi/kit/driver.ts'
import { serveOnSocket } from '../../csi/serve.ts'
import { csiServices, handleUnary } from '../../csi/service.ts'
import type { Host } from '../../host/host.ts'
import { createLinuxHost } from '../../host/linux/linux-host.ts'
import { createImageStorage } from './images.ts'
import { createLoopNode } from './loops.ts'
import { createDiskRecords, layoutOf } from './records.ts'
import { createStages } from './stages.ts'

export const localDriverName = 'local.hawser.dev'
export const localTopologyKey = 'topology.local.hawser.dev/node'

export interface LocalDriverOptions {
  readonly socket: string
  readonly dataDirectory: string
  readonly nodeId: string
  /** `local`: volumes belong to this node. `shared`: nodes of one machine share the directory and attach. */
  readonly mode: 'local' | 'shared'
  readonly name?: string
  /** All volumes together may be promised this much; absent: what the filesystem has free. */
  readonly capacityBytes?: bigint
  readonly maxVolumesPerNode?: bigint
  readonly version?: string
}

const minimumVolumeBytes = 1n << 20n
const maximumVolumeBytes = 1n << 44n

export async function serveLocalDriver(options: LocalDriverOptions): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack()
  // Only our own disk is touched here, which does not hang for one path alone: a fixed handful of threads is right.
  const host = stack.use(createLinuxHost({ threads: 4, maximumThreads: 8 }))
  const signal = new AbortController().signal
  const layout = layoutOf(options.dataDirectory)
  for (const directory of [layout.volumes, layout.snapshots, layout.nodes]) {
    await host.files.mkdirAll(directory, 0o700, signal)
  }
  await host.files.writeFile(join(layout.nodes, options.nodeId), '', { mode: 0o600 }, signal)
  const stages = createStages(host.files, layout)
  const records = createDiskRecords(host.files, layout)
  await thawAll(host, records, stages)
  const handlers = createDriverHandlers({
    clock: createSystemClock(),
    host,
    records,
    storage: createImageStorage(host, layout, stages),
    node: createLoopNode(host, layout, stages),
    settings: {
      name: options.name ?? localDriverName,
      version: options.version ?? '0.1.0',
      nodeId: options.nodeId,
      workDirectory: options.dataDirectory,
      attach: options.mode === 'shared',
      multiNode: true,
      maxVolumesPerNode: options.maxVolumesPerNode ?? 0n,
      minimumVolumeBytes,
      maximumVolumeBytes,
      ...(options.mode === 'local' && { topologyKey: localTopologyKey }),
      ...(options.capacityBytes !== undefined && { capacityBytes: options.capacityBytes }),
    },
  })
  await host.files.mkdirAll(dirname(options.socket), 0o750, signal)
  await rm(options.socket, { force: true })
  stack.use(
    await serveOnSocket(options.socket, csiServices, (method, bytes, stop) =>
      handleUnary(handlers, method, bytes, stop),
    ),
  )
  const owned = stack.move()
  return { [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** A driver that was killed while copying may have left a filesystem frozen; its writers would wait for ever. */
async function thawAll(
  host: Host,
  records: ReturnType<typeof createDiskRecords>,
  stages: ReturnType<typeof createStages>,
): Promise<void> {
  const signal = new AbortController().signal
  const marker = (id: string) => stages.of(id, signal)
  for (const volume of await records.volumes(signal)) {
    for (const path of await marker(volume.id)) {
      if (!(await host.mounts.isMountPoint(path, signal).catch(() => false))) continue
      // Answers an error when it was not frozen: that is the usual case.
      await host.run({ argv: ['fsfreeze', '--unfreeze', path], timeoutMs: 30_000 }, signal).catch(() => {})
    }
  }
}
