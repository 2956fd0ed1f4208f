// How does an object become bytes in the store, and bytes an object? Stored values lack apiVersion, kind and
// resourceVersion and begin with the metadata, so an answer is a prefix plus the stored bytes, without parsing.
import type { KindInfo } from '../api/kinds.ts'
import { kinds } from '../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../api/meta.ts'
import type { Entry } from '../store/store.ts'
import { fromStoredEvent, toStoredEvent } from './event-views.ts'

/** An object as read from JSON: members are known, their types are not yet. */
export type Loose = Record<string, unknown>

const metadataStart = Buffer.from('{"metadata":{')

/** Objects parsed once are shared by all who still hold them; nobody holding one lets it go. */
const parsed = new WeakMap<Entry, WeakRef<KubeObject>>()

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

/** The stored form of an object. */
export function encodeObject(info: KindInfo, object: KubeObject): string {
  const source = info.name === 'EventsEvent' ? toStoredEvent(object) : object
  const { apiVersion: _apiVersion, kind: _kind, metadata, ...rest } = source as KubeObject & Loose
  const { resourceVersion: _resourceVersion, ...kept } = metadata
  return JSON.stringify({ metadata: kept, ...rest })
}

/** The object of an entry, frozen, with its type and resource version. */
export function decodeObject(info: KindInfo, entry: Entry): KubeObject {
  if (info.name === 'EventsEvent') return deepFreeze(fromStoredEvent(decodeObject(kinds.Event, entry)))
  const known = parsed.get(entry)?.deref()
  if (known !== undefined) return known
  const stored = JSON.parse(entry.value.toString()) as { metadata: KubeObject['metadata'] } // we wrote it
  const object: KubeObject = deepFreeze({
    kind: info.kind,
    apiVersion: info.apiVersion,
    ...stored,
    metadata: { ...stored.metadata, resourceVersion: String(entry.revision) },
  })
  parsed.set(entry, new WeakRef(object))
  return object
}

/** Remembers the object that was just written as this entry, so that nobody parses it again. */
export function remember(info: KindInfo, entry: Entry, object: KubeObject): KubeObject {
  const { apiVersion: _apiVersion, kind: _kind, ...rest } = object
  const whole = deepFreeze({
    kind: info.kind,
    apiVersion: info.apiVersion,
    ...rest,
    metadata: { ...object.metadata, resourceVersion: String(entry.revision) },
  })
  if (info.name !== 'EventsEvent') parsed.set(entry, new WeakRef(whole))
  return whole
}

const lean = new WeakMap<Entry, WeakRef<KubeObject>>()

/**
 * The object without the record of who owns its fields: our own parts never read it, and it is often half of the
 * object. A write that brings no record leaves the stored one as it is.
 */
export function leanObject(info: KindInfo, entry: Entry): KubeObject {
  const known = info.name === 'EventsEvent' ? undefined : lean.get(entry)?.deref()
  if (known !== undefined) return known
  const object = withoutManagedFields(decodeObject(info, entry))
  if (info.name !== 'EventsEvent') lean.set(entry, new WeakRef(object))
  return object
}

export function withoutManagedFields(object: KubeObject): KubeObject {
  if (object.metadata.managedFields === undefined) return object
  const { managedFields: _managedFields, ...metadata } = object.metadata
  return deepFreeze({ ...object, metadata })
}

/** The JSON of the whole object. */
export function objectBytes(info: KindInfo, entry: Entry): Buffer {
  if (info.name === 'EventsEvent') return Buffer.from(JSON.stringify(decodeObject(info, entry)))
  return Buffer.concat([objectHead(info, entry), entry.value.subarray(metadataStart.length)])
}

export function objectHead(info: KindInfo, entry: Entry): Buffer {
  const type = `"kind":${JSON.stringify(info.kind)},"apiVersion":${JSON.stringify(info.apiVersion)}`
  return Buffer.from(`{${type},"metadata":{"resourceVersion":"${entry.revision}",`)
}

/** The JSON of the object as an item of a list, in pieces: there Kubernetes leaves out apiVersion and kind. */
export function pushItem(pieces: Buffer[], info: KindInfo, entry: Entry): void {
  if (info.name === 'EventsEvent') {
    const { apiVersion: _apiVersion, kind: _kind, ...rest } = decodeObject(info, entry)
    pieces.push(Buffer.from(JSON.stringify(rest)))
    return
  }
  pieces.push(Buffer.from(`{"metadata":{"resourceVersion":"${entry.revision}",`))
  pieces.push(entry.value.subarray(metadataStart.length))
}

export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const member of Object.values(value)) deepFreeze(member)
  return Object.freeze(value)
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
  const names = Object.keys(a).filter((name) => a[name] !== undefined)
  if (names.length !== Object.keys(b).filter((name) => b[name] !== undefined).length) return false
  return names.every((name) => Object.hasOwn(b, name) && sameJson(a[name], b[name]))
}
