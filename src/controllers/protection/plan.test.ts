// When a protection finalizer is added, kept and removed, as a table.
import assert from 'node:assert/strict'
import test from 'node:test'
import { finalizers } from '../../api/annotations.ts'
import { planClaimProtection, planClassProtection, planVolumeProtection } from './plan.ts'

const object = (isDeleting: boolean, guard?: string) => ({
  metadata: {
    name: 'o',
    ...(isDeleting && { deletionTimestamp: 't' }),
    ...(guard !== undefined && { finalizers: [guard] }),
  },
  spec: {},
})

test('a claim is protected from the start, and a deleted one until no pod uses it (PCP-1, PCP-2)', () => {
  const guard = finalizers.claimProtection
  const kinds = [object(false), object(false, guard), object(true), object(true, guard)].map(
    (each) => planClaimProtection(each).kind,
  )
  assert.deepEqual(kinds, ['add', 'leave', 'leave', 'removeIfUnused'])
})

test('a volume is protected while it is bound (PVP-1, PVP-2, PVP-3)', () => {
  const guard = finalizers.volumeProtection
  const plans = (['Bound', 'Released'] as const).map((phase) =>
    planVolumeProtection({ ...object(true, guard), status: { phase } }),
  )
  assert.deepEqual(plans, [{ kind: 'keep', reason: 'protectedByClaim' }, { kind: 'remove' }])
  assert.deepEqual(planVolumeProtection(object(false)), { kind: 'add' })
})

test('an attributes class is protected while something names it (VCP-1)', () => {
  const guard = finalizers.attributesClassProtection
  const plans = [true, false].map((isUsed) => planClassProtection(object(true, guard), isUsed))
  assert.deepEqual(plans, [{ kind: 'keep', reason: 'protectedByReferences' }, { kind: 'remove' }])
})
