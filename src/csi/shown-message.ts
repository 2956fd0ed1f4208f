// How is a message shown to people? As protobuf JSON without its secrets: names of secrets stay, values never (SIDE-5).
import { fromBinary, getOption, hasOption, toJson } from '@bufbuild/protobuf'
import type { DescField, DescMessage, JsonValue } from '@bufbuild/protobuf'
import { isJsonObject } from '../api/json.ts'
import { csi_secret } from './generated/csi_pb.ts'

/** Bytes that are no such message are said to be so: whoever looks at a broken driver wants to see that. */
export function shownMessage(schema: DescMessage, bytes: Uint8Array): JsonValue {
  try {
    return withoutSecrets(schema, toJson(schema, fromBinary(schema, bytes)))
  } catch {
    return `[${bytes.length} bytes that are no ${schema.name}]`
  }
}

function withoutSecrets(schema: DescMessage, value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return value
  const fields = new Map(schema.fields.map((field) => [field.jsonName, field]))
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, shownField(fields.get(name), each)] as const),
  )
}

function shownField(field: DescField | undefined, value: JsonValue): JsonValue {
  if (field === undefined) return value
  if (hasOption(field, csi_secret) && getOption(field, csi_secret)) return hidden(value)
  const inner = messageOf(field)
  if (inner === undefined) return value
  if (Array.isArray(value)) return value.map((each) => withoutSecrets(inner, each))
  if (field.fieldKind !== 'map' || !isJsonObject(value)) return withoutSecrets(inner, value)
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withoutSecrets(inner, each)] as const))
}

function messageOf(field: DescField): DescMessage | undefined {
  return 'message' in field ? field.message : undefined
}

function hidden(value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return '[secret]'
  return Object.fromEntries(Object.keys(value).map((key) => [key, '[secret]'] as const))
}
