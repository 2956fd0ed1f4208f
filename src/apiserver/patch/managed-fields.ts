// Who wrote which field? Keeps metadata.managedFields true: reads and writes its entries, and credits plain writes
// (create, update, patch) to their manager.
import { timestamp } from '../../clock/clock.ts'
import { type KindName, kinds } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { deepFreeze } from '../objects/deep-freeze.ts'
import {
  difference,
  equalSets,
  type FieldSet,
  fromFieldsV1,
  isEmptySet,
  type Parts,
  setOf,
  toFieldsV1,
  union,
  unionOf,
  withField,
} from './field-set.ts'
import { isList, isMap, type Json, type JsonMap, type MutableMap } from './json.ts'
import { childNode, type SchemaNode } from './schema-walk.ts'
import type { Entries, ManagedFieldsCache } from './managed-fields-cache.ts'
import { noEntries } from './managed-fields-cache.ts'
import { compare, compareMaps, type Comparison } from './typed-values.ts'

export interface Manager {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly subresource: string
}

export interface Ownership extends Manager {
  readonly time: string | undefined
  readonly fields: FieldSet
}

/** By identity: everything of a Manager, never the time. */
export type Owners = Map<string, Ownership>

export interface WriteRecord {
  readonly kind: KindName
  /** Undefined for a create. */
  readonly before: KubeObject | undefined
  readonly after: KubeObject
  readonly manager: string
  readonly subresource?: string | undefined
  /** Milliseconds since 1970. */
  readonly now: number
}

/** The entries that `after` must be stored with. A write that changes nothing leaves them exactly as they were. */
export function updateManagedFields(write: WriteRecord, cache: ManagedFieldsCache): Entries {
  const { kind, before, after, subresource = '' } = write
  const stored = before?.metadata.managedFields ?? noEntries
  const owners = ownersToStartFrom(stored, after.metadata.managedFields, subresource !== '')
  const comparison = compareObjects(kind, before, after)
  const { changed, removed } = comparison
  if (isEmptySet(changed) && isEmptySet(removed)) return owners === undefined ? stored : writeOwners(owners)
  const self: Manager = { manager: write.manager, operation: 'Update', apiVersion: kinds[kind].apiVersion, subresource }
  const time = timestamp(write.now)
  if (owners !== undefined) return credited(owners, { ...self, time }, comparison)
  // Thousands of objects are written in the same way within the same second: worked out for one, known for all.
  const step = JSON.stringify([
    toFieldsV1(changed),
    toFieldsV1(removed),
    time,
    self.apiVersion,
    subresource,
    self.manager,
  ])
  return cache.after(stored, step, () => credited(readOwners(stored), { ...self, time }, comparison))
}

/** The entries of these owners after one of them has written. */
function credited(owners: Owners, self: Omit<Ownership, 'fields'>, { changed, removed }: Comparison): Entries {
  disown(owners, union(changed, removed), undefined)
  if (!isEmptySet(changed)) {
    const key = ownerKey(self)
    const kept = owners.get(key)
    owners.set(key, { ...self, fields: kept === undefined ? changed : union(kept.fields, changed) })
  }
  capOwners(owners)
  return writeOwners(owners)
}

/** What changed, apart from fields that no one owns (names, versions, the entries themselves). */
export function compareObjects(kind: KindName, before: KubeObject | undefined, after: KubeObject): Comparison {
  const { message } = kinds[kind]
  const left = (before ?? {}) as JsonMap // both were read as this kind
  const right = after as unknown as JsonMap
  let changed: Parts
  let removed: Parts
  for (const name of namesIn(left, right)) {
    if (left[name] === right[name] || name === 'apiVersion' || name === 'kind') continue
    const part = compareMember(childNode(message, name), name, left[name] ?? undefined, right[name] ?? undefined)
    if (!isEmptySet(part.changed)) changed = withField(changed, name, part.changed)
    if (!isEmptySet(part.removed)) removed = withField(removed, name, part.removed)
  }
  return { changed: setOf(changed, false), removed: setOf(removed, false) }
}

function namesIn(left: JsonMap, right: JsonMap): readonly string[] {
  const names = Object.keys(right)
  for (const name of Object.keys(left)) if (!Object.hasOwn(right, name)) names.push(name)
  return names
}

const alwaysThere: ReadonlySet<string> = new Set(['metadata', 'spec', 'status'])

/** metadata, spec and status always exist for Kubernetes: writing into them does not bring them into being. */
function compareMember(node: SchemaNode, name: string, left: Json | undefined, right: Json | undefined): Comparison {
  const fill = alwaysThere.has(name) && isMap(left) !== isMap(right)
  const before = fill ? (left ?? {}) : left
  const after = fill ? (right ?? {}) : right
  if (name !== 'metadata' || node.kind !== 'struct' || !isMap(before) || !isMap(after)) {
    return compare(node, before, after)
  }
  return compareMaps(node, before, after, unownedMetadata)
}

const unownedMetadata: ReadonlySet<string> = new Set([
  'name',
  'namespace',
  'creationTimestamp',
  'selfLink',
  'uid',
  'generation',
  'managedFields',
  'resourceVersion',
])

/** The object without the fields that are never owned. */
export function ownable(object: object): MutableMap {
  const result: MutableMap = {}
  for (const [key, value] of Object.entries(object) as [string, Json][]) {
    if (key === 'apiVersion' || key === 'kind') continue
    const own = key === 'metadata' && isMap(value) ? ownableMetadata(value) : value
    if (key !== 'metadata' || Object.keys(own as JsonMap).length > 0) result[key] = own
  }
  return result
}

function ownableMetadata(metadata: JsonMap): JsonMap {
  const result: MutableMap = {}
  for (const key of Object.keys(metadata)) if (!unownedMetadata.has(key)) result[key] = metadata[key] as Json
  return result
}

export function ownerKey(owner: Manager): string {
  return `${owner.operation}\0${owner.apiVersion}\0${owner.subresource}\0${owner.manager}`
}

/** Takes fields away from every owner but one; owners of nothing disappear. */
export function disown(owners: Owners, fields: FieldSet, except: string | undefined): void {
  for (const [key, owner] of owners) {
    if (key === except) continue
    const rest = difference(owner.fields, fields)
    if (isEmptySet(rest)) owners.delete(key)
    else if (!equalSets(rest, owner.fields)) owners.set(key, { ...owner, fields: rest })
  }
}

/**
 * Undefined: keep what is stored. Clients may rewrite the entries (kubectl does, to migrate), or reset them with
 * one empty entry; leaving them out or writing nonsense changes nothing.
 */
function ownersToStartFrom(stored: Entries, sent: Entries | undefined, isSubresource: boolean): Owners | undefined {
  if (isSubresource || sent === undefined || sent === stored || !isList(sent) || sent.length === 0) return undefined
  const [first] = sent
  if (sent.length === 1 && isMap(first) && Object.keys(first).length === 0) return new Map()
  const owners = readOwners(sent)
  if (owners.size === 0 || sameOwners(owners, readOwners(stored))) return undefined
  return owners
}

function sameOwners(left: Owners, right: Owners): boolean {
  if (left.size !== right.size) return false
  for (const [key, owner] of left) {
    const other = right.get(key)
    if (other === undefined || other.time !== owner.time || !equalSets(owner.fields, other.fields)) return false
  }
  return true
}

/** Entries that cannot be read own nothing. */
export function readOwners(entries: Entries): Owners {
  const owners: Owners = new Map()
  for (const entry of entries) {
    if (!isMap(entry)) continue
    const { operation } = entry
    const fields = readFields(entry.fieldsV1)
    if (fields === undefined || isEmptySet(fields) || (operation !== 'Apply' && operation !== 'Update')) continue
    const owner: Manager = {
      manager: String(entry.manager ?? ''),
      operation,
      apiVersion: String(entry.apiVersion ?? ''),
      subresource: String(entry.subresource ?? ''),
    }
    const time = typeof entry.time === 'string' ? entry.time : undefined
    owners.set(ownerKey(owner), { ...owner, time, fields })
  }
  return owners
}

function readFields(fields: unknown): FieldSet | undefined {
  return isMap(fields) ? fromFieldsV1(fields) : undefined
}

/** Applies first, then by time and name, as Kubernetes sorts them. */
export function writeOwners(owners: Owners): Entries {
  const entries = [...owners.values()].toSorted(byOperationAndTime).map((owner) => ({
    manager: owner.manager,
    operation: owner.operation,
    apiVersion: owner.apiVersion,
    ...(owner.time === undefined ? {} : { time: owner.time }),
    fieldsType: 'FieldsV1',
    fieldsV1: toFieldsV1(owner.fields),
    ...(owner.subresource === '' ? {} : { subresource: owner.subresource }),
  }))
  return deepFreeze(entries)
}

function byOperationAndTime(left: Ownership, right: Ownership): number {
  return (
    compareTexts(left.operation, right.operation) ||
    compareTexts(left.time ?? '', right.time ?? '') ||
    compareTexts(left.manager, right.manager) ||
    compareTexts(left.apiVersion, right.apiVersion) ||
    compareTexts(left.subresource, right.subresource)
  )
}

function compareTexts(left: string, right: string): number {
  return left === right ? 0 : left < right ? -1 : 1
}

const maxUpdateManagers = 10

/** Endless different writers must not make the object grow: the oldest are remembered together. */
function capOwners(owners: Owners): void {
  if (owners.size <= maxUpdateManagers) return
  const updates = [...owners.values()].filter((owner) => owner.operation === 'Update').toSorted(byOperationAndTime)
  if (updates.length <= maxUpdateManagers) return
  const folded = updates.slice(0, updates.length - maxUpdateManagers + 1)
  for (const owner of folded) owners.delete(ownerKey(owner))
  const fields = unionOf(folded.map((owner) => owner.fields))
  const newest = folded.at(-1) as Ownership // at least two were folded
  const ancient: Ownership = { ...newest, manager: 'ancient-changes', subresource: '', fields }
  owners.set(ownerKey(ancient), ancient)
}
