// How do values with a JSON form of their own look? Numbers, texts, bytes, and the messages that Kubernetes writes
// as plain values: times, quantities, int-or-string, managed fields, lists of strings.
import { isBasicType, messageSchema } from '../../api/schema/schema.ts'
import type { Json } from '../patch/json.ts'
import { malformed, type WireReader, type WireType } from './wire.ts'

export function isScalarType(type: string): boolean {
  return isBasicType(type) || messageSchema(type)?.scalar === true
}

/** What a map entry holds whose value was left out. */
export function emptyScalar(type: string): Json {
  switch (type) {
    case 'bool':
      return false
    case 'int32':
    case 'int64':
      return 0
    case 'resource.Quantity':
      return '0'
    case 'authentication.ExtraValue':
    case 'authorization.ExtraValue':
      return []
    default:
      return ''
  }
}

/** Null stands for a zero time or empty raw JSON: the field is left out. */
export function decodeScalar(type: string, wireType: WireType, reader: WireReader): Json {
  const isNumber = type === 'bool' || type === 'int32' || type === 'int64'
  if (wireType !== (isNumber ? 0 : 2)) throw malformed(`wrong wire type ${wireType}`)
  switch (type) {
    case 'bool':
      return reader.varint() !== 0n
    case 'int32':
      return Number(BigInt.asIntN(32, reader.varint()))
    case 'int64':
      return Number(BigInt.asIntN(64, reader.varint()))
    case 'string':
      return reader.text()
    case 'bytes':
      return Buffer.from(reader.bytes()).toString('base64')
    case 'meta.Time':
      return decodeTime(reader.message(), 0)
    case 'meta.MicroTime':
      return decodeTime(reader.message(), 6)
    case 'resource.Quantity':
      return firstText(reader.message()) || '0'
    case 'intstr.IntOrString':
      return decodeIntOrString(reader.message())
    case 'meta.FieldsV1':
      return decodeRawJson(firstText(reader.message()))
    case 'authentication.ExtraValue':
    case 'authorization.ExtraValue':
      return allTexts(reader.message())
    default:
      throw malformed(`no JSON form for ${type}`)
  }
}

function numbers(reader: WireReader): ReadonlyMap<number, bigint> {
  const found = new Map<number, bigint>()
  while (!reader.done) {
    const { number, type } = reader.tag()
    if (type === 0) found.set(number, reader.varint())
    else reader.skip(type)
  }
  return found
}

/** No seconds and no nanoseconds is Go's zero time, which means "not set". */
function decodeTime(reader: WireReader, digits: 0 | 6): string | null {
  const fields = numbers(reader)
  if (fields.size === 0) return null
  const seconds = Number(BigInt.asIntN(64, fields.get(1) ?? 0n))
  const nanos = Number(BigInt.asIntN(32, fields.get(2) ?? 0n))
  // The years 1 to 9999: all that RFC 3339 can write.
  if (seconds < -62_135_596_800 || seconds > 253_402_300_799) throw malformed('time out of range')
  if (seconds === -62_135_596_800 && nanos === 0) return null
  if (nanos < 0 || nanos > 999_999_999) throw malformed('time out of range')
  const text = new Date(seconds * 1000).toISOString().slice(0, 19)
  return digits === 0 ? `${text}Z` : `${text}.${String(Math.trunc(nanos / 1000)).padStart(6, '0')}Z`
}

function firstText(reader: WireReader): string {
  let text = ''
  while (!reader.done) {
    const { number, type } = reader.tag()
    if (number === 1 && type === 2) text = reader.text()
    else reader.skip(type)
  }
  return text
}

function allTexts(reader: WireReader): readonly string[] {
  const texts: string[] = []
  while (!reader.done) {
    const { number, type } = reader.tag()
    if (number === 1 && type === 2) texts.push(reader.text())
    else reader.skip(type)
  }
  return texts
}

function decodeIntOrString(reader: WireReader): number | string {
  let isText = false
  let number = 0
  let text = ''
  while (!reader.done) {
    const tag = reader.tag()
    if (tag.number === 1 && tag.type === 0) isText = reader.varint() === 1n
    else if (tag.number === 2 && tag.type === 0) number = Number(BigInt.asIntN(32, reader.varint()))
    else if (tag.number === 3 && tag.type === 2) text = reader.text()
    else reader.skip(tag.type)
  }
  return isText ? text : number
}

function decodeRawJson(text: string): Json {
  if (text === '') return null
  try {
    return JSON.parse(text) as Json // JSON.parse yields exactly this
  } catch {
    throw malformed('raw JSON inside the message is not JSON')
  }
}
