// Does a JSON value have the shape of its kind? One pass over the schema table: unknown fields are found, wrong types
// are refused in Go's words, and what remains is normalised as a typed server would: nulls and meaningless empties
// dropped, quantities and times in canonical form.
import { isJsonObject } from '../json.ts'
import { kinds } from '../kinds.ts'
import type { KindName } from '../kinds.ts'
import { canonicalQuantity, quantityAdvice, QuantityError, quantityFormatWrong } from '../quantity.ts'
import { keepsEmpty } from './presence.ts'
import { declaredFields, jsonFields, messageNames, messageSchema } from './schema.ts'
import type { DeclaredField, FieldSchema } from './schema.ts'
import { canonicalTime } from './time.ts'

/** The value cannot be read as its kind: the part after "cannot be handled as a …: ". */
export class ReadError extends Error {
  override readonly name = 'ReadError'
  /** Which field is wrong and what was meant, where Kubernetes' own text does not say it. */
  readonly advice: string | undefined
  constructor(message: string, options: { readonly cause?: unknown; readonly advice?: string } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.advice = options.advice
  }
}

export interface ReadResult {
  /** The value as we would store it: unknown fields are gone. */
  readonly value: Readonly<Record<string, unknown>>
  /** Paths of fields that the schema lacks: `spec.colour`, `spec.containers[0].foo`. */
  readonly unknown: readonly string[]
}

/**
 * Reads a whole object of a kind. Throws ReadError for wrong types and malformed quantities or times. Required fields
 * that are absent get their zero value ('' or {}), as in Go, so that the result has the shape its type promises.
 * `known` is an object of the same kind that was read before and never changed since: parts of the value that are
 * parts of it, at the same place, are taken as they are.
 */
export function readObject(kind: KindName, value: unknown, known?: unknown): ReadResult {
  return readMessage(kinds[kind].message, value, known)
}

/** Reads a part of an object (an apply configuration, a merge patch): nothing is filled in and no empty value dropped. */
export function readPartial(kind: KindName, value: unknown): ReadResult {
  const { message } = kinds[kind]
  const unknown: string[] = []
  return {
    value: readStruct(message, value, { message, field: '', path: '', whole: true }, { unknown, partial: true }),
    unknown,
  }
}

/** The same for any message of the table (reviews, DeleteOptions, Binding, …). */
export function readMessage(message: string, value: unknown, known?: unknown): ReadResult {
  const unknown: string[] = []
  const place: Place = { message, field: '', path: '', whole: true }
  return { value: readStruct(message, value, place, { unknown, partial: false }, known), unknown }
}

export function unknownFields(kind: KindName, object: unknown): readonly string[] {
  return readObject(kind, object).unknown
}

const longestQuantity = 256

/** Where we are: for paths with indices (unknown fields) and without (Go's errors). */
interface Place {
  /** The struct that holds the field. */
  readonly message: string
  /** Go's path: no indices. */
  readonly field: string
  /** Our path: with indices. */
  readonly path: string
  readonly whole?: boolean
}

interface Reading {
  readonly unknown: string[]
  readonly partial: boolean
}

function readStruct(
  message: string,
  value: unknown,
  place: Place,
  reading: Reading,
  known?: unknown,
): Readonly<Record<string, unknown>> {
  if (!isJsonObject(value)) throw mismatch(value, place, goStruct(message))
  const before = isJsonObject(known) ? known : undefined
  const fields = declaredFields(message)
  const typed = messageSchema(message)?.object === true || message === 'meta.DeleteOptions' || message === 'meta.Status'
  const result: Record<string, unknown> = {}
  for (const name of Object.keys(value)) {
    const inner = value[name]
    // As JSON has it: callers in the same process may say absent that way.
    if (inner === undefined) continue
    const field = fields.get(name)
    const isType = place.whole && typed && (name === 'apiVersion' || name === 'kind')
    if (before !== undefined && inner === before[name] && isShared(field, inner)) {
      put(result, name, inner)
      continue
    }
    const path = place.path === '' ? name : `${place.path}.${name}`
    if (isType) {
      if (inner !== null) result[name] = readString(inner, { message, field: name, path })
      continue
    }
    if (field === undefined) {
      reading.unknown.push(path)
      continue
    }
    if (inner === null) {
      if (reading.partial) put(result, name, null)
      continue
    }
    const at: Place = { message: field.owner, field: place.field === '' ? name : `${place.field}.${name}`, path }
    const read = readField(field.schema, inner, at, reading, before?.[name])
    if (reading.partial || !isDropped(field, read)) put(result, name, read)
  }
  if (!reading.partial) addZeroValues(message, result)
  return result
}

/** A null is never shared: reading decides what becomes of it. */
function isShared(field: DeclaredField | undefined, value: unknown): field is DeclaredField {
  return field !== undefined && value !== null
}

/** Sets a member as data: no name may become the prototype. */
function put(record: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__') Object.defineProperty(record, name, { value, ...plainMember })
  else record[name] = value
}

const plainMember = { writable: true, enumerable: true, configurable: true } as const

/** By message, the fields that get their zero value when they are absent. */
const zeroFields: ReadonlyMap<string, readonly FieldSchema[]> = new Map(
  messageNames.map((message) => [message, requiredFields(message)]),
)

function requiredFields(message: string): readonly FieldSchema[] {
  return [...jsonFields(message).values()].filter(
    (schema) => schema.required && (schema.number !== 0 || schema.name === 'metadata'),
  )
}

function addZeroValues(message: string, result: Record<string, unknown>): void {
  for (const schema of zeroFields.get(message) ?? []) {
    if (Object.hasOwn(result, schema.name)) continue
    const zero = zeroValue(schema)
    if (zero !== undefined) result[schema.name] = zero
  }
}

/** Undefined for what is a pointer in Go although required: times and secret references. */
function zeroValue(schema: FieldSchema): unknown {
  if (schema.shape === 'list') return []
  switch (schema.type) {
    case 'string':
    case 'bytes':
      return ''
    case 'bool':
      return false
    case 'int32':
    case 'int64':
    case 'intstr.IntOrString':
      return 0
    default:
      if (messageSchema(schema.type)?.scalar || schema.name === 'secretRef') return undefined
      return zeroStruct(schema.type)
  }
}

function zeroStruct(message: string): Readonly<Record<string, unknown>> {
  const result: Record<string, unknown> = {}
  addZeroValues(message, result)
  return result
}

function readField(schema: FieldSchema, value: unknown, place: Place, reading: Reading, known: unknown): unknown {
  switch (schema.shape) {
    case 'list':
      if (!Array.isArray(value)) throw mismatch(value, place, goType(schema))
      return value.map((item, index) =>
        schema.type === 'string' && typeof item === 'string'
          ? item
          : readValue(schema, item, { ...place, path: `${place.path}[${index}]` }, reading),
      )
    case 'map':
      if (!isJsonObject(value)) throw mismatch(value, place, goType(schema))
      return readMap(schema, value, place, reading)
    case 'one':
      return readValue(schema, value, place, reading, known)
    case 'inline':
      throw new Error(`inlined field ${schema.name} read as a value`)
    default:
      return schema.shape satisfies never
  }
}

function readMap(
  schema: FieldSchema,
  value: Readonly<Record<string, unknown>>,
  place: Place,
  reading: Reading,
): Readonly<Record<string, unknown>> {
  const result: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const item = value[key]
    const isPlain = schema.type === 'string' && typeof item === 'string'
    const at = isPlain ? place : { ...place, path: `${place.path}.${key}` }
    put(result, key, isPlain ? item : readValue(schema, item, at, reading))
  }
  return result
}

function readValue(schema: FieldSchema, value: unknown, place: Place, reading: Reading, known?: unknown): unknown {
  switch (schema.type) {
    case 'string':
      return value === null ? '' : readString(value, place)
    case 'bytes':
      return value === null ? '' : readBytes(value, place)
    case 'bool':
      if (typeof value === 'boolean') return value
      if (value === null) return false
      throw mismatch(value, place, 'bool')
    case 'int32':
    case 'int64':
      return value === null ? 0 : readInteger(value, place, schema.type)
    case 'resource.Quantity':
      return value === null ? '0' : readQuantity(value, place)
    case 'meta.Time':
    case 'meta.MicroTime':
      return value === null ? null : readTime(value, place, schema.type === 'meta.MicroTime')
    case 'intstr.IntOrString':
      if (typeof value === 'string' || Number.isInteger(value)) return value
      throw mismatch(value, place, 'intstr.IntOrString')
    case 'meta.FieldsV1':
      return value
    case 'authentication.ExtraValue':
    case 'authorization.ExtraValue':
      if (!Array.isArray(value)) throw mismatch(value, place, 'v1.ExtraValue')
      return value.map((item) => readString(item, place))
    default:
      return readStruct(schema.type, value ?? {}, place, reading, known)
  }
}

function readString(value: unknown, place: Place): string {
  if (typeof value === 'string') return value
  throw mismatch(value, place, 'string')
}

function readBytes(value: unknown, place: Place): string {
  const text = readString(value, place).replaceAll(/[\r\n]/g, '')
  const wrong = text.search(/[^A-Za-z0-9+/=]/)
  const shape = /^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0
  if (!shape)
    throw new ReadError(`illegal base64 data at input byte ${wrong >= 0 ? wrong : Math.max(0, text.length - 1)}`)
  return text
}

function readInteger(value: unknown, place: Place, type: 'int32' | 'int64'): number {
  if (typeof value !== 'number') throw mismatch(value, place, type)
  const limit = type === 'int32' ? 2 ** 31 : 2 ** 63
  if (!Number.isInteger(value) || value < -limit || value >= limit)
    throw mismatch(value, place, type, `number ${value}`)
  return value
}

function readQuantity(value: unknown, place: Place): string {
  if (typeof value !== 'string' && typeof value !== 'number') throw mismatch(value, place, 'resource.Quantity')
  const text = String(value).trim()
  try {
    const canonical = text.length > longestQuantity ? text : canonicalQuantity(text)
    // The canonical text may be longer than the given one; what we store must be readable again.
    if (canonical.length > longestQuantity) throw new QuantityError(quantityFormatWrong)
    return canonical
  } catch (error) {
    if (!(error instanceof QuantityError)) throw error
    throw new ReadError(error.message, { cause: error, advice: `${place.path}: ${quantityAdvice(text)}` })
  }
}

function readTime(value: unknown, place: Place, micro: boolean): string {
  const text = readString(value, place)
  const canonical = canonicalTime(text, micro)
  if (canonical !== undefined) return canonical
  const layout = micro ? '2006-01-02T15:04:05.000000Z07:00' : '2006-01-02T15:04:05Z07:00'
  const quoted = JSON.stringify(text)
  throw new ReadError(`parsing time ${quoted} as ${JSON.stringify(layout)}: cannot parse ${quoted} as "2006"`)
}

// Kinds without field numbers are custom resources in Kubernetes: those keep what they are given.
function isDropped({ owner, schema }: DeclaredField, value: unknown): boolean {
  if (schema.required || schema.number === 0 || keepsEmpty(owner, schema.name)) return false
  if (schema.shape === 'list') return Array.isArray(value) && value.length === 0
  if (schema.shape === 'map') return Object.keys(value ?? {}).length === 0
  return value === '' || value === 0 || value === false || value === null
}

function mismatch(value: unknown, place: Place, type: string, what = jsonType(value)): ReadError {
  const where = place.whole
    ? `Go value of type ${type}`
    : `Go struct field ${shortName(place.message)}.${place.field} of type ${type}`
  return new ReadError(`json: cannot unmarshal ${what} into ${where}`)
}

function goType(schema: FieldSchema): string {
  const one = wordTypes.get(schema.name) ?? goBasic(schema.type)
  return schema.shape === 'list' ? `[]${one}` : schema.shape === 'map' ? `map[string]${one}` : one
}

const wordTypes: ReadonlyMap<string, string> = new Map([
  ['accessModes', 'v1.PersistentVolumeAccessMode'],
  ['volumeLifecycleModes', 'v1.VolumeLifecycleMode'],
])

function goBasic(type: string): string {
  return type === 'bytes' ? '[]uint8' : type.includes('.') ? goStruct(type) : type
}

function goStruct(message: string): string {
  return message.startsWith('resource.') || message.startsWith('intstr.') ? message : `v1.${shortName(message)}`
}

function shortName(message: string): string {
  return message.slice(message.indexOf('.') + 1)
}

function jsonType(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : typeof value
}
