// Are the options of a request valid? Query parameters and option bodies, refused in Kubernetes' words.
import { forbidden, invalidObject, notSupported } from '../../api/field-errors.ts'
import type { FieldError } from '../../api/field-errors.ts'
import { badRequest, invalid } from '../../api/status-error.ts'
import type { StatusError } from '../../api/status-error.ts'

export type OptionKind = 'CreateOptions' | 'UpdateOptions' | 'PatchOptions' | 'DeleteOptions' | 'ListOptions'

export type FieldValidation = 'Strict' | 'Warn' | 'Ignore'

/** 422 about one option. */
export function invalidOptions(kind: OptionKind, field: string, reason: string, message: string): StatusError {
  const causes = [{ reason, message, field }]
  return invalid({ group: 'meta.k8s.io', kind }, '', causes, `${field}: ${message}`)
}

/** What is wrong with the versions that a list or a watch asks for, all of it at once. */
export function checkVersions(asked: {
  readonly watch: boolean
  readonly resourceVersion?: string
  readonly resourceVersionMatch?: string
  readonly sendInitialEvents?: boolean
  readonly continue?: string
}): void {
  const errors = asked.watch ? watchErrors(asked) : listErrors(asked)
  if (errors.length > 0) throw invalidObject({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', errors)
}

const matchField = 'resourceVersionMatch'
const afterContinue = 'resourceVersionMatch is forbidden when continue is provided'

function listErrors(asked: Parameters<typeof checkVersions>[0]): readonly FieldError[] {
  const { resourceVersion = '', resourceVersionMatch: match = '' } = asked
  const errors: FieldError[] = []
  if (match !== '') {
    if (resourceVersion === '') {
      errors.push(forbidden(matchField, 'resourceVersionMatch is forbidden unless resourceVersion is provided'))
    }
    if (asked.continue) errors.push(forbidden(matchField, afterContinue))
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      errors.push(notSupported(matchField, match, ['Exact', 'NotOlderThan', '']))
    }
    if (match === 'Exact' && resourceVersion === '0') {
      errors.push(forbidden(matchField, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    }
  }
  if (asked.sendInitialEvents !== undefined) {
    errors.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  }
  return errors
}

/** `sendInitialEvents` (a streaming list) has rules of its own. */
function watchErrors(asked: Parameters<typeof checkVersions>[0]): readonly FieldError[] {
  const { resourceVersionMatch: match = '', sendInitialEvents } = asked
  const errors: FieldError[] = []
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    errors.push(forbidden(matchField, 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'))
  }
  if (match !== '') {
    if (sendInitialEvents === undefined) {
      const text = 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided'
      errors.push(forbidden(matchField, text))
    }
    if (match !== 'NotOlderThan') errors.push(notSupported(matchField, match, ['NotOlderThan']))
  }
  if (asked.continue && (match !== '' || (asked.resourceVersion ?? '0') === '0')) {
    errors.push(forbidden(matchField, afterContinue))
  }
  return errors
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
  const supported = 'supported values: "", "Ignore", "Strict", "Warn"'
  const message = `Unsupported value: ${JSON.stringify(text)}: ${supported}`
  throw invalidOptions(kind, 'fieldValidation', 'FieldValueNotSupported', message)
}

export function parseFieldManager(kind: OptionKind, text: string | null): string | undefined {
  if (text === null || text === '') return undefined
  if (text.length > 128) {
    throw invalidOptions(kind, 'fieldManager', 'FieldValueTooLong', 'Too long: may not be more than 128 bytes')
  }
  // oxlint-disable-next-line no-control-regex -- unprintable characters are what this looks for
  const unprintable = /[\u0000-\u001f\u007f-\u009f]/.exec(text)
  if (unprintable !== null) {
    const code = unprintable[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')
    const where = `invalid character U+${code} (at position ${unprintable.index})`
    const message = `Invalid value: ${JSON.stringify(text)}: ${where}`
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
