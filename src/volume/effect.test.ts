// Every effect becomes its outcome, and neither wrapping nor bugs can make doubt look like certainty (ERR-1 … ERR-4).
import assert from 'node:assert/strict'
import test from 'node:test'
import { asVolumeError, hasTag, outcomeOf, VolumeError } from './effect.ts'
import type { Effect } from './effect.ts'

const table: readonly (readonly [Effect, 'failed' | 'deferred' | 'uncertain'])[] = [
  ['none', 'failed'],
  ['untried', 'deferred'],
  ['unknown', 'uncertain'],
]
for (const [effect, kind] of table) {
  test(`ERR-1, ERR-3: effect ${effect} is the outcome ${kind}`, async () => {
    const error = new VolumeError('X', 'boom', { effect })
    assert.deepEqual(await outcomeOf(() => Promise.reject(error)), { kind, error })
  })
}

test('a value is done', async () => {
  assert.deepEqual(await outcomeOf(async () => 7), { kind: 'done', value: 7 })
})

test('ERR-2 (improved), PLUG-23, WART-9: whatever we do not recognise is uncertain, also a synchronous bug', async () => {
  const outcome = await outcomeOf(() => {
    throw new TypeError('x is undefined')
  })
  assert.equal(outcome.kind, 'uncertain')
  assert.equal(asVolumeError('text').effect, 'unknown')
})

test('ERR-4, DES-14, PLUG-24: tags are found anywhere in the chain of causes', () => {
  const inner = new VolumeError('X', 'in use', { effect: 'none', tags: ['failedPrecondition'] })
  const outer = new VolumeError('Y', 'wrapped', { effect: 'none', cause: new Error('middle', { cause: inner }) })
  assert.equal(hasTag(outer, 'failedPrecondition'), true)
  assert.equal(hasTag(outer, 'infeasible'), false)
})

test('ERR-6: a dangling attachment names the other node', () => {
  const error = new VolumeError('Dangling', 'on b', { effect: 'none', attachedTo: { node: 'b', devicePath: '/dev/x' } })
  assert.deepEqual(error.attachedTo, { node: 'b', devicePath: '/dev/x' })
})

test('what answers later is waited for, whoever made it; what answers at once is an outcome at once', async () => {
  const inner = Promise.resolve(7)
  const later = { then: inner.then.bind(inner) } as Promise<number>
  assert.deepEqual(await outcomeOf(() => later), { kind: 'done', value: 7 })
  assert.deepEqual(
    outcomeOf(() => 7),
    { kind: 'done', value: 7 },
  )
})
