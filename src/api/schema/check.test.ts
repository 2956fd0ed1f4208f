// Is a JSON value read as a typed server would read it? Unknown fields, Go's error texts, and normal form.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KindName } from '../kinds.ts'
import { ReadError, readMessage, readObject, readPartial, unknownFields } from './check.ts'
import { canonicalTime } from './time.ts'

test('unknown fields are named by path, known ones are not', () => {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    colour: 'red',
    metadata: { name: 'p', labels: { anything: 'goes' }, nickname: 'x' },
    spec: { containers: [{ name: 'c', foo: 1 }, { name: 'd' }], volumes: [{ name: 'v', emptyDir: { big: true } }] },
  }
  assert.deepEqual(unknownFields('Pod', pod), [
    'colour',
    'metadata.nickname',
    'spec.containers[0].foo',
    'spec.volumes[0].emptyDir.big',
  ])
})

test('what is unknown is dropped, what is known is kept', () => {
  const { value, unknown } = readObject('StorageClass', { metadata: { name: 's' }, provisioner: 'p', colour: 'red' })
  assert.deepEqual(value, { metadata: { name: 's' }, provisioner: 'p' })
  assert.deepEqual(unknown, ['colour'])
})

test('quantities and times become canonical, numbers are accepted as quantities', () => {
  const { value } = readObject('PersistentVolume', {
    metadata: { name: 'v', creationTimestamp: '2024-01-02T05:04:05.123+02:00' },
    spec: { capacity: { storage: '1024Mi', cpu: 2 } },
  })
  assert.deepEqual(value, {
    metadata: { name: 'v', creationTimestamp: '2024-01-02T03:04:05Z' },
    spec: { capacity: { storage: '1Gi', cpu: '2' } },
  })
})

test('nulls and meaningless empties are dropped, meaningful ones are kept', () => {
  const { value } = readObject('PersistentVolumeClaim', {
    metadata: { name: 'c', namespace: '', labels: {}, annotations: null, finalizers: [], creationTimestamp: null },
    spec: { storageClassName: '', volumeName: '', accessModes: [], selector: {}, resources: { requests: {} } },
    status: {},
  })
  assert.deepEqual(value, {
    metadata: { name: 'c' },
    spec: { storageClassName: '', selector: {}, resources: {} },
    status: {},
  })
  const driver = readObject('CSIDriver', { metadata: { name: 'd' }, spec: { attachRequired: false } })
  assert.deepEqual(driver.value, { metadata: { name: 'd' }, spec: { attachRequired: false } })
  const attachment = readObject('VolumeAttachment', { metadata: { name: 'a' }, status: { attached: false } })
  assert.deepEqual(attachment.value, {
    metadata: { name: 'a' },
    spec: { attacher: '', source: {}, nodeName: '' },
    status: { attached: false },
  })
})

test('a part of an object is checked but neither filled in nor emptied', () => {
  const part = { spec: { attachRequired: null, volumeLifecycleModes: [] }, metadata: { labels: {} } }
  assert.deepEqual(readPartial('CSIDriver', part), { value: part, unknown: [] })
  assert.deepEqual(readPartial('CSIDriver', { spec: { colour: 1 } }).unknown, ['spec.colour'])
})

test('kinds that Kubernetes stores as custom resources keep what they are given', () => {
  const snapshot = {
    metadata: { name: 's' },
    spec: { source: {}, volumeSnapshotClassName: '' },
    status: { readyToUse: false },
  }
  assert.deepEqual(readObject('VolumeSnapshot', snapshot).value, snapshot)
})

const refused: readonly (readonly [KindName, unknown, string])[] = [
  [
    'PersistentVolume',
    { spec: { accessModes: 'ReadWriteOnce' } },
    'json: cannot unmarshal string into Go struct field PersistentVolumeSpec.spec.accessModes of type []v1.PersistentVolumeAccessMode',
  ],
  [
    'PersistentVolume',
    { spec: { capacity: { storage: 'lots' } } },
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ],
  [
    'Pod',
    { spec: { containers: [{ name: 5 }] } },
    'json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string',
  ],
  [
    'Pod',
    { spec: { hostPID: 'yes' } },
    'json: cannot unmarshal string into Go struct field PodSpec.spec.hostPID of type bool',
  ],
  [
    'Pod',
    { spec: { priority: 1.5 } },
    'json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32',
  ],
  ['ConfigMap', { data: { a: 1 } }, 'json: cannot unmarshal number into Go struct field ConfigMap.data of type string'],
  [
    'ConfigMap',
    { data: [] },
    'json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string',
  ],
  ['Pod', [], 'json: cannot unmarshal array into Go value of type v1.Pod'],
  ['Pod', null, 'json: cannot unmarshal null into Go value of type v1.Pod'],
  ['Secret', { data: { a: '%%' } }, 'illegal base64 data at input byte 0'],
]
for (const [kind, value, message] of refused) {
  test(`refused: ${message}`, () => assert.throws(() => readObject(kind, value), { name: 'ReadError', message }))
}

test('a map key named like a prototype stays a plain key', () => {
  const { value } = readObject('ConfigMap', JSON.parse('{"data":{"__proto__":"x"}}'))
  assert.equal(JSON.stringify(value), '{"data":{"__proto__":"x"},"metadata":{}}')
  assert.deepEqual(unknownFields('ConfigMap', JSON.parse('{"__proto__":{},"constructor":1}')), [
    '__proto__',
    'constructor',
  ])
})

test('messages that are no kinds are read too', () => {
  const options = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0, preconditions: { uid: 'u' } }
  assert.deepEqual(readMessage('meta.DeleteOptions', options), { value: options, unknown: [] })
})

test('times are checked and moved to UTC', () => {
  const table: readonly (readonly [string, boolean, string | undefined])[] = [
    ['2024-02-29T00:00:00Z', false, '2024-02-29T00:00:00Z'],
    ['2023-02-29T00:00:00Z', false, undefined],
    ['2024-01-01T00:00:00.5Z', true, '2024-01-01T00:00:00.500000Z'],
    ['2024-01-01T00:00:00-01:30', true, '2024-01-01T01:30:00.000000Z'],
    ['yesterday', false, undefined],
    ['2024-01-01T25:00:00Z', false, undefined],
  ]
  for (const [text, micro, expected] of table) assert.equal(canonicalTime(text, micro), expected, text)
})

test('a quantity that cannot be read names its field, and what was meant', () => {
  const adviceFor = (storage: string) => {
    try {
      readObject('PersistentVolumeClaim', { spec: { resources: { requests: { storage } } } })
      return undefined
    } catch (error) {
      return error instanceof ReadError ? error.advice : undefined
    }
  }
  const field = 'spec.resources.requests.storage'
  assert.deepEqual(['1GB', '10 mib', '5gb', 'lots', '1Gi'].map(adviceFor), [
    `${field}: "1GB" is not a quantity; did you mean 1Gi or 1G?`,
    `${field}: "10 mib" is not a quantity; did you mean 10Mi or 10M?`,
    `${field}: "5gb" is not a quantity; did you mean 5Gi or 5G?`,
    `${field}: "lots" is not a quantity; examples: 500Mi, 1Gi, 2T`,
    undefined,
  ])
})
