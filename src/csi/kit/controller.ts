// How are volumes made, attached, listed, grown and removed? The Controller service over records and a backend.
//
// 1. A record is written before storage is made and removed after storage is gone: a crash leaves a record, never
//    storage that nobody knows of.
// 2. An id is made from the volume's name, so a repeated CreateVolume finds its own work.
import { createHash } from 'node:crypto'
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Controller, CreateVolumeRequest, VolumeCapability, VolumeSchema } from '../generated/csi_pb.ts'
import type { UnaryHandlers } from '../service.ts'
import type { VolumeRecord } from './backend.ts'
import {
  allModes,
  capabilityProblem,
  chooseSize,
  fail,
  isMultiNode,
  pageOf,
  requireCapability,
  requireText,
  sizeText,
  singleNodeModes,
} from './checks.ts'
import type { KitDeps } from './driver.ts'
import { controllerCapabilities } from './identity.ts'
import { answered, orUndo } from './undo.ts'

type Handlers = UnaryHandlers<typeof Controller>
type Strings = Readonly<Record<string, string>>

export function controllerHandlers(deps: KitDeps): Handlers {
  const { settings, storage } = deps
  return {
    controllerGetCapabilities: async () => controllerCapabilities(deps),
    ...lifeHandlers(deps),
    ...(settings.attach ? attachHandlers(deps) : {}),
    ...listHandlers(deps),
    ...(storage.modify ? modifyHandlers(deps, storage.modify) : {}),
    async validateVolumeCapabilities(request, signal) {
      requireText(request.volumeId, 'volume id')
      if (request.volumeCapabilities.length === 0)
        throw fail('INVALID_ARGUMENT', 'volume capabilities missing in request')
      await requireVolume(deps, request.volumeId, signal)
      const modes = settings.multiNode ? allModes : singleNodeModes
      const problem = request.volumeCapabilities.map((each) => capabilityProblem(each, modes)).find(Boolean)
      if (problem) return { message: problem }
      const { volumeContext, volumeCapabilities, parameters } = request
      return { confirmed: { volumeContext, volumeCapabilities, parameters } }
    },
    async getCapacity(request, signal) {
      const segment = settings.topologyKey && request.accessibleTopology?.segments[settings.topologyKey]
      if (segment && segment !== settings.nodeId) return { availableCapacity: 0n }
      const available = await offeredBytes(deps, request.parameters, signal)
      const largest = available < settings.maximumVolumeBytes ? available : settings.maximumVolumeBytes
      return {
        availableCapacity: available,
        maximumVolumeSize: largest,
        minimumVolumeSize: settings.minimumVolumeBytes,
      }
    },
  }
}

function lifeHandlers(deps: KitDeps): Pick<Handlers, 'createVolume' | 'deleteVolume' | 'controllerExpandVolume'> {
  const { settings, records, storage, exclusive, clock } = deps
  return {
    createVolume(request, signal) {
      requireText(request.name, 'name')
      checkCapabilities(request.volumeCapabilities, settings.multiNode)
      storage.checkParameters?.(request.parameters)
      const id = volumeId(request.name)
      return exclusive(id, () =>
        answered(async () => {
          const wanted = await plannedVolume(deps, id, request, signal)
          const present = await records.volume(id, signal)
          if (present) checkSame(present, wanted, request)
          const record = present ?? wanted
          const make = async () => {
            if (!present) await promise(deps, record, signal)
            await createStorage(deps, record, request, signal)
          }
          // Storage that is there already may hold data: a repeated call that fails takes nothing away.
          if (present && (await storage.exists(present, signal))) await make()
          else await orUndo(clock, make, (undoing) => removeAll(deps, record, undoing))
          return { volume: volumeMessage(deps, record) }
        }),
      )
    },
    deleteVolume(request, signal) {
      requireText(request.volumeId, 'volume id')
      return exclusive(request.volumeId, async () => {
        const record = await records.volume(request.volumeId, signal)
        if (!record) {
          await records.removeVolume(request.volumeId, signal)
          return {}
        }
        if (Object.keys(record.attachments).length > 0) {
          throw fail(
            'FAILED_PRECONDITION',
            `volume ${record.id} is still published to ${Object.keys(record.attachments).join(', ')}`,
          )
        }
        await removeAll(deps, record, signal)
        return {}
      })
    },
    controllerExpandVolume(request, signal) {
      requireText(request.volumeId, 'volume id')
      if (!request.capacityRange) throw fail('INVALID_ARGUMENT', 'capacity range missing in request')
      const size = chooseSize(request.capacityRange, limitsOf(deps))
      return exclusive(request.volumeId, async () => {
        const record = await requireVolume(deps, request.volumeId, signal)
        if (size > record.capacityBytes) {
          await deps.promising(async () => {
            await checkRoomToGrow(deps, record.parameters, size - record.capacityBytes, signal)
            await storage.grow(record, size, signal)
            await records.putVolume({ ...record, capacityBytes: size }, signal)
          })
        }
        const capacityBytes = size > record.capacityBytes ? size : record.capacityBytes
        return { capacityBytes, nodeExpansionRequired: true }
      })
    },
  }
}

function attachHandlers(deps: KitDeps): Pick<Handlers, 'controllerPublishVolume' | 'controllerUnpublishVolume'> {
  const { settings, records, exclusive } = deps
  return {
    controllerPublishVolume(request, signal) {
      requireText(request.volumeId, 'volume id')
      requireText(request.nodeId, 'node id')
      const capability = requireCapability(request.volumeCapability, settings.multiNode ? allModes : singleNodeModes)
      return exclusive(request.volumeId, async () => {
        const record = await requireVolume(deps, request.volumeId, signal)
        const nodes = await records.nodes(signal)
        if (!nodes.includes(request.nodeId)) throw fail('NOT_FOUND', `node ${request.nodeId} does not exist`)
        const wanted = { readOnly: request.readonly, shared: isMultiNode(capability) }
        const present = record.attachments[request.nodeId]
        if (present && (present.readOnly !== wanted.readOnly || present.shared !== wanted.shared)) {
          throw fail('ALREADY_EXISTS', `volume ${record.id} is published to ${request.nodeId} in another way`)
        }
        if (!present) await checkAttachable(deps, record, wanted.shared, request.nodeId, signal)
        const attachments = { ...record.attachments, [request.nodeId]: wanted }
        if (!present) await records.putVolume({ ...record, attachments }, signal)
        return { publishContext: { 'hawser.dev/attached-to': request.nodeId } }
      })
    },
    controllerUnpublishVolume(request, signal) {
      requireText(request.volumeId, 'volume id')
      return exclusive(request.volumeId, async () => {
        const record = await records.volume(request.volumeId, signal)
        // An unknown volume is published nowhere: that is what the caller wants.
        if (!record) return {}
        const attachments: Record<string, VolumeRecord['attachments'][string]> = { ...record.attachments }
        if (request.nodeId === '') for (const node of Object.keys(attachments)) delete attachments[node]
        else delete attachments[request.nodeId]
        await records.putVolume({ ...record, attachments }, signal)
        return {}
      })
    },
  }
}

function modifyHandlers(
  deps: KitDeps,
  modify: NonNullable<KitDeps['storage']['modify']>,
): Pick<Handlers, 'controllerModifyVolume'> {
  return {
    controllerModifyVolume(request, signal) {
      requireText(request.volumeId, 'volume id')
      return deps.exclusive(request.volumeId, async () => {
        await modify(await requireVolume(deps, request.volumeId, signal), request.mutableParameters, signal)
        return {}
      })
    },
  }
}

function listHandlers(deps: KitDeps): Pick<Handlers, 'listVolumes' | 'controllerGetVolume'> {
  const entry = async (record: VolumeRecord, signal: AbortSignal) => {
    const volumeCondition = await deps.storage.condition?.(record, signal)
    return {
      volume: volumeMessage(deps, record),
      status: {
        publishedNodeIds: Object.keys(record.attachments).toSorted(),
        ...(volumeCondition && { volumeCondition }),
      },
    }
  }
  return {
    async listVolumes(request, signal) {
      const records = (await deps.records.volumes(signal)).filter(({ ephemeral }) => !ephemeral)
      const { page, nextToken } = pageOf(records, request.maxEntries, request.startingToken)
      return { entries: await Promise.all(page.map((record) => entry(record, signal))), nextToken }
    },
    async controllerGetVolume(request, signal) {
      requireText(request.volumeId, 'volume id')
      return entry(await requireVolume(deps, request.volumeId, signal), signal)
    },
  }
}

/** The storage, with the attributes that a class of its own gave it. */
async function createStorage(
  { storage }: KitDeps,
  record: VolumeRecord,
  { mutableParameters }: CreateVolumeRequest,
  signal: AbortSignal,
): Promise<void> {
  await storage.create(record, signal)
  if (Object.keys(mutableParameters).length > 0) await storage.modify?.(record, mutableParameters, signal)
}

/** The record goes last: while it is there, the call can be repeated. */
export async function removeAll(
  { storage, records }: KitDeps,
  record: VolumeRecord,
  signal: AbortSignal,
): Promise<void> {
  await storage.remove(record, signal)
  await records.removeVolume(record.id, signal)
}

export async function requireVolume(deps: KitDeps, id: string, signal: AbortSignal): Promise<VolumeRecord> {
  const record = await deps.records.volume(id, signal)
  if (!record) throw fail('NOT_FOUND', `volume ${id} does not exist`)
  return record
}

export function hashedId(prefix: string, name: string): string {
  return `${prefix}-${createHash('sha256').update(name).digest('hex').slice(0, 32)}`
}

const volumeId = (name: string) => hashedId('vol', name)
const limitsOf = ({ settings }: KitDeps) => ({
  minimumBytes: settings.minimumVolumeBytes,
  maximumBytes: settings.maximumVolumeBytes,
})

function checkCapabilities(capabilities: readonly VolumeCapability[], multiNode: boolean): void {
  if (capabilities.length === 0) throw fail('INVALID_ARGUMENT', 'volume capabilities missing in request')
  for (const capability of capabilities) requireCapability(capability, multiNode ? allModes : singleNodeModes)
}

async function plannedVolume(
  deps: KitDeps,
  id: string,
  request: CreateVolumeRequest,
  signal: AbortSignal,
): Promise<VolumeRecord> {
  const size = chooseSize(request.capacityRange, limitsOf(deps))
  const source = await contentSource(deps, request, signal)
  if (source && source.sizeBytes > size) {
    const limit = request.capacityRange?.limitBytes ?? 0n
    if ((request.capacityRange?.requiredBytes ?? 0n) > 0n || (limit > 0n && source.sizeBytes > limit)) {
      throw fail('OUT_OF_RANGE', `the source holds ${source.sizeBytes} bytes, more than the ${size} requested`)
    }
  }
  const { topologyKey, nodeId } = deps.settings
  checkTopology(deps, request)
  return {
    id,
    name: request.name,
    capacityBytes: source && source.sizeBytes > size ? source.sizeBytes : size,
    parameters: request.parameters,
    attachments: {},
    ...(source && { source: { kind: source.kind, id: source.id } }),
    ...(topologyKey && { node: nodeId }),
  }
}

async function contentSource(deps: KitDeps, request: CreateVolumeRequest, signal: AbortSignal) {
  const type = request.volumeContentSource?.type
  switch (type?.case) {
    case undefined:
      if (request.volumeContentSource) throw fail('INVALID_ARGUMENT', 'content source without a type')
      return undefined
    case 'snapshot': {
      const snapshot = await deps.records.snapshot(type.value.snapshotId, signal)
      if (!snapshot) throw fail('NOT_FOUND', `snapshot ${type.value.snapshotId} does not exist`)
      return { kind: 'snapshot' as const, id: snapshot.id, sizeBytes: snapshot.sizeBytes }
    }
    case 'volume': {
      const volume = await requireVolume(deps, type.value.volumeId, signal)
      return { kind: 'volume' as const, id: volume.id, sizeBytes: volume.capacityBytes }
    }
    default:
      return type satisfies never
  }
}

function checkTopology({ settings }: KitDeps, request: CreateVolumeRequest): void {
  const { topologyKey, nodeId } = settings
  const requisite = request.accessibilityRequirements?.requisite ?? []
  if (!topologyKey || requisite.length === 0) return
  const reachable = requisite.some(
    ({ segments }) => segments[topologyKey] === undefined || segments[topologyKey] === nodeId,
  )
  if (!reachable) throw fail('RESOURCE_EXHAUSTED', `volumes can be made on ${nodeId} only`)
}

function checkSame(present: VolumeRecord, wanted: VolumeRecord, request: CreateVolumeRequest): void {
  const limit = request.capacityRange?.limitBytes ?? 0n
  const required = request.capacityRange?.requiredBytes ?? 0n
  const sizeFits = present.capacityBytes >= required && (limit === 0n || present.capacityBytes <= limit)
  const sameSource = present.source?.kind === wanted.source?.kind && present.source?.id === wanted.source?.id
  if (!sizeFits || !sameSource)
    throw fail('ALREADY_EXISTS', `volume ${present.name} exists with another size or source`)
}

async function usedBytes({ records }: KitDeps, signal: AbortSignal): Promise<bigint> {
  return (await records.volumes(signal)).reduce((sum, { capacityBytes }) => sum + capacityBytes, 0n)
}

/** The record is the promise: it is written only while there is room for it. */
export async function promise(deps: KitDeps, record: VolumeRecord, signal: AbortSignal): Promise<void> {
  await deps.promising(async () => {
    await checkRoom(deps, record.parameters, record.capacityBytes, signal)
    await deps.records.putVolume(record, signal)
  })
}

async function offeredBytes(deps: KitDeps, parameters: Strings, signal: AbortSignal): Promise<bigint> {
  const { settings, storage } = deps
  const limit = settings.capacityBytes
  const room = await storage.room?.(parameters, signal)
  const left = limit === undefined ? undefined : limit - (await usedBytes(deps, signal))
  const physical = room?.bytes ?? (left === undefined ? await storage.availableBytes(signal) : left)
  const offered = left !== undefined && left < physical ? left : physical
  return offered < 0n ? 0n : offered
}

async function checkRoom(deps: KitDeps, parameters: Strings, bytes: bigint, signal: AbortSignal): Promise<void> {
  const lacking = await lackingRoom(deps, parameters, bytes, signal)
  if (lacking) throw fail('RESOURCE_EXHAUSTED', `${sizeText(bytes)} requested, ${lacking}`)
}

/**
 * The code that CSI has for a size that cannot be had: with RESOURCE_EXHAUSTED the expansion would count as under way, and the
 * claim could not ask for less (XRS-6).
 */
async function checkRoomToGrow(deps: KitDeps, parameters: Strings, bytes: bigint, signal: AbortSignal): Promise<void> {
  const lacking = await lackingRoom(deps, parameters, bytes, signal)
  if (lacking) throw fail('OUT_OF_RANGE', `${sizeText(bytes)} more requested, ${lacking}`)
}

/** Undefined when there is room; else how much is left. */
async function lackingRoom(deps: KitDeps, parameters: Strings, bytes: bigint, signal: AbortSignal) {
  const { settings, storage } = deps
  const room = await storage.room?.(parameters, signal)
  if (room && bytes > room.bytes) return `${sizeText(room.bytes)} left ${room.limit}`
  if (settings.capacityBytes === undefined) return undefined
  const left = settings.capacityBytes - (await usedBytes(deps, signal))
  return bytes > left ? `${sizeText(left)} left` : undefined
}

async function checkAttachable(
  deps: KitDeps,
  record: VolumeRecord,
  shared: boolean,
  nodeId: string,
  signal: AbortSignal,
): Promise<void> {
  const others = Object.entries(record.attachments)
  if (others.length > 0 && (!shared || others.some(([, other]) => !other.shared))) {
    throw fail('FAILED_PRECONDITION', `volume ${record.id} is published to ${others.map(([node]) => node).join(', ')}`)
  }
  const limit = deps.settings.maxVolumesPerNode
  if (limit === 0n) return
  const attached = (await deps.records.volumes(signal)).filter(({ attachments }) => nodeId in attachments).length
  if (BigInt(attached) >= limit) throw fail('RESOURCE_EXHAUSTED', `node ${nodeId} holds ${attached} volumes already`)
}

function volumeMessage({ settings }: KitDeps, record: VolumeRecord): MessageInitShape<typeof VolumeSchema> {
  const { source } = record
  return {
    volumeId: record.id,
    capacityBytes: record.capacityBytes,
    volumeContext: record.parameters,
    accessibleTopology:
      settings.topologyKey && record.node ? [{ segments: { [settings.topologyKey]: record.node } }] : [],
    ...(source && {
      contentSource: {
        type:
          source.kind === 'snapshot'
            ? { case: 'snapshot' as const, value: { snapshotId: source.id } }
            : { case: 'volume' as const, value: { volumeId: source.id } },
      },
    }),
  }
}
