// What does each write say? BND-1 … BND-7 and the defaults of classes, object by object.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claim, storageClass, volume } from '../../../test/kit/objects.ts'
import { chooseDefaultClass } from '../../api/storage-class.ts'
import { claimMigration, volumeMigration } from './migration.ts'
import {
  claimAskedFor,
  claimBound,
  claimLost,
  claimPending,
  claimPointed,
  volumeInPhase,
  volumeTaken,
  volumeUnbound,
} from './writes.ts'

const mark = { 'pv.kubernetes.io/bound-by-controller': 'yes' }

test('a free volume gets the whole reference and the mark (BND-1, BND-2)', () => {
  const taken = volumeTaken(volume(), claim())
  const claimRef = {
    kind: 'PersistentVolumeClaim',
    apiVersion: 'v1',
    namespace: 'ns',
    name: 'c',
    uid: 'uid-c',
    resourceVersion: '1',
  }
  assert.deepEqual([taken.spec.claimRef, taken.metadata.annotations], [claimRef, mark])
})

test('a reserved volume gets the uid and no mark; one with the uid is not touched (BND-2, TC-4, TC-14)', () => {
  const taken = volumeTaken(volume({ claimRef: { name: 'c' } }), claim())
  assert.deepEqual([taken.spec.claimRef?.uid, taken.metadata.annotations], ['uid-c', undefined])
  const complete = volume({ claimRef: { name: 'c', uid: 'uid-c' } })
  assert.equal(volumeTaken(complete, claim()), complete)
})

test('the claim points and is marked in one write; a claim that named its volume gets only bind-completed (BND-2, I-4)', () => {
  const pointed = claimPointed(claim(), volume())
  assert.deepEqual(
    [pointed.spec.volumeName, pointed.metadata.annotations],
    ['v', { ...mark, 'pv.kubernetes.io/bind-completed': 'yes' }],
  )
  const named = claimPointed(claim({ volumeName: 'v' }), volume())
  assert.deepEqual(named.metadata.annotations, { 'pv.kubernetes.io/bind-completed': 'yes' })
})

test('a finished pair needs no write (BND-4, BND-1)', () => {
  const taken = volumeInPhase(volumeTaken(volume(), claim()), 'Bound')
  const bound = claimBound(claimPointed(claim(), taken), taken)
  assert.deepEqual(
    [
      volumeTaken(taken, bound) === taken,
      volumeInPhase(taken, 'Bound') === taken,
      claimPointed(bound, taken) === bound,
      claimBound(bound, taken) === bound,
    ],
    [true, true, true, true],
  )
})

test('capacity is shown on a phase change only; access modes whenever they differ (BND-5)', () => {
  const grown = volume({ size: '4Gi', modes: ['ReadOnlyMany'] })
  const kept = claimBound(claim({ phase: 'Bound', capacity: '1Gi' }), grown)
  assert.deepEqual([kept.status?.capacity, kept.status?.accessModes], [{ storage: '1Gi' }, ['ReadOnlyMany']])
  assert.deepEqual(claimBound(claim(), grown).status?.capacity, { storage: '4Gi' })
})

test('a half grown volume shows its old size, never more than it has, and never nonsense (BND-5, NEX-5, TC-30, WC-21)', () => {
  const shown = (before: string) =>
    claimBound(
      claim(),
      volume({ size: '2Gi', annotations: { 'volume.alpha.kubernetes.io/pre-resize-capacity': before } }),
    ).status?.capacity
  assert.deepEqual(
    [shown('1Gi'), shown('9Gi'), shown('soon')],
    [{ storage: '1Gi' }, { storage: '2Gi' }, { storage: '2Gi' }],
  )
})

test('a volume without capacity is an error (BND-5)', () => {
  assert.throws(
    () => claimBound(claim(), volume({ spec: { capacity: {} } })),
    /PersistentVolume "v" is without a storage capacity/,
  )
})

test('the attributes class is shown on binding, and again after a loss (BND-5, TC-16, WC-20)', () => {
  const fast = volume({ spec: { volumeAttributesClassName: 'fast' } })
  assert.equal(claimBound(claim(), fast).status?.currentVolumeAttributesClassName, 'fast')
  assert.equal(claimBound(claim({ phase: 'Lost' }), fast).status?.currentVolumeAttributesClassName, 'fast')
})

test('the same phase and message is no write; a new message is (BND-6, WC-19)', () => {
  const failed = volumeInPhase(volume(), 'Failed', 'broken')
  assert.equal(volumeInPhase(failed, 'Failed', 'broken'), failed)
  assert.equal(volumeInPhase(failed, 'Failed', 'worse').status?.message, 'worse')
  assert.deepEqual(volumeInPhase(failed, 'Available').status, { phase: 'Available' })
})

test('ours is undone wholly, a reservation keeps its name (BND-7, TC-26, I-3)', () => {
  const own = volumeUnbound(volume({ claimRef: { name: 'c', uid: 'u' }, annotations: mark }))
  assert.deepEqual([own.spec.claimRef, own.metadata.annotations], [undefined, undefined])
  assert.deepEqual(volumeUnbound(volume({ claimRef: { name: 'c', uid: 'u' } })).spec.claimRef, {
    namespace: 'ns',
    name: 'c',
  })
})

test('Lost takes back what the volume gave, and keeps conditions (CLM-21)', () => {
  const conditions = [{ type: 'Resizing', status: 'True' as const }]
  const was = {
    ...claim(),
    status: {
      phase: 'Bound' as const,
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce' as const],
      currentVolumeAttributesClassName: 'x',
      conditions,
    },
  }
  assert.deepEqual(claimLost(was).status, { phase: 'Lost', conditions })
  assert.equal(claimLost({ ...was, status: { ...was.status, phase: 'Lost' } }).status?.capacity, was.status?.capacity)
  assert.deepEqual(claimPending(was).status, { phase: 'Pending', conditions })
  assert.deepEqual(claimPending({ ...was, status: { ...was.status, phase: 'Pending' } }).status, {
    phase: 'Pending',
    conditions,
  })
})

test('both keys; nothing when the GA key is right, even without the beta key (PRV-4, TC-39)', () => {
  const ga = 'volume.kubernetes.io/storage-provisioner'
  assert.deepEqual(claimAskedFor(claim(), 'p').metadata.annotations, {
    [ga]: 'p',
    'volume.beta.kubernetes.io/storage-provisioner': 'p',
  })
  const asked = claim({ annotations: { [ga]: 'p' } })
  assert.equal(claimAskedFor(asked, 'p'), asked)
})

test('the newest default class, then the first by name; others never (API-8, TC-43)', () => {
  const classes = [
    storageClass('old', { isDefault: true, born: '2025-01-01T00:00:00Z' }),
    storageClass('b', { isDefault: true, born: '2026-01-01T00:00:00Z' }),
    storageClass('a', { isDefault: true, born: '2026-01-01T00:00:00Z' }),
    storageClass('newest', { born: '2027-01-01T00:00:00Z' }),
  ]
  assert.equal(chooseDefaultClass(classes)?.metadata.name, 'a')
  assert.equal(chooseDefaultClass([storageClass('x')]), undefined)
})

test('migrated-to follows the provisioner, and goes when the migration is rolled back (MIG-1, MIG-2, TC-42)', () => {
  const key = 'pv.kubernetes.io/migrated-to'
  const of = (annotations: Record<string, string>) => claimMigration(claim({ annotations })).metadata.annotations?.[key]
  assert.equal(of({ 'volume.kubernetes.io/storage-provisioner': 'kubernetes.io/aws-ebs' }), 'ebs.csi.aws.com')
  assert.equal(of({ 'volume.beta.kubernetes.io/storage-provisioner': 'kubernetes.io/gce-pd' }), 'pd.csi.storage.gke.io')
  assert.equal(of({ 'volume.kubernetes.io/storage-provisioner': 'other', [key]: 'x' }), undefined)
  const silent = claim({ annotations: { [key]: 'x' } })
  assert.equal(claimMigration(silent), silent)
})

const ext = 'external-provisioner.volume.kubernetes.io/finalizer'
const tree = 'kubernetes.io/pv-controller'
const finalizerTable: readonly [
  string,
  string | undefined,
  'Delete' | 'Retain',
  readonly string[],
  readonly string[] | undefined,
][] = [
  ['a static volume is never touched (MIG-4)', undefined, 'Delete', ['a', ext], ['a', ext]],
  ['an external one is untouched (MIG-3)', 'csi.example.com', 'Delete', ['a', ext, tree], ['a', ext, tree]],
  [
    'in-tree, Delete: ours in, theirs out, foreign ones in order (MIG-3)',
    'kubernetes.io/disk',
    'Delete',
    ['a', ext, 'b'],
    ['a', 'b', tree],
  ],
  ['in-tree, Retain: ours out (MIG-3)', 'kubernetes.io/disk', 'Retain', ['a', tree], ['a']],
  ['migrated: ours out, the rest stays (MIG-3)', 'kubernetes.io/aws-ebs', 'Delete', [tree, ext], [ext]],
]
for (const [name, provisioner, policy, before, after] of finalizerTable) {
  test(`${name} (TC-33)`, () => {
    const annotations =
      provisioner === undefined ? {} : { annotations: { 'pv.kubernetes.io/provisioned-by': provisioner } }
    assert.deepEqual(volumeMigration(volume({ policy, finalizers: before, ...annotations })).metadata.finalizers, after)
  })
}
