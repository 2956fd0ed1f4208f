// What may change after creation? Immutability per kind (API-5, API-6, recorded 300 to 305 and 360), status writes, and
// what metadata forbids for every kind.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyDefaults } from '../defaults/defaults.ts'
import { sentence } from '../field-errors.ts'
import type { KindMap, KindName } from '../kinds.ts'
import type { ObjectMeta, PersistentVolumeClaim, Pod } from '../generated/types.ts'
import { validateCreate, validateUpdate } from './validate.ts'
import { validatePodUpdate } from './pod.ts'

const metadata: ObjectMeta = { name: 'a', uid: 'u', resourceVersion: '1', creationTimestamp: '2024-01-01T00:00:00Z' }
const inNamespace: ObjectMeta = { ...metadata, namespace: 'n' }

/** First lines of the errors that a change causes. */
function update<K extends KindName>(kind: K, previous: KindMap[K], next: KindMap[K], subresource?: string) {
  return validateUpdate(kind, next, previous, subresource).map((error) => sentence(error).split('\n', 1)[0])
}

const volume = applyDefaults('PersistentVolume', {
  metadata,
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    csi: { driver: 'd.example', volumeHandle: 'h' },
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: 'failure-domain.beta.kubernetes.io/zone', operator: 'In', values: ['a'] }] },
        ],
      },
    },
  },
})
const volumeWith = (spec: object) => ({ ...volume, spec: { ...volume.spec, ...spec } })
const csi = { driver: 'd.example', volumeHandle: 'h' }
const sourceText = 'spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation'
const zone = (key: string, value: string) => ({
  required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In' as const, values: [value] }] }] },
})

const volumeChanges: readonly (readonly [string, object, readonly string[]])[] = [
  ['nothing', {}, []],
  ['handle', { csi: { ...csi, volumeHandle: 'other' } }, [sourceText]],
  ['attributes', { csi: { ...csi, volumeAttributes: { a: 'b' } } }, [sourceText]],
  ['expansion secret', { csi: { ...csi, controllerExpandSecretRef: { name: 's', namespace: 'n' } } }, []],
  ['capacity', { capacity: { storage: '3Gi' } }, []],
  ['access modes', { accessModes: ['ReadWriteMany', 'ReadOnlyMany'] }, []],
  ['policy', { persistentVolumeReclaimPolicy: 'Delete' }, []],
  ['class', { storageClassName: 'other' }, []],
  ['claimRef', { claimRef: { namespace: 'n', name: 'later' } }, []],
  ['mount options', { mountOptions: ['ro'] }, []],
  ['volume mode', { volumeMode: 'Block' }, ['volumeMode: Invalid value: "Block": field is immutable']],
  ['affinity to the general label', { nodeAffinity: zone('topology.kubernetes.io/zone', 'a') }, []],
  [
    'affinity',
    { nodeAffinity: zone('zone', 'b') },
    [
      'nodeAffinity: Invalid value: {"Required":{"NodeSelectorTerms":[{"MatchExpressions":[{"Key":"zone","Operator":"In","Values":["b"]}],"MatchFields":null}]}}: field is immutable, except for updating from beta label to GA',
    ],
  ],
]
for (const [name, spec, expected] of volumeChanges) {
  test(`volume: ${name} (API-6)`, () =>
    assert.deepEqual(update('PersistentVolume', volume, volumeWith(spec)), expected))
}

test('recorded 302: a volume is checked twice on update, and every cause is told twice', () => {
  const { capacity, ...spec } = volume.spec
  assert.ok(capacity)
  const errors = update('PersistentVolume', volume, { ...volume, spec })
  const once = ['spec.capacity: Required value', 'spec.capacity: Unsupported value: null: supported values: "storage"']
  assert.deepEqual(errors, [...once, ...once])
})

test('the affinity of a volume may be set once and not removed (API-6)', () => {
  const { nodeAffinity, ...spec } = volume.spec
  assert.ok(nodeAffinity)
  const without = { ...volume, spec }
  assert.deepEqual(update('PersistentVolume', without, volume), [])
  assert.deepEqual(update('PersistentVolume', volume, without), [
    'nodeAffinity: Invalid value: null: field is immutable, except for updating from beta label to GA',
  ])
})

const claim: PersistentVolumeClaim = {
  metadata: inNamespace,
  spec: {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '5Gi' } },
    storageClassName: 'c',
    volumeMode: 'Filesystem',
  },
  status: { phase: 'Pending' },
}
const bound: PersistentVolumeClaim = {
  ...claim,
  spec: { ...claim.spec, volumeName: 'v' },
  status: { phase: 'Bound', capacity: { storage: '2Gi' } },
}
const claimText =
  'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'
const storage = (size: string) => ({ resources: { requests: { storage: size } } })

const claimChanges: readonly (readonly [string, PersistentVolumeClaim, object, readonly string[]])[] = [
  ['nothing', bound, {}, []],
  ['volume name, first', claim, { volumeName: 'v' }, []],
  ['volume name, again', bound, { volumeName: 'w' }, [claimText]],
  ['class', bound, { storageClassName: 'other' }, [claimText]],
  ['access modes', bound, { accessModes: ['ReadWriteMany'] }, [claimText]],
  ['selector', bound, { selector: { matchLabels: { a: 'b' } } }, [claimText]],
  [
    'volume mode',
    bound,
    { volumeMode: 'Block' },
    [claimText, 'volumeMode: Invalid value: "Block": field is immutable'],
  ],
  ['larger while bound', bound, storage('6Gi'), []],
  ['larger while pending', claim, storage('6Gi'), [claimText]],
  ['smaller, above its capacity', bound, storage('3Gi'), []],
  [
    'smaller, at its capacity',
    bound,
    storage('2Gi'),
    ['spec.resources.requests.storage: Forbidden: field can not be less than status.capacity'],
  ],
  ['attributes class while bound', bound, { volumeAttributesClassName: 'gold' }, []],
  ['attributes class while pending', claim, { volumeAttributesClassName: 'gold' }, [claimText]],
]
for (const [name, before, spec, expected] of claimChanges) {
  test(`claim: ${name} (API-5)`, () => {
    const next = { ...before, spec: { ...before.spec, ...spec } }
    assert.deepEqual(update('PersistentVolumeClaim', before, next), expected)
  })
}

test('the class of a claim may be set from nothing, and must equal the beta annotation (API-5)', () => {
  const { storageClassName, ...spec } = claim.spec
  assert.ok(storageClassName)
  const without = { ...claim, spec }
  const beta = { 'volume.beta.kubernetes.io/storage-class': 'old' }
  const annotated = { ...without, metadata: { ...inNamespace, annotations: beta } }
  const withClass = (object: PersistentVolumeClaim, name: string) => ({
    ...object,
    spec: { ...object.spec, storageClassName: name },
  })
  assert.deepEqual(update('PersistentVolumeClaim', without, withClass(without, 'c')), [])
  assert.deepEqual(update('PersistentVolumeClaim', claim, without), [claimText])
  assert.deepEqual(update('PersistentVolumeClaim', annotated, withClass(annotated, 'old')), [])
  assert.deepEqual(update('PersistentVolumeClaim', annotated, withClass(annotated, 'new')), [claimText])
  assert.deepEqual(
    update('PersistentVolumeClaim', claim, { ...claim, metadata: { ...inNamespace, annotations: beta } }),
    ['metadata.annotations.volume.beta.kubernetes.io/storage-class: Invalid value: "old": field is immutable'],
  )
})

test('an attributes class in force cannot be taken away (API-5)', () => {
  const before = {
    ...bound,
    spec: { ...bound.spec, volumeAttributesClassName: 'gold' },
    status: { ...bound.status, currentVolumeAttributesClassName: 'gold' },
  }
  const { volumeAttributesClassName, ...spec } = before.spec
  assert.equal(volumeAttributesClassName, 'gold')
  assert.deepEqual(update('PersistentVolumeClaim', before, { ...before, spec }), [
    'spec.volumeAttributesClassName: Forbidden: update to nil is forbidden when status.currentVolumeAttributesClassName is not nil',
  ])
})

test('a status write is checked for its quantities', () => {
  const next = { ...bound, status: { ...bound.status, capacity: { storage: '-1' } } }
  assert.deepEqual(update('PersistentVolumeClaim', bound, next, 'status'), [
    'status.capacity[storage]: Invalid value: -1: must be a valid resource quantity',
  ])
})

test('the spec of an attachment never changes; its error texts are limited', () => {
  const before = { metadata, spec: { attacher: 'd.example', nodeName: 'n1', source: { persistentVolumeName: 'v' } } }
  const next = { ...before, spec: { ...before.spec, nodeName: 'other' } }
  assert.deepEqual(update('VolumeAttachment', before, next), [
    'spec: Invalid value: {"Attacher":"d.example","Source":{"PersistentVolumeName":"v","InlineVolumeSpec":null},"NodeName":"other"}: field is immutable',
  ])
  const long = { ...before, status: { attached: false, attachError: { message: 'x'.repeat(1025) } } }
  assert.deepEqual(update('VolumeAttachment', before, long, 'status'), [
    'status.attachError.message: Too long: may not be more than 262144 bytes',
  ])
})

test('classes, drivers and config keep what others rely on', () => {
  const storageClass = applyDefaults('StorageClass', { metadata, provisioner: 'p', parameters: { a: 'b' } })
  assert.deepEqual(
    update('StorageClass', storageClass, {
      ...storageClass,
      provisioner: 'q',
      parameters: {},
      reclaimPolicy: 'Retain',
      volumeBindingMode: 'WaitForFirstConsumer',
    }),
    [
      'parameters: Forbidden: updates to parameters are forbidden.',
      'provisioner: Forbidden: updates to provisioner are forbidden.',
      'reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.',
      'volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable',
    ],
  )
  const driver = applyDefaults('CSIDriver', { metadata, spec: {} })
  assert.deepEqual(update('CSIDriver', driver, { ...driver, spec: { ...driver.spec, attachRequired: false } }), [
    'spec.attachedRequired: Invalid value: false: field is immutable',
  ])
  const config = { metadata: inNamespace, data: { a: 'b' }, immutable: true }
  assert.deepEqual(update('ConfigMap', config, { ...config, data: { a: 'c' } }), [
    'data: Forbidden: field is immutable when `immutable` is set',
  ])
  const secret = { metadata: inNamespace, type: 'Opaque' }
  assert.deepEqual(update('Secret', secret, { ...secret, type: 'other' }), [
    'type: Invalid value: "other": field is immutable',
  ])
})

test('a driver that stays on a node keeps its identity', () => {
  const before = { metadata, spec: { drivers: [{ name: 'd', nodeID: 'x', allocatable: { count: 1 } }] } }
  const more = { metadata, spec: { drivers: [{ name: 'd', nodeID: 'x', allocatable: { count: 2 } }] } }
  const other = { metadata, spec: { drivers: [{ name: 'd', nodeID: 'y' }] } }
  assert.deepEqual(update('CSINode', before, more), [])
  assert.deepEqual(update('CSINode', before, { metadata, spec: { drivers: [] } }), [])
  assert.deepEqual(update('CSINode', before, other), [
    'spec.drivers: Invalid value: {"Name":"d","NodeID":"y","TopologyKeys":null,"Allocatable":null}: field is immutable',
  ])
})

const pod: Pod = applyDefaults('Pod', {
  metadata: inNamespace,
  spec: { containers: [{ name: 'c', image: 'x' }], tolerations: [{ key: 'k', operator: 'Exists' }] },
})
const podWith = (spec: object) => ({ ...pod, spec: { ...pod.spec, ...spec } })
const podText = 'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`'

test('a pod may change its images, deadline and tolerations, and little else', () => {
  const [container] = pod.spec.containers
  assert.ok(container)
  const changes: readonly (readonly [object, boolean])[] = [
    [{}, true],
    [{ containers: [{ ...container, image: 'y' }] }, true],
    [{ activeDeadlineSeconds: 5 }, true],
    [{ tolerations: [...(pod.spec.tolerations ?? []), { operator: 'Exists' }] }, true],
    [{ nodeName: 'n1' }, false],
    [{ volumes: [{ name: 'v', emptyDir: {} }] }, false],
    [{ terminationGracePeriodSeconds: 1 }, false],
  ]
  for (const [spec, allowed] of changes) {
    const errors = update('Pod', pod, podWith(spec))
    assert.equal(errors.length === 0, allowed, JSON.stringify(spec))
    if (!allowed) assert.ok(errors[0]?.startsWith(podText))
  }
  assert.deepEqual(update('Pod', pod, podWith({ containers: [container, { ...container, name: 'd' }] })), [
    'spec.containers: Forbidden: pod updates may not add or remove containers',
  ])
  assert.deepEqual(update('Pod', pod, podWith({ tolerations: [] })), [
    'spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds',
  ])
  assert.deepEqual(update('Pod', pod, podWith({ nodeName: 'n1' }), 'binding'), [])
})

test('a refused change of a pod names what was changed, and nothing else (D9)', () => {
  const [error] = validatePodUpdate(podWith({ nodeName: 'n1' }), pod)
  assert.deepEqual(error?.message.split('\n').slice(1), ['  nodeName: null -> "n1"'])
})

test('metadata: identity never changes, a dying object takes no new finalizer', () => {
  const before = { metadata, data: {} }
  // Every one of these errors is told twice, as in Kubernetes.
  const change = (changes: Partial<ObjectMeta>, from: ObjectMeta = metadata) => {
    const errors = update('ConfigMap', { ...before, metadata: from }, { ...before, metadata: { ...from, ...changes } })
    assert.deepEqual(errors, [...new Set(errors), ...new Set(errors)])
    return [...new Set(errors)]
  }
  assert.deepEqual(change({ uid: 'w' }), ['metadata.uid: Invalid value: "w": field is immutable'])
  assert.deepEqual(change({ name: 'b' }), ['metadata.name: Invalid value: "b": field is immutable'])
  assert.deepEqual(change({ resourceVersion: '' }), [
    'metadata.resourceVersion: Invalid value: "": must be specified for an update',
  ])
  const dying = { ...metadata, deletionTimestamp: '2024-01-01T00:00:00Z', finalizers: ['x.io/a'] }
  assert.deepEqual(change({ finalizers: [] }, dying), [])
  assert.deepEqual(change({ finalizers: ['x.io/a', 'x.io/b'] }, dying), [
    'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x.io/b"}',
  ])
})

test('a valid object of every simple kind passes', () => {
  assert.deepEqual(validateCreate('Namespace', { metadata: { name: 'n' } }), [])
  assert.deepEqual(
    validateCreate('Lease', { metadata: { name: 'l', namespace: 'n' }, spec: { leaseDurationSeconds: 1 } }),
    [],
  )
  assert.deepEqual(validateCreate('ServiceAccount', { metadata: { name: 'l', namespace: 'n' } }), [])
  assert.deepEqual(
    validateCreate('Operation', { metadata: { name: 'o' }, spec: { actor: 'a', operation: 'mount' } }),
    [],
  )
})
