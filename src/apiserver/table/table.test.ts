// Do tables show what Kubernetes 1.35 shows? Rows recorded in conformance scenarios 370–377,
// plus the cell rules of the specification.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kindNames } from '../../api/kinds.ts'
import type {
  Event,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
} from '../../api/generated/types.ts'
import { age, duration } from '../../api/kinds/age.ts'
import { summarizePod } from '../../api/kinds/pod-status.ts'
import { toTable } from './table.ts'

const now = Date.parse('2026-01-01T00:10:00Z')
const created = '2026-01-01T00:00:00Z'

test('durations are written as kubectl writes them', () => {
  const second = 1000
  const minute = 60 * second
  const hour = 60 * minute
  const day = 24 * hour
  const cases: readonly (readonly [number, string])[] = [
    [-3 * second, '<invalid>'],
    [-1 * second, '0s'],
    [0, '0s'],
    [119 * second, '119s'],
    [120 * second, '2m'],
    [125 * second, '2m5s'],
    [10 * minute + 5 * second, '10m'],
    [179 * minute, '179m'],
    [3 * hour, '3h'],
    [3 * hour + 7 * minute, '3h7m'],
    [8 * hour + 7 * minute, '8h'],
    [47 * hour, '47h'],
    [48 * hour, '2d'],
    [49 * hour, '2d1h'],
    [8 * day + 5 * hour, '8d'],
    [729 * day, '729d'],
    [730 * day, '2y'],
    [733 * day, '2y3d'],
    [8 * 365 * day + 3 * day, '8y'],
  ]
  for (const [milliseconds, text] of cases) assert.equal(duration(milliseconds), text)
  assert.equal(age(undefined, now), '<unknown>')
  assert.equal(age(created, now), '10m')
})

test('370: a bound, a free and a terminating volume', () => {
  const spec = { capacity: { storage: '5Gi' }, storageClassName: 'c', persistentVolumeReclaimPolicy: 'Retain' } as const
  const volumes: PersistentVolume[] = [
    {
      metadata: { name: 'v1', creationTimestamp: created, resourceVersion: '7' },
      spec: {
        ...spec,
        accessModes: ['ReadOnlyMany', 'ReadWriteOnce'],
        claimRef: { namespace: 'ns', name: 'c1' },
        volumeMode: 'Filesystem',
      },
      status: { phase: 'Bound' },
    },
    {
      metadata: { name: 'v3', creationTimestamp: created, deletionTimestamp: created },
      spec: { ...spec, accessModes: ['ReadWriteOnce'] },
      status: { phase: 'Available' },
    },
  ]
  const table = toTable('PersistentVolume', volumes, { now, metadata: { resourceVersion: '9' } })
  assert.deepEqual(
    table.rows.map((row) => row.cells),
    [
      ['v1', '5Gi', 'RWO,ROX', 'Retain', 'Bound', 'ns/c1', 'c', '<unset>', '', '10m', 'Filesystem'],
      ['v3', '5Gi', 'RWO', 'Retain', 'Terminating', '', 'c', '<unset>', '', '10m', '<unset>'],
    ],
  )
  assert.deepEqual(table.metadata, { resourceVersion: '9' })
  assert.deepEqual(toTable('PersistentVolume', volumes.slice(0, 1), { now }).metadata, { resourceVersion: '7' })
})

test('an unbound claim shows neither capacity nor modes', () => {
  const claim: PersistentVolumeClaim = {
    metadata: { name: 'c', creationTimestamp: created },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 's' },
    status: { phase: 'Pending', capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] },
  }
  const cells = (object: PersistentVolumeClaim) => toTable('PersistentVolumeClaim', [object], { now }).rows[0]?.cells
  assert.deepEqual(cells(claim), ['c', 'Pending', '', '', '', 's', '<unset>', '10m', '<unset>'])
  const bound = { ...claim, spec: { ...claim.spec, volumeName: 'v' } }
  assert.deepEqual(cells(bound), ['c', 'Pending', 'v', '1Gi', 'RWO', 's', '<unset>', '10m', '<unset>'])
})

test('372: classes show their defaults, and which one is the default', () => {
  const plain: StorageClass = { metadata: { name: 's1', creationTimestamp: created }, provisioner: 'p' }
  const marked: StorageClass = {
    ...plain,
    metadata: { ...plain.metadata, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    allowVolumeExpansion: true,
  }
  assert.deepEqual(
    toTable('StorageClass', [plain, marked], { now }).rows.map((row) => row.cells),
    [
      ['s1', 'p', 'Delete', 'Immediate', false, '10m'],
      ['s1 (default)', 'p', 'Delete', 'Immediate', true, '10m'],
    ],
  )
})

const pod = (status: Pod['status'], metadata: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'p', creationTimestamp: created, ...metadata },
  spec: { containers: [{ name: 'c', image: 'x' }] },
  ...(status === undefined ? {} : { status }),
})
const container = { name: 'c', ready: false, restartCount: 0, image: 'x', imageID: '' }

test('375: pod status words', () => {
  const words = (object: Pod) => {
    const summary = summarizePod(object)
    return `${summary.ready}/${summary.total} ${summary.status}`
  }
  const running = { ...container, ready: true, state: { running: { startedAt: created } } }
  const done = { ...container, state: { terminated: { exitCode: 0, reason: 'Completed' } } }
  assert.equal(words(pod({ phase: 'Pending' })), '0/1 Pending')
  assert.equal(words(pod({ phase: 'Running', containerStatuses: [running] })), '1/1 Running')
  assert.equal(words(pod({ phase: 'Succeeded', containerStatuses: [done] })), '0/1 Completed')
  assert.equal(words(pod({ phase: 'Failed' })), '0/1 Failed')
  assert.equal(words(pod({ phase: 'Pending' }, { deletionTimestamp: created })), '0/1 Terminating')
  assert.equal(words(pod({ phase: 'Failed' }, { deletionTimestamp: created })), '0/1 Failed')
  assert.equal(words(pod({ phase: 'Running', containerStatuses: [done, running] })), '1/1 NotReady')
  const waiting = { ...container, state: { waiting: { reason: 'ContainerCreating' } } }
  assert.equal(words(pod({ phase: 'Pending', containerStatuses: [waiting] })), '0/1 ContainerCreating')
  assert.equal(words(pod({ phase: 'Pending', initContainerStatuses: [waiting] })), '0/1 Init:ContainerCreating')
  assert.equal(words(pod({ phase: 'Pending', initContainerStatuses: [container] })), '0/1 Init:0/0')
  const killed = { ...container, state: { terminated: { exitCode: 137, signal: 9 } } }
  assert.equal(words(pod({ phase: 'Failed', containerStatuses: [killed] })), '0/1 Signal:9')
  const gated = { type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' } as const
  assert.equal(words(pod({ phase: 'Pending', conditions: [gated] })), '0/1 SchedulingGated')
})

test('restarts say when the last one was; finished pods carry a Completed condition', () => {
  const restarted = {
    ...container,
    restartCount: 3,
    lastState: { terminated: { exitCode: 1, finishedAt: '2026-01-01T00:05:00Z' } },
  }
  const table = toTable('Pod', [pod({ phase: 'Succeeded', containerStatuses: [restarted] })], { now })
  assert.equal(table.rows[0]?.cells[3], '3 (5m ago)')
  assert.equal(table.rows[0]?.conditions?.[0]?.reason, 'Succeeded')
})

test('node status, roles and missing addresses', () => {
  const node: Node = {
    metadata: {
      name: 'n',
      creationTimestamp: created,
      labels: { 'node-role.kubernetes.io/worker': '', 'kubernetes.io/role': 'a' },
    },
    spec: { unschedulable: true },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  }
  assert.deepEqual(toTable('Node', [node], { now }).rows[0]?.cells, [
    'n',
    'Ready,SchedulingDisabled',
    'a,worker',
    '10m',
    '',
    '<none>',
    '<none>',
    '<unknown>',
    '<unknown>',
    '<unknown>',
  ])
})

test('an event without a count counts once', () => {
  const event: Event = {
    metadata: { name: 'e', namespace: 'ns' },
    involvedObject: { kind: 'Pod', name: 'p', fieldPath: 'spec' },
    type: 'Normal',
    reason: 'R',
    message: ' hello\n',
    eventTime: '2026-01-01T00:09:00.000000Z',
    reportingComponent: 'us',
    reportingInstance: 'here',
  }
  assert.deepEqual(toTable('Event', [event], { now }).rows[0]?.cells, [
    '60s',
    'Normal',
    'R',
    'pod/p',
    'spec',
    'us, here',
    'hello',
    '60s',
    1,
    'e',
  ])
})

test('377: rows carry metadata, the whole object or nothing; headers can be left out', () => {
  const object: StorageClass = { metadata: { name: 's1' }, provisioner: 'p' }
  const row = (includeObject: 'None' | 'Metadata' | 'Object') =>
    toTable('StorageClass', [object], { now, includeObject }).rows[0]
  assert.equal(row('None')?.object, null)
  assert.deepEqual(row('Metadata')?.object, {
    kind: 'PartialObjectMetadata',
    apiVersion: 'meta.k8s.io/v1',
    metadata: { name: 's1' },
  })
  assert.equal(row('Object')?.object, object)
  assert.equal(toTable('StorageClass', [object], { now, noHeaders: true }).columnDefinitions, null)
})

test('every kind has a printer whose columns have distinct names', () => {
  for (const kind of kindNames) {
    const names = toTable(kind, [], { now }).columnDefinitions?.map((column) => column.name) ?? []
    assert.ok(names.length > 1, kind)
    assert.equal(new Set(names).size, names.length, kind)
  }
})
