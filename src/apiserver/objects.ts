// How does an object become text in the store, and text an object? Stored values lack apiVersion, kind and
// resourceVersion and begin with the metadata, so an answer is a prefix plus the stored text, without parsing.
import type { KindInfo } from '../api/kinds.ts'
import { kinds } from '../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../api/meta.ts'
import type { ManagedFieldsEntry } from '../api/types.ts'
import type { Entry } from '../store/store.ts'
import { deepFreeze } from './deep-freeze.ts'
import { fromStoredEvent, toStoredEvent } from './event-views.ts'
import { omit } from '../api/members.ts'
import { managedFieldsText, readManagedFields } from './patch/managed-fields.ts'
import { textOf } from './patch/shared-entries.ts'

/** An object as read from JSON: members are known, their types are not yet. */
export type Loose = Record<string, unknown>

const metadataStart = '{"metadata":{'

/** What was made of an entry: the whole object, and the one without the record of who owns its fields. */
interface Seen {
  whole?: KubeObject
  lean?: KubeObject
}

/**
 * Objects of recent versions, shared by all who ask: the writer, every watch, the next write. Two generations, the
 * older one dropped as a whole; weak references would cost the garbage collector more than parsing again does.
 */
const generationBytes = 1_500_000
let bytes = 0
let recent = new Map<Entry, Seen>()
let older = new Map<Entry, Seen>()

function seen(entry: Entry): Seen {
  const known = recent.get(entry)
  if (known !== undefined) return known
  if (bytes >= generationBytes) {
    older = recent
    recent = new Map()
    bytes = 0
  }
  bytes += entry.value.length
  const found = older.get(entry) ?? {}
  recent.set(entry, found)
  return found
}

/** Lets go of all of them; whoever asks again reads the text again. */
export function forgetRecentObjects(): void {
  bytes = 0
  recent = new Map()
  older = new Map()
}

/** Two kinds may be views of the same stored objects. */
export function storedKind(info: KindInfo): KindInfo {
  return info.name === 'EventsEvent' ? kinds.Event : info
}

export function prefixOf(info: KindInfo, namespace: string | undefined): string {
  const { group, plural } = storedKind(info)
  const base = `/${group === '' ? 'core' : group}/${plural}/`
  return info.namespaced && namespace ? `${base}${namespace}/` : base
}

export function storeKey(info: KindInfo, ref: ObjectRef): string {
  return prefixOf(info, ref.namespace) + ref.name
}

/** The object of an entry if somebody made it lately; saves a look into the text. */
export function recentObject(entry: Entry): KubeObject | undefined {
  const known = recent.get(entry) ?? older.get(entry)
  return known?.lean ?? known?.whole
}

/** The stored form of an object. */
export function encodeObject(info: KindInfo, object: KubeObject): string {
  const source = info.name === 'EventsEvent' ? toStoredEvent(object) : object
  const { managedFields } = source.metadata
  // Members that are undefined do not appear in the text, and cost less than copies without them.
  const head = JSON.stringify({ ...source.metadata, resourceVersion: undefined, managedFields: undefined })
  const tail = JSON.stringify({ ...source, apiVersion: undefined, kind: undefined, metadata: undefined })
  const owners = managedFields === undefined ? '' : `,"managedFields":${managedFieldsText(managedFields)}`
  return `{"metadata":${head.slice(0, -1)}${owners}}${tail === '{}' ? '' : ','}${tail.slice(1)}`
}

/** The object of an entry, frozen, with its type and resource version. */
export function decodeObject(info: KindInfo, entry: Entry): KubeObject {
  if (info.name === 'EventsEvent') return deepFreeze(fromStoredEvent(decodeObject(kinds.Event, entry)))
  const known = seen(entry)
  known.whole ??= wholeAgain(entry) ?? parseEntry(info, entry)
  return known.whole
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

function parseEntry(info: KindInfo, entry: Entry): KubeObject {
  const { metadata, others, owners } = readStored(entry.value)
  const managed = owners === undefined ? {} : { managedFields: owners() }
  return assembled(info, entry, { ...metadata, ...managed }, others)
}

function parseLean(info: KindInfo, entry: Entry): KubeObject {
  const { metadata, others } = readStored(entry.value)
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
function readStored(text: string): Stored {
  const start = text.indexOf(ownersStart)
  const end = start === -1 ? -1 : text.indexOf(ownersEnd, start)
  if (end !== -1) {
    try {
      const head = JSON.parse(`${text.slice(0, start)}}}`) as Pick<KubeObject, 'metadata'> // we wrote it
      const rest = text.slice(end + ownersEnd.length)
      const others = rest === '}' ? {} : (JSON.parse(`{${rest.slice(1)}`) as Loose)
      const record = text.slice(start + ownersStart.indexOf('['), end + ownersEnd.lastIndexOf('}'))
      const owners = () => readManagedFields(record)
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

/** Remembers the object that was just written as this entry, so that nobody parses it again. */
export function remember(info: KindInfo, entry: Entry, object: KubeObject): KubeObject {
  const whole = deepFreeze({
    ...object,
    kind: info.kind,
    apiVersion: info.apiVersion,
    metadata: { ...object.metadata, resourceVersion: String(entry.revision) },
  })
  if (info.name !== 'EventsEvent') seen(entry).whole = whole
  return whole
}

/**
 * The object without the record of who owns its fields: our own parts never read it, and it is often half of the
 * object. A write that brings no record leaves the stored one as it is.
 */
export function leanObject(info: KindInfo, entry: Entry): KubeObject {
  if (info.name === 'EventsEvent') return withoutManagedFields(decodeObject(info, entry))
  const known = recent.get(entry) ?? older.get(entry)
  const made = known?.lean ?? keptWith(entry)?.lean
  if (made !== undefined) return made
  if (known?.whole !== undefined) return (known.lean = withoutManagedFields(known.whole))
  // An old version, read by a list: it does not push out what is being worked with.
  return parseLean(info, entry)
}

/** For a watch of our own parts: an informer keeps the object for as long as the entry is the newest of its key. */
export function keptLean(info: KindInfo, entry: Entry): KubeObject {
  const owners = (recent.get(entry) ?? older.get(entry))?.whole?.metadata.managedFields
  const lean = leanObject(info, entry)
  // Events come and go in great numbers, and none of our parts keeps them.
  if (entry.made === undefined && storedKind(info).name !== 'Event') {
    const kept: Kept = { lean, owners: owners && textOf(owners) !== undefined ? owners : undefined }
    entry.made = kept
  }
  return lean
}

/** The entry is no longer the newest: nothing is kept with it from now on. */
export function letGo(entry: Entry): void {
  entry.made = null
}

export function withoutManagedFields(object: KubeObject): KubeObject {
  if (object.metadata.managedFields === undefined) return object
  // Everything below is frozen already.
  return Object.freeze({ ...object, metadata: Object.freeze(omit(object.metadata, ['managedFields'])) })
}

/** The JSON of the whole object. */
export function objectText(info: KindInfo, entry: Entry): string {
  if (info.name === 'EventsEvent') return JSON.stringify(decodeObject(info, entry))
  const type = `"kind":${JSON.stringify(info.kind)},"apiVersion":${JSON.stringify(info.apiVersion)}`
  return `{${type},"metadata":{"resourceVersion":"${entry.revision}",${entry.value.slice(metadataStart.length)}`
}

/** The JSON of the object as an item of a list: there Kubernetes leaves out apiVersion and kind. */
export function itemText(info: KindInfo, entry: Entry): string {
  if (info.name === 'EventsEvent') {
    const { apiVersion: _apiVersion, kind: _kind, ...rest } = decodeObject(info, entry)
    return JSON.stringify(rest)
  }
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
