// How do we say which field is wrong, and why? Field errors in Kubernetes' words, and the 422 they add up to.
// A path is plain text: `spec.volumes[0].name`, `spec.capacity[storage]`.
import type { StatusCause } from './generated/types.ts'
import { invalid as invalidStatus } from './status-error.ts'
import type { StatusError } from './status-error.ts'

type FieldErrorReason =
  | 'FieldValueNotFound'
  | 'FieldValueRequired'
  | 'FieldValueDuplicate'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTypeInvalid'
  | 'InternalError'

export interface FieldError {
  readonly reason: FieldErrorReason
  readonly field: string
  /** Without the path: `Invalid value: "x": must be y`. */
  readonly message: string
}

export function required(field: string, detail = ''): FieldError {
  return fieldError('FieldValueRequired', field, 'Required value', detail)
}

export function invalid(field: string, value: unknown, detail: string): FieldError {
  return fieldError('FieldValueInvalid', field, `Invalid value: ${show(value)}`, detail)
}

export function duplicate(field: string, value: unknown, detail = ''): FieldError {
  return fieldError('FieldValueDuplicate', field, `Duplicate value: ${show(value)}`, detail)
}

export function missing(field: string, value: unknown): FieldError {
  return fieldError('FieldValueNotFound', field, `Not found: ${show(value)}`, '')
}

export function forbidden(field: string, detail: string): FieldError {
  return fieldError('FieldValueForbidden', field, 'Forbidden', detail)
}

/** The values are listed as given: most callers sort them, as Kubernetes does. */
export function notSupported(field: string, value: unknown, supported: readonly string[]): FieldError {
  const list = supported.map((each) => JSON.stringify(each)).join(', ')
  return fieldError('FieldValueNotSupported', field, `Unsupported value: ${show(value)}`, `supported values: ${list}`)
}

export function tooLong(field: string, maximumBytes: number): FieldError {
  return fieldError('FieldValueTooLong', field, 'Too long', `may not be more than ${maximumBytes} bytes`)
}

/** The whole sentence of one error: path and message. */
export function sentence(error: FieldError): string {
  return error.field === '' ? error.message : `${error.field}: ${error.message}`
}

/** What the errors add up to: each sentence once, in brackets when there are several. */
export function summary(errors: readonly FieldError[]): string {
  const sentences = [...new Set(errors.map(sentence))]
  return sentences.length === 1 ? (sentences[0] ?? '') : `[${sentences.join(', ')}]`
}

/** The 422 answer for an object with field errors. */
export function invalidObject(
  on: { readonly group: string; readonly kind: string },
  name: string,
  errors: readonly FieldError[],
): StatusError {
  const causes: readonly StatusCause[] = errors.map(({ reason, message, field }) => ({ reason, message, field }))
  return invalidStatus(on, name, causes, errors.length === 0 ? '' : summary(errors))
}

function fieldError(reason: FieldErrorReason, field: string, message: string, detail: string): FieldError {
  return { reason, field, message: detail === '' ? message : `${message}: ${detail}` }
}

function show(value: unknown): string {
  if (value === undefined || value === null) return 'null'
  return typeof value === 'bigint' ? value.toString() : JSON.stringify(value)
}
