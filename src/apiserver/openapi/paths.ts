// Which paths and operations does the server have, in OpenAPI's words? kubectl looks for the patch operation of a
// kind and its dryRun and fieldValidation parameters before it creates or applies anything.
import type { KindInfo } from '../../api/kinds.ts'
import type { Verb } from '../../api/kinds/define-kind.ts'
import { type Dialect, gvk, reference, type Schema } from './schemas.ts'

export interface Parameter {
  readonly name: string
  readonly in: 'query' | 'path' | 'body'
  readonly description?: string
  readonly required?: boolean
  /** v2 only; v3 says it in the schema. */
  readonly type?: string
  readonly uniqueItems?: boolean
  readonly schema?: Schema
}

export interface Operation {
  readonly operationId: string
  readonly description: string
  readonly parameters: readonly Parameter[]
  readonly requestBody?: object
  readonly consumes?: readonly string[]
  readonly produces?: readonly string[]
  readonly responses: Readonly<Record<string, { readonly description: string; readonly schema?: Schema }>>
  readonly 'x-kubernetes-action': string
  readonly 'x-kubernetes-group-version-kind': object
}

export type Method = 'get' | 'put' | 'post' | 'delete' | 'patch'

export interface PathItem {
  readonly get?: Operation
  readonly put?: Operation
  readonly post?: Operation
  readonly delete?: Operation
  readonly patch?: Operation
  readonly parameters?: readonly Parameter[]
}

export function pathsOf(infos: readonly KindInfo[], dialect: Dialect): Readonly<Record<string, PathItem>> {
  const paths: Record<string, PathItem> = {}
  for (const info of infos) {
    const root = info.group === '' ? '/api/v1' : `/apis/${info.group}/${info.version}`
    const place = info.namespaced ? `${root}/namespaces/{namespace}/${info.plural}` : `${root}/${info.plural}`
    const namespace = info.namespaced ? [pathParameter('namespace', dialect)] : []
    if (info.namespaced) paths[`${root}/${info.plural}`] = item(info, ['list'], [], dialect)
    paths[place] = item(info, ['list', 'create', 'deletecollection'], namespace, dialect)
    const name = [pathParameter('name', dialect), ...namespace]
    paths[`${place}/{name}`] = item(info, ['get', 'update', 'patch', 'delete'], name, dialect)
    if (info.subresources.some((one) => one.name === 'status')) {
      paths[`${place}/{name}/status`] = item(info, ['get', 'update', 'patch'], name, dialect, 'Status')
    }
  }
  return Object.fromEntries(Object.entries(paths).toSorted(([left], [right]) => (left < right ? -1 : 1)))
}

const methods: Readonly<Record<Verb, Method | undefined>> = {
  get: 'get',
  list: 'get',
  create: 'post',
  update: 'put',
  patch: 'patch',
  delete: 'delete',
  deletecollection: 'delete',
  watch: undefined,
}

function item(
  info: KindInfo,
  verbs: readonly Verb[],
  parameters: readonly Parameter[],
  dialect: Dialect,
  part = '',
): PathItem {
  const operations: Partial<Record<Method, Operation>> = {}
  const all = info.namespaced && parameters.length === 0 ? 'ForAllNamespaces' : ''
  for (const verb of verbs) {
    const method = methods[verb]
    if (method === undefined || !info.verbs.includes(verb)) continue
    operations[method] = operation(info, verb, `${part}${all}`, dialect)
  }
  return { ...operations, ...(parameters.length === 0 ? {} : { parameters }) }
}

const words: Readonly<Record<Verb, readonly [action: string, id: string, sentence: string]>> = {
  get: ['get', 'read', 'Read one object'],
  list: ['list', 'list', 'List or watch objects'],
  create: ['post', 'create', 'Create an object'],
  update: ['put', 'replace', 'Replace an object'],
  patch: ['patch', 'patch', 'Change part of an object'],
  delete: ['delete', 'delete', 'Delete an object'],
  deletecollection: ['deletecollection', 'deleteCollection', 'Delete all selected objects'],
  watch: ['watch', 'watch', 'Watch objects'],
}

const json = 'application/json'
const patchTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
]

function operation(info: KindInfo, verb: Verb, part: string, dialect: Dialect): Operation {
  const [action, id, sentence] = words[verb]
  const group = (info.group === '' ? 'core' : info.group).split('.')[0] ?? ''
  const schema = answerSchema(info, verb, dialect)
  const body = bodySchema(info, verb, dialect)
  const consumes = verb === 'patch' ? patchTypes : [json, 'application/yaml', 'application/vnd.kubernetes.protobuf']
  return {
    operationId: `${id}${capital(group)}V1${info.namespaced && !part.endsWith('ForAllNamespaces') ? 'Namespaced' : ''}${info.kind}${part}`,
    description: `${sentence} of kind ${info.kind}.`,
    parameters: [
      ...queryParameters(verb).map((name) => queryParameter(name, dialect)),
      ...(body !== undefined && dialect === 'v2'
        ? [{ name: 'body', in: 'body', required: verb !== 'delete', schema: body } as const]
        : []),
    ],
    ...(body !== undefined && dialect === 'v3' ? { requestBody: { content: contentOf(consumes, body) } } : {}),
    ...(dialect === 'v2' ? { consumes: body === undefined ? ['*/*'] : consumes, produces: [json] } : {}),
    responses: {
      '200': { description: 'OK', ...(dialect === 'v2' ? { schema } : { content: contentOf([json], schema) }) },
      '401': { description: 'Unauthorized' },
    },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': gvk(info),
  }
}

function answerSchema(info: KindInfo, verb: Verb, dialect: Dialect): Schema {
  if (verb === 'delete' || verb === 'deletecollection') return reference('meta.Status', dialect)
  return reference(verb === 'list' ? `${info.message}List` : info.message, dialect)
}

function bodySchema(info: KindInfo, verb: Verb, dialect: Dialect): Schema | undefined {
  switch (verb) {
    case 'create':
    case 'update':
      return reference(info.message, dialect)
    case 'patch':
      return { description: 'A patch of one of the four kinds.', type: 'object' }
    case 'delete':
    case 'deletecollection':
      return reference('meta.DeleteOptions', dialect)
    case 'get':
    case 'list':
    case 'watch':
      return undefined
    default:
      return verb satisfies never
  }
}

function queryParameters(verb: Verb): readonly string[] {
  switch (verb) {
    case 'create':
    case 'update':
      return ['dryRun', 'fieldManager', 'fieldValidation']
    case 'patch':
      return ['dryRun', 'fieldManager', 'fieldValidation', 'force']
    case 'delete':
      return ['dryRun', 'gracePeriodSeconds', 'propagationPolicy']
    case 'list':
    case 'watch':
      return ['allowWatchBookmarks', 'continue', 'fieldSelector', 'labelSelector', 'limit', 'resourceVersion', 'watch']
    case 'deletecollection':
      return ['dryRun', 'fieldSelector', 'labelSelector', 'propagationPolicy']
    case 'get':
      return []
    default:
      return verb satisfies never
  }
}

const parameterTypes: Readonly<Record<string, string>> = {
  allowWatchBookmarks: 'boolean',
  force: 'boolean',
  gracePeriodSeconds: 'integer',
  limit: 'integer',
  watch: 'boolean',
}

function queryParameter(name: string, dialect: Dialect): Parameter {
  const type = parameterTypes[name] ?? 'string'
  return { name, in: 'query', ...(dialect === 'v2' ? { type, uniqueItems: true } : { schema: { type } }) }
}

function pathParameter(name: string, dialect: Dialect): Parameter {
  const shape = dialect === 'v2' ? { type: 'string', uniqueItems: true } : { schema: { type: 'string' } }
  return { name, in: 'path', required: true, ...shape }
}

function contentOf(types: readonly string[], schema: Schema): object {
  return Object.fromEntries(types.map((type) => [type, { schema }]))
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}
