// How should something be deleted? Options come in the body (JSON or protobuf) or, for curl, in the query.
import { jsonObjectOf } from '../../api/json.ts'
import { badRequest } from '../../api/status-error.ts'
import type { RemoveOptions } from '../../api/verbs.ts'
import { decodeBody, MalformedJson } from '../http/codec.ts'
import type { HttpCall } from './http-verbs.ts'
import { invalidOptions, parseDryRun, parseFlag, parseWhole } from './options.ts'

export function deleteOptions({ body, headers, query }: HttpCall): RemoveOptions {
  const sent = body.length === 0 ? {} : jsonObjectOf(read(headers['content-type'], body))
  if (sent['kind'] !== undefined && sent['kind'] !== 'DeleteOptions') {
    const what = `no kind ${JSON.stringify(sent['kind'])} is registered for version ${JSON.stringify(sent['apiVersion'] ?? '')}`
    throw badRequest(`${what} in scheme "pkg/api/legacyscheme/scheme.go:30"`)
  }
  const fromBody = Array.isArray(sent['dryRun']) ? sent['dryRun'].map(String) : []
  const preconditions = jsonObjectOf(sent['preconditions'])
  const grace = sent['gracePeriodSeconds'] ?? parseWhole(query.get('gracePeriodSeconds'))
  if (grace !== undefined && grace !== null && !Number.isSafeInteger(grace)) {
    throw badRequest('gracePeriodSeconds must be a whole number')
  }
  // With a body the query is not read, as in Kubernetes.
  const orphan = body.length === 0 ? flagOf(query.get('orphanDependents')) : sent['orphanDependents']
  const propagation = propagationOf(sent['propagationPolicy'] ?? query.get('propagationPolicy'), orphan)
  return {
    dryRun: parseDryRun('DeleteOptions', [...fromBody, ...query.getAll('dryRun')]),
    ...(typeof grace === 'number' ? { gracePeriodSeconds: grace } : {}),
    ...(typeof preconditions['uid'] === 'string' ? { uid: preconditions['uid'] } : {}),
    ...(typeof preconditions['resourceVersion'] === 'string'
      ? { resourceVersion: preconditions['resourceVersion'] }
      : {}),
    ...(propagation === undefined ? {} : { propagation }),
  }
}

function flagOf(text: string | null): boolean | undefined {
  return text === null ? undefined : parseFlag(text)
}

function propagationOf(policy: unknown, orphan: unknown): RemoveOptions['propagation'] {
  if (policy === undefined || policy === null || policy === '') {
    return typeof orphan === 'boolean' ? (orphan ? 'Orphan' : 'Background') : undefined
  }
  if (typeof orphan === 'boolean') {
    const message = `Invalid value: ${JSON.stringify(policy)}: orphanDependents and deletionPropagation cannot be both set`
    throw invalidOptions('DeleteOptions', 'propagationPolicy', 'FieldValueInvalid', message)
  }
  if (policy === 'Foreground' || policy === 'Background' || policy === 'Orphan') return policy
  const supported = 'supported values: "Foreground", "Background", "Orphan", "nil"'
  const message = `Unsupported value: ${JSON.stringify(policy)}: ${supported}`
  throw invalidOptions('DeleteOptions', 'propagationPolicy', 'FieldValueNotSupported', message)
}

function read(contentType: string | undefined, body: Uint8Array): unknown {
  try {
    return decodeBody(contentType, body)
  } catch (error) {
    if (error instanceof MalformedJson)
      throw badRequest(`couldn't get version/kind; json parse error: ${error.message}`)
    throw error
  }
}
