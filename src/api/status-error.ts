// How does the API say no? StatusError carries a Kubernetes Status; the constructors below speak Kubernetes'
// texts, the predicates are how callers tell the cases apart (never by matching text).
import type { Status, StatusCause, StatusDetails } from './generated/types.ts'

export type StatusReason =
  | 'Unknown'
  | 'Unauthorized'
  | 'Forbidden'
  | 'NotFound'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Gone'
  | 'Invalid'
  | 'ServerTimeout'
  | 'StoreReadError'
  | 'Timeout'
  | 'TooManyRequests'
  | 'BadRequest'
  | 'MethodNotAllowed'
  | 'NotAcceptable'
  | 'RequestEntityTooLarge'
  | 'UnsupportedMediaType'
  | 'InternalError'
  | 'Expired'
  | 'ServiceUnavailable'

/** What an error is about: a KindInfo, or `{ group: '', plural: 'persistentvolumes' }`. */
export interface GroupResource {
  readonly group: string
  readonly plural: string
}

export class StatusError extends Error {
  readonly code: number
  readonly reason: StatusReason
  readonly details: StatusDetails | undefined

  constructor(code: number, reason: StatusReason, message: string, details?: StatusDetails, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StatusError'
    this.code = code
    this.reason = reason
    this.details = details
  }

  /** The body of the answer. */
  toStatus(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      ...(this.reason === 'Unknown' ? {} : { reason: this.reason as string }),
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    }
  }

  /** The error a client throws for an answer of the server; `code` is the HTTP status, should the body lack one. */
  static fromStatus(status: Status, code: number): StatusError {
    const reason = (status.reason || reasonOfCode(code)) as StatusReason // an unknown reason is carried along as is
    return new StatusError(status.code || code, reason, status.message ?? `the server answered ${code}`, status.details)
  }
}

export function notFound(on: GroupResource, name: string): StatusError {
  return about(404, 'NotFound', `${qualified(on)} ${quote(name)} not found`, on, name)
}

/** The path names no resource that we serve. */
export function unknownResource(): StatusError {
  return new StatusError(404, 'NotFound', 'the server could not find the requested resource', {})
}

export function alreadyExists(on: GroupResource, name: string, isGoing = false): StatusError {
  const text = `${qualified(on)} ${quote(name)} already exists`
  return about(409, 'AlreadyExists', isGoing ? `object is being deleted: ${text}` : text, on, name)
}

/** The creator left the last part of the name to chance: a second try may succeed. */
export function generateNameConflict(on: GroupResource, name: string): StatusError {
  const text = `${qualified(on)} ${quote(name)} already exists, the server was not able to generate a unique name for the object`
  return new StatusError(409, 'AlreadyExists', text, { ...subjectOf(on, name), retryAfterSeconds: 1 })
}

const objectModified = 'the object has been modified; please apply your changes to the latest version and try again'

export function conflict(on: GroupResource, name: string, why: string = objectModified): StatusError {
  return about(409, 'Conflict', `Operation cannot be fulfilled on ${qualified(on)} ${quote(name)}: ${why}`, on, name)
}

/** Server-side apply met fields that others own: one cause per field, reason FieldManagerConflict. */
export function applyConflict(causes: readonly StatusCause[], message: string): StatusError {
  return new StatusError(409, 'Conflict', message, { causes })
}

/** 422. `kind` is the kind, not the resource; see field-errors.ts, which makes the causes and the message's list. */
export function invalid(
  on: { readonly group: string; readonly kind: string },
  name: string,
  causes: readonly StatusCause[],
  summary: string,
): StatusError {
  const kindText = on.group === '' ? on.kind : `${on.kind}.${on.group}`
  const details = {
    ...(name === '' ? {} : { name }),
    ...(on.group === '' ? {} : { group: on.group }),
    ...(on.kind === '' ? {} : { kind: on.kind }),
    causes,
  }
  return new StatusError(422, 'Invalid', `${kindText} ${quote(name)} is invalid${summary && `: ${summary}`}`, details)
}

export function forbidden(on: GroupResource, name: string, why: string): StatusError {
  const subject = on.plural === '' ? 'forbidden' : `${qualified(on)}${name && ` ${quote(name)}`} is forbidden`
  return about(403, 'Forbidden', `${subject}: ${why}`, on, name)
}

export function unauthorized(message = 'Unauthorized'): StatusError {
  return new StatusError(401, 'Unauthorized', message)
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, 'BadRequest', message)
}

/** The resource version or continue token is older than what we keep. */
export function expired(message: string): StatusError {
  return new StatusError(410, 'Expired', message)
}

export function tooManyRequests(message: string, retryAfterSeconds: number): StatusError {
  return new StatusError(429, 'TooManyRequests', `Too many requests: ${message}`, { retryAfterSeconds })
}

export function methodNotSupported(on: GroupResource, action: string): StatusError {
  const message = `${action} is not supported on resources of kind ${quote(qualified(on))}`
  return about(405, 'MethodNotAllowed', message, on, '')
}

/** The path exists, the HTTP method does not. */
export function methodNotAllowed(): StatusError {
  return new StatusError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {})
}

export function notAcceptable(mediaTypes: readonly string[]): StatusError {
  const message = `only the following media types are accepted: ${mediaTypes.join(', ')}`
  return new StatusError(406, 'NotAcceptable', message)
}

export function unsupportedMediaType(mediaTypes: readonly string[]): StatusError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${mediaTypes.join(', ')}`
  return new StatusError(415, 'UnsupportedMediaType', message)
}

export function requestEntityTooLarge(message: string): StatusError {
  return new StatusError(413, 'RequestEntityTooLarge', `Request entity too large: ${message}`)
}

export function internalError(message: string, cause?: unknown): StatusError {
  const details = { causes: [{ message }] }
  return new StatusError(500, 'InternalError', `Internal error occurred: ${message}`, details, { cause })
}

export function serviceUnavailable(message: string): StatusError {
  return new StatusError(503, 'ServiceUnavailable', message)
}

export const isNotFound = (error: unknown): error is StatusError => hasReason(error, 'NotFound')

/** For `.catch()`: an object that is not there answers undefined; removing one that is gone already is no failure. */
export function ignoreNotFound(error: unknown): undefined {
  if (!isNotFound(error)) throw error
  return undefined
}

export const isAlreadyExists = (error: unknown): error is StatusError => hasReason(error, 'AlreadyExists')
export const isConflict = (error: unknown): error is StatusError => hasReason(error, 'Conflict')
export const isInvalid = (error: unknown): error is StatusError => hasReason(error, 'Invalid')
export const isForbidden = (error: unknown): error is StatusError => hasReason(error, 'Forbidden')
export const isBadRequest = (error: unknown): error is StatusError => hasReason(error, 'BadRequest')
/** No server takes this object, however often it is sent. */
export const isObjectRefused = (error: unknown): error is StatusError =>
  isInvalid(error) || isBadRequest(error) || hasReason(error, 'RequestEntityTooLarge')
/** The history asked for is gone: list again. */
export const isTooOld = (error: unknown): error is StatusError =>
  hasReason(error, 'Expired') || hasReason(error, 'Gone')

function hasReason(error: unknown, reason: StatusReason): boolean {
  return error instanceof StatusError && error.reason === reason
}

function about(code: number, reason: StatusReason, message: string, on: GroupResource, name: string): StatusError {
  return new StatusError(code, reason, message, subjectOf(on, name))
}

function subjectOf(on: GroupResource, name: string): StatusDetails {
  return {
    ...(name === '' ? {} : { name }),
    ...(on.group === '' ? {} : { group: on.group }),
    ...(on.plural === '' ? {} : { kind: on.plural }),
  }
}

function qualified(on: GroupResource): string {
  return on.group === '' ? on.plural : `${on.plural}.${on.group}`
}

// Names are quoted as Go's %q does; JSON agrees for everything a name can hold.
function quote(text: string): string {
  return JSON.stringify(text)
}

function reasonOfCode(code: number): StatusReason {
  switch (code) {
    case 400:
      return 'BadRequest'
    case 401:
      return 'Unauthorized'
    case 403:
      return 'Forbidden'
    case 404:
      return 'NotFound'
    case 405:
      return 'MethodNotAllowed'
    case 406:
      return 'NotAcceptable'
    case 409:
      return 'Conflict'
    case 410:
      return 'Gone'
    case 413:
      return 'RequestEntityTooLarge'
    case 415:
      return 'UnsupportedMediaType'
    case 422:
      return 'Invalid'
    case 429:
      return 'TooManyRequests'
    case 500:
      return 'InternalError'
    case 503:
      return 'ServiceUnavailable'
    case 504:
      return 'Timeout'
    default:
      return 'Unknown'
  }
}
