// What does an object look like after a strategic merge patch? Like a merge patch, but some lists merge by key, and
// directives ($patch, $retainKeys, $deleteFromPrimitiveList, $setElementOrder) say what plain JSON cannot.
import { type KindName, kinds } from '../../api/kinds.ts'
import { type ListRule, listRule } from '../../api/schema/list-types.ts'
import { jsonFields } from '../../api/schema/schema.ts'
import { badRequest } from '../../api/status-error.ts'
import { cannotApply, goTypeWord } from './errors.ts'
import { copyMap, identityText, isList, isMap, type Json, type JsonMap, type MutableMap, own, put } from './json.ts'
import { orderLists } from './list-order.ts'
import { ownerOf } from './schema-walk.ts'
import { createWork, type Work } from './work.ts'

export function applyStrategicMergePatch(kind: KindName, current: object, patch: unknown): JsonMap {
  if (!isMap(patch)) {
    throw badRequest(`json: cannot unmarshal ${goTypeWord(patch)} into Go value of type map[string]interface {}`)
  }
  return mergeMap(createWork(), kinds[kind].message, current as JsonMap, patch) // objects of the API are JSON maps
}

const deletePrefix = '$deleteFromPrimitiveList/'
const orderPrefix = '$setElementOrder/'
const directives: ReadonlySet<string> = new Set(['$patch', '$retainKeys'])

/** `message` is undefined below fields the schema does not know: there, maps merge and lists are replaced. */
function mergeMap(work: Work, message: string | undefined, current: JsonMap, patch: JsonMap): JsonMap {
  const directive = own(patch, '$patch')
  if (directive === 'replace') return withoutDirectives({ ...copyMap(patch), $patch: null })
  if (directive === 'delete') return {}
  if (directive !== undefined && directive !== 'merge') throw badPatchType(directive)
  const result = applyRetainKeys(current, patch)
  // A list may name the same item many times: each time, what is there is copied.
  work.look(Object.keys(current).length)
  for (const key of Object.keys(patch)) {
    if (directives.has(key)) continue
    const value = patch[key] as Json
    if (key.startsWith(deletePrefix)) deleteValues(result, key.slice(deletePrefix.length), value)
    else if (key.startsWith(orderPrefix)) checkOrderList(value)
    else if (value === null) delete result[key]
    else put(result, key, mergeField(work, message, key, own(result, key), value))
  }
  reorderLists(message, result, current, patch)
  return result
}

function mergeField(
  work: Work,
  message: string | undefined,
  key: string,
  current: Json | undefined,
  value: Json,
): Json {
  const field = message === undefined ? undefined : jsonFields(message).get(key)
  if (isMap(value)) {
    const inner = field === undefined || field.shape !== 'one' ? undefined : field.type
    // A map of messages has no strategies of its own; its values merge like unknown maps.
    if (current === undefined || !isMap(current)) return mergeMap(work, inner, {}, value)
    return mergeMap(work, inner, current, value)
  }
  if (!isList(value)) return value
  const rule = field?.shape === 'list' && message !== undefined ? ruleOf(message, key) : undefined
  if (rule === undefined || rule.strategy === 'replace') return withoutDirectiveItems(value)
  const base = isList(current) ? current : []
  const { mergeKey } = rule
  // Merging looks for each item, and ordering again.
  work.look(base.length * 2)
  const merged =
    mergeKey === undefined ? mergeValues(base, value) : mergeItems(work, field?.type, mergeKey, base, value)
  return orderLists(merged, base, value, mergeKey)
}

function ruleOf(message: string, field: string): ListRule {
  return listRule(ownerOf(message, field), field)
}

/** Lists of plain values: what is missing is added. */
function mergeValues(current: readonly Json[], patch: readonly Json[]): readonly Json[] {
  const merged = [...current]
  const known = new Set(current)
  for (const value of patch) {
    if (isMap(value) || isList(value)) throw cannotApply('lists of lists are not supported')
    if (!known.has(value)) merged.push(value)
    known.add(value)
  }
  return merged
}

/** Lists of maps: items with the same key merge, others are added; items may say replace or delete. */
function mergeItems(
  work: Work,
  message: string | undefined,
  key: string,
  current: readonly Json[],
  patch: readonly Json[],
): readonly Json[] {
  for (const item of patch) if (!isMap(item)) throw cannotApply('a merged list holds objects only')
  const items = patch as readonly JsonMap[] // just checked
  if (items.some((item) => own(item, '$patch') === 'replace')) {
    return items.filter((item) => own(item, '$patch') !== 'replace').map((item) => mergeMap(work, message, {}, item))
  }
  const merged: (Json | undefined)[] = [...current]
  const places = placesByKey(current, key)
  for (const item of items) {
    const value = keyOf(item, key)
    const name = identityText(value)
    const [place, ...others] = places.get(name) ?? []
    const directive = own(item, '$patch')
    if (directive === 'delete') {
      if (place !== undefined) for (const each of [place, ...others]) merged[each] = undefined
      places.delete(name)
      continue
    }
    if (directive !== undefined && directive !== 'merge') throw badPatchType(directive)
    const before = place === undefined ? {} : (merged[place] as JsonMap) // only maps have places
    merged[place ?? merged.length] = mergeMap(work, message, before, item)
    // A null key is taken out of the item: nothing finds it any more.
    if (value === null) places.set(name, others)
    else if (place === undefined) places.set(name, [merged.length - 1])
  }
  return merged.filter((item) => item !== undefined)
}

/** Where the items with each key are, first to last. */
function placesByKey(list: readonly Json[], key: string): Map<string, readonly number[]> {
  const places = new Map<string, number[]>()
  for (const [place, item] of list.entries()) {
    const value = isMap(item) ? own(item, key) : undefined
    if (value === undefined) continue
    const name = identityText(value)
    const known = places.get(name)
    if (known === undefined) places.set(name, [place])
    else known.push(place)
  }
  return places
}

function keyOf(item: JsonMap, key: string): Json {
  const value = own(item, key)
  if (value === undefined) throw cannotApply(`map: ${JSON.stringify(item)} does not contain declared merge key: ${key}`)
  return value
}

/** $retainKeys drops every key of the current map that it does not name. */
function applyRetainKeys(current: JsonMap, patch: JsonMap): MutableMap {
  const retained = own(patch, '$retainKeys')
  const result = copyMap(current)
  if (retained === undefined) return result
  if (!isList(retained) || retained.some((key) => typeof key !== 'string')) {
    throw badRequest('invalid patch format of retainKeys')
  }
  const names = new Set(retained)
  for (const key of Object.keys(patch)) {
    if (key.startsWith('$') || patch[key] === null || names.has(key)) continue
    throw badRequest("patch content doesn't match retainKeys list")
  }
  for (const key of Object.keys(result)) if (!names.has(key)) delete result[key]
  return result
}

function deleteValues(result: MutableMap, key: string, values: Json): void {
  if (!isList(values)) throw badRequest('invalid patch format of primitive list')
  const current = own(result, key)
  if (!isList(current)) return
  const unwanted = new Set(values)
  put(
    result,
    key,
    current.filter((value) => !unwanted.has(value)),
  )
}

function checkOrderList(value: Json): void {
  if (!isList(value)) throw badRequest('invalid patch format of setElementOrder list')
}

/** Once all fields are merged, lists whose order the client named are put into that order. */
function reorderLists(message: string | undefined, result: MutableMap, current: JsonMap, patch: JsonMap): void {
  for (const key of Object.keys(patch)) {
    if (!key.startsWith(orderPrefix) || message === undefined) continue
    const field = key.slice(orderPrefix.length)
    const list = own(result, field)
    const order = patch[key]
    if (!isList(list) || !isList(order)) continue
    const server = own(current, field)
    put(result, field, orderLists(list, isList(server) ? server : [], order, ruleOf(message, field).mergeKey))
  }
}

/** A value taken as it is: nulls mean "absent", directives have done their work. */
function withoutDirectives(value: JsonMap): JsonMap {
  const clean: MutableMap = {}
  for (const key of Object.keys(value)) {
    const child = value[key] as Json
    if (child === null || directives.has(key) || key.startsWith(deletePrefix) || key.startsWith(orderPrefix)) continue
    put(clean, key, isMap(child) ? withoutDirectives(child) : isList(child) ? withoutDirectiveItems(child) : child)
  }
  return clean
}

function withoutDirectiveItems(list: readonly Json[]): readonly Json[] {
  return list
    .filter((item) => !(isMap(item) && own(item, '$patch') !== undefined))
    .map((item) => (isMap(item) ? withoutDirectives(item) : item))
}

function badPatchType(directive: Json): Error {
  return cannotApply(`unknown patch type: ${JSON.stringify(directive)}`)
}
