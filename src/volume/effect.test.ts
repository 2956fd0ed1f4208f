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
  test(`effect ${effect} is the outcome ${kind} (ERR-1, ERR-3, PLUG-20, PLUG-21, PLUG-22)`, async () => {
    const error = new VolumeError('DriverFailed', 'boom', { effect })
    assert.deepEqual(await outcomeOf(() => Promise.reject(error)), { kind, error })
  })
}

test('a value is done', async () => {
  assert.deepEqual(await outcomeOf(async () => 7), { kind: 'done', value: 7 })
})

test('whatever we do not recognise is uncertain, also a synchronous bug (ERR-2, improved; PLUG-23, WART-9)', async () => {
  const outcome = await outcomeOf(() => {
    throw new TypeError('x is undefined')
  })
  assert.equal(outcome.kind, 'uncertain')
  assert.equal(asVolumeError('text').effect, 'unknown')
})

test('tags are found anywhere in the chain of causes (ERR-4, DES-14, PLUG-24)', () => {
  const inner = new VolumeError('DriverFailed', 'in use', { effect: 'none', tags: ['failedPrecondition'] })
  const outer = new VolumeError('MountOptions', 'wrapped', {
    effect: 'none',
    cause: new Error('middle', { cause: inner }),
  })
  assert.equal(hasTag(outer, 'failedPrecondition'), true)
  assert.equal(hasTag(outer, 'infeasible'), false)
})

test('a dangling attachment names the other node (ERR-6)', () => {
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
