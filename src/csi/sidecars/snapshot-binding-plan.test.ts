// How snapshots and contents are joined and parted, as tables.
import assert from 'node:assert/strict'
import test from 'node:test'
import { finalizers } from '../../api/annotations.ts'
import type { VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent } from '../../api/generated/types.ts'
import {
  adoptionProblem,
  boundTo,
  chooseSnapshotClass,
  isSourceUnused,
  planContentRelease,
  planSnapshotStep,
} from './snapshot-binding-plan.ts'

const snapshot = (rest: Partial<VolumeSnapshot> = {}): VolumeSnapshot => ({
  metadata: { name: 's', namespace: 'ns', uid: 'u' },
  spec: { source: { persistentVolumeClaimName: 'c' } },
  ...rest,
})
const deleting = (held: readonly string[] = []) =>
  snapshot({ metadata: { name: 's', namespace: 'ns', uid: 'u', deletionTimestamp: 't', finalizers: held } })
const content = (uid: string | undefined, deletionPolicy: 'Delete' | 'Retain' = 'Delete'): VolumeSnapshotContent => ({
  metadata: { name: 'x' },
  spec: {
    driver: 'd',
    deletionPolicy,
    source: {},
    volumeSnapshotRef: { name: 's', namespace: 'ns', ...(uid === undefined ? {} : { uid }) },
  },
})

const steps: readonly [string, VolumeSnapshot, object][] = [
  ['a new snapshot gets a content of its own', snapshot(), { kind: 'bind', contentName: 'snapcontent-u' }],
  [
    'one that names a content adopts it',
    snapshot({ spec: { source: { volumeSnapshotContentName: 'x' } } }),
    { kind: 'adopt', contentName: 'x' },
  ],
  ['a deleted one is released', deleting(), { kind: 'release' }],
  ['not while a claim is made from it', deleting([finalizers.snapshotAsSource]), { kind: 'waitForClaims' }],
]
for (const [name, given, expected] of steps) test(name, () => assert.deepEqual(planSnapshotStep(given), expected))

test('the content of a deleted snapshot is marked if it is its own, and deleted by its policy', () => {
  const kinds = [content('u'), content('u', 'Retain'), content('other'), undefined].map((each) => {
    const plan = planContentRelease(snapshot(), each)
    return plan.kind === 'mark' ? `mark ${plan.deletes}` : plan.kind
  })
  assert.deepEqual(kinds, ['mark true', 'mark false', 'leave', 'leave'])
})

test('a content made by hand is adopted by the snapshot that it names, and by no other', () => {
  const codes = [content(undefined), content('u'), content('other')].map(
    (each) => adoptionProblem(snapshot(), each)?.code,
  )
  assert.deepEqual(codes, [undefined, undefined, 'SnapshotMisbound'])
})

test('a snapshot without a class takes the default class', () => {
  const make = (name: string, isDefault: boolean): [string, VolumeSnapshotClass] => [
    name,
    {
      metadata: { name, annotations: { 'snapshot.storage.kubernetes.io/is-default-class': String(isDefault) } },
      driver: 'd',
      deletionPolicy: 'Delete',
    },
  ]
  const classes = new Map([make('a', false), make('b', true)])
  const named = snapshot({ spec: { source: {}, volumeSnapshotClassName: 'a' } })
  const chosen = [snapshot(), named].map((each) => chooseSnapshotClass(each, classes, 'd')?.metadata.name)
  assert.deepEqual(chosen, ['b', 'a'])
  assert.equal(chooseSnapshotClass(snapshot(), classes, 'other'), undefined, 'the default of another driver')
})

test('a claim is kept while another snapshot of it is being cut', () => {
  const other = (readyToUse: boolean) =>
    snapshot({ metadata: { name: 'o', namespace: 'ns', uid: 'o' }, status: { readyToUse } })
  assert.deepEqual(
    [isSourceUnused(snapshot(), [snapshot(), other(true)]), isSourceUnused(snapshot(), [snapshot(), other(false)])],
    [true, false],
  )
})

test('the status follows the content, and an equal status is no write', () => {
  const ready = { ...content('u'), status: { readyToUse: true, restoreSize: 1024, creationTime: 0 } }
  const bound = boundTo(snapshot(), ready)
  assert.deepEqual(bound.status, {
    boundVolumeSnapshotContentName: 'x',
    readyToUse: true,
    creationTime: '1970-01-01T00:00:00Z',
    restoreSize: '1Ki',
  })
  assert.equal(boundTo(bound, ready), bound)
})
