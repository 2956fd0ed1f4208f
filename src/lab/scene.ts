// How does a check come to a volume, an attachment or a mount? Each is made here, and its undoing is noted at once.
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { CreateVolumeRequestSchema, Snapshot, Volume } from '../csi/generated/csi_pb.ts'
import type { AccessModeName, Capability } from '../csi/values.ts'
import { wireCapability } from '../csi/wire-capability.ts'
import { hasCode } from '../host/host-error.ts'
import { answered, Finding } from './finding.ts'
import type { Lab } from './lab.ts'

export type CreateVolume = Extract<MessageInitShape<typeof CreateVolumeRequestSchema>, { $typeName?: never }>

export function mountCapability(lab: Lab, mode: AccessModeName = 'SINGLE_NODE_WRITER') {
  const capability: Capability = { mode, access: { kind: 'mount', fsType: lab.recipe.fsType, mountFlags: [] } }
  return wireCapability(capability)
}

/** A good request under a name of this check. */
export function volumeRequest(lab: Lab, word: string): CreateVolume {
  const { facts, recipe } = lab
  const here = facts.plugin.includes('VOLUME_ACCESSIBILITY_CONSTRAINTS') ? facts.topology : undefined
  return {
    name: lab.named(word),
    capacityRange: { requiredBytes: recipe.sizeBytes },
    volumeCapabilities: [mountCapability(lab)],
    parameters: { ...recipe.parameters },
    secrets: { ...recipe.secrets },
    ...(here && { accessibilityRequirements: { requisite: [{ segments: here }], preferred: [{ segments: here }] } }),
  }
}

/** Asks for a volume; whatever comes of it is deleted after the check. */
export async function createVolume(lab: Lab, request: CreateVolume): Promise<Volume> {
  const { volume } = await lab.controller.createVolume(request)
  if (!volume) throw new Finding('CreateVolume answered OK without a volume')
  deleteLater(lab, volume.volumeId)
  return volume
}

function deleteLater(lab: Lab, volumeId: string): void {
  if (volumeId === '') return
  lab.undo(`DeleteVolume ${volumeId}`, (later) =>
    later.controller.deleteVolume({ volumeId, secrets: { ...lab.recipe.secrets } }),
  )
}

/** Twice as large as volumes of checks are. */
export function growRequest(lab: Lab, volumeId: string) {
  return {
    volumeId,
    capacityRange: { requiredBytes: lab.recipe.sizeBytes * 2n },
    volumeCapability: mountCapability(lab),
    secrets: { ...lab.recipe.secrets },
  }
}

/** A volume as most checks need one. */
export function someVolume(lab: Lab, word = 'volume'): Promise<Volume> {
  return answered('CreateVolume', createVolume(lab, volumeRequest(lab, word)))
}

export async function createSnapshot(lab: Lab, word: string, sourceVolumeId: string): Promise<Snapshot> {
  return answered('CreateSnapshot', askSnapshot(lab, lab.named(word), sourceVolumeId))
}

/** Asks for a snapshot; whatever comes of it is deleted after the check. */
export async function askSnapshot(lab: Lab, name: string, sourceVolumeId: string): Promise<Snapshot> {
  const { snapshot } = await lab.controller.createSnapshot({
    name,
    sourceVolumeId,
    secrets: { ...lab.recipe.secrets },
  })
  if (!snapshot) throw new Finding('CreateSnapshot answered OK without a snapshot')
  const { snapshotId } = snapshot
  lab.undo(`DeleteSnapshot ${snapshotId}`, (later) => later.controller.deleteSnapshot({ snapshotId }))
  return snapshot
}

export interface Attachment {
  readonly volume: Volume
  readonly publishContext: Readonly<Record<string, string>>
}

export function attachRequest(lab: Lab, volume: Volume) {
  return {
    volumeId: volume.volumeId,
    nodeId: lab.facts.nodeId ?? '',
    volumeCapability: mountCapability(lab),
    volumeContext: volume.volumeContext,
    secrets: { ...lab.recipe.secrets },
  }
}

type Attach = Parameters<Lab['controller']['controllerPublishVolume']>[0]

/** Whatever comes of it is undone after the check. */
export async function tryAttach(lab: Lab, request: Attach): Promise<Readonly<Record<string, string>>> {
  const { volumeId = '', nodeId = '' } = request
  lab.undo(`ControllerUnpublishVolume ${volumeId}`, (later) =>
    later.controller.controllerUnpublishVolume({ volumeId, nodeId, secrets: { ...lab.recipe.secrets } }),
  )
  return (await lab.controller.controllerPublishVolume(request)).publishContext
}

/** Published to the node by the controller, where the driver claims that. */
export async function attach(lab: Lab, volume: Volume): Promise<Attachment> {
  if (!lab.facts.controller.includes('PUBLISH_UNPUBLISH_VOLUME')) return { volume, publishContext: {} }
  const publishContext = await answered('ControllerPublishVolume', tryAttach(lab, attachRequest(lab, volume)))
  return { volume, publishContext }
}

export function stageRequest(lab: Lab, { volume, publishContext }: Attachment, stagingTargetPath: string) {
  return {
    volumeId: volume.volumeId,
    stagingTargetPath,
    volumeCapability: mountCapability(lab),
    publishContext,
    volumeContext: volume.volumeContext,
    secrets: { ...lab.recipe.secrets },
  }
}

/** Staged where the driver claims that; the staging path, or '' for a driver without stages. */
export async function stage(lab: Lab, attachment: Attachment, word = 'staging'): Promise<string> {
  if (!lab.facts.node.includes('STAGE_UNSTAGE_VOLUME')) return ''
  const path = await madeDirectory(lab, word)
  const { volumeId } = attachment.volume
  lab.undo(`NodeUnstageVolume ${volumeId}`, (later) =>
    later.node.nodeUnstageVolume({ volumeId, stagingTargetPath: path }),
  )
  await answered('NodeStageVolume', lab.node.nodeStageVolume(stageRequest(lab, attachment, path)))
  return path
}

export function publishRequest(lab: Lab, attachment: Attachment, stagingTargetPath: string, targetPath: string) {
  return { ...stageRequest(lab, attachment, stagingTargetPath), targetPath, readonly: false }
}

export interface Published {
  readonly attachment: Attachment
  readonly staging: string
  readonly target: string
}

/** From a volume to a mounted directory. `word` tells mounts of one check apart. */
export async function publish(
  lab: Lab,
  volume: Volume,
  { word = 'target', readonly = false }: { readonly word?: string; readonly readonly?: boolean } = {},
): Promise<Published> {
  const attachment = await attach(lab, volume)
  const staging = await stage(lab, attachment, `${word}-staging`)
  const target = `${await lab.directory()}/${word}`
  const { volumeId } = volume
  lab.undo(`NodeUnpublishVolume ${volumeId}`, (later) =>
    later.node.nodeUnpublishVolume({ volumeId, targetPath: target }),
  )
  const request = { ...publishRequest(lab, attachment, staging, target), readonly }
  await answered('NodePublishVolume', lab.node.nodePublishVolume(request))
  return { attachment, staging, target }
}

/** From a mounted directory back to a volume that is nowhere. */
export async function unpublish(lab: Lab, { attachment, staging, target }: Published): Promise<void> {
  const { volumeId } = attachment.volume
  await answered('NodeUnpublishVolume', lab.node.nodeUnpublishVolume({ volumeId, targetPath: target }))
  if (staging !== '')
    await answered('NodeUnstageVolume', lab.node.nodeUnstageVolume({ volumeId, stagingTargetPath: staging }))
  if (!lab.facts.controller.includes('PUBLISH_UNPUBLISH_VOLUME')) return
  const request = { volumeId, nodeId: lab.facts.nodeId ?? '', secrets: { ...lab.recipe.secrets } }
  await answered('ControllerUnpublishVolume', lab.controller.controllerUnpublishVolume(request))
}

/** A directory of the check, as an orchestrator makes it. */
export async function madeDirectory(lab: Lab, word: string): Promise<string> {
  const path = `${await lab.directory()}/${word}`
  await lab.host.files.mkdirAll(path, 0o750, lab.signal)
  return path
}

export async function isMounted(lab: Lab, path: string): Promise<boolean> {
  try {
    return await lab.host.mounts.isMountPoint(path, lab.signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false
    throw error
  }
}

/** An id that the driver never gave: like its own, but for the end. */
export const unknownId = (lab: Lab) => lab.named('no-such-id')
