// How do we look up a message or a field in the schema table (generated/schema.ts)?
// protobuf decoding, unknown-field detection, OpenAPI and patches all ask here.
import { messages } from '../generated/schema.ts'

type FieldShape = 'one' | 'list' | 'map' | 'inline'

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

/** A field with the message that declares it: an inlined one, perhaps. */
export interface DeclaredField {
  readonly owner: string
  readonly schema: FieldSchema
}

interface MessageTables {
  readonly declared: ReadonlyMap<string, DeclaredField>
  readonly fields: ReadonlyMap<string, FieldSchema>
  readonly byNumber: ReadonlyMap<number, FieldSchema>
}

const noTables: MessageTables = { declared: new Map(), fields: new Map(), byNumber: new Map() }
/** Worked out once, when the program starts: every request looks fields up here. */
const tables: ReadonlyMap<string, MessageTables> = new Map(
  Object.keys(messages).map((message) => [message, tablesOf(message)]),
)

export const messageNames: readonly string[] = Object.keys(messages)

export function messageSchema(name: string): MessageSchema | undefined {
  return Object.hasOwn(messages, name) ? messages[name] : undefined
}

/** The fields of a message as they appear in JSON: inlined messages are opened up. */
export function jsonFields(message: string): ReadonlyMap<string, FieldSchema> {
  return (tables.get(message) ?? noTables).fields
}

/** The same, with the message that declares each. */
export function declaredFields(message: string): ReadonlyMap<string, DeclaredField> {
  return (tables.get(message) ?? noTables).declared
}

/** The fields by protobuf number; those that exist in JSON only are left out. */
export function fieldsByNumber(message: string): ReadonlyMap<number, FieldSchema> {
  return (tables.get(message) ?? noTables).byNumber
}

export function isBasicType(type: string): boolean {
  return type === 'string' || type === 'bool' || type === 'int32' || type === 'int64' || type === 'bytes'
}

function tablesOf(message: string): MessageTables {
  const declared = declarations(message)
  const numbered = (messageSchema(message)?.fields ?? []).filter(({ number }) => number > 0)
  return {
    declared,
    fields: new Map(Array.from(declared, ([name, { schema }]) => [name, schema])),
    byNumber: new Map(numbered.map((field) => [field.number, field])),
  }
}

function declarations(message: string): ReadonlyMap<string, DeclaredField> {
  const fields = new Map<string, DeclaredField>()
  for (const schema of messageSchema(message)?.fields ?? []) {
    if (schema.shape !== 'inline') fields.set(schema.name, { owner: message, schema })
    else for (const [name, inner] of declarations(schema.type)) fields.set(name, inner)
  }
  return fields
}
