// How do whole objects meet field sets? Along the schema: which fields an object sets, what changed between two,
// what two merge to, and what is left when fields are taken away.
import {
  emptySet,
  fieldElement,
  type FieldSet,
  isEmptySet,
  keyElement,
  makeSet,
  ownedLeaf,
  type Parts,
  setOf,
  valueElement,
  withField,
  withItem,
} from './field-set.ts'
import { copyMap, isList, isMap, type Json, jsonEqual, type JsonMap, type MutableMap, own, put } from './json.ts'
import { interleave } from './list-order.ts'
import { childNode, leaf, type SchemaNode } from './schema-walk.ts'

/** A composite value opened up: its parts by path element, and what stands at each. */
interface Part {
  readonly value: Json
  readonly node: SchemaNode
}

/** Undefined for leaves, and for values that do not have the shape the schema promises: those are taken whole. */
function partsOf(node: SchemaNode, value: Json | undefined): ReadonlyMap<string, Part> | undefined {
  switch (node.kind) {
    case 'leaf':
      return undefined
    case 'struct':
    case 'map': {
      if (!isMap(value)) return undefined
      const parts = new Map<string, Part>()
      for (const key of Object.keys(value)) {
        const child = value[key] as Json
        if (child === null) continue
        const inner = node.kind === 'map' ? node.values : childNode(node.message, key)
        parts.set(fieldElement(key), { value: child, node: inner })
      }
      return parts
    }
    case 'set':
    case 'mapList': {
      if (!isList(value)) return undefined
      const parts = new Map<string, Part>()
      for (const item of value) {
        const element = itemElement(node, item)
        // Lists with unnamed or doubled items cannot be told apart by key.
        if (element === undefined || parts.has(element)) return undefined
        parts.set(element, { value: item, node: node.kind === 'set' ? leaf : node.items })
      }
      return parts
    }
    default:
      return node satisfies never
  }
}

/** Keys that Kubernetes fills in when an item leaves them out. */
const keyDefaults: JsonMap = { protocol: 'TCP' }

export function itemElement(node: SchemaNode, item: Json): string | undefined {
  if (node.kind === 'set') return isMap(item) || isList(item) ? undefined : valueElement(item)
  if (node.kind !== 'mapList' || !isMap(item)) return undefined
  const keys: MutableMap = {}
  for (const key of node.keys) {
    const value = own(item, key) ?? own(keyDefaults, key)
    if (value === undefined || value === null || isMap(value) || isList(value)) return undefined
    keys[key] = value
  }
  return keyElement(keys)
}

/**
 * The fields a value sets. An applied configuration owns what it names (leaves, items, map entries);
 * a plain write also owns the structs and lists it brings into being.
 */
export function fieldsOf(node: SchemaNode, value: Json, by: 'applied' | 'written'): FieldSet {
  return setOfValue(node, value, by, false)
}

/** `owned` says whether the place of the value is in the set too; a value that is taken whole always is. */
function setOfValue(node: SchemaNode, value: Json, by: 'applied' | 'written', owned: boolean): FieldSet {
  if (isMap(value) && (node.kind === 'struct' || node.kind === 'map')) return setOf(partsOfMap(node, value, by), owned)
  const parts = partsOf(node, value)
  if (parts === undefined) return ownedLeaf
  let found: Parts
  for (const [element, part] of parts) found = withItem(found, element, setOfValue(part.node, part.value, by, true))
  return setOf(found, owned)
}

// Every write walks whole objects: structs and maps take a path without intermediate tables.
type MapNode = Extract<SchemaNode, { kind: 'struct' | 'map' }>

function partsOfMap(node: MapNode, value: JsonMap, by: 'applied' | 'written'): Parts {
  let parts: Parts
  for (const key of Object.keys(value)) {
    const child = value[key] as Json
    if (child === null) continue
    const named = node.kind === 'map' || by === 'written' || (isMap(child) && Object.keys(child).length === 0)
    const set = setOfValue(mapChild(node, key), child, by, named)
    if (!isEmptySet(set)) parts = withField(parts, key, set)
  }
  return parts
}

function mapChild(node: MapNode, key: string): SchemaNode {
  return node.kind === 'map' ? node.values : childNode(node.message, key)
}

export interface Comparison {
  /** New or different. */
  readonly changed: FieldSet
  readonly removed: FieldSet
}

const same: Comparison = { changed: emptySet, removed: emptySet }

export function compare(node: SchemaNode, before: Json | undefined, after: Json | undefined): Comparison {
  if (before === undefined && after === undefined) return same
  if (before === undefined) return { changed: wholeOf(node, after as Json), removed: emptySet }
  if (after === undefined) return { changed: emptySet, removed: wholeOf(node, before) }
  if (before === after) return same
  if (isMap(before) && isMap(after) && (node.kind === 'struct' || node.kind === 'map')) {
    return compareMaps(node, before, after)
  }
  const left = partsOf(node, before)
  const right = partsOf(node, after)
  if (left === undefined || right === undefined) {
    return { changed: jsonEqual(before, after) ? emptySet : ownedLeaf, removed: emptySet }
  }
  let changed: Parts
  let removed: Parts
  for (const element of new Set([...left.keys(), ...right.keys()])) {
    const inner = (right.get(element) ?? left.get(element))?.node ?? leaf
    const part = compare(inner, left.get(element)?.value, right.get(element)?.value)
    if (!isEmptySet(part.changed)) changed = withItem(changed, element, part.changed)
    if (!isEmptySet(part.removed)) removed = withItem(removed, element, part.removed)
  }
  return { changed: setOf(changed, false), removed: setOf(removed, false) }
}

/** `unowned` names members that nobody owns. */
export function compareMaps(
  node: MapNode,
  before: JsonMap,
  after: JsonMap,
  unowned: ReadonlySet<string> | undefined = undefined,
): Comparison {
  let changed: Parts
  let removed: Parts
  for (const key of Object.keys(after)) {
    const left = own(before, key)
    const right = after[key]
    // Most parts of an object are the very same as before.
    if (left === right || unowned?.has(key) === true) continue
    const part = compare(mapChild(node, key), left ?? undefined, right ?? undefined)
    if (!isEmptySet(part.changed)) changed = withField(changed, key, part.changed)
    if (!isEmptySet(part.removed)) removed = withField(removed, key, part.removed)
  }
  for (const key of Object.keys(before)) {
    if (Object.hasOwn(after, key) || unowned?.has(key) === true) continue
    const part = compare(mapChild(node, key), before[key] ?? undefined, undefined)
    if (!isEmptySet(part.removed)) removed = withField(removed, key, part.removed)
  }
  if (changed === undefined && removed === undefined) return same
  return { changed: setOf(changed, false), removed: setOf(removed, false) }
}

function wholeOf(node: SchemaNode, value: Json): FieldSet {
  return setOfValue(node, value, 'written', true)
}

/** `applied` laid over `live`: structs, maps and keyed lists merge, everything else is replaced. */
export function mergeTyped(node: SchemaNode, live: Json | undefined, applied: Json): Json {
  if (live === undefined) return applied
  if (node.kind === 'struct' || node.kind === 'map') {
    if (!isMap(live) || !isMap(applied)) return applied
    const merged = copyMap(live)
    for (const key of Object.keys(applied)) {
      const inner = node.kind === 'map' ? node.values : childNode(node.message, key)
      put(merged, key, mergeTyped(inner, own(live, key), applied[key] as Json))
    }
    return merged
  }
  const left = partsOf(node, live)
  const right = partsOf(node, applied)
  if (left === undefined || right === undefined) return applied
  return interleave([...left.keys()], [...right.keys()]).map((element) => {
    const below = left.get(element)
    const above = right.get(element)
    if (above === undefined) return below?.value ?? null
    return mergeTyped(above.node, below?.value, above.value)
  })
}

/** The value without the places that `set` owns; undefined when nothing of it is left to stand. */
export function without(node: SchemaNode, value: Json, set: FieldSet): Json | undefined {
  if (set.owned) return undefined
  if (set.children.size === 0) return value
  const parts = partsOf(node, value)
  if (parts === undefined) return value
  if (isMap(value)) {
    const rest = copyMap(value)
    for (const [element, part] of parts) {
      const child = set.children.get(element)
      if (child === undefined) continue
      const kept = without(part.node, part.value, child)
      if (kept === undefined) delete rest[element.slice(2)]
      else put(rest, element.slice(2), kept)
    }
    return rest
  }
  const items: Json[] = []
  for (const [element, part] of parts) {
    const child = set.children.get(element)
    const kept = child === undefined ? part.value : without(part.node, part.value, child)
    if (kept !== undefined) items.push(kept)
  }
  return items
}

/**
 * The set with every struct field on the way owned too: a manager of `spec.a.b` stands for `spec` and `spec.a`,
 * but not for the map or list item that `a` may be.
 */
export function withNamedFields(node: SchemaNode, set: FieldSet): FieldSet {
  const children = new Map<string, FieldSet>()
  for (const [element, child] of set.children) {
    const name = element.startsWith('f:') ? element.slice(2) : undefined
    const inner = innerNode(node, name)
    const named = withNamedFields(inner, child)
    children.set(element, makeSet(child.owned || (node.kind === 'struct' && name !== undefined), named.children))
  }
  return makeSet(set.owned, children)
}

function innerNode(node: SchemaNode, name: string | undefined): SchemaNode {
  if (node.kind === 'struct') return name === undefined ? leaf : childNode(node.message, name)
  if (node.kind === 'map') return node.values
  return node.kind === 'mapList' ? node.items : leaf
}
