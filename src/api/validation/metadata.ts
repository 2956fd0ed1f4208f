// Is the metadata of an object right? Names, labels, annotations, owners and finalizers, when it is made and when
// it is changed; the same for every kind.
import { isJsonObject } from '../json.ts'
import { duplicate, forbidden, invalid, required, tooLong } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { LabelSelector, ObjectMeta, OwnerReference } from '../generated/types.ts'
import { immutable, isLabelValue, isQualifiedName, isLabel, maskTrailingDash, notNegative } from './formats.ts'
import type { Check } from './formats.ts'

export interface MetadataRules {
  readonly namespaced: boolean
  readonly name: Check
}

const largestAnnotations = 256 * 1024
const standardFinalizers: ReadonlySet<string> = new Set(['orphan', 'foregroundDeletion', 'kubernetes'])

const fixedTexts: ReadonlySet<keyof ObjectMeta> = new Set(['name', 'namespace', 'uid', 'creationTimestamp'] as const)
const fixedFields = [...fixedTexts, 'deletionTimestamp', 'deletionGracePeriodSeconds'] as const

export function validateMetadata(meta: ObjectMeta, rules: MetadataRules, path = 'metadata'): readonly FieldError[] {
  return [
    ...validateNames(meta, rules, path),
    ...nonNegative(meta.generation, `${path}.generation`),
    ...validateLabels(meta.labels, `${path}.labels`),
    ...validateAnnotations(meta.annotations, `${path}.annotations`),
    ...validateOwners(meta.ownerReferences ?? [], `${path}.ownerReferences`),
    ...validateFinalizers(meta.finalizers ?? [], `${path}.finalizers`),
  ]
}

export function validateMetadataUpdate(
  next: ObjectMeta,
  previous: ObjectMeta,
  path = 'metadata',
): readonly FieldError[] {
  const errors: FieldError[] = []
  if (previous.deletionTimestamp !== undefined) errors.push(...noNewFinalizers(next, previous, `${path}.finalizers`))
  if (!next.resourceVersion) errors.push(invalid(`${path}.resourceVersion`, '', 'must be specified for an update'))
  if ((next.generation ?? 0) < (previous.generation ?? 0)) {
    errors.push(invalid(`${path}.generation`, next.generation ?? 0, 'must not be decremented'))
  }
  for (const field of fixedFields) {
    // What is left out of a text stands for an empty one here.
    const empty = fixedTexts.has(field) ? '' : undefined
    const value = next[field] ?? empty
    if (value !== (previous[field] ?? empty))
      errors.push(...unchanged(value, previous[field] ?? empty, `${path}.${field}`))
  }
  // What is the very same value as before was found right when it came in.
  if (next.finalizers !== previous.finalizers)
    errors.push(...validateFinalizers(next.finalizers ?? [], `${path}.finalizers`))
  if (next.labels !== previous.labels) errors.push(...validateLabels(next.labels, `${path}.labels`))
  if (next.annotations !== previous.annotations)
    errors.push(...validateAnnotations(next.annotations, `${path}.annotations`))
  if (next.ownerReferences !== previous.ownerReferences)
    errors.push(...validateOwners(next.ownerReferences ?? [], `${path}.ownerReferences`))
  return errors
}

export function validateLabels(
  labels: Readonly<Record<string, string>> | undefined,
  path: string,
): readonly FieldError[] {
  return Object.entries(labels ?? {}).flatMap(([key, value]) => [
    ...isQualifiedName(key).map((message) => invalid(path, key, message)),
    ...isLabelValue(value).map((message) => invalid(path, value, message)),
  ])
}

export function validateAnnotations(
  annotations: Readonly<Record<string, string>> | undefined,
  path: string,
): readonly FieldError[] {
  const entries = Object.entries(annotations ?? {})
  const errors = entries.flatMap(([key]) =>
    isQualifiedName(key.toLowerCase()).map((message) => invalid(path, key, message)),
  )
  const size = entries.reduce((sum, [key, value]) => sum + byteLength(key) + byteLength(value), 0)
  return size > largestAnnotations ? [...errors, tooLong(path, largestAnnotations)] : errors
}

export function validateLabelSelector(selector: LabelSelector | undefined, path: string): readonly FieldError[] {
  if (selector === undefined) return []
  const expressions = (selector.matchExpressions ?? []).flatMap((expression, index) => {
    const at = `${path}.matchExpressions[${index}]`
    const values = expression.values ?? []
    return [
      ...selectorOperator(expression.operator, values, at),
      ...isQualifiedName(expression.key).map((message) => invalid(`${at}.key`, expression.key, message)),
      ...values.flatMap((value, valueIndex) =>
        isLabelValue(value).map((message) => invalid(`${at}.values[${valueIndex}]`, value, message)),
      ),
    ]
  })
  return [...validateLabels(selector.matchLabels, `${path}.matchLabels`), ...expressions]
}

export function unchanged(next: unknown, previous: unknown, path: string): readonly FieldError[] {
  return sameData(next, previous) ? [] : [invalid(path, next, immutable)]
}

/** Equal as data: absent, empty list and empty map are the same, as they are on the wire. */
export function sameData(left: unknown, right: unknown): boolean {
  if (left === right || (isNothing(left) && isNothing(right))) return true
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((value, index) => sameData(value, right[index]))
  }
  if (isJsonObject(left) && isJsonObject(right)) {
    for (const key of Object.keys(left)) if (!sameData(left[key], right[key])) return false
    for (const key of Object.keys(right)) if (!Object.hasOwn(left, key) && !isNothing(right[key])) return false
    return true
  }
  return false
}

export function byteLength(text: string): number {
  return Buffer.byteLength(text)
}

function nonNegative(value: number | undefined, path: string): readonly FieldError[] {
  return value !== undefined && value < 0 ? [invalid(path, value, notNegative)] : []
}

export function checked(path: string, text: string, check: Check): readonly FieldError[] {
  return check(text).map((message) => invalid(path, text, message))
}

/** The indices of values that were there before. One pass: lists come from clients and may be long. */
export function repeated(values: readonly string[]): readonly number[] {
  const seen = new Set<string>()
  const indices: number[] = []
  for (const [index, value] of values.entries()) {
    if (seen.has(value)) indices.push(index)
    seen.add(value)
  }
  return indices
}

export function duplicates(values: readonly string[], path: (index: number) => string): readonly FieldError[] {
  return repeated(values).map((index) => duplicate(path(index), values[index]))
}

function validateNames(meta: ObjectMeta, rules: MetadataRules, path: string): readonly FieldError[] {
  const errors: FieldError[] = []
  if (meta.generateName) {
    const stem = maskTrailingDash(meta.generateName)
    errors.push(...rules.name(stem).map((message) => invalid(`${path}.generateName`, meta.generateName, message)))
  }
  if (!meta.name) errors.push(required(`${path}.name`, 'name or generateName is required'))
  else errors.push(...checked(`${path}.name`, meta.name, rules.name))
  if (!rules.namespaced) {
    if (meta.namespace) errors.push(forbidden(`${path}.namespace`, 'not allowed on this type'))
  } else if (!meta.namespace) errors.push(required(`${path}.namespace`))
  else errors.push(...checked(`${path}.namespace`, meta.namespace, isLabel))
  return errors
}

function validateOwners(owners: readonly OwnerReference[], path: string): readonly FieldError[] {
  const errors = owners.flatMap((owner) => validateOwner(owner, path))
  const controllers = owners.filter((owner) => owner.controller === true)
  const [first, second] = controllers
  if (first !== undefined && second !== undefined) {
    const names = `${first.kind}/${first.name} and ${second.kind}/${second.name}`
    const text = `Only one reference can have Controller set to true. Found "true" in references for ${names}`
    errors.push(invalid(path, owners, text))
  }
  return errors
}

function validateOwner(owner: OwnerReference, path: string): readonly FieldError[] {
  const errors: FieldError[] = []
  const apiVersion = owner.apiVersion ?? ''
  const parts = apiVersion.split('/')
  if (parts.length > 2 || !parts.at(-1))
    errors.push(invalid(`${path}.apiVersion`, apiVersion, 'version must not be empty'))
  for (const field of ['kind', 'name', 'uid'] as const) {
    if (!owner[field]) errors.push(invalid(`${path}.${field}`, owner[field] ?? '', 'must not be empty'))
  }
  if (apiVersion === 'v1' && owner.kind === 'Event') {
    errors.push(invalid(path, owner, '/v1, Kind=Event is disallowed from being an owner'))
  }
  return errors
}

function validateFinalizers(finalizers: readonly string[], path: string): readonly FieldError[] {
  const errors = finalizers.flatMap((name, index) => {
    const malformed = checked(path, name, isQualifiedName)
    const plain = !name.includes('/') && !standardFinalizers.has(name)
    const text = 'name is neither a standard finalizer name nor is it fully qualified'
    return [...malformed, ...(plain ? [invalid(`${path}[${index}]`, name, text)] : [])]
  })
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    errors.push(invalid(path, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'))
  }
  return errors
}

function noNewFinalizers(next: ObjectMeta, previous: ObjectMeta, path: string): readonly FieldError[] {
  const old = new Set(previous.finalizers)
  const added = (next.finalizers ?? []).filter((name) => !old.has(name)).sort()
  if (added.length === 0) return []
  const list = added.map((name) => JSON.stringify(name)).join(', ')
  const text = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`
  return [forbidden(path, text)]
}

/** The operators that all selectors share; labels know no others. */
export function selectorOperator(operator: string, values: readonly string[], at: string): readonly FieldError[] {
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length > 0) return []
      return [required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'")]
    case 'Exists':
    case 'DoesNotExist':
      if (values.length === 0) return []
      return [forbidden(`${at}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
    default:
      return [invalid(`${at}.operator`, operator, 'not a valid selector operator')]
  }
}

function isNothing(value: unknown): boolean {
  if (value === undefined || value === null) return true
  if (Array.isArray(value)) return value.length === 0
  return isJsonObject(value) && Object.keys(value).length === 0
}
