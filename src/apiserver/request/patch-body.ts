// Which patch does a request bring? Its type is in the header, its body JSON or, for apply, YAML.
import { badRequest, isBadRequest, StatusError } from '../../api/status-error.ts'
import type { Patch } from '../../api/verbs.ts'
import type { OnRepeated } from '../http/codec.ts'
import { MalformedJson, mediaType, parseJson, parseJsonOrYaml } from '../http/codec.ts'
import type { HttpCall } from './http-verbs.ts'
import { invalidOptions } from './options.ts'

export function checkPatchOptions(sent: Patch, query: URLSearchParams): void {
  if (sent.type === 'apply' && !query.get('fieldManager')) {
    const message = 'Required value: is required for apply patch'
    throw invalidOptions('PatchOptions', 'fieldManager', 'FieldValueRequired', message)
  }
  if (sent.type !== 'apply' && query.has('force')) {
    const message = 'Forbidden: may not be specified for non-apply patch'
    throw invalidOptions('PatchOptions', 'force', 'FieldValueForbidden', message)
  }
}

export function patchOf(
  { headers, body }: Pick<HttpCall, 'headers' | 'body'>,
  onRepeated: OnRepeated | undefined,
): Patch {
  switch (mediaType(headers['content-type'])) {
    case 'application/json-patch+json': {
      const operations = readJson(body)
      return { type: 'json', body: operations as readonly unknown[] } // applyJsonPatch checks that it is a list
    }
    case 'application/merge-patch+json':
      return { type: 'merge', body: readJson(body, onRepeated) }
    case 'application/strategic-merge-patch+json':
      return { type: 'strategic', body: readJson(body, onRepeated) }
    case 'application/apply-patch+yaml':
      return { type: 'apply', body: readYaml(body, onRepeated) }
    default:
      throw new StatusError(415, 'UnsupportedMediaType', '415: Unsupported Media Type')
  }
}

function readJson(body: Uint8Array, onRepeated?: OnRepeated): unknown {
  try {
    return parseJson(body, onRepeated)
  } catch (error) {
    if (error instanceof MalformedJson) throw badRequest(`error decoding patch: ${error.message}`)
    throw error
  }
}

function readYaml(body: Uint8Array, onRepeated?: OnRepeated): unknown {
  try {
    return parseJsonOrYaml(body, onRepeated)
  } catch (error) {
    if (isBadRequest(error)) throw badRequest(`error decoding YAML: ${error.message}`)
    throw error
  }
}
