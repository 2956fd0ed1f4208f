// What may be asked of a driver on its node? Stage, publish, their opposites, expansion, stats and health,
// each with the checks of CSI-17 before the call and the deadline of CSI-14 around it.
import type { Clock } from '../clock/clock.ts'
import { idProblem, mapProblem, plainText } from './answers.ts'
import { CsiError } from './codes.ts'
import { createCall, requireArgument, timeouts } from './deadline.ts'
import { readHealth, readStorageHealth } from './health.ts'
import type { HealthEntry, StorageHealthEntry } from './health.ts'
import { NodeServiceCapability_RPC_Type, VolumeUsage_Unit } from './generated/csi_pb.ts'
import type { NodeGetVolumeStatsResponse } from './generated/csi_pb.ts'
import type { DriverWire } from './service.ts'
import { namesOf } from './values.ts'
import { wireCapability } from './wire-capability.ts'
import type { Capability, NodeCapabilityName, Strings, Usage } from './values.ts'

export interface NodeInfo {
  readonly nodeId: string
  /** 0 means no limit. */
  readonly maxVolumes: bigint
  readonly topology: Strings | undefined
}

interface StageRequest {
  readonly volumeId: string
  readonly stagingPath: string
  readonly capability: Capability
  readonly publishContext?: Strings
  readonly volumeContext?: Strings
  readonly secrets?: Strings
}

interface PublishRequest {
  readonly volumeId: string
  readonly targetPath: string
  /** Empty when the driver does not stage. */
  readonly stagingPath: string
  readonly capability: Capability
  readonly readOnly: boolean
  readonly publishContext?: Strings
  readonly volumeContext?: Strings
  readonly secrets?: Strings
}

interface NodeExpandRequest {
  readonly volumeId: string
  readonly volumePath: string
  readonly stagingPath: string
  readonly sizeBytes: bigint
  readonly capability: Capability
  readonly secrets?: Strings
}

export interface NodeCalls {
  capabilities(signal: AbortSignal): Promise<ReadonlySet<NodeCapabilityName>>
  info(signal: AbortSignal): Promise<NodeInfo>
  stage(request: StageRequest, signal: AbortSignal): Promise<void>
  unstage(volumeId: string, stagingPath: string, signal: AbortSignal): Promise<void>
  publish(request: PublishRequest, signal: AbortSignal): Promise<void>
  unpublish(volumeId: string, targetPath: string, signal: AbortSignal): Promise<void>
  expand(request: NodeExpandRequest, signal: AbortSignal): Promise<bigint>
  stats(volumeId: string, volumePath: string, signal: AbortSignal): Promise<Usage>
  health(
    request: { readonly volumeId: string; readonly publishPath: string; readonly stagingPath: string },
    signal: AbortSignal,
  ): Promise<readonly HealthEntry[]>
  /** CSI-71: what is wrong with the storage as this node sees it. */
  storageHealth(signal: AbortSignal): Promise<readonly StorageHealthEntry[]>
}

export function createNodeCalls(deps: {
  readonly wire: DriverWire
  readonly clock: Clock
  readonly timeoutMs?: number
}): NodeCalls {
  const { node } = deps.wire
  const call = createCall(deps.clock, deps.timeoutMs ?? timeouts.node)
  return {
    async capabilities(signal) {
      const answer = await call('NodeGetCapabilities', (options) => node.nodeGetCapabilities({}, options), signal)
      const numbers = answer.capabilities.map(({ type }) => (type.case === 'rpc' ? type.value.type : undefined))
      return namesOf(numbers, NodeServiceCapability_RPC_Type)
    },
    async info(signal) {
      const answer = await call('NodeGetInfo', (options) => node.nodeGetInfo({}, options), signal)
      const topology = answer.accessibleTopology?.segments
      const problem = nodeProblem(answer.nodeId, topology ?? {})
      if (problem !== undefined) throw new CsiError('INTERNAL', problem, { rpc: 'NodeGetInfo', code: 'AnswerInvalid' })
      return { nodeId: answer.nodeId, maxVolumes: answer.maxVolumesPerNode, topology }
    },
    ...stageAndPublish(node, call),
    ...expandAndObserve(node, call),
  }
}

type Wire = DriverWire['node']
type Caller = ReturnType<typeof createCall>

function stageAndPublish(node: Wire, call: Caller): Pick<NodeCalls, 'stage' | 'unstage' | 'publish' | 'unpublish'> {
  return {
    async stage(request, signal) {
      requireArgument('NodeStageVolume', 'volume id', request.volumeId)
      requireArgument('NodeStageVolume', 'staging target path', request.stagingPath)
      const message = {
        volumeId: request.volumeId,
        stagingTargetPath: request.stagingPath,
        volumeCapability: wireCapability(request.capability),
        publishContext: { ...request.publishContext },
        volumeContext: { ...request.volumeContext },
        secrets: { ...request.secrets },
      }
      await call('NodeStageVolume', (options) => node.nodeStageVolume(message, options), signal)
    },
    async unstage(volumeId, stagingPath, signal) {
      requireArgument('NodeUnstageVolume', 'volume id', volumeId)
      requireArgument('NodeUnstageVolume', 'staging target path', stagingPath)
      const message = { volumeId, stagingTargetPath: stagingPath }
      await call('NodeUnstageVolume', (options) => node.nodeUnstageVolume(message, options), signal)
    },
    async publish(request, signal) {
      requireArgument('NodePublishVolume', 'volume id', request.volumeId)
      requireArgument('NodePublishVolume', 'target path', request.targetPath)
      const message = {
        volumeId: request.volumeId,
        stagingTargetPath: request.stagingPath,
        targetPath: request.targetPath,
        volumeCapability: wireCapability(request.capability),
        readonly: request.readOnly,
        publishContext: { ...request.publishContext },
        volumeContext: { ...request.volumeContext },
        secrets: { ...request.secrets },
      }
      await call('NodePublishVolume', (options) => node.nodePublishVolume(message, options), signal)
    },
    async unpublish(volumeId, targetPath, signal) {
      requireArgument('NodeUnpublishVolume', 'volume id', volumeId)
      requireArgument('NodeUnpublishVolume', 'target path', targetPath)
      const message = { volumeId, targetPath }
      await call('NodeUnpublishVolume', (options) => node.nodeUnpublishVolume(message, options), signal)
    },
  }
}

function expandAndObserve(node: Wire, call: Caller): Pick<NodeCalls, 'expand' | 'stats' | 'health' | 'storageHealth'> {
  return {
    async expand(request, signal) {
      requireArgument('NodeExpandVolume', 'volume id', request.volumeId)
      requireArgument('NodeExpandVolume', 'volume path', request.volumePath)
      if (request.sizeBytes < 0n) {
        throw new CsiError('INVALID_ARGUMENT', 'size can not be less than 0', { effect: 'untried' })
      }
      const message = {
        volumeId: request.volumeId,
        volumePath: request.volumePath,
        stagingTargetPath: request.stagingPath,
        capacityRange: { requiredBytes: request.sizeBytes },
        volumeCapability: wireCapability(request.capability),
        secrets: { ...request.secrets },
      }
      const answer = await call('NodeExpandVolume', (options) => node.nodeExpandVolume(message, options), signal)
      return answer.capacityBytes
    },
    async stats(volumeId, volumePath, signal) {
      const message = { volumeId, volumePath }
      const answer = await call('NodeGetVolumeStats', (options) => node.nodeGetVolumeStats(message, options), signal)
      return readUsage(answer)
    },
    async health({ volumeId, publishPath, stagingPath }, signal) {
      const message = { volumeId, volumePublishPath: publishPath, stagingTargetPath: stagingPath }
      const answer = await call('NodeGetVolumeHealth', (options) => node.nodeGetVolumeHealth(message, options), signal)
      return readHealth(answer.volumeHealth)
    },
    async storageHealth(signal) {
      const answer = await call('NodeGetStorageHealth', (options) => node.nodeGetStorageHealth({}, options), signal)
      return readStorageHealth(answer)
    },
  }
}

/** An empty id has its own error, from whoever publishes it. */
const nodeProblem = (nodeId: string, topology: Strings) =>
  (nodeId === '' ? undefined : idProblem('node id', nodeId)) ?? mapProblem('topology', topology)

/** CSI-70: entries in bytes and inodes; no usage at all is an error, an unknown unit is skipped. */
function readUsage(answer: NodeGetVolumeStatsResponse): Usage {
  if (answer.usage.length === 0)
    throw new CsiError('INTERNAL', 'driver answered no usage', { rpc: 'NodeGetVolumeStats' })
  const bytes = answer.usage.find(({ unit }) => unit === VolumeUsage_Unit.BYTES)
  const inodes = answer.usage.find(({ unit }) => unit === VolumeUsage_Unit.INODES)
  const condition = answer.volumeCondition
  return {
    ...(bytes && { availableBytes: bytes.available, capacityBytes: bytes.total, usedBytes: bytes.used }),
    ...(inodes && { inodesFree: inodes.available, inodes: inodes.total, inodesUsed: inodes.used }),
    ...(condition && { condition: { abnormal: condition.abnormal, message: plainText(condition.message) } }),
  }
}
