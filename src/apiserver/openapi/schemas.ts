// What does each message look like in OpenAPI? The schema table in the words of OpenAPI v2 and v3, with the
// extensions that kubectl reads: which kind a schema is, how its lists merge.
import { type KindInfo, kindNames, kinds } from '../../api/kinds.ts'
import { isAtomic, isAtomicMessage, listRule } from '../../api/schema/list-types.ts'
import { type FieldSchema, jsonFields, messageSchema } from '../../api/schema/schema.ts'
import { ownerOf } from '../patch/schema-walk.ts'
import { describeField, describeMessage } from './descriptions.ts'

export type Dialect = 'v2' | 'v3'

export interface Schema {
  readonly $ref?: string
  readonly description?: string
  readonly type?: string
  readonly format?: string
  readonly enum?: readonly string[]
  readonly allOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly items?: Schema
  readonly additionalProperties?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly [extension: `x-${string}`]: unknown
}

/** Every schema that the kinds of one group need (of all groups without one), by definition name, sorted. */
export function schemasOf(infos: readonly KindInfo[], dialect: Dialect): Readonly<Record<string, Schema>> {
  const schemas = new Map<string, Schema>()
  const visit = (message: string) => {
    const name = definitionName(message)
    if (schemas.has(name)) return
    schemas.set(name, messageToSchema(message, dialect))
    if (messageSchema(message)?.scalar === true) return
    for (const field of jsonFields(message).values()) if (messageSchema(field.type) !== undefined) visit(field.type)
  }
  for (const info of infos) {
    visit(info.message)
    visit('meta.ListMeta')
    schemas.set(`${definitionName(info.message)}List`, listSchema(info, dialect))
  }
  visit('meta.DeleteOptions')
  visit('meta.Status')
  return Object.fromEntries([...schemas].toSorted(([left], [right]) => (left < right ? -1 : 1)))
}

export function reference(message: string, dialect: Dialect): Schema {
  return { $ref: `${dialect === 'v2' ? '#/definitions/' : '#/components/schemas/'}${definitionName(message)}` }
}

export function gvk(info: KindInfo, kind: string = info.kind): object {
  return { group: info.group, kind, version: info.version }
}

const packages: Readonly<Record<string, string>> = {
  authentication: 'io.k8s.api.authentication.v1',
  authorization: 'io.k8s.api.authorization.v1',
  coordination: 'io.k8s.api.coordination.v1',
  core: 'io.k8s.api.core.v1',
  events: 'io.k8s.api.events.v1',
  storage: 'io.k8s.api.storage.v1',
  meta: 'io.k8s.apimachinery.pkg.apis.meta.v1',
  resource: 'io.k8s.apimachinery.pkg.api.resource',
  intstr: 'io.k8s.apimachinery.pkg.util.intstr',
  snapshot: 'io.k8s.storage.snapshot.v1',
  hawser: 'dev.hawser.v1',
}

function definitionName(message: string): string {
  const [group = '', name = ''] = message.split('.')
  return `${packages[group] ?? group}.${name}`
}

const kindOfMessage: ReadonlyMap<string, KindInfo> = new Map(
  kindNames.map((name) => [kinds[name].message, kinds[name]]),
)

function messageToSchema(message: string, dialect: Dialect): Schema {
  const scalar = scalarSchema(message, dialect)
  if (scalar !== undefined) return { description: describeMessage(message), ...scalar }
  const isObject = messageSchema(message)?.object === true
  const properties: Record<string, Schema> = isObject ? { ...typeMeta } : {}
  const required: string[] = []
  for (const [name, field] of jsonFields(message)) {
    properties[name] = fieldToSchema(message, field, dialect)
    // Kubernetes leaves metadata to the server's own checks.
    if (field.required === true && field.type !== 'meta.ObjectMeta') required.push(name)
  }
  const info = kindOfMessage.get(message)
  return {
    description: describeMessage(message),
    type: 'object',
    ...(required.length === 0 ? {} : { required: required.toSorted() }),
    properties,
    ...(isAtomicMessage(message) ? { 'x-kubernetes-map-type': 'atomic' } : {}),
    ...(info === undefined ? {} : { 'x-kubernetes-group-version-kind': [gvk(info)] }),
  }
}

const typeMeta: Readonly<Record<string, Schema>> = {
  apiVersion: { description: 'The group and version of this object.', type: 'string' },
  kind: { description: 'The kind of this object.', type: 'string' },
}

function listSchema(info: KindInfo, dialect: Dialect): Schema {
  return {
    description: `A list of objects of kind ${info.kind}.`,
    type: 'object',
    required: ['items'],
    properties: {
      ...typeMeta,
      items: { description: 'The objects.', type: 'array', items: reference(info.message, dialect) },
      metadata: described(
        'The version of the list, and where to continue.',
        reference('meta.ListMeta', dialect),
        dialect,
      ),
    },
    'x-kubernetes-group-version-kind': [gvk(info, `${info.kind}List`)],
  }
}

function fieldToSchema(message: string, field: FieldSchema, dialect: Dialect): Schema {
  const owner = ownerOf(message, field.name)
  const description = describeField(message, field.name)
  const value = valueSchema(field, dialect)
  switch (field.shape) {
    case 'list':
      return { description, type: 'array', items: value, ...listExtensions(owner, field.name) }
    case 'map': {
      const atomic = isAtomic(owner, field.name, '') ? { 'x-kubernetes-map-type': 'atomic' } : {}
      return { description, type: 'object', additionalProperties: value, ...atomic }
    }
    case 'one':
    case 'inline':
      return described(description, value, dialect)
    default:
      return field.shape satisfies never
  }
}

/** In v3 nothing may stand beside a $ref, so it is wrapped. */
function described(description: string, schema: Schema, dialect: Dialect): Schema {
  return schema.$ref !== undefined && dialect === 'v3' ? { description, allOf: [schema] } : { description, ...schema }
}

function valueSchema(field: FieldSchema, dialect: Dialect): Schema {
  const words = field.words?.filter((word) => word !== '') ?? []
  switch (field.type) {
    case 'string':
      return words.length === 0 ? { type: 'string' } : { type: 'string', enum: words }
    case 'bool':
      return { type: 'boolean' }
    case 'int32':
    case 'int64':
      return { type: 'integer', format: field.type }
    case 'bytes':
      return { type: 'string', format: 'byte' }
    default:
      return reference(field.type, dialect)
  }
}

function scalarSchema(message: string, dialect: Dialect): Schema | undefined {
  switch (message) {
    case 'meta.Time':
    case 'meta.MicroTime':
      return { type: 'string', format: 'date-time' }
    case 'resource.Quantity':
      return dialect === 'v2' ? { type: 'string' } : { oneOf: [{ type: 'string' }, { type: 'number' }] }
    case 'intstr.IntOrString':
      return dialect === 'v2'
        ? { type: 'string', format: 'int-or-string' }
        : { oneOf: [{ type: 'integer' }, { type: 'string' }], format: 'int-or-string' }
    case 'meta.FieldsV1':
      return { type: 'object' }
    default:
      return message.endsWith('.ExtraValue') ? { type: 'array', items: { type: 'string' } } : undefined
  }
}

function listExtensions(owner: string, field: string): Schema {
  const rule = listRule(owner, field)
  return {
    'x-kubernetes-list-type': rule.apply,
    ...(rule.apply === 'map' ? { 'x-kubernetes-list-map-keys': rule.keys } : {}),
    ...(rule.strategy === 'replace' ? {} : { 'x-kubernetes-patch-strategy': rule.strategy }),
    ...(rule.mergeKey === undefined ? {} : { 'x-kubernetes-patch-merge-key': rule.mergeKey }),
  }
}
