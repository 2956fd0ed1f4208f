// What must be done for a VolumeAttachment? Publish, unpublish, or nothing; and what a publish asks of the driver. Pure.
import { refused } from '../../volume/effect.ts'
import type { ErrorCode } from '../../volume/error-codes.ts'
import type { PersistentVolume, PersistentVolumeSpec, VolumeAttachment } from '../../api/generated/types.ts'
import { annotation, hasFinalizer, isDeleting } from '../../api/meta.ts'
import type { VolumeError } from '../../volume/effect.ts'

export const nodeIdAnnotation = 'csi.alpha.kubernetes.io/node-id'

export interface AttachmentFacts {
  readonly attachment: VolumeAttachment
  readonly driver: string
  readonly finalizer: string
  /** The driver has ControllerPublishVolume. */
  readonly canPublish: boolean
  /** The storage sees the attachment differently than its status (SIDE-29). */
  readonly isDisputed: boolean
}

export type AttachmentAction = 'nothing' | 'markAttached' | 'publish' | 'unpublish'

export function planAttachment(facts: AttachmentFacts): AttachmentAction {
  const { attachment, finalizer } = facts
  if (attachment.spec.attacher !== facts.driver) return 'nothing'
  const isAttached = attachment.status?.attached === true
  // A driver without ControllerPublish has nothing to attach (SIDE-25).
  if (!facts.canPublish) return isAttached || isDeleting(attachment) ? 'nothing' : 'markAttached'
  if (isDeleting(attachment)) return hasFinalizer(attachment, finalizer) ? 'unpublish' : 'nothing'
  return isAttached && !facts.isDisputed ? 'nothing' : 'publish'
}

export interface TargetFacts {
  readonly attachment: VolumeAttachment
  /** The volume that the attachment names, if it exists. */
  readonly volume: PersistentVolume | undefined
  /** From the CSINode; undefined when the driver is not registered there. */
  readonly nodeId: string | undefined
  readonly driver: string
}

/** What a call is about; or why none can be made. */
export type Target =
  | { readonly kind: 'target'; readonly spec: PersistentVolumeSpec; readonly csi: CsiSource; readonly nodeId: string }
  | { readonly kind: 'refused'; readonly error: VolumeError }

type CsiSource = NonNullable<PersistentVolumeSpec['csi']>

export type PublishPlan = Target & {
  /** The PersistentVolume gets our finalizer first, also when the call is then refused. */
  readonly hold: PersistentVolume | undefined
}

/** The PersistentVolume is held by our finalizer before the first call, so that nothing attached is forgotten (SIDE-26). */
export function planPublish(facts: TargetFacts, finalizer: string): PublishPlan {
  const { volume, attachment, driver } = facts
  const isInline = attachment.spec.source.inlineVolumeSpec !== undefined
  if (!isInline && volume && isDeleting(volume)) {
    const message = `PersistentVolume "${volume.metadata.name}" is marked for deletion`
    return { kind: 'refused', error: refused('VolumeDeleting', message, 'none'), hold: undefined }
  }
  const hold = isInline || !volume || hasFinalizer(volume, finalizer) ? undefined : volume
  const { nodeName } = attachment.spec
  const unknown = `node "${nodeName}" has no NodeID annotation and no CSINode entry for ${driver}`
  return { ...targetOf(facts, facts.nodeId, unknown), hold }
}

/** The node may have left the cluster: then the id that the publish noted on the attachment counts. */
export function planUnpublish(facts: TargetFacts): Target {
  const { attachment } = facts
  const nodeId = facts.nodeId ?? annotation(attachment, nodeIdAnnotation)
  return targetOf(facts, nodeId, `no node id is known for node ${attachment.spec.nodeName}`)
}

function targetOf({ attachment, volume }: TargetFacts, nodeId: string | undefined, unknownNode: string): Target {
  const refuse = (code: ErrorCode, message: string): Target => ({
    kind: 'refused',
    error: refused(code, message, 'none'),
  })
  const { persistentVolumeName: name, inlineVolumeSpec } = attachment.spec.source
  if (!inlineVolumeSpec && !name) return refuse('NoSource', `attachment ${attachment.metadata.name} names no volume`)
  const spec = inlineVolumeSpec ?? volume?.spec
  if (!spec) return refuse('VolumeMissing', `persistentvolume "${name}" not found`)
  if (!spec.csi) return refuse('NotCsi', `the volume of ${attachment.metadata.name} is not a CSI volume`)
  if (nodeId === undefined) return refuse('NodeUnknown', unknownNode)
  return { kind: 'target', spec, csi: spec.csi, nodeId }
}

/** The storage's own list disagrees with the attachment's status; undefined facts are no evidence (SIDE-29). */
export function isDisputed(
  attachment: VolumeAttachment,
  publishedNodeIds: readonly string[] | undefined,
  nodeId: string | undefined,
): boolean {
  if (publishedNodeIds === undefined || nodeId === undefined) return false
  return (attachment.status?.attached ?? false) !== publishedNodeIds.includes(nodeId)
}
