// Is this an applied configuration we can work with? Nulls and other spellings are settled first, so that applying
// the same file twice compares equal; then every keyed list must name its items once.
import { canonicalQuantity, tryParseQuantity } from '../../api/quantity.ts'
import { jsonFields } from '../../api/schema/schema.ts'
import { badRequest } from '../../api/status-error.ts'
import { isList, isMap, type Json, type MutableMap, put } from './json.ts'
import { childNode, type SchemaNode } from './schema-walk.ts'
import { itemElement } from './typed-values.ts'

/** Without nulls (they mean "not set") and with quantities in the form the server stores. */
export function normalizeApplied(node: SchemaNode, value: Json): Json {
  if (isList(value)) {
    const items: SchemaNode = node.kind === 'mapList' ? node.items : { kind: 'leaf' }
    return value.map((item) => normalizeApplied(items, item))
  }
  if (!isMap(value)) return value
  const result: MutableMap = {}
  for (const key of Object.keys(value)) {
    const child = value[key] as Json
    if (child === null) continue
    const inner = node.kind === 'struct' ? childNode(node.message, key) : node.kind === 'map' ? node.values : node
    const isQuantity = node.kind === 'struct' && jsonFields(node.message).get(key)?.type === 'resource.Quantity'
    put(result, key, isQuantity ? canonicalQuantities(child) : normalizeApplied(inner, child))
  }
  return result
}

/** A quantity or a map of them; what cannot be read is left for validation to refuse. */
function canonicalQuantities(value: Json): Json {
  if (isMap(value)) {
    const result: MutableMap = {}
    for (const key of Object.keys(value)) {
      if (value[key] !== null) put(result, key, canonicalQuantities(value[key] as Json))
    }
    return result
  }
  const text = typeof value === 'number' ? String(value) : value
  return typeof text === 'string' && tryParseQuantity(text) !== undefined ? canonicalQuantity(text) : value
}

/** Throws 400 when a list that merges by key has an item without its keys, or two with the same. */
export function checkApplied(node: SchemaNode, value: Json, path: string): void {
  if (isMap(value) && (node.kind === 'struct' || node.kind === 'map')) {
    for (const key of Object.keys(value)) {
      const inner = node.kind === 'map' ? node.values : childNode(node.message, key)
      checkApplied(inner, value[key] as Json, `${path}.${key}`)
    }
    return
  }
  if (!isList(value) || (node.kind !== 'mapList' && node.kind !== 'set')) return
  const seen = new Set<string>()
  for (const [index, item] of value.entries()) {
    const element = itemElement(node, item)
    if (element === undefined) throw untyped(`${path}: element ${index}: ${missingKeyText(node)}`)
    if (seen.has(element)) throw untyped(`${path}: duplicate entries for key ${element.slice(2)}`)
    seen.add(element)
    if (node.kind === 'mapList') checkApplied(node.items, item, `${path}[${index}]`)
  }
}

function missingKeyText(node: SchemaNode): string {
  if (node.kind !== 'mapList') return 'a set holds plain values only'
  const keys = node.keys.map((key) => JSON.stringify(key)).join(', ')
  return `associative list with keys has an element that omits key field ${keys} (and doesn't have default value)`
}

function untyped(why: string): Error {
  return badRequest(`failed to create typed patch object: ${why}`)
}
