// How do thousands of objects share the record of who owns which field? Objects of a kind are written by the same few
// clients in the same way, so equal field sets are one value, with its JSON, its text and its sums worked out once.
//
// Sets are built part by part; equal parts lead to the same place, and a place holds its set. Building a set that is
// known makes nothing new. Equal sets whose parts came in another order only miss being shared.
import { deepFreeze } from '../deep-freeze.ts'
import {
  difference,
  emptySet,
  fieldElement,
  type FieldSet,
  isEmptySet,
  ownedLeaf,
  toFieldsV1,
  union,
} from './field-set.ts'
import type { JsonMap } from './json.ts'

/** The parts so far. */
export interface Place {
  readonly before: { readonly place: Place; readonly element: string; readonly child: FieldSet } | undefined
  /** What comes next: by a field's name, or by the element of anything else. */
  fields: Branches | undefined
  items: Branches | undefined
  owned: FieldSet | undefined
  unowned: FieldSet | undefined
}

type Branches = Map<string, Map<FieldSet, Place>>

interface Shared {
  /** No two sets ever have the same. */
  readonly id: number
  readonly set: FieldSet
  /** As `fieldsV1` holds it: frozen, because many objects hold it. */
  readonly fields: JsonMap
  readonly text: string
  readonly unions: Map<FieldSet, FieldSet>
  readonly differences: Map<FieldSet, FieldSet>
}

/** Names that clients make up must not fill memory: beyond this many places we start over rather than choose. */
const mostPlaces = 10_000
const mostSums = 2_000

let places = 0
let nextId = 1
let root = newPlace(undefined)
let bySet = new WeakMap<FieldSet, Shared>()
let byFields = new WeakMap<object, Shared>()

/** Where every set begins. */
export function noParts(): Place {
  return root
}

export function withField(place: Place, name: string, child: FieldSet): Place {
  const known = place.fields?.get(name)?.get(child)
  return known ?? grown((place.fields ??= new Map()), name, { place, element: fieldElement(name), child })
}

export function withItem(place: Place, element: string, child: FieldSet): Place {
  const known = place.items?.get(element)?.get(child)
  return known ?? grown((place.items ??= new Map()), element, { place, element, child })
}

/** The set of these parts; `owned` says whether it also holds the place above them. */
export function setAt(place: Place, owned: boolean): FieldSet {
  if (place.before === undefined) return owned ? ownedLeaf : emptySet
  const known = owned ? place.owned : place.unowned
  if (known !== undefined) return known
  const set: FieldSet = { owned, children: (place.owned ?? place.unowned)?.children ?? childrenOf(place) }
  if (owned) place.owned = set
  else place.unowned = set
  return set
}

/** An equal set, the same one for everybody. */
export function sharedSet(set: FieldSet): FieldSet {
  if (bySet.has(set) || set === ownedLeaf || isEmptySet(set)) return set
  let place = root
  for (const [element, child] of set.children) {
    const shared = sharedSet(child)
    place = element.startsWith('f:') ? withField(place, element.slice(2), shared) : withItem(place, element, shared)
  }
  return setAt(place, set.owned)
}

/** The set that this `fieldsV1` says, if it is one of ours. */
export function sharedSetOf(fields: JsonMap): FieldSet | undefined {
  return byFields.get(fields)?.set
}

export function sharedTextOf(fields: JsonMap): string | undefined {
  return byFields.get(fields)?.text
}

export function sharedFieldsV1(set: FieldSet): JsonMap {
  return share(set).fields
}

/** A number that stands for this set and for no other. */
export function sharedIdOf(set: FieldSet): number {
  return share(set).id
}

export function sharedUnion(left: FieldSet, right: FieldSet): FieldSet {
  if (isEmptySet(right)) return left
  if (isEmptySet(left)) return right
  return combined(share(left).unions, left, right, union)
}

export function sharedDifference(left: FieldSet, right: FieldSet): FieldSet {
  return isEmptySet(right) ? left : combined(share(left).differences, left, right, difference)
}

function combined(
  results: Map<FieldSet, FieldSet>,
  left: FieldSet,
  right: FieldSet,
  combine: (left: FieldSet, right: FieldSet) => FieldSet,
): FieldSet {
  const known = results.get(right)
  if (known !== undefined) return known
  const result = sharedSet(combine(left, right))
  if (results.size < mostSums) results.set(right, result)
  return result
}

function share(set: FieldSet): Shared {
  const known = bySet.get(set)
  if (known !== undefined) return known
  const fields = deepFreeze(toFieldsV1(set))
  const text = JSON.stringify(fields)
  const shared = { id: nextId++, set, fields, text, unions: new Map(), differences: new Map() }
  bySet.set(set, shared)
  byFields.set(fields, shared)
  return shared
}

function newPlace(before: Place['before']): Place {
  return { before, fields: undefined, items: undefined, owned: undefined, unowned: undefined }
}

function grown(branches: Branches, name: string, before: NonNullable<Place['before']>): Place {
  const next = newPlace(before)
  const byChild = branches.get(name)
  if (byChild === undefined) branches.set(name, new Map([[before.child, next]]))
  else byChild.set(before.child, next)
  if (++places > mostPlaces) forgetAll()
  return next
}

function childrenOf({ before }: Place): ReadonlyMap<string, FieldSet> {
  const parts: [string, FieldSet][] = []
  for (let at = before; at !== undefined; at = at.place.before) parts.push([at.element, at.child])
  return new Map(parts.reverse())
}

/** Whoever is in the middle of a set ends it at the old places; nobody will come there again. */
function forgetAll(): void {
  places = 0
  root = newPlace(undefined)
  bySet = new WeakMap()
  byFields = new WeakMap()
}
