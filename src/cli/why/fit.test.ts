// Is it said rightly what keeps a claim from a volume? One row per reason.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/types.ts'
import { claim, facts, volume } from '../../../test/support/why-facts.ts'
import { denial, unfit, unfitWhenNamed, whoHas, whyNoneFits } from './fit.ts'

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

test('MAT-2: whose is it?', () => {
  assert.equal(whoHas(free(), wanted), undefined)
  assert.equal(whoHas(held({}), wanted), undefined)
  assert.equal(whoHas(held({ uid: 'uid-data' }), wanted), undefined)
  assert.equal(whoHas(held({ name: 'other' }), wanted), 'belongs to claim default/other')
  assert.equal(whoHas(held({ name: 'other' }, 'Released'), wanted), 'is kept for the former claim default/other')
  assert.equal(whoHas(held({ uid: 'before' }), wanted), 'is kept for a former claim of the same name')
})

test('MAT-4, MAT-13: what does not suit?', () => {
  const rows: readonly (readonly [string | undefined, PersistentVolume, PersistentVolumeClaim])[] = [
    [undefined, free(), wanted],
    ['is being deleted', { ...free(), metadata: { name: 'pv', deletionTimestamp: 'now' } }, wanted],
    ['has 1023Mi, the claim wants 1Gi', free({ capacity: { storage: '1023Mi' } }), wanted],
    ['has 0, the claim wants 1Gi', free({ capacity: {} }), wanted],
    ['is for Block, the claim wants Filesystem', free({ volumeMode: 'Block' }), wanted],
    [
      'offers ReadWriteOnce, the claim wants ReadWriteOnce, ReadWriteMany',
      free(),
      asking({ accessModes: ['ReadWriteOnce', 'ReadWriteMany'] }),
    ],
    ['has attributes class "", the claim wants "gold"', free(), asking({ volumeAttributesClassName: 'gold' })],
  ]
  for (const [reason, one, other] of rows) assert.equal(unfit(one, other), reason)
  assert.equal(unfit(free({ storageClassName: 'slow' }), wanted), undefined)
  assert.equal(unfitWhenNamed(free({ storageClassName: 'slow' }), wanted), 'has class "slow", the claim wants ""')
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
    'b has 1Mi, the claim wants 1Gi; a belongs to claim default/other',
  )
  assert.equal(
    none(['a', 'b', 'c', 'd', 'e'].map((name) => named(name, small)))
      .split('; ')
      .at(-1),
    'and 2 more do not fit',
  )
  assert.equal(
    none([free()], asking({ selector: { matchLabels: { disk: 'gold' } } })),
    'pv does not have the labels that the selector of the claim wants',
  )
})

test('CLM-16 … CLM-19: how a volume denies a claim that was bound to it', () => {
  assert.equal(denial(free(), wanted), 'names no claim')
  assert.equal(denial(held({}), wanted), 'names the claim without its uid')
  assert.equal(denial(held({ uid: 'before' }), wanted), 'is kept for a former claim of the same name')
})
