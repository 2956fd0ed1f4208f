// Is a persistent volume right, and what of it may change? API-6, API-7.
import { labels } from '../annotations.ts'
import { forbidden, invalid, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type {
  NodeSelectorRequirement,
  PersistentVolume,
  PersistentVolumeSource,
  PersistentVolumeSpec,
  VolumeNodeAffinity,
} from '../generated/types.ts'
import {
  describeChanges,
  validateAccessModes,
  validateBasicQuantity,
  validateClassName,
  validatePositiveQuantity,
  validateVolumeMode,
} from './common.ts'
import { immutable, isSubdomain } from './formats.ts'
import { sourceNamesIn, validateInTreeSource } from './in-tree-sources.ts'
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
} from './volume-sources.ts'

const policies = ['Delete', 'Recycle', 'Retain']
const sourceNames = sourceNamesIn('core.PersistentVolumeSource', [
  'hostPath',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'glusterfs',
  'flocker',
  'nfs',
  'rbd',
  'quobyte',
  'cephfs',
  'iscsi',
  'cinder',
  'fc',
  'flexVolume',
  'azureFile',
  'vsphereVolume',
  'photonPersistentDisk',
  'portworxVolume',
  'azureDisk',
  'scaleIO',
  'local',
  'storageos',
  'csi',
])

export function validateVolume(volume: PersistentVolume): readonly FieldError[] {
  const { metadata, spec } = volume
  const options = metadata.annotations?.[mountOptionsAnnotation]
  const refused = options !== undefined && !takesMountOptions.some((name) => Object.hasOwn(spec, name))
  const at = `metadata.annotations.${mountOptionsAnnotation}`
  return [
    ...validateVolumeSpec(spec, 'spec'),
    ...(refused ? [forbidden(at, 'may not specify mount options for this volume type')] : []),
  ]
}

/** The old way to say mount options, kept for the sources that had it. */
const mountOptionsAnnotation = 'volume.beta.kubernetes.io/mount-options'
const takesMountOptions = [
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'glusterfs',
  'nfs',
  'rbd',
  'quobyte',
  'iscsi',
  'cinder',
  'cephfs',
  'azureFile',
  'vsphereVolume',
  'azureDisk',
  'photonPersistentDisk',
]

/** The spec inside an attachment: a CSI source and its modes, nothing that only a stored volume has. */
export function validateInlineSpec(spec: PersistentVolumeSpec, path: string): readonly FieldError[] {
  const modes = spec.accessModes ?? []
  const { persistentVolumeReclaimPolicy: policy, volumeMode: mode } = spec
  const context = 'in the context of inline volumes'
  const foreign = (name: keyof PersistentVolumeSpec) =>
    spec[name] ? [forbidden(`${path}.${name}`, `may not be specified ${context}`)] : []
  return [
    ...foreign('claimRef'),
    ...foreign('capacity'),
    ...(spec.csi === undefined ? [required(`${path}.csi`, `has to be specified ${context}`)] : []),
    ...(modes.length === 0 ? [required(`${path}.accessModes`)] : []),
    ...validateAccessModes(modes, `${path}.accessModes`),
    ...(policy && policy !== 'Retain'
      ? [forbidden(`${path}.persistentVolumeReclaimPolicy`, `may only be Retain ${context}`)]
      : []),
    ...foreign('nodeAffinity'),
    ...validateSources(spec, path),
    ...foreign('storageClassName'),
    ...(mode && mode !== 'Filesystem'
      ? [forbidden(`${path}.volumeMode`, `may not specify volumeMode other than Filesystem ${context}`)]
      : []),
    ...validateAttributesClass(spec, path),
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

/** API-6. `found` is what `validateVolume` says about the new one: Kubernetes says it twice. */
export function validateVolumeUpdate(
  next: PersistentVolume,
  previous: PersistentVolume,
  found: readonly FieldError[],
): readonly FieldError[] {
  const wanted = sourcesOf(next.spec)
  const current = sourcesOf(previous.spec)
  const errors: FieldError[] = [...found]
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
  const root = spec.hostPath?.path.startsWith('/') && spec.hostPath.path.split('/').every((part) => /^\.?$/.test(part))
  const recycledRoot = root && spec.persistentVolumeReclaimPolicy === 'Recycle'
  return [
    ...validateSource(spec, first ?? '', path),
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
  const at = `${path}.${name}`
  if (name === 'hostPath' && spec.hostPath) return validateHostPath(spec.hostPath, at)
  if (name === 'nfs' && spec.nfs) return validateNfs(spec.nfs, at)
  if (name === 'iscsi' && spec.iscsi) return validateIscsi(spec.iscsi, at, true)
  if (name === 'fc' && spec.fc) return validateFc(spec.fc, at)
  if (name === 'local' && spec.local) return validateLocal(spec.local, at)
  if (name === 'flexVolume' && spec.flexVolume) return validateFlex(spec.flexVolume, at)
  if (name === 'csi' && spec.csi) return validateCsiVolume(spec.csi, at)
  return validateInTreeSource(name, sourcesOf(spec)[name], path, true)
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
  const values = spec as Readonly<Record<string, unknown>> // looked at by name
  const found: Record<string, unknown> = {}
  for (const name of sourceNames) if (Object.hasOwn(values, name)) found[name] = values[name]
  return found
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
