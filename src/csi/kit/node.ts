// How does a volume reach a pod's directory? Stage once per node through the backend, then one bind mount per target.
// What is staged and published is read from the kernel, never remembered: a killed driver loses nothing.
import { dirname } from 'node:path/posix'
import { hasCode } from '../../host/host-error.ts'
import {
  StorageHealthErrorType,
  VolumeCapability_AccessMode_Mode as Mode,
  VolumeUsage_Unit,
} from '../generated/csi_pb.ts'
import type { Node, NodePublishVolumeRequest, VolumeCapability } from '../generated/csi_pb.ts'
import type { UnaryHandlers } from '../service.ts'
import type { StageInput, VolumeRecord } from './backend.ts'
import { allModes, chooseSize, fail, requireCapability, requireText, singleNodeModes } from './checks.ts'
import { promise, removeAll, requireVolume } from './controller.ts'
import type { KitDeps } from './driver.ts'
import { nodeCapabilities } from './identity.ts'
import { answered, orUndo } from './undo.ts'

type Handlers = UnaryHandlers<typeof Node>

const ephemeralKey = 'csi.storage.k8s.io/ephemeral'
const defaultEphemeralBytes = 1_073_741_824n

export function nodeHandlers(deps: KitDeps): Handlers {
  const { settings } = deps
  return {
    nodeGetCapabilities: async () => nodeCapabilities(deps),
    nodeGetInfo: async () => ({
      nodeId: settings.nodeId,
      maxVolumesPerNode: settings.maxVolumesPerNode,
      ...(settings.topologyKey && { accessibleTopology: { segments: { [settings.topologyKey]: settings.nodeId } } }),
    }),
    ...stageHandlers(deps),
    ...publishHandlers(deps),
    ...sizeHandlers(deps),
    ...(deps.node.health ? healthHandlers(deps.node.health) : {}),
  }
}

function stageHandlers(deps: KitDeps): Pick<Handlers, 'nodeStageVolume' | 'nodeUnstageVolume'> {
  const { node, exclusive, settings, clock } = deps
  return {
    nodeStageVolume(request, signal) {
      requireText(request.volumeId, 'volume id')
      requireText(request.stagingTargetPath, 'staging target path')
      const capability = requireCapability(request.volumeCapability, modesOf(deps))
      return exclusive(request.volumeId, () =>
        answered(async () => {
          const volume = await requireVolume(deps, request.volumeId, signal)
          const attachment = volume.attachments[settings.nodeId]
          if (settings.attach && !attachment) {
            throw fail('FAILED_PRECONDITION', `volume ${volume.id} is not published to node ${settings.nodeId}`)
          }
          const readOnly = attachment?.readOnly ?? false
          const path = request.stagingTargetPath
          const input = { volume, path, access: accessOf(capability), readOnly: readOnly || readsOnly(capability) }
          const stage = () => node.stage(input, signal)
          if (await node.isStaged(volume, path, signal)) await stage()
          else await orUndo(clock, stage, (undoing) => node.unstage(volume, path, undoing))
          return {}
        }),
      )
    },
    nodeUnstageVolume(request, signal) {
      requireText(request.volumeId, 'volume id')
      requireText(request.stagingTargetPath, 'staging target path')
      return exclusive(request.volumeId, async () => {
        const volume = await deps.records.volume(request.volumeId, signal)
        if (volume) await node.unstage(volume, request.stagingTargetPath, signal)
        return {}
      })
    },
  }
}

function publishHandlers(deps: KitDeps): Pick<Handlers, 'nodePublishVolume' | 'nodeUnpublishVolume'> {
  const { node, records, exclusive, clock } = deps
  return {
    nodePublishVolume(request, signal) {
      requireText(request.volumeId, 'volume id')
      requireText(request.targetPath, 'target path')
      const capability = requireCapability(request.volumeCapability, modesOf(deps))
      return exclusive(request.volumeId, () =>
        answered(async () => {
          if (request.volumeContext[ephemeralKey] === 'true') return publishEphemeral(deps, request, capability, signal)
          const volume = await requireVolume(deps, request.volumeId, signal)
          if (request.stagingTargetPath === '')
            throw fail('FAILED_PRECONDITION', 'staging target path missing in request')
          if (await isPublished(deps, request.targetPath, signal)) return {}
          const block = capability.accessType.case === 'block'
          const readOnly = request.readonly || readsOnly(capability)
          const source = block
            ? await node.device(volume, readOnly, signal)
            : await stagedSource(deps, volume, request, capability, signal)
          const bind = () => bindAt(deps, source, request.targetPath, block ? 'file' : 'directory', readOnly, signal)
          await orUndo(clock, bind, (undoing) => removeTarget(deps, request.targetPath, undoing))
          return {}
        }),
      )
    },
    nodeUnpublishVolume(request, signal) {
      requireText(request.volumeId, 'volume id')
      requireText(request.targetPath, 'target path')
      return exclusive(request.volumeId, async () => {
        await removeTarget(deps, request.targetPath, signal)
        const volume = await records.volume(request.volumeId, signal)
        if (volume?.ephemeral) await removeEphemeral(deps, volume, signal)
        else if (!volume) await records.removeVolume(request.volumeId, signal)
        return {}
      })
    },
  }
}

function sizeHandlers(deps: KitDeps): Pick<Handlers, 'nodeExpandVolume' | 'nodeGetVolumeStats'> {
  const { host, node, exclusive, settings } = deps
  return {
    nodeExpandVolume(request, signal) {
      requireText(request.volumeId, 'volume id')
      requireText(request.volumePath, 'volume path')
      return exclusive(request.volumeId, async () => {
        const volume = await requireVolume(deps, request.volumeId, signal)
        const limits = { minimumBytes: settings.minimumVolumeBytes, maximumBytes: settings.maximumVolumeBytes }
        const wanted = chooseSize(request.capacityRange, limits)
        if (wanted > volume.capacityBytes)
          throw fail('OUT_OF_RANGE', `volume ${volume.id} has ${volume.capacityBytes} bytes`)
        await requirePath(deps, request.volumePath, signal)
        await node.grow(volume, request.volumePath, signal)
        return { capacityBytes: volume.capacityBytes }
      })
    },
    async nodeGetVolumeStats(request, signal) {
      requireText(request.volumeId, 'volume id')
      requireText(request.volumePath, 'volume path')
      const volume = await requireVolume(deps, request.volumeId, signal)
      const kind = await requirePath(deps, request.volumePath, signal)
      if (kind !== 'directory') return { usage: [{ total: volume.capacityBytes, unit: VolumeUsage_Unit.BYTES }] }
      if (!(await isMountPoint(deps, request.volumePath, signal))) {
        throw fail('NOT_FOUND', `volume ${volume.id} is not at ${request.volumePath}`)
      }
      const usage = await host.filesystems.usage(request.volumePath, signal)
      return {
        usage: [
          {
            available: usage.availableBytes,
            total: usage.capacityBytes,
            used: usage.usedBytes,
            unit: VolumeUsage_Unit.BYTES,
          },
          { available: usage.inodesFree, total: usage.inodes, used: usage.inodesUsed, unit: VolumeUsage_Unit.INODES },
        ],
      }
    },
  }
}

function healthHandlers(health: NonNullable<KitDeps['node']['health']>): Pick<Handlers, 'nodeGetStorageHealth'> {
  return {
    async nodeGetStorageHealth(_request, signal) {
      const status = StorageHealthErrorType.STORAGE_DEGRADED
      return { backendHealth: (await health(signal)).map((trouble) => ({ status, ...trouble })) }
    },
  }
}

/** An inline volume is made, staged and published in one call, and taken apart by the unpublish. */
async function publishEphemeral(
  deps: KitDeps,
  request: NodePublishVolumeRequest,
  capability: VolumeCapability,
  signal: AbortSignal,
): Promise<object> {
  const { records, storage, node, settings, clock } = deps
  if (capability.accessType.case === 'block') throw fail('INVALID_ARGUMENT', 'inline volumes are filesystems')
  if (await isPublished(deps, request.targetPath, signal)) return {}
  const present = await records.volume(request.volumeId, signal)
  const volume: VolumeRecord = present ?? {
    id: request.volumeId,
    name: request.volumeId,
    capacityBytes: ephemeralSize(request.volumeContext['size'], settings.minimumVolumeBytes),
    parameters: {},
    node: settings.nodeId,
    ephemeral: true,
    attachments: {},
  }
  const make = async () => {
    if (!present) await promise(deps, volume, signal)
    await storage.create(volume, signal)
    const path = ephemeralStage(deps, request.volumeId)
    await deps.host.files.mkdirAll(path, 0o750, signal)
    await node.stage({ volume, path, access: accessOf(capability), readOnly: false }, signal)
    const source = deps.node.directory ? await deps.node.directory(volume, signal) : path
    await bindAt(deps, source, request.targetPath, 'directory', request.readonly, signal)
  }
  const used = present !== undefined && (await storage.exists(present, signal))
  await orUndo(clock, make, async (undoing) => {
    await removeTarget(deps, request.targetPath, undoing)
    // The pod may have written to it before the machine was restarted: only an unpublish takes it away.
    if (used) throw new Error('the volume was made by an earlier call')
    await removeEphemeral(deps, volume, undoing)
  })
  return {}
}

async function removeEphemeral(deps: KitDeps, volume: VolumeRecord, signal: AbortSignal): Promise<void> {
  const path = ephemeralStage(deps, volume.id)
  await deps.node.unstage(volume, path, signal)
  await deps.host.files.remove(path, signal)
  await removeAll(deps, volume, signal)
}

async function removeTarget({ host }: KitDeps, path: string, signal: AbortSignal): Promise<void> {
  await host.mounts.unmount(path, {}, signal)
  await host.files.remove(path, signal)
}

/** Beside the driver's own data, never in the pod's directory, which must be empty after the unpublish. */
const ephemeralStage = ({ settings }: KitDeps, volumeId: string) => `${settings.workDirectory}/inline/${volumeId}`

function ephemeralSize(text: string | undefined, minimum: bigint): bigint {
  if (text === undefined || text === '') return defaultEphemeralBytes
  const match = /^(\d+)(Ki|Mi|Gi|Ti|K|k|M|G|T)?$/.exec(text)
  if (!match) throw fail('INVALID_ARGUMENT', `size ${JSON.stringify(text)} is not a quantity`)
  const scale: Record<string, bigint> = {
    Ki: 1n << 10n,
    Mi: 1n << 20n,
    Gi: 1n << 30n,
    Ti: 1n << 40n,
    K: 1000n,
    k: 1000n,
    M: 10n ** 6n,
    G: 10n ** 9n,
    T: 10n ** 12n,
  }
  const size = BigInt(match[1] ?? '0') * (match[2] === undefined ? 1n : (scale[match[2]] ?? 1n))
  return size > minimum ? size : minimum
}

async function stagedSource(
  deps: KitDeps,
  volume: VolumeRecord,
  request: NodePublishVolumeRequest,
  capability: VolumeCapability,
  signal: AbortSignal,
): Promise<string> {
  if (deps.node.directory) return deps.node.directory(volume, signal)
  if (!(await isMountPoint(deps, request.stagingTargetPath, signal))) {
    throw fail('FAILED_PRECONDITION', `volume ${volume.id} is not staged at ${request.stagingTargetPath}`)
  }
  await checkSingleWriter(deps, request, capability, signal)
  return request.stagingTargetPath
}

/** WIRE-4: a volume for a single writer is published at one target only; the kernel knows where it is seen. */
async function checkSingleWriter(
  { host }: KitDeps,
  { stagingTargetPath, targetPath, volumeId }: NodePublishVolumeRequest,
  capability: VolumeCapability,
  signal: AbortSignal,
): Promise<void> {
  if (capability.accessMode?.mode !== Mode.SINGLE_NODE_SINGLE_WRITER) return
  const seen = await host.mounts.references(stagingTargetPath, signal)
  const others = seen.filter((path) => path !== stagingTargetPath && path !== targetPath)
  if (others.length > 0) throw fail('FAILED_PRECONDITION', `volume ${volumeId} is published at ${others.join(', ')}`)
}

const modesOf = ({ settings }: KitDeps) => (settings.multiNode ? allModes : singleNodeModes)
const readsOnly = (capability: VolumeCapability) =>
  capability.accessMode?.mode === Mode.SINGLE_NODE_READER_ONLY ||
  capability.accessMode?.mode === Mode.MULTI_NODE_READER_ONLY

function accessOf(capability: VolumeCapability): StageInput['access'] {
  const { accessType } = capability
  if (accessType.case !== 'mount') return { kind: 'block' }
  return { kind: 'mount', fsType: accessType.value.fsType, options: accessType.value.mountFlags }
}

async function isMountPoint({ host }: KitDeps, path: string, signal: AbortSignal): Promise<boolean> {
  try {
    return await host.mounts.isMountPoint(path, signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false
    throw error
  }
}

const isPublished = isMountPoint

async function bindAt(
  deps: KitDeps,
  source: string,
  target: string,
  kind: 'file' | 'directory',
  readOnly: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { files, mounts } = deps.host
  await files.mkdirAll(dirname(target), 0o750, signal)
  if (!(await files.exists(target, signal))) {
    if (kind === 'directory') await files.mkdir(target, 0o750, signal)
    else await files.writeFile(target, '', { mode: 0o600 }, signal)
  }
  await mounts.bind({ source, target, readOnly }, signal)
}

async function requirePath({ host }: KitDeps, path: string, signal: AbortSignal): Promise<string> {
  try {
    return (await host.files.stat(path, signal)).kind
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) throw fail('NOT_FOUND', `${path} does not exist`)
    throw error
  }
}
