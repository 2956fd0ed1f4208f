// What do several kinds check alike? Quantities, access modes, class and driver names, secret references, paths,
// parameter maps.
import { jsonObjectOf } from '../json.ts'
import { forbidden, invalid, notSupported, required, tooLong } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import { parseQuantity, tryParseQuantity, wholeValue } from '../quantity.ts'
import type { Quantity, SecretReference } from '../generated/types.ts'
import { inRange, isQualifiedName, isSubdomain } from './formats.ts'
import { byteLength, checked, sameData } from './metadata.ts'

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']
const volumeModes = ['Block', 'Filesystem']
const largestParameters = 256 * 1024
const mostParameters = 512

/** ReadWriteOncePod stands alone (API-7). The caller decides whether the list may be empty. */
export function validateAccessModes(modes: readonly string[], path: string): readonly FieldError[] {
  const errors: FieldError[] = modes.flatMap((mode) =>
    accessModes.includes(mode) ? [] : [notSupported(path, mode, accessModes)],
  )
  const others = modes.some((mode) => mode !== 'ReadWriteOncePod' && accessModes.includes(mode))
  if (modes.includes('ReadWriteOncePod') && others) {
    errors.push(forbidden(path, 'may not use ReadWriteOncePod with other access modes'))
  }
  return errors
}

export function validateVolumeMode(mode: string | undefined, path: string): readonly FieldError[] {
  return mode === undefined || volumeModes.includes(mode) ? [] : [notSupported(path, mode, volumeModes)]
}

/** An empty class name is a choice (no class), not a mistake. */
export function validateClassName(name: string | undefined, path: string): readonly FieldError[] {
  return name ? checked(path, name, isSubdomain) : []
}

export function validateDriverName(name: string | undefined, path: string): readonly FieldError[] {
  if (!name) return [required(path)]
  const long = name.length > 63 ? [tooLong(path, 63)] : []
  return [...long, ...isSubdomain(name.toLowerCase()).map((message) => invalid(path, name, message))]
}

export function validateSecretReference(reference: SecretReference | undefined, path: string): readonly FieldError[] {
  if (reference === undefined) return []
  return [
    ...(reference.name ? [] : [required(`${path}.name`)]),
    ...(reference.namespace ? [] : [required(`${path}.namespace`)]),
  ]
}

/** Quantities are canonical by now; zero is fine, less is not. */
export function validateBasicQuantity(value: Quantity, path: string): readonly FieldError[] {
  const amount = parseQuantity(value)
  return amount.nanos < 0n ? [invalid(path, wholeValue(amount), 'must be a valid resource quantity')] : []
}

export function validatePositiveQuantity(value: Quantity, path: string): readonly FieldError[] {
  return parseQuantity(value).nanos <= 0n ? [invalid(path, value, 'must be greater than zero')] : []
}

export function validateNonNegativeQuantity(value: Quantity | undefined, path: string): readonly FieldError[] {
  const amount = value === undefined ? undefined : tryParseQuantity(value)
  return amount !== undefined && amount.nanos < 0n ? [invalid(path, value, 'must be greater than or equal to 0')] : []
}

export const largestId = 2 ** 31 - 1

/** A user or a group. */
export function validateId(id: number | undefined, path: string): readonly FieldError[] {
  return id !== undefined && (id < 0 || id > largestId) ? [invalid(path, id, inRange(0, largestId))] : []
}

/** No `..` element: a path must not climb. */
export function validateNoBacksteps(path: string, field: string): readonly FieldError[] {
  return path.split('/').includes('..') ? [invalid(field, path, "must not contain '..'")] : []
}

/** A path below a directory: relative and not climbing. */
export function validateDescendingPath(path: string, field: string): readonly FieldError[] {
  const absolute = path.startsWith('/') ? [invalid(field, path, 'must be a relative path')] : []
  return [...absolute, ...validateNoBacksteps(path, field)]
}

/** As above, and not one of the names that the atomic writer uses. */
export function validateFilePath(path: string, field: string): readonly FieldError[] {
  const reserved = path.startsWith('..') && !path.startsWith('../')
  return [
    ...validateDescendingPath(path, field),
    ...(reserved && path !== '..' ? [invalid(field, path, "must not start with '..'")] : []),
  ]
}

export function validateParameters(
  parameters: Readonly<Record<string, string>> | undefined,
  path: string,
): readonly FieldError[] {
  const entries = Object.entries(parameters ?? {})
  const errors: FieldError[] = []
  if (entries.length > mostParameters) errors.push(tooLong(path, mostParameters))
  for (const [key] of entries) if (key === '') errors.push(invalid(path, key, 'field can not be empty.'))
  const size = entries.reduce((sum, [key, value]) => sum + byteLength(key) + byteLength(value), 0)
  if (size > largestParameters) errors.push(tooLong(path, largestParameters))
  return errors
}

export function validateTokenDuration(seconds: number | undefined, path: string): readonly FieldError[] {
  if (seconds === undefined) return []
  if (seconds < 600) return [invalid(path, seconds, 'may not specify a duration less than 10 minutes')]
  if (seconds > 2 ** 32) return [invalid(path, seconds, 'may not specify a duration larger than 2^32 seconds')]
  return []
}

export function validateQualified(name: string, path: string): readonly FieldError[] {
  if (!name) return [required(path)]
  return checked(path, name.toLowerCase(), isQualifiedName)
}

export function forbidChange(next: unknown, previous: unknown, path: string): readonly FieldError[] {
  return sameData(next, previous) ? [] : [forbidden(path, `updates to ${path} are forbidden.`)]
}

/** What a config map or a secret may hold, in bytes. */
export const largestData = 1024 * 1024
export const frozenText = 'field is immutable when `immutable` is set'

export function total(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** The changed members of two objects, one line each: what "spec is immutable" prints below its sentence. */
export function describeChanges(next: unknown, previous: unknown): string {
  const [left, right] = [jsonObjectOf(previous), jsonObjectOf(next)]
  const names = [...new Set([...Object.keys(left), ...Object.keys(right)])]
  const changed = names.filter((name) => JSON.stringify(left[name]) !== JSON.stringify(right[name]))
  return changed
    .map((name) => `  ${name}: ${JSON.stringify(left[name] ?? null)} -> ${JSON.stringify(right[name] ?? null)}`)
    .join('\n')
}
