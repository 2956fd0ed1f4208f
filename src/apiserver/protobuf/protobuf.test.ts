// Do protobuf bodies become the JSON a Kubernetes server would see, and is every malformed body a 400?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { kinds } from '../../api/kinds.ts'
import { jsonFields, type FieldSchema } from '../../api/schema/schema.ts'
import { StatusError } from '../../api/status-error.ts'
import type { JsonMap } from '../patch/json.ts'
import { decodeProtobuf } from './decode.ts'
import { encodeProtobuf } from './encode.ts'
import { WireWriter } from './wire.ts'

function envelope(apiVersion: string, kind: string, raw: WireWriter): Uint8Array {
  const typeMeta = new WireWriter().text(1, apiVersion).text(2, kind)
  return Buffer.concat([Buffer.from('k8s\0'), new WireWriter().message(1, typeMeta).message(2, raw).finish()])
}

function codeOf(run: () => unknown): number {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error))
    return error.code
  }
  return 200
}

test('a ConfigMap as Go sends it: empty plain fields and the zero time disappear', () => {
  const metadata = new WireWriter()
    .text(1, 'cm')
    .text(2, '')
    .text(3, 'default')
    .text(4, '')
    .text(5, '')
    .text(6, '')
    .number(7, 0)
    .message(8, new WireWriter())
  const raw = new WireWriter()
    .message(1, metadata)
    .message(2, new WireWriter().text(1, 'key').text(2, 'value'))
    .message(2, new WireWriter().text(1, 'empty').text(2, ''))
    .message(3, new WireWriter().text(1, 'bin').bytes(2, Uint8Array.of(0, 255)))
  assert.deepEqual(decodeProtobuf(envelope('v1', 'ConfigMap', raw)), {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    object: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'cm', namespace: 'default' },
      data: { key: 'value', empty: '' },
      binaryData: { bin: 'AP8=' },
    },
  })
})

test('empty values of pointers survive: force delete, no class, attach not required', () => {
  const decode = (object: JsonMap) => decodeProtobuf(encodeProtobuf(object)).object
  const objects: readonly JsonMap[] = [
    { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0, propagationPolicy: 'Background' },
    { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'c' }, spec: { storageClassName: '' } },
    { apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: {}, spec: { attachRequired: false } },
    { apiVersion: 'v1', kind: 'Pod', metadata: {}, spec: { volumes: [{ name: 'v', emptyDir: {} }], containers: [] } },
  ]
  assert.deepEqual(objects.slice(0, 3).map(decode), objects.slice(0, 3))
  assert.deepEqual(decode(objects[3] as JsonMap), {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {},
    spec: { volumes: [{ name: 'v', emptyDir: {} }] },
  })
})

test('packed and unpacked numbers, negative numbers, int-or-string and times', () => {
  const object: JsonMap = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', creationTimestamp: '2026-01-02T03:04:05Z' },
    spec: {
      containers: [
        {
          name: 'c',
          livenessProbe: { httpGet: { port: 'http' }, initialDelaySeconds: -1 },
          readinessProbe: { tcpSocket: { port: 80 } },
          resources: { limits: { cpu: '500m' } },
        },
      ],
      securityContext: { supplementalGroups: [1, 2, 300] },
      volumes: [{ name: 'v', configMap: { name: 'cm', optional: false } }],
    },
  }
  assert.deepEqual(decodeProtobuf(encodeProtobuf(object)).object, object)
  const packed = new WireWriter().bytes(4, Uint8Array.of(1, 2, 0xac, 2))
  const raw = new WireWriter().message(2, new WireWriter().message(14, packed))
  assert.deepEqual(decodeProtobuf(envelope('v1', 'Pod', raw)).object['spec'], {
    securityContext: { supplementalGroups: [1, 2, 300] },
  })
  const lease: JsonMap = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'l' },
    spec: { holderIdentity: 'me', renewTime: '2026-01-02T03:04:05.000678Z', leaseTransitions: 0 },
  }
  assert.deepEqual(decodeProtobuf(encodeProtobuf(lease)).object, lease)
})

test('reviews and evictions are known although never stored', () => {
  const review: JsonMap = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    metadata: {},
    spec: { resourceAttributes: { verb: 'get', resource: 'pods' } },
  }
  assert.deepEqual(decodeProtobuf(encodeProtobuf(review)).object, review)
  const eviction = new WireWriter().message(1, new WireWriter().text(1, 'p')).message(2, new WireWriter().number(1, 0))
  assert.deepEqual(decodeProtobuf(envelope('policy/v1', 'Eviction', eviction)).object, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'p' },
    deleteOptions: { gracePeriodSeconds: 0 },
  })
})

const word = fc.string({ minLength: 1, maxLength: 8 })

function arbitraryValue(field: FieldSchema, depth: number): fc.Arbitrary<unknown> {
  switch (field.type) {
    case 'string':
      return field.words === undefined ? word : fc.constantFrom(...field.words)
    case 'bool':
      return fc.constant(true)
    case 'int32':
      return fc.integer({ min: -1000 }).filter((value) => value !== 0)
    case 'int64':
      return fc.maxSafeInteger().filter((value) => value !== 0)
    case 'bytes':
      return fc.uint8Array({ minLength: 1, maxLength: 9 }).map((bytes) => Buffer.from(bytes).toString('base64'))
    case 'meta.Time':
      return fc.constantFrom('2026-01-02T03:04:05Z', '1969-12-31T23:59:59Z')
    case 'meta.MicroTime':
      return fc.constantFrom('2026-01-02T03:04:05.000001Z', '1970-01-01T00:00:01.999999Z')
    case 'resource.Quantity':
      return fc.constantFrom('1Gi', '500m', '0')
    case 'intstr.IntOrString':
      return fc.oneof(fc.integer({ min: 1, max: 65535 }), word)
    case 'meta.FieldsV1':
      return fc.constant({ 'f:metadata': { 'f:labels': {} } })
    case 'authentication.ExtraValue':
    case 'authorization.ExtraValue':
      return fc.array(word)
    default:
      return arbitraryMessage(field.type, depth + 1)
  }
}

function arbitraryMessage(message: string, depth: number): fc.Arbitrary<JsonMap> {
  const shapes: Record<string, fc.Arbitrary<unknown>> = {}
  for (const [name, field] of jsonFields(message)) {
    if (depth > 4) break
    const value = fc.memo(() => arbitraryValue(field, depth))()
    const sparse = { freq: 2 + depth, nil: undefined }
    if (field.shape === 'list') shapes[name] = fc.option(fc.array(value, { minLength: 1, maxLength: 2 }), sparse)
    else if (field.shape === 'map') {
      shapes[name] = fc.option(fc.dictionary(word, value, { minKeys: 1, maxKeys: 2, noNullPrototype: true }), sparse)
    } else shapes[name] = fc.option(value, sparse)
  }
  return fc.record(shapes).map((object) => JSON.parse(JSON.stringify(object)) as JsonMap)
}

test('round trip: what a client encodes is what the server decodes', () => {
  for (const name of [
    'PersistentVolume',
    'PersistentVolumeClaim',
    'StorageClass',
    'VolumeAttachment',
    'Event',
  ] as const) {
    const { apiVersion, kind, message } = kinds[name]
    fc.assert(
      fc.property(arbitraryMessage(message, 0), (fields) => {
        const object = { ...fields, apiVersion, kind }
        assert.deepEqual(decodeProtobuf(encodeProtobuf(object)).object, object)
      }),
      { numRuns: 40 },
    )
  }
})

test('malformed bytes are a 400, never anything else', () => {
  const good = encodeProtobuf({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's', labels: { a: 'b' } },
    data: { k: 'AAAA' },
  })
  for (let length = 0; length < good.length; length += 1) {
    assert.ok([200, 400].includes(codeOf(() => decodeProtobuf(good.subarray(0, length)))), `cut at ${length}`)
  }
  fc.assert(
    fc.property(fc.nat(good.length - 1), fc.nat(255), (position, byte) => {
      const bytes = Uint8Array.from(good)
      bytes[position] = byte
      assert.ok([200, 400].includes(codeOf(() => decodeProtobuf(bytes))))
    }),
  )
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), (tail) => {
      const raw = new WireWriter().bytes(1, tail)
      for (const kind of ['Pod', 'PersistentVolume', 'Nope']) {
        assert.ok([200, 400].includes(codeOf(() => decodeProtobuf(envelope('v1', kind, raw)))))
      }
    }),
  )
  assert.equal(
    codeOf(() => decodeProtobuf(Buffer.from('{}'))),
    400,
  )
  assert.equal(
    codeOf(() => decodeProtobuf(envelope('v1', 'Nope', new WireWriter()))),
    400,
  )
})

test('a small body cannot make the server build a huge object', () => {
  const bomb = Buffer.alloc(1_400_000)
  for (let position = 0; position < bomb.length; position += 2) bomb[position] = (2 << 3) | 2 // empty containers
  const raw = new WireWriter().bytes(2, bomb)
  assert.equal(
    codeOf(() => decodeProtobuf(envelope('v1', 'Pod', raw))),
    400,
  )
})
