// Table 13.4: to what size does a volume grow, depending on how far the last attempt got?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claim, volume } from '../../../test/kit/objects.ts'
import { planExpansion } from './plan.ts'
import type { ResizeStatus } from './plan.ts'

/** Request 4Gi, allocated 6Gi (an earlier, larger wish that the user took back), status capacity 1Gi. */
function planned(size: string, status?: ResizeStatus, allocated: string | undefined = '6Gi'): string {
  const wanted = {
    ...claim({ request: '4Gi', volumeName: 'v' }),
    status: {
      phase: 'Bound' as const,
      capacity: { storage: '1Gi' },
      ...(allocated === undefined ? {} : { allocatedResources: { storage: allocated } }),
      ...(status === undefined ? {} : { allocatedResourceStatuses: { storage: status } }),
    },
  }
  const grown = volume({ size, claimRef: { name: 'c', uid: 'uid-c' } })
  const plan = planExpansion({ claim: wanted, volume: grown, migrated: undefined, expandable: true })
  return plan.kind === 'expand' ? plan.size : plan.kind
}

const rows: readonly [ResizeStatus | undefined, smaller: string, notSmaller: string][] = [
  [undefined, '4Gi', '6Gi'],
  ['ControllerResizeInfeasible', '4Gi', '6Gi'],
  ['ControllerResizeInProgress', '6Gi', '6Gi'],
  ['NodeResizePending', '6Gi', 'leave'],
  ['NodeResizeInProgress', '6Gi', 'leave'],
  ['NodeResizeInfeasible', '6Gi', 'rearmNode'],
]
for (const [status, smaller, notSmaller] of rows) {
  test(`13.4: status ${status ?? 'none'} (EXP-5, EXP-7, EXC-2)`, () => {
    assert.deepEqual([planned('2Gi', status), planned('5Gi', status)], [smaller, notSmaller])
  })
}

test('no earlier attempt at all: the request (EXP-5)', () => {
  assert.equal(planned('5Gi', undefined, '4Gi'), '4Gi')
})

test('a volume of another claim is an error (EXP-2)', () => {
  const wanted = claim({ phase: 'Bound', volumeName: 'v' })
  const plan = planExpansion({
    claim: wanted,
    volume: volume({ claimRef: { name: 'c', uid: 'x' } }),
    migrated: undefined,
    expandable: true,
  })
  assert.equal(plan.kind, 'fail')
})
