// How would a Go client send this object? The inverse of decode.ts, for tests and for talking to servers that
// prefer protobuf; fields of JSON-only kinds cannot be sent.
import assert from 'node:assert/strict'
import { type FieldSchema, messageSchema } from '../../api/schema/schema.ts'
import type { Json, JsonMap } from '../patch/json.ts'
import { messageOf } from './decode.ts'
import { isScalarType } from './scalars.ts'
import { WireWriter } from './wire.ts'

export function encodeProtobuf(object: JsonMap): Uint8Array {
  const apiVersion = String(object['apiVersion'])
  const kind = String(object['kind'])
  const message = messageOf(apiVersion, kind)
  assert(message !== undefined, `${apiVersion} ${kind} has no message`)
  const envelope = new WireWriter()
    .message(1, new WireWriter().text(1, apiVersion).text(2, kind))
    .message(2, encodeMessage(message, object))
    .text(3, '')
    .text(4, '')
  return Buffer.concat([Buffer.from('k8s\0'), envelope.finish()])
}

function encodeMessage(message: string, object: JsonMap): WireWriter {
  const writer = new WireWriter()
  for (const field of messageSchema(message)?.fields ?? []) {
    const value = object[field.name]
    if (field.shape === 'inline') writer.message(field.number, encodeMessage(field.type, object))
    else if (value !== undefined && value !== null) encodeField(writer, field, value)
  }
  return writer
}

function encodeField(writer: WireWriter, field: FieldSchema, value: Json): void {
  switch (field.shape) {
    case 'list':
      for (const item of value as readonly Json[]) encodeValue(writer, field.number, field.type, item)
      return
    case 'map':
      for (const [key, item] of Object.entries(value as JsonMap)) {
        const entry = new WireWriter().text(1, key)
        encodeValue(entry, 2, field.type, item)
        writer.message(field.number, entry)
      }
      return
    case 'one':
      return encodeValue(writer, field.number, field.type, value)
    case 'inline':
      return
    default:
      return field.shape satisfies never
  }
}

function encodeValue(writer: WireWriter, number: number, type: string, value: Json): void {
  if (isScalarType(type)) encodeScalar(writer, number, type, value)
  else writer.message(number, encodeMessage(type, value as JsonMap))
}

function encodeScalar(writer: WireWriter, number: number, type: string, value: Json): void {
  switch (type) {
    case 'bool':
    case 'int32':
    case 'int64':
      writer.number(number, BigInt(Number(value)))
      return
    case 'string':
      writer.text(number, String(value))
      return
    case 'bytes':
      writer.bytes(number, Buffer.from(String(value), 'base64'))
      return
    case 'meta.Time':
    case 'meta.MicroTime':
      writer.message(number, encodeTime(String(value)))
      return
    case 'resource.Quantity':
      writer.message(number, new WireWriter().text(1, String(value)))
      return
    case 'intstr.IntOrString': {
      const isText = typeof value === 'string'
      const inner = new WireWriter().number(1, isText ? 1 : 0).number(2, isText ? 0 : BigInt(Number(value)))
      writer.message(number, inner.text(3, isText ? value : ''))
      return
    }
    case 'meta.FieldsV1':
      writer.message(number, new WireWriter().text(1, JSON.stringify(value)))
      return
    default: {
      const inner = new WireWriter()
      for (const item of value as readonly string[]) inner.text(1, item)
      writer.message(number, inner)
    }
  }
}

function encodeTime(text: string): WireWriter {
  const micros = Number(/\.(\d{1,6})/.exec(text)?.[1]?.padEnd(6, '0') ?? 0)
  const seconds = Math.floor(Date.parse(text) / 1000)
  return new WireWriter().number(1, BigInt(seconds)).number(2, micros * 1000)
}
