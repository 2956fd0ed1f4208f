// What object is in these protobuf bytes? Kubernetes' envelope and every message of the schema table, as plain JSON.
// kubectl 1.32 and later and current Go clients send this form and do not fall back.
import { kindByType } from '../../api/kinds.ts'
import { fieldsByNumber, messageSchema } from '../../api/schema/schema.ts'
import type { FieldSchema } from '../../api/schema/schema.ts'
import { badRequest } from '../../api/status-error.ts'
import { type Json, type MutableMap, put } from '../patch/json.ts'
import { keepsEmpty } from '../../api/schema/presence.ts'
import { decodeScalar, emptyScalar, isScalarType } from './scalars.ts'
import { malformed, WireReader, type WireType } from './wire.ts'

export const protobufContentType = 'application/vnd.kubernetes.protobuf'

export interface DecodedObject {
  readonly apiVersion: string
  readonly kind: string
  /** Plain JSON with apiVersion and kind filled in. */
  readonly object: { readonly [key: string]: Json }
}

const maxDepth = 64
const maxValues = 20_000

/** The state of one decoding: how much the sender has made us build so far. */
interface Budget {
  values: number
}

export function decodeProtobuf(bytes: Uint8Array): DecodedObject {
  if (bytes.length < 4 || bytes[0] !== 0x6b || bytes[1] !== 0x38 || bytes[2] !== 0x73 || bytes[3] !== 0) {
    throw badRequest('the body of the request does not start with the Kubernetes protobuf prefix')
  }
  const { apiVersion, kind, raw } = readEnvelope(new WireReader(bytes, 4))
  const message = messageOf(apiVersion, kind)
  if (message === undefined) {
    throw badRequest(`no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`)
  }
  const object: MutableMap = { apiVersion, kind }
  decodeFields(message, new WireReader(raw), object, 0, { values: 0 })
  return { apiVersion, kind, object }
}

/** The schema message of an object in an envelope: a kind we store, or one that is only ever sent. */
export function messageOf(apiVersion: string, kind: string): string | undefined {
  const stored = kindByType(apiVersion, kind)
  if (stored !== undefined) return stored.message
  // Every group has its own DeleteOptions; they are all the same message.
  if (kind === 'DeleteOptions' || kind === 'Status') return `meta.${kind}`
  if (apiVersion === 'policy/v1' && kind === 'Eviction') return evictionMessage
  const group = apiVersion === 'v1' ? 'core' : /^(authentication|authorization)\.k8s\.io\/v1$/.exec(apiVersion)?.[1]
  const message = `${group}.${kind}`
  return group !== undefined && messageSchema(message)?.object === true ? message : undefined
}

function readEnvelope(reader: WireReader) {
  let apiVersion = ''
  let kind = ''
  let raw = new Uint8Array() as Uint8Array
  while (!reader.done) {
    const { number, type } = reader.tag()
    if (type !== 2 || number > 4) reader.skip(type)
    else if (number === 1) {
      const inner = reader.message()
      while (!inner.done) {
        const tag = inner.tag()
        if (tag.type !== 2) inner.skip(tag.type)
        else if (tag.number === 1) apiVersion = inner.text()
        else if (tag.number === 2) kind = inner.text()
        else inner.skip(tag.type)
      }
    } else if (number === 2) raw = reader.bytes()
    else if (number === 3 && reader.text() !== '') throw malformed('encoded content is not supported')
    else if (number === 4) reader.skip(type)
  }
  return { apiVersion, kind, raw }
}

// policy/v1 Eviction is sent to pods/eviction and never stored.
const evictionMessage = 'policy.Eviction'

/** Reads a message's fields into `into`: its own object, or the parent's when the message is inlined. */
function decodeFields(message: string, reader: WireReader, into: MutableMap, depth: number, budget: Budget): void {
  if (depth > maxDepth) throw malformed('nested too deeply')
  const fields = fieldsByNumber(message)
  while (!reader.done) {
    const { number, type } = reader.tag()
    const field = fields.get(number)
    budget.values += 1
    if (budget.values > maxValues) throw malformed('too many values')
    if (field === undefined) reader.skip(type)
    else decodeField(message, field, type, reader, into, depth, budget)
  }
}

function decodeField(
  message: string,
  field: FieldSchema,
  type: WireType,
  reader: WireReader,
  into: MutableMap,
  depth: number,
  budget: Budget,
): void {
  switch (field.shape) {
    case 'inline':
      expectLengthDelimited(type)
      return decodeFields(field.type, reader.message(), into, depth + 1, budget)
    case 'list': {
      const list = (into[field.name] ?? []) as Json[] // only this function writes the key
      into[field.name] = list
      if (type === 2 && (field.type === 'int32' || field.type === 'int64')) {
        const packed = reader.message()
        while (!packed.done) {
          list.push(decodeScalar(field.type, 0, packed))
          budget.values += 1
          if (budget.values > maxValues) throw malformed('too many values')
        }
      } else list.push(decodeValue(field.type, type, reader, depth, budget))
      return
    }
    case 'map': {
      expectLengthDelimited(type)
      const map = (into[field.name] ?? {}) as MutableMap // likewise
      into[field.name] = map
      return decodeMapEntry(field.type, reader.message(), map, depth, budget)
    }
    case 'one': {
      const value = decodeValue(field.type, type, reader, depth, budget)
      const empty = value === '' || value === 0 || value === false || value === null
      if (!empty || (value !== null && (field.required === true || keepsEmpty(message, field.name)))) {
        into[field.name] = value
      }
      return
    }
    default:
      return field.shape satisfies never
  }
}

function decodeMapEntry(valueType: string, entry: WireReader, map: MutableMap, depth: number, budget: Budget): void {
  let key = ''
  let value: Json | undefined
  while (!entry.done) {
    const { number, type } = entry.tag()
    if (number === 1 && type === 2) key = entry.text()
    else if (number === 2) value = decodeValue(valueType, type, entry, depth, budget)
    else entry.skip(type)
  }
  put(map, key, value ?? (isScalarType(valueType) ? emptyScalar(valueType) : {}))
}

function decodeValue(type: string, wireType: WireType, reader: WireReader, depth: number, budget: Budget): Json {
  if (isScalarType(type)) return decodeScalar(type, wireType, reader)
  expectLengthDelimited(wireType)
  const object: MutableMap = {}
  decodeFields(type, reader.message(), object, depth + 1, budget)
  return object
}

function expectLengthDelimited(type: WireType): void {
  if (type !== 2) throw malformed(`wrong wire type ${type}`)
}
