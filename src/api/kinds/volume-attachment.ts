// What is a volume attachment? The wish to have a volume on a node; its spec never changes.
import { filled } from '../defaults/absent.ts'
import { forbidden, invalid, required, tooLong } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { VolumeAttachment, VolumeAttachmentError } from '../generated/types.ts'
import { largestId, validateDriverName } from '../validation/common.ts'
import { immutable, inRange, isSubdomain } from '../validation/formats.ts'
import { byteLength, checked, sameData } from '../validation/metadata.ts'
import { validateInlineSpec } from '../validation/persistent-volume.ts'
import { age } from './age.ts'
import { defineKind, reading, statusOf, statusVerbs } from './define-kind.ts'
import { ageColumn, column, nameColumn } from './printer.ts'

const largestMetadata = 256 * 1024
const longestErrorMessage = 1024

export const volumeAttachmentKind = defineKind<VolumeAttachment>({
  kind: 'VolumeAttachment',
  group: 'storage.k8s.io',
  plural: 'volumeattachments',
  scope: 'Cluster',
  subresources: [statusOf('VolumeAttachment')],
  message: 'storage.VolumeAttachment',
  description: 'The wish to have a volume attached to a node, and whether it is.',
  fieldDescriptions: {
    'VolumeAttachmentSpec.attacher': 'The driver that must attach the volume.',
    'VolumeAttachmentSpec.nodeName': 'The node to attach to.',
    'VolumeAttachmentSpec.source': 'The volume to attach.',
    'VolumeAttachmentStatus.attached': 'Whether the driver has attached the volume.',
    'VolumeAttachmentStatus.attachError': 'The last error of attaching.',
    'VolumeAttachmentStatus.detachError': 'The last error of detaching.',
  },
  defaults: defaultAttachment,
  validation: {
    whole: validateAttachment,
    created: validateNewAttachment,
    change: validateAttachmentUpdate,
    status: validateAttachmentStatus,
    metadataErrorsOnce: true,
  },
  strategy: {
    updateNeedsVersion: true,
    statusKeepsMetadata: true,
    deleteAnswersObject: true,
    initialStatus: () => ({ attached: false }),
    statusWrite: (status) => ({ ...status, attached: status?.['attached'] ?? false }),
  },
  access: {
    controllers: { verbs: [...reading, 'create', 'update', 'patch', 'delete'], subresources: { status: statusVerbs } },
    nodes: { may: 'ownAttachments' },
  },
  table: {
    columns: [
      nameColumn,
      { ...column('Attacher', 'The driver that attaches.'), format: 'name' },
      column('PV', 'The volume to attach.'),
      column('Node', 'The node to attach it to.'),
      column('Attached', 'Whether the driver said it is attached.', 'boolean'),
      ageColumn,
    ],
    cells: (attachment, now) => [
      attachment.metadata.name,
      attachment.spec.attacher,
      attachment.spec.source.persistentVolumeName ?? '',
      attachment.spec.nodeName,
      attachment.status?.attached ?? false,
      age(attachment.metadata.creationTimestamp, now),
    ],
  },
})

function defaultAttachment(attachment: VolumeAttachment): VolumeAttachment {
  const { attachError, detachError } = attachment.status ?? {}
  if (attachError === undefined && detachError === undefined) return attachment
  const status = {
    ...attachment.status,
    ...(attachError && { attachError: filled(attachError, ['time']) }),
    ...(detachError && { detachError: filled(detachError, ['time']) }),
  }
  return { ...attachment, status } as VolumeAttachment // attached is what it was
}

function validateAttachment(attachment: VolumeAttachment): readonly FieldError[] {
  const { attacher, source, nodeName } = attachment.spec
  return [
    ...(attacher ? [] : [required('spec.attacher')]),
    ...validateAttachmentSource(source, 'spec.source'),
    ...checked('spec.nodeName', nodeName, isSubdomain),
    ...validateAttachmentStatus(attachment),
  ]
}

/** What version 1 asks of a new attachment beyond what older ones did. */
function validateNewAttachment(attachment: VolumeAttachment): readonly FieldError[] {
  const { attacher, source } = attachment.spec
  const name = source.persistentVolumeName
  return [
    ...validateDriverName(attacher, 'spec.attacher'),
    ...(name === undefined ? [] : checked('spec.source.persistentVolumeName', name, isSubdomain)),
  ]
}

function validateAttachmentSource(source: VolumeAttachment['spec']['source'], path: string): readonly FieldError[] {
  const { inlineVolumeSpec: inline, persistentVolumeName: name } = source
  const text = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'
  if (inline === undefined && name === undefined) return [required(path, text)]
  if (inline !== undefined && name !== undefined) return [forbidden(path, text)]
  if (name === '') return [required(`${path}.persistentVolumeName`, 'must specify non empty persistentVolumeName')]
  return inline === undefined ? [] : validateInlineSpec(inline, `${path}.inlineVolumeSpec`)
}

function validateAttachmentStatus(attachment: VolumeAttachment): readonly FieldError[] {
  const { attachmentMetadata, attachError, detachError } = attachment.status ?? {}
  const size = Object.entries(attachmentMetadata ?? {}).reduce((sum, [k, v]) => sum + byteLength(k) + byteLength(v), 0)
  return [
    ...(size > largestMetadata ? [tooLong('status.attachmentMetadata', largestMetadata)] : []),
    ...validateAttachmentError(attachError, 'status.attachError'),
    ...validateAttachmentError(detachError, 'status.detachError'),
  ]
}

function validateAttachmentError(error: VolumeAttachmentError | undefined, path: string): readonly FieldError[] {
  // Kubernetes 1.35 refuses beyond 1024 bytes, and says 262144.
  const long = byteLength(error?.message ?? '') > longestErrorMessage
  const code = error?.errorCode
  return [
    ...(long ? [tooLong(`${path}.message`, largestMetadata)] : []),
    ...(code !== undefined && code < 0 ? [invalid(`${path}.errorCode`, code, inRange(0, largestId))] : []),
  ]
}

function validateAttachmentUpdate(next: VolumeAttachment, previous: VolumeAttachment): readonly FieldError[] {
  if (sameData(next.spec, previous.spec)) return []
  const { attacher, source, nodeName } = next.spec
  // The value is shown with the member names of Go's internal type.
  const value = {
    Attacher: attacher,
    Source: {
      PersistentVolumeName: source.persistentVolumeName ?? null,
      InlineVolumeSpec: source.inlineVolumeSpec ?? null,
    },
    NodeName: nodeName,
  }
  return [invalid('spec', value, immutable)]
}
