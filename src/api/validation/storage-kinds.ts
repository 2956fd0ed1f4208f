// Are classes, attachments, drivers and their like right, and what of them may change? The storage.k8s.io kinds.
import { duplicate, forbidden, invalid, notSupported, required, tooLong } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type {
  CSIDriver,
  CSINode,
  CSINodeDriver,
  CSIStorageCapacity,
  DriverTokenRequest,
  StorageClass,
  TopologySelectorTerm,
  VolumeAttachment,
  VolumeAttachmentError,
  VolumeAttributesClass,
} from '../types.ts'
import { largestId, validateDriverName, validateNonNegativeQuantity, validateParameters } from './common.ts'
import { immutable, inRange, isQualifiedName, isSubdomain, notNegative } from './formats.ts'
import { byteLength, checked, duplicates, repeated, sameData, unchanged, validateLabelSelector } from './metadata.ts'
import { validateInlineSpec } from './persistent-volume.ts'
import type { RulesByKind } from './validate.ts'

const largestMetadata = 256 * 1024
const longestErrorMessage = 1024
const largestNodeId = 256

export const storageKinds: RulesByKind = {
  StorageClass: { whole: validateClass, change: validateClassUpdate },
  VolumeAttributesClass: { whole: validateAttributesClass, change: validateAttributesClassUpdate },
  VolumeAttachment: {
    whole: validateAttachment,
    created: validateNewAttachment,
    change: validateAttachmentUpdate,
    status: validateAttachmentStatus,
  },
  CSIDriver: { whole: validateDriver, change: validateDriverUpdate },
  CSINode: { whole: validateCsiNode, change: validateCsiNodeUpdate },
  CSIStorageCapacity: { whole: validateStorageCapacity, change: validateStorageCapacityUpdate },
}

function validateClass(storageClass: StorageClass): readonly FieldError[] {
  const { reclaimPolicy: policy, volumeBindingMode: mode } = storageClass
  const policies = ['Delete', 'Retain']
  const modes = ['Immediate', 'WaitForFirstConsumer']
  return [
    ...validateQualified(storageClass.provisioner, 'provisioner'),
    ...validateParameters(storageClass.parameters, 'parameters'),
    ...(policy && !policies.includes(policy) ? [notSupported('reclaimPolicy', policy, policies)] : []),
    ...(mode === undefined ? [required('volumeBindingMode')] : []),
    ...(mode !== undefined && !modes.includes(mode) ? [notSupported('volumeBindingMode', mode, modes)] : []),
    ...validateTopologies(storageClass.allowedTopologies ?? [], 'allowedTopologies'),
  ]
}

function validateClassUpdate(next: StorageClass, previous: StorageClass): readonly FieldError[] {
  return [
    ...frozen(next.parameters, previous.parameters, 'parameters'),
    ...frozen(next.provisioner, previous.provisioner, 'provisioner'),
    ...frozen(next.reclaimPolicy, previous.reclaimPolicy, 'reclaimPolicy'),
    ...unchanged(next.volumeBindingMode, previous.volumeBindingMode, 'volumeBindingMode'),
  ]
}

function validateTopologies(terms: readonly TopologySelectorTerm[], path: string): readonly FieldError[] {
  const twins = new Set(repeated(terms.map((term) => JSON.stringify(term))))
  return terms.flatMap((term, termIndex) => {
    const at = `${path}[${termIndex}]`
    const expressions = term.matchLabelExpressions ?? []
    const keys = expressions.map(({ key }) => key)
    return [
      ...expressions.flatMap(({ key, values }, index) => {
        const here = `${at}.matchLabelExpressions[${index}]`
        return [
          ...((values ?? []).length === 0 ? [required(`${here}.values`)] : []),
          ...duplicates(values ?? [], (valueIndex) => `${here}.values[${valueIndex}]`),
          ...checked(`${here}.key`, key, isQualifiedName),
        ]
      }),
      ...duplicates(keys, (index) => `${at}.matchLabelExpressions[${index}].key`),
      ...(twins.has(termIndex) ? [duplicate(`${at}.matchLabelExpressions`, '')] : []),
    ]
  })
}

function validateAttributesClass(attributesClass: VolumeAttributesClass): readonly FieldError[] {
  const empty = Object.keys(attributesClass.parameters ?? {}).length === 0
  return [
    ...validateQualified(attributesClass.driverName, 'driverName'),
    ...(empty ? [required('parameters', 'must contain at least one key/value pair')] : []),
    ...validateParameters(attributesClass.parameters, 'parameters'),
  ]
}

function validateAttributesClassUpdate(
  next: VolumeAttributesClass,
  previous: VolumeAttributesClass,
): readonly FieldError[] {
  return [
    ...frozen(next.driverName, previous.driverName, 'driverName'),
    ...frozen(next.parameters, previous.parameters, 'parameters'),
  ]
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

function validateDriver(driver: CSIDriver): readonly FieldError[] {
  const { spec } = driver
  const modes = ['Persistent', 'Ephemeral']
  const policies = ['File', 'None', 'ReadWriteOnceWithFSType']
  const policy = spec.fsGroupPolicy
  const period = spec.nodeAllocatableUpdatePeriodSeconds
  return [
    ...(spec.volumeLifecycleModes ?? []).flatMap((mode) =>
      modes.includes(mode) ? [] : [notSupported('spec.volumeLifecycleModes', mode, modes)],
    ),
    ...(policy === undefined || policies.includes(policy)
      ? []
      : [notSupported('spec.fsGroupPolicy', policy, policies)]),
    ...validateTokenRequests(spec.tokenRequests ?? [], 'spec.tokenRequests'),
    ...(period !== undefined && period < 10
      ? [invalid('spec.nodeAllocatableUpdatePeriodSeconds', period, 'must be greater than or equal to 10 seconds')]
      : []),
    ...(spec.serviceAccountTokenInSecrets !== undefined && (spec.tokenRequests ?? []).length === 0
      ? [
          invalid(
            'spec.serviceAccountTokenInSecrets',
            spec.serviceAccountTokenInSecrets,
            'serviceAccountTokenInSecrets is set but no tokenRequests are specified',
          ),
        ]
      : []),
  ]
}

function validateTokenRequests(requests: readonly DriverTokenRequest[], path: string): readonly FieldError[] {
  return [
    ...duplicates(
      requests.map(({ audience }) => audience),
      (index) => `${path}[${index}].audience`,
    ),
    ...requests.flatMap(({ expirationSeconds }, index) =>
      validateTokenDuration(expirationSeconds, `${path}[${index}].expirationSeconds`),
    ),
  ]
}

export function validateTokenDuration(seconds: number | undefined, path: string): readonly FieldError[] {
  if (seconds === undefined) return []
  if (seconds < 600) return [invalid(path, seconds, 'may not specify a duration less than 10 minutes')]
  if (seconds > 2 ** 32) return [invalid(path, seconds, 'may not specify a duration larger than 2^32 seconds')]
  return []
}

function validateDriverUpdate(next: CSIDriver, previous: CSIDriver): readonly FieldError[] {
  return [
    // Kubernetes names this path so, with the extra letters.
    ...unchanged(next.spec.attachRequired, previous.spec.attachRequired, 'spec.attachedRequired'),
    ...unchanged(next.spec.volumeLifecycleModes, previous.spec.volumeLifecycleModes, 'spec.volumeLifecycleModes'),
  ]
}

function validateCsiNode(node: CSINode): readonly FieldError[] {
  const drivers = node.spec.drivers
  return [
    ...drivers.flatMap((driver, index) => validateNodeDriver(driver, `spec.drivers[${index}]`)),
    ...duplicates(
      drivers.map(({ name }) => name),
      (index) => `spec.drivers[${index}].name`,
    ),
  ]
}

function validateNodeDriver(driver: CSINodeDriver, path: string): readonly FieldError[] {
  const { name, nodeID, topologyKeys = [], allocatable } = driver
  const count = allocatable?.count
  return [
    ...validateDriverName(name, `${path}.name`),
    ...(nodeID === '' ? [required(`${path}.nodeID`)] : []),
    ...(nodeID.length > largestNodeId
      ? [invalid(`${path}.nodeID`, nodeID, `must be ${largestNodeId} characters or less`)]
      : []),
    ...(count !== undefined && count < 0 ? [invalid(`${path}.allocatable.count`, count, notNegative)] : []),
    ...topologyKeys.flatMap((key) => [...(key === '' ? [required(path)] : []), ...checked(path, key, isQualifiedName)]),
    ...duplicates(topologyKeys, () => path),
  ]
}

/** A driver that stays may only change how much it can take. */
function validateCsiNodeUpdate(next: CSINode, previous: CSINode): readonly FieldError[] {
  const before = new Map(previous.spec.drivers.map((driver) => [driver.name, driver]))
  return next.spec.drivers.flatMap((driver) => {
    const { name, nodeID, topologyKeys } = driver
    const old = before.get(name)
    if (old === undefined || (old.nodeID === nodeID && sameData(old.topologyKeys, topologyKeys))) return []
    // The value is shown with the member names of Go's internal type.
    const value = { Name: name, NodeID: nodeID, TopologyKeys: topologyKeys ?? null, Allocatable: null }
    return [invalid('spec.drivers', value, immutable)]
  })
}

function validateStorageCapacity(capacity: CSIStorageCapacity): readonly FieldError[] {
  return [
    ...validateLabelSelector(capacity.nodeTopology, 'nodeTopology'),
    ...checked('storageClassName', capacity.storageClassName, isSubdomain),
    ...validateNonNegativeQuantity(capacity.capacity, 'capacity'),
  ]
}

function validateStorageCapacityUpdate(next: CSIStorageCapacity, previous: CSIStorageCapacity): readonly FieldError[] {
  return [
    ...unchanged(next.nodeTopology, previous.nodeTopology, 'nodeTopology'),
    ...unchanged(next.storageClassName, previous.storageClassName, 'storageClassName'),
  ]
}

function validateQualified(name: string, path: string): readonly FieldError[] {
  if (!name) return [required(path)]
  return checked(path, name.toLowerCase(), isQualifiedName)
}

function frozen(next: unknown, previous: unknown, path: string): readonly FieldError[] {
  return sameData(next, previous) ? [] : [forbidden(path, `updates to ${path} are forbidden.`)]
}
