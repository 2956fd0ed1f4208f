// What may be asked of a driver's controller? Volumes, attachments, snapshots, sizes and lists: values in, values out.
// The messages of one operation are built from its request alone, so a retry repeats them to the byte (SIDE-64).
import { timestampMs } from '@bufbuild/protobuf/wkt'
import type { Clock } from '../clock/clock.ts'
import { idProblem, mapProblem, plainText } from './answers.ts'
import { CsiError } from './codes.ts'
import { createCall, requireArgument, timeouts } from './deadline.ts'
import { readHealth } from './health.ts'
import type { HealthEntry } from './health.ts'
import { ControllerServiceCapability_RPC_Type } from './generated/csi_pb.ts'
import type { Snapshot as SnapshotMessage, Volume as VolumeMessage } from './generated/csi_pb.ts'
import type { DriverWire } from './service.ts'
import { namesOf } from './values.ts'
import { wireCapability } from './wire-capability.ts'
import type { Capability, ContentSource, ControllerCapabilityName, Segments, Strings } from './values.ts'

export interface CreateVolumeRequest {
  readonly name: string
  readonly requiredBytes: bigint
  readonly limitBytes?: bigint
  readonly capabilities: readonly Capability[]
  readonly parameters?: Strings
  readonly mutableParameters?: Strings
  readonly secrets?: Strings
  readonly source?: ContentSource
  readonly topology?: { readonly requisite: readonly Segments[]; readonly preferred: readonly Segments[] }
}

export interface DriverVolume {
  readonly volumeId: string
  readonly capacityBytes: bigint
  readonly context: Strings
  readonly source: ContentSource | undefined
  readonly topology: readonly Segments[]
}

export interface DriverSnapshot {
  readonly snapshotId: string
  readonly sourceVolumeId: string
  readonly sizeBytes: bigint
  readonly createdMs: number
  readonly readyToUse: boolean
}

interface AttachRequest {
  readonly volumeId: string
  readonly nodeId: string
  readonly capability: Capability
  readonly readOnly: boolean
  readonly volumeContext?: Strings
  readonly secrets?: Strings
}

export interface ListedVolume {
  readonly volume: DriverVolume
  readonly publishedNodeIds: readonly string[]
  readonly condition: { readonly abnormal: boolean; readonly message: string } | undefined
}

interface Capacity {
  readonly availableBytes: bigint
  readonly maximumVolumeBytes: bigint | undefined
}

export interface ControllerCalls {
  capabilities(signal: AbortSignal): Promise<ReadonlySet<ControllerCapabilityName>>
  createVolume(request: CreateVolumeRequest, signal: AbortSignal): Promise<DriverVolume>
  deleteVolume(volumeId: string, secrets: Strings, signal: AbortSignal): Promise<void>
  /** Answers the publish context. */
  attach(request: AttachRequest, signal: AbortSignal): Promise<Strings>
  detach(
    request: { readonly volumeId: string; readonly nodeId: string; readonly secrets?: Strings },
    signal: AbortSignal,
  ): Promise<void>
  /** Every volume, all pages. */
  listVolumes(signal: AbortSignal): Promise<readonly ListedVolume[]>
  getVolume(volumeId: string, signal: AbortSignal): Promise<ListedVolume>
  /** Volume id → what is wrong with it, for every volume that the driver has something to say about. */
  listHealth(signal: AbortSignal): Promise<ReadonlyMap<string, readonly HealthEntry[]>>
  getHealth(volumeId: string, signal: AbortSignal): Promise<readonly HealthEntry[]>
  capacity(
    request: { readonly parameters: Strings; readonly topology?: Segments },
    signal: AbortSignal,
  ): Promise<Capacity>
  createSnapshot(
    request: {
      readonly sourceVolumeId: string
      readonly name: string
      readonly parameters?: Strings
      readonly secrets?: Strings
    },
    signal: AbortSignal,
  ): Promise<DriverSnapshot>
  deleteSnapshot(snapshotId: string, secrets: Strings, signal: AbortSignal): Promise<void>
  findSnapshot(snapshotId: string, secrets: Strings, signal: AbortSignal): Promise<DriverSnapshot | undefined>
  expand(
    request: {
      readonly volumeId: string
      readonly sizeBytes: bigint
      readonly capability?: Capability
      readonly secrets?: Strings
    },
    signal: AbortSignal,
  ): Promise<{ readonly capacityBytes: bigint; readonly nodeExpansionRequired: boolean }>
  modify(
    request: { readonly volumeId: string; readonly mutableParameters: Strings; readonly secrets?: Strings },
    signal: AbortSignal,
  ): Promise<void>
}

export function createControllerCalls(deps: {
  readonly wire: DriverWire
  readonly clock: Clock
  readonly timeoutMs?: number
}): ControllerCalls {
  const { controller } = deps.wire
  const call = createCall(deps.clock, deps.timeoutMs ?? timeouts.provisioner)
  return {
    async capabilities(signal) {
      const rpc = 'ControllerGetCapabilities'
      const answer = await call(rpc, (options) => controller.controllerGetCapabilities({}, options), signal)
      const numbers = answer.capabilities.map(({ type }) => (type.case === 'rpc' ? type.value.type : undefined))
      return namesOf(numbers, ControllerServiceCapability_RPC_Type)
    },
    ...volumeCalls(controller, call),
    ...attachCalls(controller, call),
    ...listCalls(controller, call),
    ...snapshotCalls(controller, call),
    ...changeCalls(controller, call),
  }
}

type Wire = DriverWire['controller']
type Caller = ReturnType<typeof createCall>

function volumeCalls(controller: Wire, call: Caller): Pick<ControllerCalls, 'createVolume' | 'deleteVolume'> {
  return {
    async createVolume(request, signal) {
      const { source, topology } = request
      const message = {
        name: request.name,
        capacityRange: { requiredBytes: request.requiredBytes, limitBytes: request.limitBytes ?? 0n },
        volumeCapabilities: request.capabilities.map(wireCapability),
        parameters: { ...request.parameters },
        mutableParameters: { ...request.mutableParameters },
        secrets: { ...request.secrets },
        ...(source && { volumeContentSource: wireSource(source) }),
        ...(topology && {
          accessibilityRequirements: {
            requisite: topology.requisite.map(copySegments),
            preferred: topology.preferred.map(copySegments),
          },
        }),
      }
      const answer = await call('CreateVolume', (options) => controller.createVolume(message, options), signal)
      if (!answer.volume || answer.volume.volumeId === '') {
        throw invalidAnswer('driver answered no volume id', 'CreateVolume')
      }
      return readVolume(answer.volume)
    },
    async deleteVolume(volumeId, secrets, signal) {
      requireArgument('DeleteVolume', 'volume id', volumeId)
      const message = { volumeId, secrets: { ...secrets } }
      await call('DeleteVolume', (options) => controller.deleteVolume(message, options), signal)
    },
  }
}

function attachCalls(controller: Wire, call: Caller): Pick<ControllerCalls, 'attach' | 'detach'> {
  return {
    async attach(request, signal) {
      requireArgument('ControllerPublishVolume', 'volume id', request.volumeId)
      requireArgument('ControllerPublishVolume', 'node id', request.nodeId)
      const message = {
        volumeId: request.volumeId,
        nodeId: request.nodeId,
        volumeCapability: wireCapability(request.capability),
        readonly: request.readOnly,
        volumeContext: { ...request.volumeContext },
        secrets: { ...request.secrets },
      }
      const rpc = 'ControllerPublishVolume'
      const answer = await call(rpc, (options) => controller.controllerPublishVolume(message, options), signal)
      const problem = mapProblem('publish context', answer.publishContext)
      if (problem !== undefined) throw invalidAnswer(problem, rpc)
      return answer.publishContext
    },
    async detach({ volumeId, nodeId, secrets }, signal) {
      requireArgument('ControllerUnpublishVolume', 'volume id', volumeId)
      const message = { volumeId, nodeId, secrets: { ...secrets } }
      const rpc = 'ControllerUnpublishVolume'
      await call(rpc, (options) => controller.controllerUnpublishVolume(message, options), signal)
    },
  }
}

/** A driver that answers tokens or entries without end must not hold us, or fill our memory, for ever. */
const maxPages = 10_000
const maxEntries = 250_000

/** Every entry of a list that comes in pages. */
async function allEntries<T>(
  rpc: string,
  page: (startingToken: string) => Promise<{ readonly entries: readonly T[]; readonly nextToken: string }>,
): Promise<readonly T[]> {
  const all: T[] = []
  const asked = new Set<string>()
  let token = ''
  for (let count = 0; count < maxPages; count++) {
    asked.add(token)
    const { entries, nextToken } = await page(token)
    // One by one: a page of a million entries is too long for the arguments of a call.
    for (const entry of entries) all.push(entry)
    if (all.length > maxEntries)
      throw new CsiError('INTERNAL', `driver answered more than ${maxEntries} entries`, { rpc })
    if (nextToken === '') return all
    if (asked.has(nextToken)) {
      const text = `driver answered the token ${JSON.stringify(nextToken)} twice: its list has no end`
      throw new CsiError('INTERNAL', text, { rpc })
    }
    token = nextToken
  }
  throw new CsiError('INTERNAL', `driver answered more than ${maxPages} pages`, { rpc })
}

type ListCalls = Pick<ControllerCalls, 'listVolumes' | 'getVolume' | 'listHealth' | 'getHealth' | 'capacity'>

function listCalls(controller: Wire, call: Caller): ListCalls {
  return {
    async listVolumes(signal) {
      const rpc = 'ListVolumes'
      const entries = await allEntries(rpc, (startingToken) =>
        call(rpc, (options) => controller.listVolumes({ startingToken }, options), signal),
      )
      return entries.flatMap(({ volume, status }) => (volume ? [listedVolume(volume, status)] : []))
    },
    async listHealth(signal) {
      const rpc = 'ControllerListVolumeHealth'
      const entries = await allEntries(rpc, (startingToken) =>
        call(rpc, (options) => controller.controllerListVolumeHealth({ startingToken }, options), signal),
      )
      return new Map(entries.map((health) => [health.volumeId, readHealth(health)]))
    },
    async getHealth(volumeId, signal) {
      const rpc = 'ControllerGetVolumeHealth'
      const answer = await call(rpc, (options) => controller.controllerGetVolumeHealth({ volumeId }, options), signal)
      return readHealth(answer.volumeHealth)
    },
    async getVolume(volumeId, signal) {
      const rpc = 'ControllerGetVolume'
      const answer = await call(rpc, (options) => controller.controllerGetVolume({ volumeId }, options), signal)
      if (!answer.volume) throw new CsiError('INTERNAL', 'driver answered no volume', { rpc })
      return listedVolume(answer.volume, answer.status)
    },
    async capacity({ parameters, topology }, signal) {
      const message = { parameters: { ...parameters }, ...(topology && { accessibleTopology: copySegments(topology) }) }
      const answer = await call('GetCapacity', (options) => controller.getCapacity(message, options), signal)
      if (answer.availableCapacity < 0n || (answer.maximumVolumeSize ?? 0n) < 0n)
        throw invalidAnswer(`driver answered a negative capacity`, 'GetCapacity')
      return { availableBytes: answer.availableCapacity, maximumVolumeBytes: answer.maximumVolumeSize }
    },
  }
}

type SnapshotCalls = Pick<ControllerCalls, 'createSnapshot' | 'deleteSnapshot' | 'findSnapshot'>

function snapshotCalls(controller: Wire, call: Caller): SnapshotCalls {
  return {
    async createSnapshot(request, signal) {
      const message = {
        sourceVolumeId: request.sourceVolumeId,
        name: request.name,
        parameters: { ...request.parameters },
        secrets: { ...request.secrets },
      }
      const answer = await call('CreateSnapshot', (options) => controller.createSnapshot(message, options), signal)
      if (!answer.snapshot) throw invalidAnswer('driver answered no snapshot', 'CreateSnapshot')
      return readSnapshot(answer.snapshot, 'CreateSnapshot')
    },
    async deleteSnapshot(snapshotId, secrets, signal) {
      requireArgument('DeleteSnapshot', 'snapshot id', snapshotId)
      const message = { snapshotId, secrets: { ...secrets } }
      await call('DeleteSnapshot', (options) => controller.deleteSnapshot(message, options), signal)
    },
    async findSnapshot(snapshotId, secrets, signal) {
      const message = { snapshotId, secrets: { ...secrets } }
      const answer = await call('ListSnapshots', (options) => controller.listSnapshots(message, options), signal)
      const found = answer.entries[0]?.snapshot
      return found && readSnapshot(found, 'ListSnapshots')
    },
  }
}

function changeCalls(controller: Wire, call: Caller): Pick<ControllerCalls, 'expand' | 'modify'> {
  return {
    async expand({ volumeId, sizeBytes, capability, secrets }, signal) {
      requireArgument('ControllerExpandVolume', 'volume id', volumeId)
      const message = {
        volumeId,
        capacityRange: { requiredBytes: sizeBytes },
        secrets: { ...secrets },
        ...(capability && { volumeCapability: wireCapability(capability) }),
      }
      const rpc = 'ControllerExpandVolume'
      const answer = await call(rpc, (options) => controller.controllerExpandVolume(message, options), signal)
      const { capacityBytes, nodeExpansionRequired } = answer
      // 0 means that the driver does not say. Anything else below what was asked would be asked again without end.
      if (capacityBytes !== 0n && capacityBytes < sizeBytes)
        throw invalidAnswer(`driver answered OK, but a capacity of ${capacityBytes} for ${sizeBytes} bytes`, rpc)
      return { capacityBytes, nodeExpansionRequired }
    },
    async modify({ volumeId, mutableParameters, secrets }, signal) {
      const message = { volumeId, mutableParameters: { ...mutableParameters }, secrets: { ...secrets } }
      const rpc = 'ControllerModifyVolume'
      await call(rpc, (options) => controller.controllerModifyVolume(message, options), signal)
    },
  }
}

function readVolume(message: VolumeMessage): DriverVolume {
  return {
    volumeId: message.volumeId,
    capacityBytes: message.capacityBytes,
    context: message.volumeContext,
    source: readSource(message.contentSource),
    topology: message.accessibleTopology.map(({ segments }) => ({ segments })),
  }
}

interface StatusMessage {
  readonly publishedNodeIds: readonly string[]
  readonly volumeCondition?: { readonly abnormal: boolean; readonly message: string } | undefined
}

function listedVolume(volume: VolumeMessage, status: StatusMessage | undefined): ListedVolume {
  const condition = status?.volumeCondition
  return {
    volume: readVolume(volume),
    publishedNodeIds: status?.publishedNodeIds ?? [],
    condition: condition && { abnormal: condition.abnormal, message: plainText(condition.message) },
  }
}

function readSnapshot(message: SnapshotMessage, rpc: string): DriverSnapshot {
  const problem = idProblem('snapshot id', message.snapshotId) ?? snapshotProblem(message)
  if (problem !== undefined) throw invalidAnswer(problem, rpc)
  return {
    snapshotId: message.snapshotId,
    sourceVolumeId: message.sourceVolumeId,
    sizeBytes: message.sizeBytes,
    createdMs: message.creationTime ? timestampMs(message.creationTime) : 0,
    readyToUse: message.readyToUse,
  }
}

/** The latest time that a Date can tell, in seconds. */
const lastSecond = 8_640_000_000_000n

function snapshotProblem({ sizeBytes, creationTime }: SnapshotMessage): string | undefined {
  if (sizeBytes < 0n) return `driver answered a snapshot of ${sizeBytes} bytes`
  const seconds = creationTime?.seconds ?? 0n
  const isTime = seconds >= 0n && seconds <= lastSecond
  return isTime ? undefined : `driver answered a snapshot made ${seconds} seconds after 1970`
}

function readSource(message: VolumeMessage['contentSource']): ContentSource | undefined {
  switch (message?.type.case) {
    case 'snapshot':
      return { kind: 'snapshot', snapshotId: message.type.value.snapshotId }
    case 'volume':
      return { kind: 'volume', volumeId: message.type.value.volumeId }
    default:
      return undefined
  }
}

function wireSource(source: ContentSource) {
  return source.kind === 'snapshot'
    ? { type: { case: 'snapshot' as const, value: { snapshotId: source.snapshotId } } }
    : { type: { case: 'volume' as const, value: { volumeId: source.volumeId } } }
}

function copySegments({ segments }: Segments) {
  return { segments: { ...segments } }
}

/** It said OK: what it has made, nobody knows. */
const invalidAnswer = (details: string, rpc: string) =>
  new CsiError('UNKNOWN', details, { rpc, effect: 'unknown', code: 'AnswerInvalid' })
