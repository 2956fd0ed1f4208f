// Is it said rightly what keeps a claim from a volume? One row per reason.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolume, PersistentVolumeClaim } from '../api/generated/types.ts'
import { claim, facts, volume } from '../../test/why/facts.ts'
import { annotations } from '../api/annotations.ts'
import { denial, unfit, unfitWhenNamed, whoHas, whyNoneFits } from './fit.ts'
import { volumeNames } from './volume-links.ts'

const wanted = claim({ phase: 'Pending', className: '' })
const asking = (spec: Partial<PersistentVolumeClaim['spec']>) => ({ ...wanted, spec: { ...wanted.spec, ...spec } })
const free = (spec: Partial<PersistentVolume['spec']> = {}): PersistentVolume => {
  const made = volume({ phase: 'Available', claimed: false })
  return { ...made, spec: { ...made.spec, capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], ...spec } }
}
const held = (claimRef: object, phase: 'Available' | 'Released' = 'Available'): PersistentVolume => ({
  ...free({ claimRef: { namespace: 'default', name: 'data', ...claimRef } }),
  status: { phase },
})

test('whose is it? (MAT-2)', () => {
  assert.equal(whoHas(free(), wanted), undefined)
  assert.equal(whoHas(held({}), wanted), undefined)
  assert.equal(whoHas(held({ uid: 'uid-data' }), wanted), undefined)
  assert.equal(whoHas(held({ name: 'other' }), wanted), 'is bound to claim default/other')
  assert.equal(whoHas(held({ name: 'other' }, 'Released'), wanted), 'is kept for the deleted claim default/other')
  assert.equal(whoHas(held({ uid: 'before' }), wanted), 'is kept for a deleted claim of the same name')
})

test('what does not suit? (MAT-4, MAT-13)', () => {
  const rows: readonly (readonly [string | undefined, PersistentVolume, PersistentVolumeClaim])[] = [
    [undefined, free(), wanted],
    ['is being deleted', { ...free(), metadata: { name: 'pv', deletionTimestamp: 'now' } }, wanted],
    ['has 1023Mi, the claim requests 1Gi', free({ capacity: { storage: '1023Mi' } }), wanted],
    ['has 0, the claim requests 1Gi', free({ capacity: {} }), wanted],
    ['has volume mode Block, the claim requests Filesystem', free({ volumeMode: 'Block' }), wanted],
    [
      'offers ReadWriteOnce, the claim requests ReadWriteOnce, ReadWriteMany',
      free(),
      asking({ accessModes: ['ReadWriteOnce', 'ReadWriteMany'] }),
    ],
    ['has attributes class "", the claim requests "gold"', free(), asking({ volumeAttributesClassName: 'gold' })],
  ]
  for (const [reason, one, other] of rows) assert.equal(unfit(one, other), reason)
  assert.equal(unfit(free({ storageClassName: 'slow' }), wanted), undefined)
  assert.equal(unfitWhenNamed(free({ storageClassName: 'slow' }), wanted), 'has class "slow", the claim requests ""')
})

test('why none fits: free ones first, three at most, and only those of the class', () => {
  const none = (volumes: readonly PersistentVolume[], asked = wanted) =>
    whyNoneFits(facts({ kind: 'Node', name: '' }, { volumes }), asked)
  const named = (name: string, made: PersistentVolume) => ({ ...made, metadata: { name } })
  assert.equal(none([free({ storageClassName: 'slow' })]), 'there is no volume without a class')
  assert.equal(none([free()], asking({ storageClassName: 'slow' })), 'there is no volume of class slow')
  const small = free({ capacity: { storage: '1Mi' } })
  assert.equal(
    none([named('a', held({ name: 'other' })), named('b', small)]),
    'b has 1Mi, the claim requests 1Gi; a is bound to claim default/other',
  )
  assert.equal(
    none(['a', 'b', 'c', 'd', 'e'].map((name) => named(name, small)))
      .split('; ')
      .at(-1),
    'and 2 more do not fit',
  )
  assert.equal(
    none([free()], asking({ selector: { matchLabels: { disk: 'gold' } } })),
    'pv does not have the labels of the claim’s selector',
  )
})

test('how a volume denies a claim that was bound to it (CLM-16 … CLM-19)', () => {
  assert.equal(denial(free(), wanted), 'has no claimRef')
  assert.equal(denial(held({}), wanted), 'has a claimRef without the uid of the claim')
  assert.equal(denial(held({ uid: 'before' }), wanted), 'is kept for a deleted claim of the same name')
})

test('a volume is named with the class that counts, also when only its beta annotation says so (MAT-1)', () => {
  const named = { ...free(), metadata: { name: 'pv', annotations: { [annotations.betaStorageClass]: 'old' } } }
  assert.equal(volumeNames(named, 'pv').class, 'old')
  assert.equal(volumeNames(free(), 'pv').class, undefined)
})
