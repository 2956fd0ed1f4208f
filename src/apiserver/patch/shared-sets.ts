// How do thousands of objects share the record of who owns which field? Objects of a kind are written by the same few
// clients in the same way, so equal field sets are one value, with its JSON, its text and its sums worked out once.
import { difference, type FieldSet, isEmptySet, toFieldsV1, union } from './field-set.ts'
import type { Json, JsonMap } from './json.ts'

interface Shared {
  readonly set: FieldSet
  /** As `fieldsV1` holds it: frozen, because many objects hold it. */
  readonly fields: JsonMap
  readonly text: string
  readonly unions: Map<FieldSet, FieldSet>
  readonly differences: Map<FieldSet, FieldSet>
}

/** Beyond these bounds nothing is shared, and everything still works. */
const mostSets = 2_000
const longestText = 2_000

const byText = new Map<string, Shared>()
let bySet = new WeakMap<FieldSet, Shared>()
let byFields = new WeakMap<object, Shared>()

/** An equal set, the same one for everybody. */
export function sharedSet(set: FieldSet): FieldSet {
  return isEmptySet(set) ? set : (share(set)?.set ?? set)
}

/** The set that this `fieldsV1` says, if it is one of ours. */
export function sharedSetOf(fields: JsonMap): FieldSet | undefined {
  return byFields.get(fields)?.set
}

export function sharedTextOf(fields: JsonMap): string | undefined {
  return byFields.get(fields)?.text
}

export function sharedFieldsV1(set: FieldSet): JsonMap {
  return share(set)?.fields ?? toFieldsV1(set)
}

export function sharedUnion(left: FieldSet, right: FieldSet): FieldSet {
  if (isEmptySet(right)) return left
  if (isEmptySet(left)) return right
  return combined(bySet.get(left)?.unions, left, right, union)
}

export function sharedDifference(left: FieldSet, right: FieldSet): FieldSet {
  return isEmptySet(right) ? left : combined(bySet.get(left)?.differences, left, right, difference)
}

function combined(
  results: Map<FieldSet, FieldSet> | undefined,
  left: FieldSet,
  right: FieldSet,
  combine: (left: FieldSet, right: FieldSet) => FieldSet,
): FieldSet {
  const known = results?.get(right)
  if (known !== undefined) return known
  const result = sharedSet(combine(left, right))
  // Only for sets that come again: a set that nobody shares would stay here for nothing.
  if (results !== undefined && results.size < mostSets && bySet.has(right)) results.set(right, result)
  return result
}

function share(set: FieldSet): Shared | undefined {
  const known = bySet.get(set)
  if (known !== undefined) return known
  const signature = signatureOf(set)
  const equal = byText.get(signature)
  if (equal !== undefined) return equal
  if (signature.length > longestText) return undefined
  if (byText.size >= mostSets) forgetAll()
  const fields = frozen(toFieldsV1(set))
  const shared = { set, fields, text: JSON.stringify(fields), unions: new Map(), differences: new Map() }
  byText.set(signature, shared)
  bySet.set(set, shared)
  byFields.set(fields, shared)
  return shared
}

/** Names that clients make up must not fill memory: start over rather than choose. */
function forgetAll(): void {
  byText.clear()
  bySet = new WeakMap()
  byFields = new WeakMap()
}

/** Equal texts are equal sets; equal sets in another order only miss being shared. */
function signatureOf(set: FieldSet): string {
  let text = set.owned ? '!' : ''
  for (const [element, child] of set.children) {
    const below = child.children.size === 0 ? '' : `{${signatureOf(child)}}`
    text += `${element.length}:${element}${child.owned ? '!' : ''}${below}`
  }
  return text
}

function frozen<T extends Json>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const member of Object.values(value)) frozen(member as Json)
  return Object.freeze(value)
}
