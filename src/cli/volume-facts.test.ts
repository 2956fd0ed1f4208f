// Is a claim described by what counts for the controllers, too? Its class by annotation, its pods, a restored copy of it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations } from '../api/annotations.ts'
import { claim, pod } from '../../test/kit/objects.ts'
import { requestToRestore } from './commands/volume/snapshot.ts'
import { factsOf } from './volume-facts.ts'

const nothing = { volumes: [], pods: [], attachments: [], snapshots: [] }
const annotated = claim({ className: null, annotations: { [annotations.betaStorageClass]: 'old' } })

test('the class of a claim may be named by its beta annotation', () => {
  assert.equal(factsOf(annotated, nothing).class, 'old')
  assert.equal(factsOf(claim({ className: 'new' }), nothing).class, 'new')
})

test('a claim restored from a snapshot gets the class of the claim it was taken of', () => {
  const snapshot = {
    metadata: { name: 's', namespace: 'ns' },
    spec: { source: { persistentVolumeClaimName: 'c' } },
    status: { readyToUse: true, restoreSize: '2Gi' },
  }
  const restored = (source: typeof annotated | undefined, more = {}) =>
    requestToRestore(snapshot, source, { as: 'copy', ...more })
  assert.equal(restored(annotated).class, 'old')
  assert.equal(restored(annotated, { class: 'other' }).class, 'other')
  assert.equal(restored(claim({ className: '' })).class, '')
  assert.equal('class' in restored(claim({ className: null })), false)
  assert.equal('class' in restored(undefined), false)
})

test('pods that have ended do not use a claim', () => {
  const pods = [
    pod('runs', { claims: ['c'] }),
    pod('over', { claims: ['c'], status: { phase: 'Succeeded' } }),
    pod('other', { spec: { volumes: [{ name: 'c', ephemeral: {} }] } }),
  ]
  assert.deepEqual(factsOf(claim(), { ...nothing, pods }).usedBy, ['runs'])
  assert.deepEqual(factsOf(claim({ name: 'other-c' }), { ...nothing, pods }).usedBy, ['other'])
})
