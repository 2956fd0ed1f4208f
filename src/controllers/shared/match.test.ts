// Which volume suits which claim? Section 4 of the claims specification as a table, plus determinism as a property.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts'
import { claim, node, volume } from '../../../test/kit/objects.ts'
import { findVolume, unfitReason } from './match.ts'
import type { MatchRequest } from './match.ts'
import { createVolumeIndex } from './volume-index.ts'

function found(volumes: readonly PersistentVolume[], wanted: PersistentVolumeClaim, rest: Partial<MatchRequest> = {}) {
  const index = createVolumeIndex()
  for (const each of volumes) index.put(each)
  const match = findVolume(index, { claim: wanted, delayed: false, ...rest })
  return match.kind === 'none' ? 'none' : `${match.kind} ${match.volume.metadata.name}`
}

const onNode1 = {
  required: {
    nodeSelectorTerms: [
      { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In' as const, values: ['n1'] }] },
    ],
  },
}
const red = { matchLabels: { colour: 'red' } }
const beta = { 'volume.beta.kubernetes.io/storage-class': '' }
const rwo = ['ReadWriteOnce'] as const
const both = ['ReadWriteOnce', 'ReadOnlyMany'] as const

const table: readonly [string, readonly PersistentVolume[], PersistentVolumeClaim, string, Partial<MatchRequest>?][] = [
  [
    'the smallest that fits (MAT-8, TC-3)',
    [volume({ name: 'big', size: '10Gi' }), volume({ name: 'small' })],
    claim(),
    'free small',
  ],
  ['equal sizes by name (MAT-8, WC-13)', [volume({ name: 'b' }), volume({ name: 'a' })], claim(), 'free a'],
  ['too small (MAT-4, TC-2)', [volume()], claim({ request: '10Gi' }), 'none'],
  ['exactly large enough in other units (MAT-4)', [volume({ size: '1024Mi' })], claim(), 'free v'],
  ['exabytes (MAT-4, TC-51)', [volume({ size: '800E' })], claim({ request: '799E' }), 'free v'],
  [
    'another class, although smaller (MAT-1, TC-21)',
    [volume({ name: 'x', className: 'gold' }), volume({ name: 'y', size: '5Gi', className: 'silver' })],
    claim({ className: 'silver' }),
    'free y',
  ],
  [
    'nil and "" are classless (MAT-1, TC-21)',
    [volume({ name: 'x', className: 'gold' }), volume({ name: 'y', size: '2Gi' })],
    claim({ className: null }),
    'free y',
  ],
  [
    'the beta annotation counts even when empty (MAT-1)',
    [volume({ className: 'gold' })],
    claim({ className: 'gold', annotations: beta }),
    'none',
  ],
  [
    'fewest modes first (MAT-3, TC-52)',
    [volume({ name: 'many', modes: both }), volume({ name: 'exact', size: '5Gi' })],
    claim(),
    'free exact',
  ],
  [
    'a larger set will do (MAT-3, TC-52)',
    [volume({ name: 'many', modes: ['ReadOnlyMany', 'ReadWriteOnce'] })],
    claim({ modes: both }),
    'free many',
  ],
  ['a mode is missing (MAT-3)', [volume()], claim({ modes: both }), 'none'],
  ['RWO does not satisfy RWOP (MAT-3, RWP-1)', [volume()], claim({ modes: ['ReadWriteOncePod'] }), 'none'],
  ['nor the reverse (MAT-3, RWP-1)', [volume({ modes: ['ReadWriteOncePod'] })], claim(), 'none'],
  ['another volume mode (MAT-4, TC-22)', [volume({ spec: { volumeMode: 'Block' } })], claim(), 'none'],
  [
    'block to block (MAT-4, TC-22)',
    [volume({ spec: { volumeMode: 'Block' } })],
    claim({ spec: { volumeMode: 'Block' } }),
    'free v',
  ],
  [
    'another attributes class (MAT-4, MAT-10, TC-51)',
    [volume({ spec: { volumeAttributesClassName: 'fast' } })],
    claim(),
    'none',
  ],
  [
    'the same attributes class (MAT-4, TC-51)',
    [volume({ spec: { volumeAttributesClassName: 'fast' } })],
    claim({ spec: { volumeAttributesClassName: 'fast' } }),
    'free v',
  ],
  ['a terminating volume (MAT-4, I-7)', [volume({ deleting: true })], claim(), 'none'],
  ['Pending (MAT-7, TC-11)', [volume({ phase: 'Pending' })], claim(), 'none'],
  ['Released (MAT-7, TC-11)', [volume({ phase: 'Released' })], claim(), 'none'],
  ['Failed (MAT-7, TC-11)', [volume({ phase: 'Failed' })], claim(), 'none'],
  [
    'labels match (MAT-7, TC-7)',
    [volume({ name: 'x' }), volume({ name: 'y', size: '9Gi', labels: { colour: 'red' } })],
    claim({ spec: { selector: red } }),
    'free y',
  ],
  ['labels do not match (MAT-7, TC-7)', [volume()], claim({ spec: { selector: red } }), 'none'],
  [
    'reserved by name beats the exact fit (MAT-2, MAT-5, TC-4, TC-53)',
    [volume({ name: 'exact' }), volume({ name: 'mine', size: '8Gi', claimRef: { name: 'c' } })],
    claim(),
    'reserved mine',
  ],
  [
    'reserved by uid (MAT-5, TC-4)',
    [volume({ name: 'mine', claimRef: { name: 'c', uid: 'uid-c' } })],
    claim(),
    'reserved mine',
  ],
  [
    'the same name with another uid (MAT-2, TC-5)',
    [volume({ claimRef: { name: 'c', uid: 'other' } })],
    claim(),
    'none',
  ],
  ['reserved for somebody else (MAT-4, I-7)', [volume({ claimRef: { name: 'd' } })], claim(), 'none'],
  [
    'reserved, other class, labels and phase (MAT-5, MAT-12)',
    [volume({ className: 'gold', phase: 'Released', claimRef: { name: 'c' } })],
    claim({ spec: { selector: red } }),
    'reserved v',
  ],
  [
    'reserved but too small: another one (MAT-12, TC-53)',
    [volume({ name: 'mine', claimRef: { name: 'c' } }), volume({ name: 'free', size: '3Gi' })],
    claim({ request: '2Gi' }),
    'free free',
  ],
  [
    'reserved but lacking a mode (MAT-12, TC-53)',
    [volume({ claimRef: { name: 'c' } })],
    claim({ modes: both }),
    'none',
  ],
  ['reserved but terminating (MAT-12)', [volume({ deleting: true, claimRef: { name: 'c' } })], claim(), 'none'],
  [
    'reserved with more modes beats free with fewer (WC-12)',
    [volume({ name: 'free', modes: rwo }), volume({ name: 'mine', modes: both, claimRef: { name: 'c' } })],
    claim(),
    'reserved mine',
  ],
  [
    'the volume that an interrupted bind wrote goes first (BND-4)',
    [volume({ name: 'a', claimRef: { name: 'c' } }), volume({ name: 'b', claimRef: { name: 'c', uid: 'uid-c' } })],
    claim(),
    'reserved b',
  ],
  ['delayed, free volumes do not count (MAT-6, TC-8)', [volume()], claim(), 'none', { delayed: true }],
  [
    'delayed, a reserved one does (MAT-6, TC-8)',
    [volume({ claimRef: { name: 'c' } })],
    claim(),
    'reserved v',
    { delayed: true },
  ],
  [
    'with a node, its affinity counts (MAT-7, TC-54)',
    [volume({ name: 'a', spec: { nodeAffinity: onNode1 } })],
    claim(),
    'free a',
    { delayed: true, node: node('n1') },
  ],
  [
    'not reachable from the node (MAT-9, TC-54)',
    [volume({ name: 'a', spec: { nodeAffinity: onNode1 } })],
    claim(),
    'none',
    { delayed: true, node: node('n2') },
  ],
  [
    'an empty term matches nothing (MAT-9)',
    [volume({ spec: { nodeAffinity: { required: { nodeSelectorTerms: [{}] } } } })],
    claim(),
    'none',
    { delayed: true, node: node('n1') },
  ],
  [
    'reserved out of reach ends the search (MAT-5, TC-54, WC-16)',
    [volume({ name: 'a', claimRef: { name: 'c' }, spec: { nodeAffinity: onNode1 } }), volume({ name: 'b' })],
    claim(),
    'wrongNode a',
    { delayed: true, node: node('n2') },
  ],
  [
    'excluded, so the next (MAT-4, TC-54)',
    [volume({ name: 'a' }), volume({ name: 'b' })],
    claim(),
    'free b',
    { excluded: (name) => name === 'a' },
  ],
]

for (const [name, volumes, wanted, expected, rest] of table) {
  test(name, () => assert.equal(found(volumes, wanted, rest), expected))
}

test('an invalid selector is an error (MAT-11)', () => {
  const broken = { matchExpressions: [{ key: 'a', operator: 'Never' as 'In', values: [] }] }
  assert.throws(() => found([volume()], claim({ spec: { selector: broken } })))
})

test('the first reason why a named volume does not suit, in the given order (MAT-13)', () => {
  const wanted = claim({
    request: '2Gi',
    className: 'gold',
    modes: both,
    spec: { volumeMode: 'Block', volumeAttributesClassName: 'fast' },
  })
  const steps: readonly [Parameters<typeof volume>[0], string | undefined][] = [
    [{ deleting: true }, 'the volume is marked for deletion "v"'],
    [{}, 'requested PV is too small'],
    [{ size: '2Gi' }, 'storageClassName does not match'],
    [{ size: '2Gi', className: 'gold' }, 'volumeAttributesClassName does not match'],
    [{ size: '2Gi', className: 'gold', spec: { volumeAttributesClassName: 'fast' } }, 'incompatible volumeMode'],
    [
      { size: '2Gi', className: 'gold', spec: { volumeAttributesClassName: 'fast', volumeMode: 'Block' } },
      'incompatible accessMode',
    ],
    [
      {
        size: '2Gi',
        className: 'gold',
        modes: both,
        phase: 'Failed',
        spec: { volumeAttributesClassName: 'fast', volumeMode: 'Block' },
      },
      undefined,
    ],
  ]
  for (const [wishes, reason] of steps) assert.equal(unfitReason(volume(wishes), wanted), reason)
})

test('the choice does not depend on the order in which volumes were heard of (I-10, MAT-8)', () => {
  const wishes = fc.record({
    size: fc.constantFrom('1Gi', '2Gi', '3Gi'),
    modes: fc.constantFrom(rwo, both, ['ReadWriteMany'] as const),
    className: fc.constantFrom('', 'gold'),
    phase: fc.constantFrom('Available' as const, 'Released' as const),
    reserved: fc.constantFrom(undefined, 'c', 'd'),
  })
  fc.assert(
    fc.property(
      fc.array(wishes, { maxLength: 12 }),
      fc.constantFrom(rwo, both),
      fc.infiniteStream(fc.nat()),
      (list, modes, order) => {
        const volumes = list.map(({ reserved, ...rest }, at) =>
          volume({ name: `v${at}`, ...rest, ...(reserved === undefined ? {} : { claimRef: { name: reserved } }) }),
        )
        const keys = new Map(volumes.map((each) => [each, order.next().value]))
        const shuffled = [...volumes].sort((left, right) => keys.get(left)! - keys.get(right)!)
        assert.equal(found(shuffled, claim({ modes })), found(volumes, claim({ modes })))
      },
    ),
    { numRuns: 200 },
  )
})

test('an index that volumes entered and left answers like a new one (WC-4)', () => {
  const wish = fc.record({
    name: fc.constantFrom('a', 'b', 'c', 'd'),
    size: fc.constantFrom('1Gi', '2Gi'),
    free: fc.boolean(),
    gone: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(wish, { maxLength: 30 }), (deeds) => {
      const index = createVolumeIndex()
      const truth = new Map<string, PersistentVolume>()
      for (const { name, size, free, gone } of deeds) {
        const each = volume({ name, size, phase: free ? 'Available' : 'Bound' })
        if (gone) index.remove(name)
        else index.put(each)
        if (gone) truth.delete(name)
        else truth.set(name, each)
      }
      const match = findVolume(index, { claim: claim(), delayed: false })
      assert.equal(
        match.kind === 'none' ? 'none' : `free ${match.volume.metadata.name}`,
        found([...truth.values()], claim()),
      )
      assert.equal(index.freeCount, [...truth.values()].filter((each) => each.status?.phase === 'Available').length)
    }),
  )
})
