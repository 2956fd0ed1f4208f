// How does an object look in Kubernetes' protobuf? The inverse of decode.ts: whole objects and lists in their envelope, and the
// frames of a watch. Kinds without field numbers (custom resources and our own) exist in JSON only.
import assert from 'node:assert/strict'
import { type FieldSchema, messageSchema } from '../../api/schema/schema.ts'
import type { Json, JsonMap } from '../patch/json.ts'
import { isMap } from '../patch/json.ts'
import { BackwardWriter } from './backward-writer.ts'
import { messageOf } from './decode.ts'
import { isScalarType } from './scalars.ts'

const magic = Buffer.from('k8s\0')

/** Whether objects of this type can be written; lists and partial metadata are asked for by their own names. */
export function hasProtobuf(apiVersion: string, kind: string): boolean {
  if (isPartialMetadata(apiVersion, kind)) return true
  const message = messageOf(apiVersion, kind)
  return message !== undefined && messageSchema(message)?.fields.some((field) => field.number > 0) === true
}

export function encodeProtobuf(object: JsonMap): Buffer {
  const apiVersion = String(object['apiVersion'])
  const kind = String(object['kind'])
  const writer = new BackwardWriter()
  if (isPartialMetadata(apiVersion, kind)) writeMetadata(writer, object)
  else writeMessage(writer, messageNamed(apiVersion, kind), object)
  return enveloped(writer, apiVersion, kind)
}

/** In Kubernetes every list is a message of two fields: its metadata, and the items. */
export async function encodeProtobufList(
  list: { readonly apiVersion: string; readonly kind: string; readonly metadata: JsonMap },
  items: readonly JsonMap[],
  /** Asked after each item: when to let others run. */
  rest: () => Promise<void> | undefined,
): Promise<Buffer> {
  const { apiVersion, kind, metadata } = list
  const itemKind = kind.replace(/List$/, '')
  const message = isPartialMetadata(apiVersion, itemKind) ? undefined : messageNamed(apiVersion, itemKind)
  const writer = new BackwardWriter(Math.max(4096, items.length * 1024))
  for (const item of items.toReversed()) {
    const before = writer.length
    if (message === undefined) writeMetadata(writer, item)
    else writeMessage(writer, message, item)
    writer.close(2, before)
    const resting = rest()
    if (resting) await resting
  }
  const before = writer.length
  writeMessage(writer, 'meta.ListMeta', metadata)
  writer.close(1, before)
  return enveloped(writer, apiVersion, kind)
}

/** One event of a watch: its length in four bytes, then the event, which has no envelope but for its object. */
export function watchFrame(type: string, object: Uint8Array): Buffer {
  const writer = new BackwardWriter(object.length + 64)
  writer.bytes(1, object)
  writer.close(2, 0)
  writer.text(1, type)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(writer.length)
  writer.raw(length)
  return writer.finish()
}

/** The envelope's texts about the encoding are empty, and written all the same, as Kubernetes does. */
function enveloped(content: BackwardWriter, apiVersion: string, kind: string): Buffer {
  const raw = content.finish()
  const writer = new BackwardWriter(raw.length + 128)
  writer.text(4, '')
  writer.text(3, '')
  writer.bytes(2, raw)
  const before = writer.length
  writer.text(2, kind)
  writer.text(1, apiVersion)
  writer.close(1, before)
  writer.raw(magic)
  return writer.finish()
}

function messageNamed(apiVersion: string, kind: string): string {
  const message = messageOf(apiVersion, kind)
  assert(message !== undefined, `${apiVersion} ${kind} has no message`)
  return message
}

function isPartialMetadata(apiVersion: string, kind: string): boolean {
  return kind === 'PartialObjectMetadata' && apiVersion.startsWith('meta.k8s.io/')
}

function writeMetadata(writer: BackwardWriter, object: JsonMap): void {
  const before = writer.length
  writeMessage(writer, 'meta.ObjectMeta', object['metadata'] as JsonMap) // every object has it
  writer.close(1, before)
}

function writeMessage(writer: BackwardWriter, message: string, object: JsonMap): void {
  const fields = messageSchema(message)?.fields ?? []
  for (let index = fields.length - 1; index >= 0; index--) {
    const field = fields[index]
    if (field === undefined || field.number === 0) continue
    const value = object[field.name]
    if (field.shape === 'inline') {
      const before = writer.length
      writeMessage(writer, field.type, object)
      writer.close(field.number, before)
    } else if (fits(field, value)) writeField(writer, field, value)
  }
}

/** Reviews repeat what the client sent, which nobody checked: what is not of the field's type is left out. */
function fits({ shape, type }: FieldSchema, value: Json | undefined): value is Json {
  if (value === undefined || value === null) return false
  if (shape === 'list') return Array.isArray(value) && value.every((item) => isOfType(type, item))
  if (shape === 'map') return isMap(value) && Object.values(value).every((item) => isOfType(type, item))
  return isOfType(type, value)
}

function isOfType(type: string, value: Json): boolean {
  if (type === 'bool') return typeof value === 'boolean'
  if (type === 'int32' || type === 'int64') return Number.isInteger(value)
  if (type === 'authentication.ExtraValue' || type === 'authorization.ExtraValue') return Array.isArray(value)
  return isScalarType(type) || isMap(value)
}

function writeField(writer: BackwardWriter, field: FieldSchema, value: Json): void {
  switch (field.shape) {
    case 'list':
      for (const item of (value as readonly Json[]).toReversed()) writeValue(writer, field.number, field.type, item)
      return
    case 'map':
      for (const [key, item] of Object.entries(value as JsonMap).toReversed()) {
        const before = writer.length
        writeValue(writer, 2, field.type, item)
        writer.text(1, key)
        writer.close(field.number, before)
      }
      return
    case 'one':
      return writeValue(writer, field.number, field.type, value)
    case 'inline':
      return
    default:
      return field.shape satisfies never
  }
}

function writeValue(writer: BackwardWriter, number: number, type: string, value: Json): void {
  if (isScalarType(type)) return writeScalar(writer, number, type, value)
  const before = writer.length
  writeMessage(writer, type, value as JsonMap)
  writer.close(number, before)
}

function writeScalar(writer: BackwardWriter, number: number, type: string, value: Json): void {
  const before = writer.length
  switch (type) {
    case 'bool':
    case 'int32':
    case 'int64':
      return writer.number(number, Number(value))
    case 'string':
      return writer.text(number, String(value))
    case 'bytes':
      return writer.bytes(number, Buffer.from(String(value), 'base64'))
    case 'meta.Time':
    case 'meta.MicroTime':
      writeTime(writer, String(value))
      break
    case 'resource.Quantity':
      writer.text(1, String(value))
      break
    case 'intstr.IntOrString': {
      const isText = typeof value === 'string'
      writer.text(3, isText ? value : '')
      writer.number(2, isText ? 0 : Number(value))
      writer.number(1, isText ? 1 : 0)
      break
    }
    case 'meta.FieldsV1':
      writer.text(1, JSON.stringify(value))
      break
    default:
      for (const item of (value as readonly Json[]).toReversed()) writer.text(1, String(item))
  }
  writer.close(number, before)
}

function writeTime(writer: BackwardWriter, text: string): void {
  const micros = Number(/\.(\d{1,6})/.exec(text)?.[1]?.padEnd(6, '0') ?? 0)
  writer.number(2, micros * 1000)
  writer.number(1, Math.floor(Date.parse(text) / 1000))
}
