// Are the options of a request valid? Query parameters and option bodies, refused in Kubernetes' words.
import { badRequest, invalid } from '../api/status-error.ts'
import type { StatusError } from '../api/status-error.ts'

export type OptionKind = 'CreateOptions' | 'UpdateOptions' | 'PatchOptions' | 'DeleteOptions' | 'ListOptions'

export type FieldValidation = 'Strict' | 'Warn' | 'Ignore'

/** 422 about one option. */
export function invalidOptions(kind: OptionKind, field: string, reason: string, message: string): StatusError {
  const causes = [{ reason, message, field }]
  return invalid({ group: 'meta.k8s.io', kind }, '', causes, `${field}: ${message}`)
}

export function parseDryRun(kind: OptionKind, values: readonly string[]): boolean {
  if (values.length === 0) return false
  if (values.every((value) => value === 'All')) return true
  const message = `Unsupported value: ${JSON.stringify(values)}: supported values: "All"`
  throw invalidOptions(kind, 'dryRun', 'FieldValueNotSupported', message)
}

export function parseFieldValidation(kind: OptionKind, text: string | null): FieldValidation {
  if (text === null || text === '') return 'Warn'
  if (text === 'Strict' || text === 'Warn' || text === 'Ignore') return text
  const supported = 'supported values: "Ignore", "Strict", "Warn"'
  const message = `Unsupported value: ${JSON.stringify(text)}: ${supported}`
  throw invalidOptions(kind, 'fieldValidation', 'FieldValueNotSupported', message)
}

export function parseFieldManager(kind: OptionKind, text: string | null): string | undefined {
  if (text === null || text === '') return undefined
  if (text.length > 128) {
    throw invalidOptions(kind, 'fieldManager', 'FieldValueTooLong', 'Too long: may not be more than 128 bytes')
  }
  // oxlint-disable-next-line no-control-regex -- unprintable characters are what this looks for
  if (/[\u0000-\u001f\u007f-\u009f]/.test(text)) {
    const message = `Invalid value: ${JSON.stringify(text)}: should only contain printable characters`
    throw invalidOptions(kind, 'fieldManager', 'FieldValueInvalid', message)
  }
  return text
}

export function parseWhole(text: string | null): number | undefined {
  if (text === null || text === '') return undefined
  if (!/^[+-]?\d+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`)
  const value = Number(text)
  if (!Number.isSafeInteger(value)) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: value out of range`)
  }
  return value
}

/** Go's reading of a boolean parameter: present without value means true. */
export function parseFlag(text: string | null): boolean {
  if (text === null) return false
  return text !== '0' && text.toLowerCase() !== 'false'
}
