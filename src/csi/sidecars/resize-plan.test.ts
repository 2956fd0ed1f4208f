// To which size next? The table of spec/claims 13.4, row by row.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolumeClaim } from '../../api/types.ts'
import { failedFinally, finished, handedOver, resizeTarget, started } from './resize-plan.ts'
import type { ResizeFacts } from './resize-plan.ts'

const base: ResizeFacts = {
  volumeBytes: 1n,
  requestedBytes: 5n,
  allocatedBytes: 3n,
  status: '',
  lastWasFinal: false,
  fileSystemResizePending: false,
  trivial: false,
}

test('13.4: the target size', () => {
  const table: readonly [Partial<ResizeFacts>, bigint | undefined][] = [
    [{}, 5n],
    [{ status: 'ControllerResizeInfeasible' }, 5n],
    [{ status: 'ControllerResizeInProgress' }, 3n],
    [{ status: 'ControllerResizeInProgress', lastWasFinal: true }, 5n],
    [{ status: 'NodeResizePending' }, 3n],
    [{ status: 'NodeResizePending', volumeBytes: 3n }, undefined],
    [{ status: 'NodeResizeInfeasible' }, 3n],
    [{ volumeBytes: 5n, status: 'NodeResizePending' }, undefined],
    [{ volumeBytes: 5n, status: 'NodeResizeInProgress' }, undefined],
    [{ volumeBytes: 5n, status: 'NodeResizeInfeasible' }, 3n],
    [{ volumeBytes: 5n, status: 'NodeResizeInfeasible', trivial: true }, 5n],
    [{ volumeBytes: 5n, status: 'ControllerResizeInProgress' }, 3n],
    [{ volumeBytes: 5n, status: 'ControllerResizeInfeasible' }, 3n],
    [{ volumeBytes: 5n }, 3n],
    [{ volumeBytes: 5n, allocatedBytes: undefined }, 5n],
    [{ volumeBytes: 5n, allocatedBytes: undefined, fileSystemResizePending: true }, undefined],
  ]
  for (const [facts, expected] of table)
    assert.equal(
      resizeTarget({ ...base, ...facts }),
      expected,
      JSON.stringify(facts, (_k, v: unknown) => String(v)),
    )
})

const claim: PersistentVolumeClaim = {
  metadata: { name: 'c' },
  spec: {},
  status: { phase: 'Bound', capacity: { storage: '1Gi' }, conditions: [{ type: 'Other', status: 'True' }] },
}

test('XRS-3, XRS-5, XRS-7: the words each stage leaves in the status', () => {
  const begun = started(claim, 2n << 30n, 'now')
  assert.deepEqual(begun.status?.allocatedResources, { storage: '2Gi' })
  assert.deepEqual(begun.status?.allocatedResourceStatuses, { storage: 'ControllerResizeInProgress' })
  assert.deepEqual(
    begun.status?.conditions?.map(({ type }) => type),
    ['Other', 'Resizing'],
  )
  assert.equal(started(begun, 2n << 30n, 'later'), begun, 'the same target keeps its words')
  const handed = handedOver(begun, 'now')
  assert.deepEqual(handed.status?.allocatedResourceStatuses, { storage: 'NodeResizePending' })
  assert.deepEqual(
    handed.status?.conditions?.map(({ type }) => type),
    ['Other', 'FileSystemResizePending'],
  )
  const done = finished(begun, 2n << 30n)
  assert.deepEqual(done.status?.capacity, { storage: '2Gi' })
  assert.equal(done.status?.allocatedResourceStatuses, undefined)
  assert.deepEqual(done.status?.allocatedResources, { storage: '2Gi' }, 'EXP-6: never removed')
  const failed = failedFinally(begun, 'no room', true, 'now')
  assert.deepEqual(failed.status?.allocatedResourceStatuses, { storage: 'ControllerResizeInfeasible' })
  assert.equal(failed.status?.conditions?.at(-1)?.message, 'failed to expand pvc with no room')
})
