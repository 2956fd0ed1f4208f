// What do the kinds themselves demand of an object? Reading, defaults, validation and field owners, as the verbs need them:
// errors become StatusErrors, unknown fields become errors or warnings.
import { shown } from '../request/shown.ts'
import { invalid, invalidObject } from '../../api/field-errors.ts'
import type { KindInfo, KindMap, KindName } from '../../api/kinds.ts'
import { goPackage, kindByType, storedKind, versionKind } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { ReadError, readObject as readTyped, readPartial } from '../../api/schema/check.ts'
import { badRequest } from '../../api/status-error.ts'
import { validateCreate, validateUpdate } from '../../api/validation/validate.ts'
import { omit } from '../../api/members.ts'
import type { Loose } from './stored-objects.ts'
import type { FieldValidation } from '../request/options.ts'
import { snippet } from '../http/json-problem.ts'
import { goTypeWord } from '../patch/errors.ts'
import { updateManagedFields } from '../patch/managed-fields.ts'
import type { ManagedFieldsCache } from '../patch/managed-fields-cache.ts'

export interface Reading {
  /** Part of an object: nothing is filled in. */
  readonly partial?: boolean
  /** The stored object: parts that the value has in common with it need not be read again. */
  readonly known?: KubeObject | undefined
  /** What came out of a patch: the patch is at fault, and the answer shows what it made. */
  readonly patched?: boolean
  /** What the text named twice: counts like fields that nobody knows. */
  readonly repeated?: readonly string[]
}

/** A value sent by a client, as an object of the kind. */
export function readObject(
  info: KindInfo,
  sent: unknown,
  validation: FieldValidation,
  warn: (text: string) => void,
  how: Reading = {},
): KubeObject {
  const refuse = how.patched ? (why: Refusal) => badPatch(sent, why) : (why: Refusal) => cannotHandle(info, why)
  // Go reads a null as nothing at all.
  const value = sent ?? {}
  checkShape(info, value)
  checkType(info, value, refuse)
  try {
    const { value: object, unknown } = how.partial
      ? readPartial(info.name, value)
      : readTyped(info.name, value, how.known)
    if (how.partial && unknown.length > 0) throw undeclared(info, object, unknown[0] ?? '')
    const faults = [...(how.repeated ?? []), ...unknown.map((path) => `unknown field ${JSON.stringify(path)}`)]
    if (faults.length > 0) report(faults, validation, warn, refuse)
    return withMetadata(object)
  } catch (error) {
    if (!(error instanceof ReadError)) throw error
    // The answer is word for word that of Kubernetes; which field it is about goes beside it.
    if (error.advice !== undefined) warn(error.advice)
    throw refuse({ text: error.message })
  }
}

/** Why a value is not what it should be; `kind` and `version` are what it says it is. */
interface Refusal {
  readonly text: string
  readonly kind?: string
  readonly version?: string
}

function report(
  texts: readonly string[],
  validation: FieldValidation,
  warn: (text: string) => void,
  refuse: (why: Refusal) => Error,
): void {
  switch (validation) {
    case 'Strict':
      throw refuse({ text: `strict decoding error: ${texts.join(', ')}` })
    case 'Warn':
      for (const text of texts) warn(text)
      return
    case 'Ignore':
      return
    default:
      validation satisfies never
  }
}

const typeStruct =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'

/** An object says what it is; apiVersion and kind are texts. */
function checkShape(info: KindInfo, value: unknown): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw unrecognized(info, `cannot unmarshal ${goTypeWord(value)} into Go value of type ${typeStruct}`, value)
  }
  for (const name of ['apiVersion', 'kind'] as const) {
    const said = (value as Loose)[name]
    if (typeof said === 'string' || said === undefined || said === null) continue
    throw unrecognized(info, `cannot unmarshal ${goTypeWord(said)} into Go struct field .${name} of type string`, value)
  }
  const { apiVersion } = value as Loose
  if (typeof apiVersion === 'string' && apiVersion.split('/').length > 2) {
    const text = `unexpected GroupVersion string: ${apiVersion} (${snippet(JSON.stringify(value))})`
    throw badRequest(`the object provided is unrecognized (must be of type ${info.kind}): ${text}`)
  }
}

function unrecognized(info: KindInfo, why: string, value: unknown): Error {
  const text = `couldn't get version/kind; json parse error: json: ${why} (${snippet(JSON.stringify(value))})`
  return badRequest(`the object provided is unrecognized (must be of type ${info.kind}): ${text}`)
}

/** apiVersion and kind may be left out; when given they must be those of the path. */
function checkType(info: KindInfo, value: unknown, refuse: (why: Refusal) => Error): void {
  const { apiVersion, kind } = value as Loose
  const said = { version: shown(apiVersion || info.apiVersion), kind: shown(kind || info.kind) }
  if (said.version === info.apiVersion && said.kind === info.kind) return
  const other = kindByType(said.version, said.kind)
  const text =
    other === undefined
      ? `no kind ${JSON.stringify(said.kind)} is registered for version ${JSON.stringify(said.version)} in scheme "pkg/api/legacyscheme/scheme.go:30"`
      : `converting (${other.version}.${other.kind}) to (${goPackage(info)}.${info.kind}): unknown conversion`
  throw refuse({ text, kind: said.kind, version: said.version.split('/').at(-1) ?? '' })
}

function cannotHandle(info: KindInfo, { text, kind = info.kind, version = info.version }: Refusal): Error {
  return badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${info.kind}: ${text}`)
}

/** An applied field that the schema does not know has nobody who could own it. */
function undeclared(info: KindInfo, config: Readonly<Record<string, unknown>>, path: string): Error {
  const { namespace = '', name = '' } = (config['metadata'] ?? {}) as Loose // read by the schema
  const what = `${shown(namespace)}/${shown(name)}; ${versionKind(info.apiVersion, info.kind)}`
  return badRequest(`failed to create typed patch object (${what}): .${path}: field not declared in schema`)
}

function badPatch(value: unknown, { text }: Refusal): Error {
  return invalidObject({ group: '', kind: '' }, '', [invalid('patch', JSON.stringify(value), text)])
}

function withMetadata(object: Readonly<Record<string, unknown>>): KubeObject {
  const metadata = object['metadata'] ?? {}
  return { ...object, metadata } as KubeObject // the schema has checked its members
}

export function applyDefaults(info: KindInfo, object: KubeObject): KubeObject {
  return info.defaults?.(object) ?? object
}

export function checkCreate(info: KindInfo, object: KubeObject): void {
  const kind: KindName = info.name
  const errors = validateCreate(kind, object as KindMap[typeof kind]) // it was read as this kind
  if (errors.length > 0) throw invalidObject(storedKind(info), object.metadata.name ?? '', errors)
}

/** What is allowed and unwise is done, with a warning. */
export function warnAbout(info: KindInfo, object: KubeObject, warn: (text: string) => void): void {
  for (const text of info.warnings?.(object) ?? []) warn(text)
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
  if (errors.length > 0) throw invalidObject(storedKind(info), current.metadata.name, errors)
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
  cache: ManagedFieldsCache,
  info: KindInfo,
  before: KubeObject | undefined,
  after: KubeObject,
  writer: Writer,
): KubeObject {
  const entries = updateManagedFields({ kind: info.name, before, after, ...writer }, cache)
  const { metadata } = after
  if (entries.length === 0) return { ...after, metadata: omit(metadata, ['managedFields']) }
  return { ...after, metadata: { ...metadata, managedFields: entries } }
}
