// Which fields does a manager own? A tree of path elements in the form that managedFields stores: `f:` names a field,
// `k:` a list item by its keys, `v:` a value of a set, and `.` says that the place itself is owned.
import { isMap, type Json, type JsonMap } from './json.ts'

export interface FieldSet {
  /** Whether this place itself is in the set, not only places below it. */
  readonly owned: boolean
  readonly children: ReadonlyMap<string, FieldSet>
}

export const emptySet: FieldSet = { owned: false, children: new Map() }
export const ownedLeaf: FieldSet = { owned: true, children: new Map() }

export const fieldElement = (name: string): string => `f:${name}`
export const valueElement = (value: Json): string => `v:${JSON.stringify(value)}`

/** `{"containerPort":80,"protocol":"TCP"}`: keys in alphabetical order, as Kubernetes writes them. */
export function keyElement(keys: JsonMap): string {
  const sorted = Object.keys(keys)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${JSON.stringify(keys[key])}`)
  return `k:{${sorted.join(',')}}`
}

export function isEmptySet(set: FieldSet): boolean {
  return !set.owned && set.children.size === 0
}

export function makeSet(owned: boolean, children: ReadonlyMap<string, FieldSet>): FieldSet {
  return owned && children.size === 0 ? ownedLeaf : { owned, children }
}

/** The children of a set that is being built; undefined while there are none. */
export type Parts = Map<string, FieldSet> | undefined

export function withField(parts: Parts, name: string, child: FieldSet): Map<string, FieldSet> {
  return withItem(parts, fieldElement(name), child)
}

/** Adds to the given parts, which are not used again without it. */
export function withItem(parts: Parts, element: string, child: FieldSet): Map<string, FieldSet> {
  return (parts ?? new Map<string, FieldSet>()).set(element, child)
}

/** `owned` says whether the set also holds the place above its parts. */
export function setOf(parts: Parts, owned: boolean): FieldSet {
  if (parts === undefined) return owned ? ownedLeaf : emptySet
  return { owned, children: parts }
}

export function union(left: FieldSet, right: FieldSet): FieldSet {
  if (isEmptySet(left) || left === right) return right
  if (isEmptySet(right)) return left
  const children = new Map(left.children)
  for (const [element, child] of right.children) {
    const other = children.get(element)
    children.set(element, other === undefined ? child : union(other, child))
  }
  return makeSet(left.owned || right.owned, children)
}

/** The union of many: each place is looked at once, where joining one by one would copy all places so far each time. */
export function unionOf(sets: readonly FieldSet[]): FieldSet {
  const [first = emptySet, ...others] = sets
  if (others.length === 0) return first
  const together = new Map<string, FieldSet[]>()
  for (const set of sets) {
    for (const [element, child] of set.children) {
      const found = together.get(element)
      if (found === undefined) together.set(element, [child])
      else found.push(child)
    }
  }
  const children = new Map(Array.from(together, ([element, parts]) => [element, unionOf(parts)]))
  return makeSet(
    sets.some(({ owned }) => owned),
    children,
  )
}

/** The places of `left` that are not places of `right`; a place below an owned one is a place of its own. */
export function difference(left: FieldSet, right: FieldSet): FieldSet {
  if (isEmptySet(right)) return left
  const children = new Map<string, FieldSet>()
  for (const [element, child] of left.children) {
    const other = right.children.get(element)
    const rest = other === undefined ? child : difference(child, other)
    if (!isEmptySet(rest)) children.set(element, rest)
  }
  return makeSet(left.owned && !right.owned, children)
}

export function intersection(left: FieldSet, right: FieldSet): FieldSet {
  const children = new Map<string, FieldSet>()
  for (const [element, child] of left.children) {
    const other = right.children.get(element)
    if (other === undefined) continue
    const common = intersection(child, other)
    if (!isEmptySet(common)) children.set(element, common)
  }
  return makeSet(left.owned && right.owned, children)
}

export function equalSets(left: FieldSet, right: FieldSet): boolean {
  if (left === right) return true
  if (left.owned !== right.owned || left.children.size !== right.children.size) return false
  for (const [element, child] of left.children) {
    const other = right.children.get(element)
    if (other === undefined || !equalSets(child, other)) return false
  }
  return true
}

/** The owned places as text: `.spec.containers[name="c"].image`. */
export function pathTexts(set: FieldSet): readonly string[] {
  const texts: string[] = []
  addPathTexts(set, '', texts)
  return texts
}

function addPathTexts(set: FieldSet, prefix: string, texts: string[]): void {
  if (set.owned) texts.push(prefix)
  for (const element of [...set.children.keys()].toSorted()) {
    addPathTexts(set.children.get(element) ?? emptySet, prefix + elementText(element), texts)
  }
}

function elementText(element: string): string {
  const rest = element.slice(2)
  switch (element.slice(0, 2)) {
    case 'f:':
      return `.${rest}`
    case 'k:': {
      const keys = parseJson(rest)
      if (!isMap(keys)) return `[${rest}]`
      return `[${Object.keys(keys)
        .map((key) => `${key}=${JSON.stringify(keys[key])}`)
        .join(',')}]`
    }
    case 'v:':
      return `[=${rest}]`
    default:
      return `[${rest}]`
  }
}

export function toFieldsV1(set: FieldSet): JsonMap {
  const fields: { [key: string]: Json } = {}
  if (set.owned && set.children.size > 0) fields['.'] = {}
  for (const element of [...set.children.keys()].toSorted()) {
    fields[element] = toFieldsV1(set.children.get(element) ?? emptySet)
  }
  return fields
}

const maxDepth = 64

/** Undefined when this is not FieldsV1: it comes from clients. */
export function fromFieldsV1(fields: unknown): FieldSet | undefined {
  return isMap(fields) ? parseNode(fields, false, 0) : undefined
}

function parseNode(fields: JsonMap, leafIsOwned: boolean, depth: number): FieldSet | undefined {
  if (depth > maxDepth) return undefined
  const children = new Map<string, FieldSet>()
  let owned = false
  for (const element of Object.keys(fields)) {
    const value = fields[element]
    if (!isMap(value)) return undefined
    if (element === '.') {
      owned = true
      continue
    }
    if (!isElement(element)) return undefined
    const child = parseNode(value, true, depth + 1)
    if (child === undefined) return undefined
    children.set(element, child)
  }
  return makeSet(owned || (leafIsOwned && children.size === 0), children)
}

function isElement(element: string): boolean {
  const rest = element.slice(2)
  switch (element.slice(0, 2)) {
    case 'f:':
      return true
    case 'k:':
      return isMap(parseJson(rest))
    case 'v:':
      return parseJson(rest) !== undefined
    case 'i:':
      return /^\d+$/.test(rest)
    default:
      return false
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
