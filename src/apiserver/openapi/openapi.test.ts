// Can kubectl find in our OpenAPI documents what it looks for: patch operations with their kinds, schemas without
// loose ends, and a v2 document in readable protobuf?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kindNames, kinds } from '../../api/kinds.ts'
import { describeField } from './descriptions.ts'
import { createOpenApi, v3Document } from './openapi.ts'
import { openApiV2Json, openApiV2Protobuf } from '../protobuf/openapi-v2.ts'
import { WireReader } from '../protobuf/wire.ts'
import { jsonFields } from '../../api/schema/schema.ts'
import { fieldTexts } from './field-texts.ts'

const get = (path: string, more: { accept?: string; ifNoneMatch?: string; hash?: string } = {}) =>
  answerOpenApi({ path, accept: more.accept ?? 'application/json', ifNoneMatch: more.ifNoneMatch, hash: more.hash })

interface Document {
  readonly paths: Record<
    string,
    { patch?: { parameters: { name: string }[]; 'x-kubernetes-group-version-kind': object } }
  >
  readonly components: { readonly schemas: Record<string, { readonly [key: string]: unknown }> }
}
const answerOpenApi = createOpenApi()
const document = (groupVersion: string) => JSON.parse(v3Document(groupVersion)?.body.toString() ?? 'null') as Document

test('the v3 index names a document per group and version, under its hash', () => {
  const index = JSON.parse(get('/openapi/v3')?.body.toString() ?? '') as {
    paths: Record<string, { serverRelativeURL: string }>
  }
  const groups = new Set(kindNames.map((name) => kinds[name].group))
  const documents = [...groups].map((group) => (group === '' ? 'api/v1' : `apis/${group}/v1`))
  assert.deepEqual(Object.keys(index.paths).toSorted(), documents.toSorted())
  assert.ok(documents.includes('api/v1') && documents.includes('apis/storage.k8s.io/v1'))
  const [path = '', hash = ''] = index.paths['api/v1']?.serverRelativeURL.split('?hash=') ?? []
  const fresh = get(path, { hash })
  assert.equal(fresh?.status, 200)
  assert.equal(fresh?.headers['etag'], `"${hash}"`)
  assert.equal(fresh?.headers['cache-control'], 'public, immutable')
  assert.equal(get(path, { ifNoneMatch: `"${hash}"` })?.status, 304)
  assert.equal(get(path, { hash: 'OLD' })?.status, 301)
  assert.equal(get('/openapi/v3/apis/nope/v1'), undefined)
  assert.equal(get('/openapi/v4'), undefined)
})

test('every kind that can be changed has a patch operation with dryRun and fieldValidation, and every one a schema', () => {
  for (const name of kindNames) {
    const info = kinds[name]
    const root = info.group === '' ? 'api/v1' : `apis/${info.group}/v1`
    const { paths, components } = document(root)
    const place = info.namespaced ? `namespaces/{namespace}/${info.plural}` : info.plural
    const patch = paths[`/${root}/${place}/{name}`]?.patch
    const own = Object.values(components.schemas).filter((schema) =>
      JSON.stringify(schema['x-kubernetes-group-version-kind'])?.includes(`"kind":"${info.kind}"`),
    )
    assert.equal(own.length, 1, name)
    if (!info.verbs.includes('patch')) {
      assert.equal(patch, undefined, name)
      continue
    }
    assert.deepEqual(patch?.['x-kubernetes-group-version-kind'], { group: info.group, kind: info.kind, version: 'v1' })
    const parameters = patch?.parameters.map((parameter) => parameter.name) ?? []
    assert.ok(parameters.includes('dryRun') && parameters.includes('fieldValidation'), name)
  }
})

test('no reference points nowhere, in either dialect', () => {
  const v2 = openApiV2Json()
  const check = (text: string, prefix: string, names: ReadonlySet<string>) => {
    for (const [, name = ''] of text.matchAll(/"\$ref":"([^"]+)"/g)) {
      assert.ok(name.startsWith(prefix) && names.has(name.slice(prefix.length)), name)
    }
  }
  check(JSON.stringify(v2), '#/definitions/', new Set(Object.keys(v2.definitions)))
  for (const groupVersion of ['api/v1', 'apis/storage.k8s.io/v1', 'apis/snapshot.storage.k8s.io/v1']) {
    const own = document(groupVersion)
    check(JSON.stringify(own), '#/components/schemas/', new Set(Object.keys(own.components.schemas)))
  }
})

test('schemas say how lists merge, what is required and what is allowed', () => {
  const { schemas } = document('api/v1').components
  const property = (schema: string, name: string) =>
    (schemas[`io.k8s.api.core.v1.${schema}`]?.['properties'] as Record<string, object> | undefined)?.[name]
  assert.deepEqual(property('PodSpec', 'containers'), {
    description: 'The containers; there must be at least one.',
    type: 'array',
    items: { $ref: '#/components/schemas/io.k8s.api.core.v1.Container' },
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
    'x-kubernetes-patch-strategy': 'merge',
    'x-kubernetes-patch-merge-key': 'name',
  })
  assert.deepEqual(property('PersistentVolumeClaimSpec', 'volumeMode'), {
    description: 'Filesystem (the default) or Block.',
    type: 'string',
    enum: ['Filesystem', 'Block'],
  })
  assert.deepEqual(schemas['io.k8s.api.core.v1.VolumeMount']?.['required'], ['mountPath', 'name'])
  assert.equal(describeField('x', 'volumeLifecycleModes'), 'Volume lifecycle modes.')
})

/** Field number → payloads, one level deep. */
function fields(reader: WireReader): Map<number, Uint8Array[]> {
  const found = new Map<number, Uint8Array[]>()
  while (!reader.done) {
    const { number, type } = reader.tag()
    if (type !== 2) reader.skip(type)
    else found.set(number, [...(found.get(number) ?? []), reader.bytes()])
  }
  return found
}
const inside = (bytes: Uint8Array | undefined) => fields(new WireReader(bytes ?? new Uint8Array()))
const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString()

test('the v2 protobuf holds every path, and the kind of each patch as YAML', () => {
  const top = inside(openApiV2Protobuf())
  assert.equal(text(top.get(1)?.[0]), '2.0')
  const paths = inside(top.get(8)?.[0]).get(2) ?? []
  assert.equal(paths.length, Object.keys(openApiV2Json().paths).length)
  const volume = paths.map(inside).find((path) => text(path.get(1)?.[0]) === '/api/v1/persistentvolumes/{name}')
  const patch = inside(inside(volume?.get(2)?.[0]).get(8)?.[0])
  const extension = patch
    .get(13)
    ?.map(inside)
    .find((any) => text(any.get(1)?.[0]) === 'x-kubernetes-group-version-kind')
  assert.equal(
    text(inside(extension?.get(2)?.[0]).get(2)?.[0]),
    '{"group":"","kind":"PersistentVolume","version":"v1"}\n',
  )
  assert.equal(inside(top.get(9)?.[0]).get(1)?.length, Object.keys(openApiV2Json().definitions).length)
})

test('v2 comes in protobuf for those who ask, in JSON for all others', () => {
  const type = (separator: string) => `application/com.github.proto-openapi.spec.v2${separator}v1.0+protobuf`
  assert.equal(get('/openapi/v2', { accept: type('@') })?.headers['content-type'], type('.'))
  assert.equal(get('/openapi/v2', { accept: type('.') })?.headers['content-type'], type('.'))
  assert.equal(get('/openapi/v2')?.headers['content-type'], 'application/json')
})

test('kubectl explain says more than the name about the fields that people use (D9), and every text has its field', () => {
  const told = [
    ...['core.Container', 'core.Probe', 'core.Taint', 'core.Toleration', 'core.Affinity', 'core.VolumeMount'],
    ...[
      'core.PersistentVolumeClaimStatus',
      'core.EmptyDirVolumeSource',
      'storage.CSIDriverSpec',
      'storage.StorageClass',
    ],
    ...['storage.CSINodeDriver', 'storage.CSIStorageCapacity', 'storage.VolumeAttachmentSource'],
    ...['snapshot.VolumeSnapshotStatus', 'snapshot.VolumeSnapshotClass', 'core.PersistentVolumeClaimSpec'],
  ]
  const plain = (text: string) => text.replaceAll(/[ .]/g, '').toLowerCase()
  const fillers = told.flatMap((message) =>
    [...jsonFields(message).keys()]
      .filter((field) => plain(describeField(message, field)) === field.toLowerCase())
      .map((field) => `${message}.${field}`),
  )
  assert.deepEqual(fillers, [])
  for (const name of Object.keys(fieldTexts)) {
    const [group, message, field = ''] = name.split('.')
    assert.ok(jsonFields(`${group}.${message}`).has(field), name)
  }
})
