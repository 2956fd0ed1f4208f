// Every branch of deleting a volume as a table.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { PersistentVolume } from '../../api/generated/types.ts'
import { planDelete } from './delete-plan.ts'
import type { DeleteFacts } from './delete-plan.ts'

const finalizers = ['external-provisioner.volume.kubernetes.io/finalizer']
const held = { metadata: { name: 'v', finalizers } }
const volume = (rest: {
  readonly metadata?: PersistentVolume['metadata']
  readonly spec?: PersistentVolume['spec']
  readonly phase?: NonNullable<PersistentVolume['status']>['phase']
}): PersistentVolume => ({
  metadata: rest.metadata ?? { name: 'v' },
  spec: { persistentVolumeReclaimPolicy: 'Delete', csi: { driver: 'd', volumeHandle: 'h' }, ...rest.spec },
  status: { phase: rest.phase ?? 'Released' },
})
const facts = (given: PersistentVolume, rest: Partial<DeleteFacts> = {}): DeleteFacts => ({
  volume: given,
  driver: 'd',
  attachedTo: undefined,
  sharedWith: undefined,
  owned: true,
  ...rest,
})
const table: readonly [string, DeleteFacts, string][] = [
  ['a released volume is deleted (SIDE-20)', facts(volume(held)), 'delete'],
  ['not while it is attached (SIDE-21)', facts(volume(held), { attachedTo: 'n' }), 'waitForDetach'],
  ['not while another volume has its handle', facts(volume(held), { sharedWith: 'w' }), 'shared'],
  ['a bound volume is held', facts(volume({ phase: 'Bound' })), 'addFinalizer'],
  ['once', facts(volume({ ...held, phase: 'Bound' })), 'nothing'],
  [
    'a volume with another policy is not held',
    facts(volume({ ...held, spec: { persistentVolumeReclaimPolicy: 'Retain' } })),
    'dropFinalizer',
  ],
  ['and never deleted', facts(volume({ spec: { persistentVolumeReclaimPolicy: 'Retain' } })), 'nothing'],
  ['a failed volume waits for a person', facts(volume({ ...held, phase: 'Failed' })), 'nothing'],
  [
    'a deleted object without our finalizer is done with',
    facts(volume({ metadata: { name: 'v', deletionTimestamp: 't' } })),
    'nothing',
  ],
  ['another driver’s volume is left alone', facts(volume(held), { driver: 'other' }), 'nothing'],
  [
    'so is one that another provisioner made',
    facts(volume({ metadata: { ...held.metadata, annotations: { 'pv.kubernetes.io/provisioned-by': 'x' } } })),
    'nothing',
  ],
  ['an instance per node deletes nothing of another', facts(volume(held), { owned: false }), 'nothing'],
]
for (const [name, given, expected] of table) test(name, () => assert.equal(planDelete(given).kind, expected))
