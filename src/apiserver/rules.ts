// What do the kinds themselves demand of an object? Reading, defaults, validation and field owners, as the verbs need them:
// errors become StatusErrors, unknown fields become errors or warnings.
import { shown } from './shown.ts'
import { applyDefaults as defaultsOf } from '../api/defaults/defaults.ts'
import { invalidObject } from '../api/field-errors.ts'
import type { KindInfo, KindMap, KindName } from '../api/kinds.ts'
import type { KubeObject } from '../api/meta.ts'
import { ReadError, readObject as readTyped, readPartial } from '../api/schema/check.ts'
import { badRequest } from '../api/status-error.ts'
import { validateCreate, validateUpdate } from '../api/validation/validate.ts'
import { omit } from './members.ts'
import type { Loose } from './objects.ts'
import type { FieldValidation } from './options.ts'
import { updateManagedFields } from './patch/managed-fields.ts'

export interface Reading {
  /** Part of an object: nothing is filled in. */
  readonly partial?: boolean
  /** The stored object: parts that the value has in common with it need not be read again. */
  readonly known?: KubeObject | undefined
}

/** A value sent by a client, as an object of the kind. */
export function readObject(
  info: KindInfo,
  value: unknown,
  validation: FieldValidation,
  warn: (text: string) => void,
  how: Reading = {},
): KubeObject {
  checkType(info, value)
  try {
    const { value: object, unknown } = how.partial
      ? readPartial(info.name, value)
      : readTyped(info.name, value, how.known)
    if (unknown.length > 0) reportUnknown(info, unknown, validation, warn)
    return withMetadata(object)
  } catch (error) {
    if (error instanceof ReadError) throw cannotHandle(info, info.kind, info.version, error.message)
    throw error
  }
}

function reportUnknown(
  info: KindInfo,
  unknown: readonly string[],
  validation: FieldValidation,
  warn: (text: string) => void,
): void {
  const texts = unknown.map((path) => `unknown field ${JSON.stringify(path)}`)
  switch (validation) {
    case 'Strict':
      throw cannotHandle(info, info.kind, info.version, `strict decoding error: ${texts.join(', ')}`)
    case 'Warn':
      for (const text of texts) warn(text)
      return
    case 'Ignore':
      return
    default:
      validation satisfies never
  }
}

/** apiVersion and kind may be left out; when given they must be those of the path. */
function checkType(info: KindInfo, value: unknown): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const word = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
    const why = `couldn't get version/kind; json parse error: json: cannot unmarshal ${word} into Go value of type struct`
    throw badRequest(`the object provided is unrecognized (must be of type ${info.kind}): ${why}`)
  }
  const { apiVersion, kind } = value as Loose
  const said = { apiVersion: apiVersion ?? info.apiVersion, kind: kind ?? info.kind }
  if ((said.apiVersion === '' || said.apiVersion === info.apiVersion) && (said.kind === '' || said.kind === info.kind))
    return
  const version = shown(said.apiVersion)
  const why = `no kind ${JSON.stringify(said.kind)} is registered for version ${JSON.stringify(version)} in scheme "pkg/api/legacyscheme/scheme.go:30"`
  throw cannotHandle(info, shown(said.kind), version.split('/').at(-1) ?? '', why)
}

function cannotHandle(info: KindInfo, kind: string, version: string, why: string): Error {
  return badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${info.kind}: ${why}`)
}

function withMetadata(object: Readonly<Record<string, unknown>>): KubeObject {
  const metadata = object['metadata'] ?? {}
  return { ...object, metadata } as KubeObject // the schema has checked its members
}

export function applyDefaults(info: KindInfo, object: KubeObject): KubeObject {
  const kind: KindName = info.name
  return defaultsOf(kind, object as KindMap[typeof kind]) // it was read as this kind
}

export function checkCreate(info: KindInfo, object: KubeObject): void {
  const kind: KindName = info.name
  const errors = validateCreate(kind, object as KindMap[typeof kind]) // it was read as this kind
  if (errors.length > 0) throw invalidObject(info, object.metadata.name ?? '', errors)
}

export function checkUpdate(
  info: KindInfo,
  next: KubeObject,
  current: KubeObject,
  subresource: string | undefined,
): void {
  const kind: KindName = info.name
  type Known = KindMap[typeof kind] // both were read as this kind
  // The version was compared before; by now the write is about the current one.
  const { resourceVersion = '' } = current.metadata
  const versioned = { ...next, metadata: { ...next.metadata, resourceVersion } }
  const errors = validateUpdate(kind, versioned as Known, current as Known, subresource)
  if (errors.length > 0) throw invalidObject(info, current.metadata.name, errors)
}

/** Empty labels, annotations, finalizers and owners are the same as none. */
export function tidyMetadata(object: KubeObject): KubeObject {
  const { metadata } = object
  const empty = mayBeEmpty.filter((name) => isEmpty(metadata[name]))
  return empty.length === 0 ? object : { ...object, metadata: omit(metadata, empty) }
}

const mayBeEmpty = ['labels', 'annotations', 'finalizers', 'ownerReferences', 'generateName', 'selfLink'] as const

function isEmpty(value: unknown): boolean {
  return value === null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0)
}

export interface Writer {
  readonly manager: string
  /** Milliseconds since 1970. */
  readonly now: number
  readonly subresource: string | undefined
}

/** The object with the record of who owns which of its fields brought up to date. */
export function ownFields(
  info: KindInfo,
  before: KubeObject | undefined,
  after: KubeObject,
  writer: Writer,
): KubeObject {
  const entries = updateManagedFields({ kind: info.name, before, after, ...writer })
  const { metadata } = after
  if (entries.length === 0) return { ...after, metadata: omit(metadata, ['managedFields']) }
  return { ...after, metadata: { ...metadata, managedFields: entries } }
}
