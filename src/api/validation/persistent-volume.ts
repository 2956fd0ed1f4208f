// Is a persistent volume right, and what of it may change? API-6, API-7.
import { labels } from '../annotations.ts'
import { forbidden, invalid, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import { jsonFields } from '../schema/schema.ts'
import type {
  NodeSelectorRequirement,
  PersistentVolume,
  PersistentVolumeSource,
  PersistentVolumeSpec,
  VolumeNodeAffinity,
} from '../types.ts'
import {
  describeChanges,
  validateAccessModes,
  validateBasicQuantity,
  validateClassName,
  validatePositiveQuantity,
  validateVolumeMode,
} from './common.ts'
import { immutable, isSubdomain } from './formats.ts'
import { checked, sameData, unchanged } from './metadata.ts'
import { validateNodeSelector } from './node-selectors.ts'
import {
  validateCsiVolume,
  validateFc,
  validateFlex,
  validateHostPath,
  validateIscsi,
  validateLocal,
  validateNfs,
  validateRequiredFields,
} from './volume-sources.ts'

const policies = ['Delete', 'Recycle', 'Retain']
const sourceNames: readonly string[] = [...jsonFields('core.PersistentVolumeSource').keys()]

export function validateVolume(volume: PersistentVolume): readonly FieldError[] {
  return validateVolumeSpec(volume.spec, 'spec')
}

/** The spec inside an attachment: a CSI source and its modes, nothing that only a stored volume has. */
export function validateInlineSpec(spec: PersistentVolumeSpec, path: string): readonly FieldError[] {
  const modes = spec.accessModes ?? []
  const foreign = ['claimRef', 'capacity', 'persistentVolumeReclaimPolicy', 'nodeAffinity', 'storageClassName'] as const
  const text = 'may not be specified in the context of inline volumes'
  return [
    ...foreign.flatMap((name) => (spec[name] ? [forbidden(`${path}.${name}`, text)] : [])),
    ...(spec.csi === undefined
      ? [required(`${path}.csi`, 'has to be specified in the context of inline volumes')]
      : []),
    ...(modes.length === 0 ? [required(`${path}.accessModes`)] : []),
    ...validateAccessModes(modes, `${path}.accessModes`),
    ...validateSources(spec, path),
    ...validateVolumeMode(spec.volumeMode, `${path}.volumeMode`),
  ]
}

function validateVolumeSpec(spec: PersistentVolumeSpec, path: string): readonly FieldError[] {
  const modes = spec.accessModes ?? []
  const policy = spec.persistentVolumeReclaimPolicy
  return [
    ...(modes.length === 0 ? [required(`${path}.accessModes`)] : []),
    ...validateAccessModes(modes, `${path}.accessModes`),
    ...validateCapacity(spec.capacity, `${path}.capacity`),
    ...(policy && !policies.includes(policy)
      ? [notSupported(`${path}.persistentVolumeReclaimPolicy`, policy, policies)]
      : []),
    ...validateAffinity(spec.nodeAffinity, `${path}.nodeAffinity`),
    ...validateSources(spec, path),
    ...validateClassName(spec.storageClassName, `${path}.storageClassName`),
    ...validateVolumeMode(spec.volumeMode, `${path}.volumeMode`),
    ...validateAttributesClass(spec, path),
  ]
}

/** API-6. Kubernetes validates the whole volume a second time here, so its causes appear twice in the answer. */
export function validateVolumeUpdate(next: PersistentVolume, previous: PersistentVolume): readonly FieldError[] {
  const [wanted, current] = [sourcesOf(next.spec), sourcesOf(previous.spec)]
  const errors: FieldError[] = [...validateVolume(next)]
  if (!sameData(wanted, allowedSource(wanted, current))) {
    const text = 'spec.persistentvolumesource is immutable after creation'
    errors.push(forbidden('spec.persistentvolumesource', `${text}\n${describeChanges(wanted, current)}`))
  }
  errors.push(...unchanged(next.spec.volumeMode, previous.spec.volumeMode, 'volumeMode'))
  const affinity = previous.spec.nodeAffinity
  if (affinity !== undefined && !sameAffinity(next.spec.nodeAffinity, affinity)) {
    const text = `${immutable}, except for updating from beta label to GA`
    errors.push(invalid('nodeAffinity', goAffinity(next.spec.nodeAffinity), text))
  }
  return [...errors, ...attributesClassChange(next.spec, previous.spec)]
}

function validateCapacity(capacity: PersistentVolumeSpec['capacity'], path: string): readonly FieldError[] {
  const entries = Object.entries(capacity ?? {})
  const errors: FieldError[] = entries.length === 0 ? [required(path)] : []
  if (capacity?.['storage'] === undefined || entries.length > 1) {
    const sorted = capacity && Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
    errors.push(notSupported(path, sorted, ['storage']))
  }
  for (const [name, value] of entries) {
    errors.push(
      ...validateBasicQuantity(value, `${path}[${name}]`),
      ...validatePositiveQuantity(value, `${path}[${name}]`),
    )
  }
  return errors
}

function validateAffinity(affinity: VolumeNodeAffinity | undefined, path: string): readonly FieldError[] {
  if (affinity === undefined) return []
  if (affinity.required === undefined) return [required(`${path}.required`, 'must specify required node constraints')]
  return validateNodeSelector(affinity.required, `${path}.required`)
}

function validateSources(spec: PersistentVolumeSpec, path: string): readonly FieldError[] {
  const names = Object.keys(sourcesOf(spec))
  if (names.length === 0) return [required(path, 'must specify a volume type')]
  const [first, ...others] = names
  const errors = others.map((name) => forbidden(`${path}.${name}`, 'may not specify more than 1 volume type'))
  const recycledRoot = spec.hostPath?.path === '/' && spec.persistentVolumeReclaimPolicy === 'Recycle'
  return [
    ...validateSource(spec, first ?? '', `${path}.${first}`),
    ...errors,
    ...(spec.local !== undefined && spec.nodeAffinity === undefined
      ? [required(`${path}.nodeAffinity`, 'Local volume requires node affinity')]
      : []),
    ...(recycledRoot
      ? [forbidden(`${path}.persistentVolumeReclaimPolicy`, "may not be 'recycle' for a hostPath mount of '/'")]
      : []),
  ]
}

function validateSource(spec: PersistentVolumeSource, name: string, path: string): readonly FieldError[] {
  if (name === 'hostPath' && spec.hostPath) return validateHostPath(spec.hostPath, path)
  if (name === 'nfs' && spec.nfs) return validateNfs(spec.nfs, path)
  if (name === 'iscsi' && spec.iscsi) return validateIscsi(spec.iscsi, path)
  if (name === 'fc' && spec.fc) return validateFc(spec.fc, path)
  if (name === 'local' && spec.local) return validateLocal(spec.local, path)
  if (name === 'flexVolume' && spec.flexVolume) return validateFlex(spec.flexVolume, path)
  if (name === 'csi' && spec.csi) return validateCsiVolume(spec.csi, path)
  const field = jsonFields('core.PersistentVolumeSource').get(name)
  return field === undefined ? [] : validateRequiredFields(sourcesOf(spec)[name], field.type, path)
}

function validateAttributesClass(spec: PersistentVolumeSpec, path: string): readonly FieldError[] {
  const name = spec.volumeAttributesClassName
  if (name === undefined) return []
  const field = `${path}.volumeAttributesClassName`
  return [
    ...(name === '' ? [required(field, 'an empty string is disallowed')] : checked(field, name, isSubdomain)),
    ...(spec.csi === undefined
      ? [required(`${path}.csi`, 'has to be specified when using volumeAttributesClassName')]
      : []),
  ]
}

function attributesClassChange(next: PersistentVolumeSpec, previous: PersistentVolumeSpec): readonly FieldError[] {
  if (previous.volumeAttributesClassName === undefined || next.volumeAttributesClassName !== undefined) return []
  return [forbidden('spec.volumeAttributesClassName', 'update from non-nil value to nil is forbidden')]
}

function sourcesOf(spec: PersistentVolumeSource): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(spec).filter(([name]) => sourceNames.includes(name)))
}

/** The old source with the one addition that is allowed: a secret for expansion where there was none. */
function allowedSource(
  wanted: Readonly<Record<string, unknown>>,
  current: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const before = current['csi'] as PersistentVolumeSource['csi'] // our own schema's field
  const after = wanted['csi'] as PersistentVolumeSource['csi'] // likewise
  if (before === undefined || before.controllerExpandSecretRef || !after?.controllerExpandSecretRef) return current
  return { ...current, csi: { ...before, controllerExpandSecretRef: after.controllerExpandSecretRef } }
}

const generalLabels: ReadonlyMap<string, string> = new Map([
  [labels.betaZone, labels.zone],
  [labels.betaRegion, labels.region],
  ['beta.kubernetes.io/os', labels.operatingSystem],
  ['beta.kubernetes.io/arch', labels.architecture],
  ['beta.kubernetes.io/instance-type', 'node.kubernetes.io/instance-type'],
])

/** Equal, or equal once the beta topology labels of the old one are replaced by their successors. */
function sameAffinity(next: VolumeNodeAffinity | undefined, previous: VolumeNodeAffinity): boolean {
  if (sameData(next, previous)) return true
  const renamed = previous.required?.nodeSelectorTerms.map((term) => ({
    ...term,
    ...(term.matchExpressions && { matchExpressions: term.matchExpressions.map(renameKey) }),
  }))
  return renamed !== undefined && sameData(next, { required: { nodeSelectorTerms: renamed } })
}

function renameKey(requirement: NodeSelectorRequirement): NodeSelectorRequirement {
  return { ...requirement, key: generalLabels.get(requirement.key) ?? requirement.key }
}

/** As Go prints its internal type in the error. */
function goAffinity(affinity: VolumeNodeAffinity | undefined): unknown {
  if (affinity === undefined) return null
  const requirements = (list: readonly NodeSelectorRequirement[] | undefined) =>
    list?.map(({ key, operator, values }) => ({ Key: key, Operator: operator, Values: values ?? null })) ?? null
  const terms = affinity.required?.nodeSelectorTerms.map((term) => ({
    MatchExpressions: requirements(term.matchExpressions),
    MatchFields: requirements(term.matchFields),
  }))
  return { Required: terms === undefined ? null : { NodeSelectorTerms: terms } }
}
