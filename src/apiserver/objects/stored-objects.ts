// How does an object become text in the store, and text an object? Stored values lack apiVersion, kind and
// resourceVersion and begin with the metadata, so an answer is a prefix plus the stored text, without parsing.
import type { KindInfo } from '../../api/kinds.ts'
import { storedKind } from '../../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../../api/meta.ts'
import type { ManagedFieldsEntry } from '../../api/generated/types.ts'
import type { Entry } from '../../store/store.ts'
import { deepFreeze } from './deep-freeze.ts'
import { omit } from '../../api/members.ts'
import type { ManagedFieldsCache } from '../patch/managed-fields-cache.ts'
import { createManagedFieldsCache } from '../patch/managed-fields-cache.ts'
import { createRecentObjects } from './recent-objects.ts'

/** An object as read from JSON: members are known, their types are not yet. */
export type Loose = Record<string, unknown>

const metadataStart = '{"metadata":{'

/** The stored objects of one server. What is read or written lately is shared by all who ask. */
export interface StoredObjects {
  readonly managedFields: ManagedFieldsCache
  /** The stored form of an object. */
  encode(info: KindInfo, object: KubeObject): string
  /** The object of an entry, frozen, with its type and resource version. */
  decode(info: KindInfo, entry: Entry): KubeObject
  /** The object of an entry if it was made lately; saves a look into the text. */
  recent(entry: Entry): KubeObject | undefined
  /** Keeps the object that was just written as this entry, so that nobody parses it again. */
  remember(info: KindInfo, entry: Entry, object: KubeObject): KubeObject
  /** The object without managedFields: our own parts never read them, and they are often half of the object. */
  lean(info: KindInfo, entry: Entry): KubeObject
  /** The same for a watch of our own parts: an informer keeps the object while the entry is the newest of its key. */
  keptLean(info: KindInfo, entry: Entry): KubeObject
  /** The entry is no longer the newest: nothing is kept with it from now on. */
  letGo(entry: Entry): void
  /** The JSON of the whole object. */
  text(info: KindInfo, entry: Entry): string
  /** The JSON of the object as an item of a list. */
  itemText(info: KindInfo, entry: Entry): string
}

export function createStoredObjects(): StoredObjects {
  const cache = createManagedFieldsCache()
  const made = createRecentObjects()

  function decode(info: KindInfo, entry: Entry): KubeObject {
    if (info.view !== undefined) return deepFreeze(info.view.fromStored(decode(storedKind(info), entry)))
    const known = made.use(entry)
    known.whole ??= wholeAgain(entry) ?? parseEntry(info, entry, cache)
    return known.whole
  }

  function lean(info: KindInfo, entry: Entry): KubeObject {
    if (info.view !== undefined) return withoutManagedFields(decode(info, entry))
    const known = made.find(entry)
    const found = known?.lean ?? keptWith(entry)?.lean
    if (found !== undefined) return found
    if (known?.whole !== undefined) return (known.lean = withoutManagedFields(known.whole))
    // An old version, read by a list: it does not push out what is being worked with.
    return parseLean(info, entry, cache)
  }

  return {
    managedFields: cache,
    encode: (info, object) => encoded(info, object, cache),
    decode,
    recent(entry) {
      const known = made.find(entry)
      return known?.lean ?? known?.whole
    },
    remember(info, entry, object) {
      const metadata = { ...object.metadata, resourceVersion: String(entry.revision) }
      const whole = deepFreeze({ ...object, kind: info.kind, apiVersion: info.apiVersion, metadata })
      if (info.view === undefined) made.use(entry).whole = whole
      return whole
    },
    lean,
    keptLean(info, entry) {
      const owners = made.find(entry)?.whole?.metadata.managedFields
      const found = lean(info, entry)
      // Events come and go in great numbers, and none of our parts keeps them.
      if (entry.made === undefined && storedKind(info).name !== 'Event') {
        const kept: Kept = { lean: found, owners: owners && cache.isShared(owners) ? owners : undefined }
        entry.made = kept
      }
      return found
    },
    letGo(entry) {
      entry.made = null
    },
    text: (info, entry) => (info.view === undefined ? wholeText(info, entry) : JSON.stringify(decode(info, entry))),
    itemText: (info, entry) =>
      info.view === undefined ? listItemText(entry) : JSON.stringify(omit(decode(info, entry), ['apiVersion', 'kind'])),
  }
}

export function prefixOf(info: KindInfo, namespace: string | undefined): string {
  const { group, plural } = storedKind(info)
  const base = `/${group === '' ? 'core' : group}/${plural}/`
  return info.namespaced && namespace ? `${base}${namespace}/` : base
}

export function storeKey(info: KindInfo, ref: ObjectRef): string {
  return prefixOf(info, ref.namespace) + ref.name
}

/** The stored form of an object. */
function encoded(info: KindInfo, object: KubeObject, cache: ManagedFieldsCache): string {
  const source = info.view?.toStored(object) ?? object
  const { managedFields } = source.metadata
  // Members that are undefined do not appear in the text, and cost less than copies without them.
  const head = JSON.stringify({ ...source.metadata, resourceVersion: undefined, managedFields: undefined })
  const tail = JSON.stringify({ ...source, apiVersion: undefined, kind: undefined, metadata: undefined })
  const owners = managedFields === undefined ? '' : `,"managedFields":${cache.textOf(managedFields)}`
  return `{"metadata":${head.slice(0, -1)}${owners}}${tail === '{}' ? '' : ','}${tail.slice(1)}`
}

/** What is kept with an entry: its object, and the record of who owns its fields, if that is shared by many. */
interface Kept {
  readonly lean: KubeObject
  readonly owners: readonly ManagedFieldsEntry[] | undefined
}

/** Set by `keptLean` and `letGo` only. */
function keptWith(entry: Entry): Kept | undefined {
  return (entry.made as Kept | null | undefined) ?? undefined
}

/** The same object down to its parts, so that the next write finds out by a glance what has not changed. */
function wholeAgain(entry: Entry): KubeObject | undefined {
  const { lean, owners } = keptWith(entry) ?? {}
  if (lean === undefined || owners === undefined) return undefined
  return Object.freeze({ ...lean, metadata: Object.freeze({ ...lean.metadata, managedFields: owners }) })
}

function parseEntry(info: KindInfo, entry: Entry, cache: ManagedFieldsCache): KubeObject {
  const { metadata, others, owners } = readStored(entry.value, cache)
  const managed = owners === undefined ? {} : { managedFields: owners() }
  return assembled(info, entry, { ...metadata, ...managed }, others)
}

function parseLean(info: KindInfo, entry: Entry, cache: ManagedFieldsCache): KubeObject {
  const { metadata, others } = readStored(entry.value, cache)
  return assembled(info, entry, metadata, others)
}

function assembled(info: KindInfo, entry: Entry, metadata: KubeObject['metadata'], others: Loose): KubeObject {
  return deepFreeze({
    kind: info.kind,
    apiVersion: info.apiVersion,
    metadata: { ...metadata, resourceVersion: String(entry.revision) },
    ...others,
  })
}

/** The part of the stored text in which the metadata lie, without the record of who owns the fields where there is one. */
export function metadataText({ value }: Entry): string {
  const end = value.indexOf(ownersStart)
  return end === -1 ? value : value.slice(0, end)
}

const ownersStart = ',"managedFields":[{'
const ownersEnd = '}]}'

interface Stored {
  /** Without the record of who owns the fields. */
  readonly metadata: KubeObject['metadata']
  readonly others: Loose
  readonly owners: (() => readonly ManagedFieldsEntry[]) | undefined
}

/**
 * The record of who owns the fields, last in the metadata, is cut out of the text: parsing it is half of the work, many
 * do not want it, and most of the others know it already from another object. A cut at the wrong place is noticed: with
 * one brace too few or in the middle of a string, what is left is no JSON; and before the right place there is nothing
 * but metadata.
 */
function readStored(text: string, cache: ManagedFieldsCache): Stored {
  const start = text.indexOf(ownersStart)
  const end = start === -1 ? -1 : text.indexOf(ownersEnd, start)
  if (end !== -1) {
    try {
      const head = JSON.parse(`${text.slice(0, start)}}}`) as Pick<KubeObject, 'metadata'> // we wrote it
      const rest = text.slice(end + ownersEnd.length)
      const others = rest === '}' ? {} : (JSON.parse(`{${rest.slice(1)}`) as Loose)
      const record = text.slice(start + ownersStart.indexOf('['), end + ownersEnd.lastIndexOf('}'))
      const owners = () => cache.read(record)
      if (Object.keys(head).length === 1) return { metadata: head.metadata, others, owners }
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
    }
  }
  const stored = JSON.parse(text) as KubeObject & Loose // we wrote it
  const { managedFields } = stored.metadata
  return {
    metadata: omit(stored.metadata, ['managedFields']),
    others: omit(stored, ['metadata']),
    owners: managedFields && (() => managedFields),
  }
}

export function withoutManagedFields(object: KubeObject): KubeObject {
  if (object.metadata.managedFields === undefined) return object
  // Everything below is frozen already.
  return Object.freeze({ ...object, metadata: Object.freeze(omit(object.metadata, ['managedFields'])) })
}

/** The JSON of the whole object. */
function wholeText(info: KindInfo, entry: Entry): string {
  const type = `"kind":${JSON.stringify(info.kind)},"apiVersion":${JSON.stringify(info.apiVersion)}`
  return `{${type},"metadata":{"resourceVersion":"${entry.revision}",${entry.value.slice(metadataStart.length)}`
}

/** The same as an item of a list: there Kubernetes leaves out apiVersion and kind. */
function listItemText(entry: Entry): string {
  return `{"metadata":{"resourceVersion":"${entry.revision}",${entry.value.slice(metadataStart.length)}`
}

/** Same JSON, whatever the order of members. */
export function sameJson(left: unknown, right: unknown): boolean {
  if (left === right) return true
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false
  if (Array.isArray(left)) {
    if (!Array.isArray(right) || left.length !== right.length) return false
    return left.every((item, index) => sameJson(item, right[index]))
  }
  if (Array.isArray(right)) return false
  const [a, b] = [left as Loose, right as Loose]
  let extra = 0
  for (const name of Object.keys(a)) {
    if (a[name] === undefined) continue
    if (!Object.hasOwn(b, name) || !sameJson(a[name], b[name])) return false
    extra++
  }
  for (const name of Object.keys(b)) if (b[name] !== undefined) extra--
  return extra === 0
}
