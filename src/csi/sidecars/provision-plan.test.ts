// Every branch of provisioning a claim, and of its failures, as tables.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { PersistentVolumeClaim, StorageClass } from '../../api/generated/types.ts'
import { CsiError } from '../codes.ts'
import { planFailure, planProvision, provisioningFinalizer, RescheduleError } from './provision-plan.ts'
import type { ProvisionFacts } from './provision-plan.ts'

const asked = { 'volume.kubernetes.io/storage-provisioner': 'd' }
const claim = (
  metadata: Partial<PersistentVolumeClaim['metadata']> = {},
  spec: PersistentVolumeClaim['spec'] = {},
): PersistentVolumeClaim => ({
  metadata: { name: 'c', namespace: 'ns', uid: 'u', ...metadata, annotations: { ...asked, ...metadata.annotations } },
  spec,
})
const storageClass = (volumeBindingMode: StorageClass['volumeBindingMode'] = 'Immediate'): StorageClass => ({
  metadata: { name: 'sc' },
  provisioner: 'd',
  volumeBindingMode,
})
const held = { finalizers: [provisioningFinalizer] }
const gone = { deletionTimestamp: 't' }
const onNode = { annotations: { 'volume.kubernetes.io/selected-node': 'n' } }
const late = storageClass('WaitForFirstConsumer')

const table: readonly [string, Partial<ProvisionFacts>, string][] = [
  ['a claim of our class is provisioned (SIDE-6)', {}, 'provision'],
  ['not without its class', { storageClass: undefined }, 'nothing'],
  ['not for another driver', { driver: 'x' }, 'nothing'],
  ['not before a node is chosen (XPR-2)', { storageClass: late }, 'nothing'],
  ['but then', { storageClass: late, claim: claim(onNode) }, 'provision'],
  ['not on another node’s instance', { claim: claim(onNode), owns: () => false }, 'nothing'],
  ['an order is finished whatever the claim says (SIDE-17)', { isOrdered: true, storageClass: undefined }, 'provision'],
  ['also when the claim is being deleted', { isOrdered: true, claim: claim({ ...gone, ...held }) }, 'provision'],
  ['a bound claim is released', { claim: claim(held, { volumeName: 'v' }) }, 'release with finalizer'],
  ['one whose volume exists waits for the binder', { volumeExists: true, claim: claim(held) }, 'release'],
  ['unless it is being deleted', { volumeExists: true, claim: claim({ ...held, ...gone }) }, 'release with finalizer'],
  [
    'a deleted claim with a final answer is released',
    { isSettled: true, claim: claim({ ...held, ...gone }) },
    'release with finalizer',
  ],
  ['one whose answer is not known is asked for again', { claim: claim({ ...held, ...gone }) }, 'provision'],
  ['one that we never held is left alone', { claim: claim(gone) }, 'nothing'],
]
for (const [name, rest, expected] of table) {
  test(name, () => {
    const facts = { claim: claim(), storageClass: storageClass(), driver: 'd', owns: () => true }
    const plan = planProvision({ ...facts, volumeExists: false, isOrdered: false, isSettled: false, ...rest })
    assert.equal(plan.kind === 'release' && plan.dropFinalizer ? 'release with finalizer' : plan.kind, expected)
  })
}

const csi = (status: ConstructorParameters<typeof CsiError>[0]) => new CsiError(status, 'no', { rpc: 'CreateVolume' })
const failures: readonly [string, unknown, boolean, string][] = [
  ['nothing was asked of the driver', new Error('no class'), false, 'final'],
  ['no node of the topology fits', new RescheduleError('no'), false, 'reschedule'],
  ['the driver may still be working', csi('DEADLINE_EXCEEDED'), true, 'background'],
  ['an error that is not the driver’s', new Error('reset'), true, 'background'],
  ['no room where the claim must be', csi('RESOURCE_EXHAUSTED'), true, 'reschedule'],
  ['the parameters are wrong', csi('INVALID_ARGUMENT'), true, 'infeasible'],
  ['a definite no', csi('INTERNAL'), true, 'final'],
]
for (const [name, error, isOrdered, expected] of failures)
  test(`${name}: ${expected} (SIDE-16, XPR-7)`, () =>
    assert.equal(
      planFailure({ error, isOrdered, hasTopology: true, hasSelectedNode: true, keepsNode: false }),
      expected,
    ))

test('a node that a person chose is kept and tried again (XPR-7)', () => {
  const chosen = { hasTopology: true, hasSelectedNode: true, keepsNode: true }
  assert.equal(planFailure({ error: csi('RESOURCE_EXHAUSTED'), isOrdered: true, ...chosen }), 'final')
  assert.equal(planFailure({ error: new RescheduleError('no'), isOrdered: false, ...chosen }), 'final')
})
