// Which volume suits which claim? Section 4 of the claims specification as a table, plus determinism as a property.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/types.ts'
import { claim, node, volume } from '../../../test/claims/make.ts'
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
    'MAT-8 T-3: the smallest that fits',
    [volume({ name: 'big', size: '10Gi' }), volume({ name: 'small' })],
    claim(),
    'free small',
  ],
  ['MAT-8 W-13: equal sizes by name', [volume({ name: 'b' }), volume({ name: 'a' })], claim(), 'free a'],
  ['MAT-4 T-2: too small', [volume()], claim({ request: '10Gi' }), 'none'],
  ['MAT-4: exactly large enough in other units', [volume({ size: '1024Mi' })], claim(), 'free v'],
  ['MAT-4 T-51: exabytes', [volume({ size: '800E' })], claim({ request: '799E' }), 'free v'],
  [
    'MAT-1 T-21: another class, although smaller',
    [volume({ name: 'x', className: 'gold' }), volume({ name: 'y', size: '5Gi', className: 'silver' })],
    claim({ className: 'silver' }),
    'free y',
  ],
  [
    'MAT-1 T-21: nil and "" are classless',
    [volume({ name: 'x', className: 'gold' }), volume({ name: 'y', size: '2Gi' })],
    claim({ className: null }),
    'free y',
  ],
  [
    'MAT-1: the beta annotation counts even when empty',
    [volume({ className: 'gold' })],
    claim({ className: 'gold', annotations: beta }),
    'none',
  ],
  [
    'MAT-3 T-52: fewest modes first',
    [volume({ name: 'many', modes: both }), volume({ name: 'exact', size: '5Gi' })],
    claim(),
    'free exact',
  ],
  [
    'MAT-3 T-52: a larger set will do',
    [volume({ name: 'many', modes: ['ReadOnlyMany', 'ReadWriteOnce'] })],
    claim({ modes: both }),
    'free many',
  ],
  ['MAT-3: a mode is missing', [volume()], claim({ modes: both }), 'none'],
  ['MAT-3 RWP-1: RWO does not satisfy RWOP', [volume()], claim({ modes: ['ReadWriteOncePod'] }), 'none'],
  ['MAT-3 RWP-1: nor the reverse', [volume({ modes: ['ReadWriteOncePod'] })], claim(), 'none'],
  ['MAT-4 T-22: another volume mode', [volume({ spec: { volumeMode: 'Block' } })], claim(), 'none'],
  [
    'MAT-4 T-22: block to block',
    [volume({ spec: { volumeMode: 'Block' } })],
    claim({ spec: { volumeMode: 'Block' } }),
    'free v',
  ],
  [
    'MAT-4 MAT-10 T-51: another attributes class',
    [volume({ spec: { volumeAttributesClassName: 'fast' } })],
    claim(),
    'none',
  ],
  [
    'MAT-4 T-51: the same attributes class',
    [volume({ spec: { volumeAttributesClassName: 'fast' } })],
    claim({ spec: { volumeAttributesClassName: 'fast' } }),
    'free v',
  ],
  ['MAT-4 I-7: a terminating volume', [volume({ deleting: true })], claim(), 'none'],
  ['MAT-7 T-11: Pending', [volume({ phase: 'Pending' })], claim(), 'none'],
  ['MAT-7 T-11: Released', [volume({ phase: 'Released' })], claim(), 'none'],
  ['MAT-7 T-11: Failed', [volume({ phase: 'Failed' })], claim(), 'none'],
  [
    'MAT-7 T-7: labels match',
    [volume({ name: 'x' }), volume({ name: 'y', size: '9Gi', labels: { colour: 'red' } })],
    claim({ spec: { selector: red } }),
    'free y',
  ],
  ['MAT-7 T-7: labels do not match', [volume()], claim({ spec: { selector: red } }), 'none'],
  [
    'MAT-2 MAT-5 T-4 T-53: reserved by name beats the exact fit',
    [volume({ name: 'exact' }), volume({ name: 'mine', size: '8Gi', claimRef: { name: 'c' } })],
    claim(),
    'reserved mine',
  ],
  [
    'MAT-5 T-4: reserved by uid',
    [volume({ name: 'mine', claimRef: { name: 'c', uid: 'uid-c' } })],
    claim(),
    'reserved mine',
  ],
  ['MAT-2 T-5: the same name with another uid', [volume({ claimRef: { name: 'c', uid: 'other' } })], claim(), 'none'],
  ['MAT-4 I-7: reserved for somebody else', [volume({ claimRef: { name: 'd' } })], claim(), 'none'],
  [
    'MAT-5 MAT-12: reserved, other class, labels and phase',
    [volume({ className: 'gold', phase: 'Released', claimRef: { name: 'c' } })],
    claim({ spec: { selector: red } }),
    'reserved v',
  ],
  [
    'MAT-12 T-53: reserved but too small: another one',
    [volume({ name: 'mine', claimRef: { name: 'c' } }), volume({ name: 'free', size: '3Gi' })],
    claim({ request: '2Gi' }),
    'free free',
  ],
  ['MAT-12 T-53: reserved but lacking a mode', [volume({ claimRef: { name: 'c' } })], claim({ modes: both }), 'none'],
  ['MAT-12: reserved but terminating', [volume({ deleting: true, claimRef: { name: 'c' } })], claim(), 'none'],
  [
    'W-12: reserved with more modes beats free with fewer',
    [volume({ name: 'free', modes: rwo }), volume({ name: 'mine', modes: both, claimRef: { name: 'c' } })],
    claim(),
    'reserved mine',
  ],
  [
    'BND-4: the volume that an interrupted bind wrote goes first',
    [volume({ name: 'a', claimRef: { name: 'c' } }), volume({ name: 'b', claimRef: { name: 'c', uid: 'uid-c' } })],
    claim(),
    'reserved b',
  ],
  ['MAT-6 T-8: delayed, free volumes do not count', [volume()], claim(), 'none', { delayed: true }],
  [
    'MAT-6 T-8: delayed, a reserved one does',
    [volume({ claimRef: { name: 'c' } })],
    claim(),
    'reserved v',
    { delayed: true },
  ],
  [
    'MAT-7 T-54: with a node, its affinity counts',
    [volume({ name: 'a', spec: { nodeAffinity: onNode1 } })],
    claim(),
    'free a',
    { delayed: true, node: node('n1') },
  ],
  [
    'MAT-9 T-54: not reachable from the node',
    [volume({ name: 'a', spec: { nodeAffinity: onNode1 } })],
    claim(),
    'none',
    { delayed: true, node: node('n2') },
  ],
  [
    'MAT-9: an empty term matches nothing',
    [volume({ spec: { nodeAffinity: { required: { nodeSelectorTerms: [{}] } } } })],
    claim(),
    'none',
    { delayed: true, node: node('n1') },
  ],
  [
    'MAT-5 T-54 W-16: reserved out of reach ends the search',
    [volume({ name: 'a', claimRef: { name: 'c' }, spec: { nodeAffinity: onNode1 } }), volume({ name: 'b' })],
    claim(),
    'wrongNode a',
    { delayed: true, node: node('n2') },
  ],
  [
    'MAT-4 T-54: excluded, so the next',
    [volume({ name: 'a' }), volume({ name: 'b' })],
    claim(),
    'free b',
    { excluded: (name) => name === 'a' },
  ],
]

for (const [name, volumes, wanted, expected, rest] of table) {
  test(name, () => assert.equal(found(volumes, wanted, rest), expected))
}

test('MAT-11: an invalid selector is an error', () => {
  const broken = { matchExpressions: [{ key: 'a', operator: 'Never' as 'In', values: [] }] }
  assert.throws(() => found([volume()], claim({ spec: { selector: broken } })))
})

test('MAT-13: the first reason why a named volume does not suit, in the given order', () => {
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

test('I-10 MAT-8: the choice does not depend on the order in which volumes were heard of', () => {
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

test('W-4: an index that volumes entered and left answers like a new one', () => {
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
