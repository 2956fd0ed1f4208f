// What might a stranger send? Arbitrary requests: mostly sensible paths and objects with something wrong about them,
// sometimes plain nonsense, sometimes huge or deep.
import fc from 'fast-check'
import { kindNames, kinds, type KindInfo } from '../../src/api/kinds.ts'
import type { JsonMap } from '../../src/apiserver/patch/json.ts'
import { encodeProtobuf } from '../../src/apiserver/protobuf/encode.ts'
import { sampleObject } from './objects.ts'

export interface FuzzRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

export const namespaces = ['default', 'fuzz-a'] as const
const names = ['a', 'b', 'vol.1'] as const

const oddText = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom(
    '',
    '..',
    '.',
    '%2e%2e',
    '%00',
    'a/b',
    '__proto__',
    'constructor',
    'UPPER',
    'x'.repeat(300),
    '-1',
    '1e9',
  ),
)
const oneName = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...names) },
  { weight: 1, arbitrary: oddText.map((text) => encodeURIComponent(text.toWellFormed())) },
)

/** One time in `times`; undefined otherwise. */
function rarely<T>(times: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: times - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })
}

interface Place {
  readonly info: KindInfo
  readonly path: string
  readonly collection: string
  readonly name: string | undefined
  readonly namespace: string | undefined
}

const place: fc.Arbitrary<Place> = fc
  .record({
    kind: fc.constantFrom(...kindNames),
    namespace: fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom(...namespaces) },
      { weight: 1, arbitrary: fc.constant('missing') },
    ),
    allNamespaces: fc.nat(19),
    name: fc.option(oneName, { freq: 15, nil: undefined }),
    subresource: rarely(
      6,
      fc.constantFrom('status', 'status', 'status', 'binding', 'eviction', 'log', 'token', 'finalize', 'nope'),
    ),
  })
  .map(({ kind, namespace, allNamespaces, name, subresource }) => {
    const info = kinds[kind]
    const root = info.group === '' ? '/api/v1' : `/apis/${info.group}/${info.version}`
    const scoped = info.namespaced && allNamespaces > 0
    const collection = scoped ? `${root}/namespaces/${namespace}/${info.plural}` : `${root}/${info.plural}`
    const object = name === undefined ? collection : `${collection}/${name}`
    const path = subresource === undefined || name === undefined ? object : `${object}/${subresource}`
    return { info, path, collection, name, namespace: scoped ? namespace : undefined }
  })

const oddPath = fc.oneof(
  fc.array(oddText, { maxLength: 7 }).map((parts) => `/${parts.map((part) => part.toWellFormed()).join('/')}`),
  fc.constantFrom(
    '/',
    '//',
    '/api',
    '/apis',
    '/api/v1/',
    '/api/v2',
    '/apis/storage.k8s.io',
    '/apis/storage.k8s.io/v1/',
    '/openapi/v2',
    '/openapi/v3',
    '/openapi/v3/api/v1',
    '/openapi/v3/../..',
    '/version',
    '/metrics',
    '/healthz/x',
    '/api/v1/namespaces/default/pods/a/exec/b/c',
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    '/apis/authentication.k8s.io/v1/tokenreviews',
    '/apis/authentication.k8s.io/v1/selfsubjectreviews',
  ),
)

/** About as long as a request line may be. */
const longSelector = `a in (${Array.from({ length: 3_000 }, (_, index) => `v${index}`).join(',')})`
const parameters: Readonly<Record<string, readonly string[]>> = {
  dryRun: ['All', 'None', 'all'],
  fieldManager: ['fuzz', 'x'.repeat(200), 'bad\u0000name'],
  fieldValidation: ['Strict', 'Warn', 'Ignore', 'Nope'],
  force: ['true', 'false', 'maybe'],
  limit: ['1', '3', '0', '-1', 'x', '99999999999999999999'],
  continue: ['', 'garbage', 'eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ', 'AAAA'],
  resourceVersion: ['0', '1', '-1', 'x', '999999999', '18446744073709551616'],
  resourceVersionMatch: ['Exact', 'NotOlderThan', 'Nope'],
  labelSelector: ['a=b', 'a in (b,c)', '!a', 'a in (', '=,', 'a=b=c', 'x'.repeat(400), longSelector],
  fieldSelector: ['metadata.name=a', 'spec.nodeName=x', 'nope=1', 'metadata.name', '\\', 'metadata.name=a,b'],
  watch: ['true', '1', 'maybe'],
  allowWatchBookmarks: ['true', 'x'],
  sendInitialEvents: ['true', 'x'],
  timeoutSeconds: ['0', '1', '-5', 'x'],
  gracePeriodSeconds: ['0', '5', '-1', 'x'],
  propagationPolicy: ['Foreground', 'Background', 'Orphan', 'Nope'],
  includeObject: ['None', 'Metadata', 'Object', 'Nope'],
  pretty: ['true'],
}

const query = fc
  .array(
    fc
      .constantFrom(...Object.keys(parameters))
      .chain((key) =>
        fc
          .oneof(
            { weight: 5, arbitrary: fc.constantFrom(...(parameters[key] ?? [''])) },
            { weight: 1, arbitrary: oddText },
          )
          .map((value) => [key, value.toWellFormed()]),
      ),
    { maxLength: 3 },
  )
  .map((pairs) => new URLSearchParams(pairs).toString())

const accepts = [
  'application/json',
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
  'application/vnd.kubernetes.protobuf,application/json',
  'application/yaml',
  'text/html',
  '*/*',
  ';;;,',
]

const patchTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
]
const bodyTypes = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf', 'text/plain', '']

const anyJson = fc.jsonValue({ maxDepth: 4 })
const deep = fc
  .record({ depth: fc.constantFrom(50, 199, 5_000, 100_000), open: fc.constantFrom('[', '{"a":') })
  .map(({ depth, open }) => `${open.repeat(depth)}1${(open === '[' ? ']' : '}').repeat(depth)}`)
const huge = fc
  .constantFrom(100_000, 3_200_000)
  .map((size) => JSON.stringify({ metadata: { name: 'a', annotations: { big: 'x'.repeat(size) } } }))
/** As large as a body may be and larger, in each of the ways that make one expensive to read, check, or merge. */
const wide = fc.constantFrom(...[300, 3_000, 9_000, 60_000].flatMap(wideTexts))
/** The same as YAML that is no JSON. */
const wideYaml = fc.constantFrom(...[300, 2_000, 20_000].flatMap(wideYamlTexts))

function wideTexts(count: number): string[] {
  const map = (value: unknown) => Object.fromEntries(many(count, (index) => [`key-${index}`, value] as const))
  const metadata = { name: 'a' }
  const shapes = [
    { metadata, data: map('value') },
    { metadata: { ...metadata, labels: map('value'), annotations: map('value') } },
    { metadata: { ...metadata, labels: map('-bad-'), finalizers: many(count, (index) => `a.b/${index}`) } },
    { metadata, spec: { containers: many(count, (index) => ({ name: `c${index}`, image: 'x' })) } },
    { metadata, spec: { volumes: many(count, (index) => ({ name: `v${index}`, $patch: 'delete' })), ...map(1) } },
    many(count, (index) => ({ op: 'add', path: `/metadata/labels/l${index}`, value: 'x' })),
    many(count, (index) => ({ op: index % 2 ? 'copy' : 'move', from: '/metadata', path: `/data/${index}` })),
  ]
  return shapes.map((shape) => JSON.stringify(shape))
}

function wideYamlTexts(count: number): string[] {
  const lines: readonly ((index: number) => string)[] = [
    (index) => `  key-${index}: value\n`,
    (index) => `  - &a${index} {x: *a${Math.max(0, index - 1)}}\n`,
    (index) => `  same: ${index}\n`,
    (index) => `  ? [${index}]\n  : !!binary "AAEC"\n`,
    () => `  - |\n    text\n`,
  ]
  return lines.map((line) => `metadata:\n  name: a\ndata:\n${many(count, line).join('')}`)
}

function many<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index))
}

const brokenText = fc.oneof(
  fc.string(),
  fc.constantFrom('', '{', '{nope', '[', 'null', '"', '{"metadata":', 'a: [', '- - -', '\u0000', '{"a":1}{"b":2}'),
  fc.constant(
    'a: &a ["x","x"]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c]',
  ),
)

/** A sensible object in which one place has been exchanged for anything at all. */
function spoiled(object: JsonMap): fc.Arbitrary<unknown> {
  const places = placesOf(object, [])
  return fc
    .record({ place: fc.constantFrom(...places), value: fc.oneof(anyJson, oddText, fc.constant(undefined)) })
    .map(({ place: path, value }) => exchanged(object, path, value))
}

function placesOf(value: unknown, path: readonly string[]): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([key, child]) => placesOf(child, [...path, key]))]
}

function exchanged(value: unknown, path: readonly string[], replacement: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return replacement
  if (Array.isArray(value)) return value.with(Number(key), exchanged(value[Number(key)], rest, replacement))
  const map = value as Record<string, unknown>
  return { ...map, [key]: exchanged(map[key], rest, replacement) }
}

const pointer = fc.oneof(
  fc.constantFrom(
    '/metadata/labels',
    '/metadata/labels/x',
    '/metadata/name',
    '/spec',
    '/status',
    '',
    '/',
    '/metadata/finalizers/-',
    '/data/k',
    '/metadata/managedFields',
  ),
  oddText,
)
const jsonPatch = fc.array(
  fc.record(
    {
      op: fc.constantFrom('add', 'remove', 'replace', 'test', 'move', 'copy', 'nope'),
      path: pointer,
      from: pointer,
      value: anyJson,
    },
    { requiredKeys: ['op', 'path'] },
  ),
  { maxLength: 5 },
)
const directive = fc.constantFrom(
  { metadata: { labels: { touched: 'yes' } } },
  { metadata: { labels: { $patch: 'replace', x: 'y' } } },
  { metadata: { '$deleteFromPrimitiveList/finalizers': ['x'], '$setElementOrder/finalizers': [] } },
  { spec: { containers: [{ $patch: 'delete', name: 'c' }] } },
  { spec: { volumes: [{ $retainKeys: ['name'], name: 'v' }] } },
  { spec: { $patch: 'nope' } },
  { metadata: { finalizers: ['hawser.dev/fuzz'] } },
  { metadata: { finalizers: null } },
  { metadata: { managedFields: [{}] } },
  { metadata: null },
)

function bodyOf({ info, name, namespace }: Place, type: string): fc.Arbitrary<Uint8Array> {
  const object = sampleObject(info, name ?? 'a', namespace)
  const texts: fc.WeightedArbitrary<string>[] = [
    { weight: 8, arbitrary: fc.constant(JSON.stringify(object)) },
    { weight: 8, arbitrary: spoiled(object).map(jsonText) },
    { weight: 2, arbitrary: anyJson.map(jsonText) },
    { weight: 1, arbitrary: brokenText },
    { weight: 1, arbitrary: fc.oneof({ weight: 4, arbitrary: deep }, { weight: 1, arbitrary: huge }) },
    { weight: 1, arbitrary: type.endsWith('yaml') ? wideYaml : wide },
  ]
  if (type === patchTypes[0]) texts.push({ weight: 25, arbitrary: jsonPatch.map(jsonText) })
  else if (patchTypes.includes(type)) texts.push({ weight: 8, arbitrary: directive.map(jsonText) })
  const bytes = fc.oneof(...texts).map((text) => Buffer.from(text))
  return type === 'application/vnd.kubernetes.protobuf' ? fc.oneof(bytes, protobufBytes(info, object)) : bytes
}

function jsonText(value: unknown): string {
  return JSON.stringify(value) ?? ''
}

function protobufBytes(info: KindInfo, object: JsonMap): fc.Arbitrary<Uint8Array> {
  const hasMessage = info.group !== 'snapshot.storage.k8s.io' && info.group !== 'hawser.dev'
  const good = hasMessage ? encodeProtobuf(object) : Buffer.from('k8s\0')
  return fc.oneof(
    fc.constant(good),
    fc.nat(good.length).map((length) => good.subarray(0, length)),
    fc.record({ at: fc.nat(good.length - 1), byte: fc.nat(255) }).map(({ at, byte }) => {
      const copy = Uint8Array.from(good)
      copy[at] = byte
      return copy
    }),
    fc.uint8Array({ maxLength: 60 }).map((tail) => Buffer.concat([Buffer.from('k8s\0'), tail])),
  )
}

const verbs = ['GET', 'GET', 'LIST', 'POST', 'POST', 'POST', 'PUT', 'PUT', 'PATCH', 'PATCH', 'PATCH', 'DELETE'] as const
const oddMethods = ['HEAD', 'OPTIONS', 'TRACE', 'FOO', ''] as const

export const fuzzRequest: fc.Arbitrary<FuzzRequest> = fc
  .record({
    place,
    oddPath: rarely(12, oddPath),
    verb: fc.oneof(
      { weight: 20, arbitrary: fc.constantFrom(...verbs) },
      { weight: 1, arbitrary: fc.constantFrom(...oddMethods) },
    ),
    query,
    accept: fc.oneof(
      { weight: 4, arbitrary: fc.constant('application/json') },
      { weight: 1, arbitrary: fc.constantFrom(...accepts) },
    ),
    patchType: fc.constantFrom(...patchTypes),
    bodyType: fc.oneof(
      { weight: 6, arbitrary: fc.constant('application/json') },
      { weight: 3, arbitrary: fc.constantFrom(...bodyTypes) },
    ),
  })
  .chain(({ place: where, oddPath: odd, verb, query: search, accept, patchType, bodyType }) => {
    const type = verb === 'PATCH' ? patchType : bodyType
    const method = verb === 'LIST' ? 'GET' : verb
    // Creating and listing happen at the collection; the name stays in the body.
    const atCollection = verb === 'LIST' || (verb === 'POST' && !/\/(binding|eviction|token)$/.test(where.path))
    return bodyOf(where, type).map((body) => ({
      method,
      path: odd ?? (atCollection ? where.collection : where.path),
      query: search,
      headers: { accept, 'content-type': type, 'user-agent': 'fuzz/1.0' },
      body: method === 'GET' || method === 'HEAD' ? new Uint8Array() : body,
    }))
  })
