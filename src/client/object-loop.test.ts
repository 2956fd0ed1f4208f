// Equal keys are one key, whatever object carries them, and keys that are done with are forgotten.
import assert from 'node:assert/strict'
import test from 'node:test'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createObjectLoop, keyText, objectKey } from './object-loop.ts'
import type { ObjectKey } from './object-loop.ts'

test('two values of the same kind, namespace and name are one key', async () => {
  const clock = createVirtualClock()
  const seen: ObjectKey[] = []
  await using loop = createObjectLoop<ObjectKey>({
    name: 't',
    clock,
    workers: 1,
    look: async (key) => void seen.push(key),
  })
  loop.wake({ kind: 'Pod', namespace: 'ns', name: 'p' })
  loop.wake(objectKey('Pod', { metadata: { namespace: 'ns', name: 'p', uid: 'u' } }))
  loop.wake({ kind: 'Node', name: 'p' })
  await clock.settle()
  assert.deepEqual(seen, [
    { kind: 'Pod', namespace: 'ns', name: 'p' },
    { kind: 'Node', name: 'p' },
  ])
})

test('a key with a uid is another key than one of the same name with another uid', () => {
  assert.notEqual(keyText({ kind: 'Pod', name: 'p', uid: '1' }), keyText({ kind: 'Pod', name: 'p', uid: '2' }))
  assert.equal(keyText({ kind: 'Pod', namespace: 'ns', name: 'p' }), 'Pod/ns/p')
})

test('a failing key is known as failing and comes back as the same value', async () => {
  const clock = createVirtualClock()
  const key: ObjectKey = { kind: 'PersistentVolume', name: 'v' }
  const errors: ObjectKey[] = []
  let tries = 0
  await using loop = createObjectLoop<ObjectKey>({
    name: 't',
    clock,
    workers: 1,
    async look() {
      if (++tries < 2) throw new Error('no')
    },
    onError: (each) => void errors.push(each),
  })
  loop.wake(key)
  await clock.settle()
  assert.equal(loop.isFailing({ kind: 'PersistentVolume', name: 'v' }), true)
  await clock.advance(1_000)
  assert.deepEqual([loop.isFailing(key), errors, tries], [false, [key], 2])
})

test('many keys that come and go do not lose one that waits for its time', async () => {
  const clock = createVirtualClock()
  const seen: string[] = []
  await using loop = createObjectLoop<ObjectKey>({
    name: 't',
    clock,
    workers: 1,
    look: async ({ name }) => void seen.push(name),
  })
  loop.wakeAt({ kind: 'Pod', name: 'late' }, clock.now() + 1_000)
  for (let each = 0; each < 5_000; each++) {
    loop.wake({ kind: 'Pod', name: `p${each}` })
    await clock.settle()
  }
  await clock.advance(1_000)
  assert.deepEqual([seen.length, seen.at(-1)], [5_001, 'late'])
})
