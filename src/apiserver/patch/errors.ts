// How does a patch say no? The three answers Kubernetes gives: not decodable, not applicable, too large.
import { badRequest, StatusError } from '../../api/status-error.ts'

/** 422 with Kubernetes' generic sentence: the patch could be read but not be applied. `why` stays inside. */
export function cannotApply(why: string): StatusError {
  const message = 'the server rejected our request due to an error in our request'
  return new StatusError(422, 'Invalid', message, {}, { cause: new Error(why) })
}

export function cannotDecode(why: string): StatusError {
  return badRequest(`error decoding patch: ${why}`)
}

/** What Go's JSON reader calls a value. */
export function goTypeWord(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  switch (typeof value) {
    case 'string':
      return 'string'
    case 'number':
    case 'bigint':
      return 'number'
    case 'boolean':
      return 'bool'
    default:
      return value === null ? 'null' : 'object'
  }
}
