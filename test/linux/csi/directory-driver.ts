// A driver whose volumes are plain directories (or loop images for raw block): what csi-driver-host-path looks like from
// outside, so that layouts recorded with it can be compared. `node directory-driver.ts SOCKET STATE NODE-ID`.
import { existsSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createSystemClock } from '../../../src/clock/system-clock.ts'
import { CsiError } from '../../../src/csi/codes.ts'
import type { NodeBackend, StorageBackend, VolumeRecord } from '../../../src/csi/kit/backend.ts'
import { createDriverHandlers } from '../../../src/csi/kit/driver.ts'
import { createMemoryRecords } from '../../../src/csi/model/records.ts'
import { serveOnSocket } from '../../../src/csi/serve.ts'
import { csiServices, handleUnary } from '../../../src/csi/service.ts'
import { createLinuxHost } from '../../../src/host/linux/linux-host.ts'

const [socket = '', state = '', nodeId = ''] = process.argv.slice(2)
const host = createLinuxHost()
const records = createMemoryRecords()
records.nodeIds.add(nodeId)
const path = (volume: VolumeRecord) => join(state, volume.id)
const blocks = new Set<string>()

const storage: StorageBackend = {
  create: async (volume, signal) => {
    if (!blocks.has(volume.name)) mkdirSync(path(volume), { recursive: true, mode: 0o755 })
    else {
      writeFileSync(path(volume), '')
      truncateSync(path(volume), Number(volume.capacityBytes))
      await node.device(volume, false, signal)
    }
  },
  exists: async (volume) => existsSync(path(volume)),
  remove: async (volume, signal) => {
    if (blocks.has(volume.name)) {
      for (const loop of await host.devices.loopsOf(path(volume), signal)) await host.devices.detachLoop(loop, signal)
    }
    rmSync(path(volume), { recursive: true, force: true })
  },
  grow: async (volume, bytes) => {
    if (blocks.has(volume.name)) truncateSync(path(volume), Number(bytes))
  },
  snapshot: async () => {},
  snapshotExists: async () => false,
  removeSnapshot: async () => {},
  availableBytes: async () => 1n << 40n,
}

const node: NodeBackend = {
  stage: async () => {},
  isStaged: async () => false,
  unstage: async () => {},
  device: async (volume, readOnly, signal) =>
    (await host.devices.loopsOf(path(volume), signal))[0] ??
    host.devices.attachLoop({ file: path(volume), readOnly }, signal),
  directory: async (volume) => path(volume),
  grow: async () => {},
}

mkdirSync(state, { recursive: true })
mkdirSync(dirname(socket), { recursive: true })
rmSync(socket, { force: true })
const handlers = createDriverHandlers({
  clock: createSystemClock(),
  host,
  records,
  storage,
  node,
  settings: {
    name: 'hostpath.csi.k8s.io',
    version: '1',
    nodeId,
    workDirectory: join(state, '.work'),
    attach: false,
    multiNode: true,
    maxVolumesPerNode: 0n,
    minimumVolumeBytes: 1n << 20n,
    maximumVolumeBytes: 1n << 40n,
  },
})
await serveOnSocket(socket, csiServices, async (method, bytes, signal) => {
  const create = handlers.controller?.createVolume
  const wrapped = {
    ...handlers,
    controller: {
      ...handlers.controller,
      createVolume: async (request: Parameters<NonNullable<typeof create>>[0], stop: AbortSignal) => {
        if (request.volumeCapabilities.some(({ accessType }) => accessType.case === 'block')) blocks.add(request.name)
        return create!(request, stop)
      },
    },
  }
  try {
    return await handleUnary(wrapped, method, bytes, signal)
  } catch (error) {
    const missing =
      error instanceof CsiError && error.status === 'NOT_FOUND'
        ? /^volume (\S+) does not exist$/.exec(error.details)
        : undefined
    throw missing ? new CsiError('NOT_FOUND', `volume id ${missing[1]} does not exist in the volumes list`) : error
  }
})
console.log(`serving on ${socket}`)
