// How do we look up a message or a field in the schema table? Reading side of generated.ts:
// protobuf decoding, unknown-field detection, OpenAPI and patches all ask here.
import { messages } from './generated.ts'

export type FieldShape = 'one' | 'list' | 'map' | 'inline'

export interface FieldSchema {
  /** The JSON name. */
  readonly name: string
  /** The protobuf field number; 0 for kinds that exist in JSON only. */
  readonly number: number
  /** `inline`: the fields of `type` appear in the parent's JSON object; `map`: keys are strings. */
  readonly shape: FieldShape
  /** string, bool, int32, int64, bytes or the name of a message. */
  readonly type: string
  readonly required?: true
  /** The closed list of values, where Kubernetes has one. */
  readonly words?: readonly string[]
}

export interface MessageSchema {
  /** A whole object: its JSON also carries apiVersion and kind. */
  readonly object?: true
  /** Has a JSON form of its own (Time, Quantity, IntOrString, FieldsV1, lists of strings). */
  readonly scalar?: true
  readonly fields: readonly FieldSchema[]
}

export function messageSchema(name: string): MessageSchema | undefined {
  return Object.hasOwn(messages, name) ? messages[name] : undefined
}

const flattened = new Map<string, ReadonlyMap<string, FieldSchema>>()

/** The fields of a message as they appear in JSON: inlined messages are opened up. */
export function jsonFields(message: string): ReadonlyMap<string, FieldSchema> {
  const known = flattened.get(message)
  if (known !== undefined) return known
  const fields = new Map<string, FieldSchema>()
  for (const field of messageSchema(message)?.fields ?? []) {
    if (field.shape !== 'inline') fields.set(field.name, field)
    else for (const [name, inner] of jsonFields(field.type)) fields.set(name, inner)
  }
  flattened.set(message, fields)
  return fields
}

export function isBasicType(type: string): boolean {
  return type === 'string' || type === 'bool' || type === 'int32' || type === 'int64' || type === 'bytes'
}
