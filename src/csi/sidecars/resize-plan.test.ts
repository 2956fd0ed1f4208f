// To which size next? The table of docs/rules/claims.md 13.4, row by row.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolumeClaim } from '../../api/generated/types.ts'
import { planResize, failedFinally, finished, handedOver, resizeTarget, started } from './resize-plan.ts'
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

test('the words each stage leaves in the status (XRS-3, XRS-5, XRS-7)', () => {
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
  assert.deepEqual(done.status?.allocatedResources, { storage: '2Gi' }, 'never removed (EXP-6)')
  const failed = failedFinally(begun, 'no room', true, 'now')
  assert.deepEqual(failed.status?.allocatedResourceStatuses, { storage: 'ControllerResizeInfeasible' })
  assert.equal(failed.status?.conditions?.at(-1)?.message, 'failed to expand pvc with no room')
})

const pair = (request: string, shown: string, size: string) => ({
  claim: {
    metadata: { name: 'c', namespace: 'ns', uid: 'u' },
    spec: { resources: { requests: { storage: request } } },
    status: { phase: 'Bound' as const, capacity: { storage: shown } },
  },
  volume: {
    metadata: { name: 'v' },
    spec: { capacity: { storage: size }, csi: { driver: 'd', volumeHandle: 'h' }, claimRef: { uid: 'u' } },
  },
})
const noted = { 'volume.alpha.kubernetes.io/pre-resize-capacity': '1Gi' }
const grows = pair('2Gi', '1Gi', '1Gi')
const resizes: readonly [string, Partial<Parameters<typeof planResize>[0]>, string][] = [
  ['a larger request grows the volume (XRS-2)', {}, 'expand'],
  ['an equal one does not', pair('1Gi', '1Gi', '1Gi'), 'nothing'],
  ['another driver’s volume is left alone', { driver: 'x' }, '-'],
  [
    'so is a volume of another claim',
    { volume: { ...grows.volume, spec: { ...grows.volume.spec, claimRef: { uid: 'o' } } } },
    '-',
  ],
  [
    'an infeasible size waits (XRS-6)',
    { memory: { final: true, inUse: false, slow: { size: 2n ** 31n, until: 10 } } },
    'wait',
  ],
  ['another size does not', { memory: { final: true, inUse: false, slow: { size: 1n, until: 10 } } }, 'expand'],
  ['a volume in use waits for its pods', { memory: { final: true, inUse: true }, isUsed: true }, 'waitForPods'],
  ['not when they have ended', { memory: { final: true, inUse: true } }, 'expand'],
  [
    'the note of the old size goes when the node has caught up',
    {
      ...pair('2Gi', '2Gi', '2Gi'),
      volume: { ...pair('2Gi', '2Gi', '2Gi').volume, metadata: { name: 'v', annotations: noted } },
    },
    'forget, nothing',
  ],
]
for (const [name, rest, expected] of resizes) {
  test(name, () => {
    const facts = { ...grows, driver: 'd', trivial: false, memory: undefined, isUsed: false, now: 5 }
    const plan = planResize({ ...facts, ...rest })
    assert.equal(plan ? `${plan.forgetOldSize ? 'forget, ' : ''}${plan.action.kind}` : '-', expected)
  })
}
