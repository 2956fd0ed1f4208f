// Is a claim right, and what of it may change? API-5, API-7.
import { annotations } from '../annotations.ts'
import { forbidden, invalid, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import { compareQuantities } from '../quantity.ts'
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec, TypedObjectReference } from '../generated/types.ts'
import {
  describeChanges,
  validateAccessModes,
  validateBasicQuantity,
  validateClassName,
  validatePositiveQuantity,
  validateVolumeMode,
} from './common.ts'
import { immutable, isQualifiedName, isSubdomain } from './formats.ts'
import { checked, sameData, unchanged, validateLabelSelector } from './metadata.ts'

const immutableText =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'

export function validateClaim(claim: PersistentVolumeClaim): readonly FieldError[] {
  return validateClaimSpec(claim.spec, 'spec')
}

export function validateClaimSpec(spec: PersistentVolumeClaimSpec, path: string): readonly FieldError[] {
  const modes = spec.accessModes ?? []
  const storage = spec.resources?.requests?.['storage']
  const storagePath = `${path}.resources[storage]`
  return [
    ...(modes.length === 0 ? [required(`${path}.accessModes`, 'at least 1 access mode is required')] : []),
    ...validateLabelSelector(spec.selector, `${path}.selector`),
    ...validateAccessModes(modes, `${path}.accessModes`),
    ...(storage === undefined ? [required(storagePath)] : validatePositiveQuantity(storage, storagePath)),
    ...validateClassName(spec.storageClassName, `${path}.storageClassName`),
    ...validateVolumeMode(spec.volumeMode, `${path}.volumeMode`),
    ...validateDataSources(spec, path),
    ...validateClassName(spec.volumeAttributesClassName, `${path}.volumeAttributesClassName`),
  ]
}

/** What a bound claim may change (API-5). */
export function validateClaimUpdate(
  next: PersistentVolumeClaim,
  previous: PersistentVolumeClaim,
): readonly FieldError[] {
  const errors: FieldError[] = []
  const upgraded = classMovedFromAnnotation(next, previous)
  if (!upgraded) {
    const key = annotations.betaStorageClass
    const [wanted, current] = [next.metadata.annotations?.[key] ?? '', previous.metadata.annotations?.[key] ?? '']
    if (wanted !== current) errors.push(invalid(`metadata.annotations.${key}`, wanted, immutable))
  }
  const wanted = withoutAllowedChanges(next, previous, upgraded)
  if (!sameData(wanted, previous.spec)) {
    errors.push(forbidden('spec', `${immutableText}\n${describeChanges(wanted, previous.spec)}`))
  }
  return [
    ...errors,
    ...validateShrinking(next, previous),
    ...unchanged(next.spec.volumeMode, previous.spec.volumeMode, 'volumeMode'),
    ...validateAttributesClassChange(next, previous),
  ]
}

export function validateClaimStatusUpdate(next: PersistentVolumeClaim): readonly FieldError[] {
  const { capacity, allocatedResources, allocatedResourceStatuses } = next.status ?? {}
  const [statuses, allocated] = ['status.allocatedResourceStatuses', 'status.allocatedResources']
  return [
    ...((next.spec.accessModes ?? []).length === 0 ? [required('Spec.accessModes')] : []),
    ...Object.entries(capacity ?? {}).flatMap(([name, value]) =>
      validateBasicQuantity(value, `status.capacity[${name}]`),
    ),
    ...Object.entries(allocatedResourceStatuses ?? {}).flatMap(([name, value]) => [
      ...validateResourceKey(name, statuses),
      // Kubernetes shows the resource here, not the word that it does not know.
      ...(resizeStatuses.includes(value) ? [] : [notSupported(statuses, name, resizeStatuses)]),
    ]),
    ...Object.entries(allocatedResources ?? {}).flatMap(([name, value]) => {
      const errors = validateResourceKey(name, allocated)
      return errors.length > 0 ? errors : validateBasicQuantity(value, `${allocated}[${name}]`)
    }),
  ]
}

const resizeStatuses = [
  'ControllerResizeInProgress',
  'ControllerResizeInfeasible',
  'NodeResizeInProgress',
  'NodeResizeInfeasible',
  'NodeResizePending',
]

/** Of the resources without a foreign prefix a claim has only one. */
function validateResourceKey(name: string, path: string): readonly FieldError[] {
  const errors = checked(path, name, isQualifiedName)
  if (errors.length > 0 || name === 'storage') return errors
  const native = !name.includes('/') || name.split('/', 1)[0]?.endsWith('kubernetes.io')
  return native ? [notSupported(path, name, ['storage'])] : []
}

/** The wanted spec with every change that API-5 allows taken back. */
function withoutAllowedChanges(
  next: PersistentVolumeClaim,
  previous: PersistentVolumeClaim,
  upgraded: boolean,
): PersistentVolumeClaimSpec {
  const [wanted, current] = [next.spec, previous.spec]
  const result: Record<string, unknown> = { ...wanted }
  const takeBack = (name: keyof PersistentVolumeClaimSpec) => {
    if (current[name] === undefined) delete result[name]
    else result[name] = current[name]
  }
  if (!current.volumeName) takeBack('volumeName')
  if (upgraded || classSetFromNothing(next, previous)) takeBack('storageClassName')
  if (next.status?.phase === 'Bound') {
    takeBack('volumeAttributesClassName')
    const storage = current.resources?.requests?.['storage']
    if (storage !== undefined) {
      result['resources'] = { ...wanted.resources, requests: { ...wanted.resources?.requests, storage } }
    }
  }
  return result
}

/** The class moved from the beta annotation to the field, with the same name. */
function classMovedFromAnnotation(next: PersistentVolumeClaim, previous: PersistentVolumeClaim): boolean {
  const old = previous.metadata.annotations?.[annotations.betaStorageClass]
  const now = next.metadata.annotations?.[annotations.betaStorageClass]
  return (
    old !== undefined &&
    previous.spec.storageClassName === undefined &&
    next.spec.storageClassName === old &&
    (now === undefined || now === old)
  )
}

function classSetFromNothing(next: PersistentVolumeClaim, previous: PersistentVolumeClaim): boolean {
  const annotated = previous.metadata.annotations?.[annotations.betaStorageClass]
  if (previous.spec.storageClassName !== undefined || next.spec.storageClassName === undefined) return false
  return annotated === undefined || annotated === next.spec.storageClassName
}

function validateShrinking(next: PersistentVolumeClaim, previous: PersistentVolumeClaim): readonly FieldError[] {
  const [wanted, current] = [next.spec.resources?.requests?.['storage'], previous.spec.resources?.requests?.['storage']]
  if (compareQuantities(wanted, current) >= 0) return []
  if (compareQuantities(wanted, previous.status?.capacity?.['storage']) > 0) return []
  return [forbidden('spec.resources.requests.storage', 'field can not be less than status.capacity')]
}

function validateAttributesClassChange(
  next: PersistentVolumeClaim,
  previous: PersistentVolumeClaim,
): readonly FieldError[] {
  if (previous.status?.currentVolumeAttributesClassName === undefined) return []
  const [wanted, current] = [next.spec.volumeAttributesClassName, previous.spec.volumeAttributesClassName]
  if (wanted === current || wanted) return []
  const target = wanted === undefined ? 'nil' : 'empty string'
  const when = 'when status.currentVolumeAttributesClassName is not nil'
  return [forbidden('spec.volumeAttributesClassName', `update to ${target} is forbidden ${when}`)]
}

function validateDataSources(spec: PersistentVolumeClaimSpec, path: string): readonly FieldError[] {
  const { dataSource, dataSourceRef } = spec
  const errors: FieldError[] = []
  if (dataSource) errors.push(...validateReference(dataSource, `${path}.dataSource`))
  if (dataSourceRef) {
    errors.push(...validateReference(dataSourceRef, `${path}.dataSourceRef`))
    const { namespace } = dataSourceRef
    if (namespace && dataSource) {
      errors.push(invalid(path, {}, 'may not be specified when dataSourceRef.namespace is specified'))
    } else if (dataSource && !sameData(withoutNamespace(dataSourceRef), dataSource)) {
      errors.push(invalid(path, {}, 'must match dataSourceRef'))
    }
  }
  return errors
}

function validateReference(reference: TypedObjectReference, path: string): readonly FieldError[] {
  const { apiGroup, kind, name } = reference
  const errors: FieldError[] = []
  if (!name) errors.push(required(`${path}.name`))
  if (!kind) errors.push(required(`${path}.kind`))
  if (apiGroup) errors.push(...checked(`${path}.apiGroup`, apiGroup, isSubdomain))
  else if (kind !== 'PersistentVolumeClaim') {
    errors.push(invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
  }
  return errors
}

function withoutNamespace(reference: TypedObjectReference): Omit<TypedObjectReference, 'namespace'> {
  const { namespace: _, ...rest } = reference
  return rest
}
