// What does an object look like after a JSON merge patch (RFC 7386)?
// Maps merge, null removes, everything else replaces; lists are values.
import type { KindName } from '../../api/kinds.ts'
import { cannotDecode, goTypeWord } from './errors.ts'
import { copyMap, isMap, type Json, type JsonMap, own, put } from './json.ts'

/** The kind is taken for symmetry with the other patches: a merge patch needs no schema. */
export function applyMergePatch(_kind: KindName, current: object, patch: unknown): JsonMap {
  if (!isMap(patch)) {
    throw cannotDecode(`json: cannot unmarshal ${goTypeWord(patch)} into Go value of type map[string]interface {}`)
  }
  return mergeMaps(current as JsonMap, patch) // objects of the API are JSON maps
}

function mergeJson(current: Json | undefined, patch: Json): Json {
  return isMap(patch) ? mergeMaps(isMap(current) ? current : {}, patch) : patch
}

function mergeMaps(current: JsonMap, patch: JsonMap): JsonMap {
  const merged = copyMap(current)
  for (const key of Object.keys(patch)) {
    const value = patch[key] as Json
    if (value === null) delete merged[key]
    else put(merged, key, mergeJson(own(merged, key), value))
  }
  return merged
}
