// The rules of pending operations, one by one, and the algebra of their keys as a property.
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createPending } from './pending.ts'
import type { Pending, PendingKey } from './pending.ts'

function hang(pending: Pending, key: PendingKey, name = 'x') {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const started = pending.start(key, name, () => promise)
  return { started, resolve, reject }
}
const make = () => {
  const clock = createVirtualClock()
  return { clock, pending: createPending(clock) }
}
const failOnce = async (pending: Pending, key: PendingKey, name: string, error = new Error('boom')) => {
  const started = pending.start(key, name, () => Promise.reject(error))
  assert.equal(started.kind, 'started')
  if (started.kind === 'started') await started.finished
}

test('the table of conflicts (NPO-3, TA-3)', () => {
  const keys: Record<string, PendingKey> = { v: ['v'], vp: ['v', 'p'], vq: ['v', 'q'], w: ['w'], wp: ['w', 'p'] }
  const conflicts = Object.entries(keys).flatMap(([a, first]) =>
    Object.entries(keys).flatMap(([b, second]) => {
      const { pending } = make()
      hang(pending, first)
      return pending.refusal(second, 'y') ? [`${a}/${b}`] : []
    }),
  )
  assert.deepEqual(conflicts, [
    ...['v/v', 'v/vp', 'v/vq', 'vp/v', 'vp/vp', 'vq/v', 'vq/vq'],
    ...['w/w', 'w/wp', 'wp/w', 'wp/wp'],
  ])
})

test('start answers at once, the operation runs on (NPO-1, NPO-5)', async () => {
  const { pending } = make()
  const { started, resolve } = hang(pending, ['v'])
  assert.equal(started.kind, 'started')
  assert.equal(pending.size, 1)
  resolve()
  await pending.idle()
  assert.equal(pending.size, 0)
})

test('a running overlap refuses as busy and counts as pending (NPO-6a, NPO-9, TA-1, TA-2)', () => {
  const { pending, clock } = make()
  hang(pending, ['v', 'p'], 'volume_mount')
  assert.deepEqual(pending.refusal(['v'], 'unmount_device'), {
    kind: 'busy',
    operation: 'volume_mount',
    since: clock.now(),
  })
  assert.equal(pending.isPending(['v']), true)
  assert.equal(pending.isPending(['v', 'q']), false)
})

test('the same operation backs off and says until when and why (NPO-6b, BO-4)', async () => {
  const { clock, pending } = make()
  await failOnce(pending, ['v'], 'volume_attach')
  const until = clock.now() + 501
  const refusal = { kind: 'backingOff', until, failures: 1, error: 'boom' }
  assert.deepEqual(pending.refusal(['v'], 'volume_attach'), refusal)
  assert.deepEqual(
    pending.start(['v'], 'volume_attach', async () => {}),
    refusal,
  )
  await clock.advance(501)
  assert.equal(pending.refusal(['v'], 'volume_attach'), undefined)
})

test('another operation starts at once and with a slate of its own; neither wipes the other’s (NPO-6c, DES-3, TA-5)', async () => {
  const { clock, pending } = make()
  await failOnce(pending, ['v'], 'volume_attach')
  await clock.advance(501)
  await failOnce(pending, ['v'], 'volume_attach')
  await failOnce(pending, ['v'], 'volume_detach')
  const refusal = pending.refusal(['v'], 'volume_detach')
  assert.equal(refusal?.kind === 'backingOff' && refusal.failures, 1)
  const earlier = pending.refusal(['v'], 'volume_attach')
  assert.equal(earlier?.kind === 'backingOff' && earlier.failures, 2)
})

test('when back-off permits, the next failure doubles the wait (NPO-6d)', async () => {
  const { clock, pending } = make()
  for (const waitMs of [500, 1_000, 2_000]) {
    await failOnce(pending, ['v'], 'volume_mount')
    const refusal = pending.refusal(['v'], 'volume_mount')
    assert.equal(refusal?.kind === 'backingOff' && refusal.until - clock.now(), waitMs + 1)
    await clock.advance(waitMs + 1)
  }
})

test('parts that fail and a whole that succeeds leave nothing behind (NPO-4, NPO-6e, WA-6, #109047)', async () => {
  const { pending } = make()
  await failOnce(pending, ['v', 'p'], 'volume_unmount')
  await failOnce(pending, ['v', 'q'], 'volume_unmount')
  assert.ok(pending.refusal(['v', 'p'], 'volume_unmount'))
  const started = pending.start(['v'], 'volume_mount', async () => {})
  if (started.kind === 'started') await started.finished
  assert.equal(pending.refusal(['v', 'p'], 'volume_unmount'), undefined)
  assert.equal(pending.refusal(['v', 'q'], 'volume_unmount'), undefined)
})

test('success forgets the record; a failure keeps it without running (NPO-7, BO-6)', async () => {
  const { clock, pending } = make()
  await failOnce(pending, ['v'], 'x')
  await clock.advance(600)
  const started = pending.start(['v'], 'x', async () => {})
  if (started.kind === 'started') await started.finished
  await failOnce(pending, ['v'], 'x')
  const refusal = pending.refusal(['v'], 'x')
  assert.equal(refusal?.kind === 'backingOff' && refusal.failures, 1)
})

test('a part that fails backs off alone; once it succeeds it may start again at once (TA-6, #88355)', async () => {
  const { clock, pending } = make()
  const other = hang(pending, ['w'])
  const [one, two] = [hang(pending, ['v', 'n1']), hang(pending, ['v', 'n2'])]
  other.resolve()
  two.reject(new Error('boom'))
  one.resolve()
  await pending.idle()
  assert.equal(pending.refusal(['v', 'n1'], 'x'), undefined)
  assert.equal(pending.refusal(['v', 'n2'], 'x')?.kind, 'backingOff')
  await clock.advance(600)
  const started = pending.start(['v', 'n2'], 'x', async () => {})
  if (started.kind === 'started') await started.finished
  assert.equal(pending.refusal(['v', 'n2'], 'x'), undefined)
})

test('a running part makes the whole busy, although parts that back off were there first (TA-7)', async () => {
  const { pending } = make()
  await failOnce(pending, ['v', 'p1'], 'volume_unmount')
  await failOnce(pending, ['v', 'p2'], 'volume_unmount')
  hang(pending, ['v', 'p3'], 'volume_unmount')
  assert.equal(pending.refusal(['v'], 'volume_mount')?.kind, 'busy')
})

test('a part that succeeds forgets its own failures and no others (TA-8)', async () => {
  const { clock, pending } = make()
  for (const pod of ['p1', 'p2', 'p3']) await failOnce(pending, ['v', pod], 'volume_unmount')
  await failOnce(pending, ['v'], 'volume_mount')
  await clock.advance(600)
  const started = pending.start(['v', 'p2'], 'volume_unmount', async () => {})
  if (started.kind === 'started') await started.finished
  await failOnce(pending, ['v', 'p2'], 'volume_unmount')
  const again = pending.refusal(['v', 'p2'], 'volume_unmount')
  assert.equal(again?.kind === 'backingOff' && again.failures, 1)
  await failOnce(pending, ['v', 'p1'], 'volume_unmount')
  const twice = pending.refusal(['v', 'p1'], 'volume_unmount')
  assert.equal(twice?.kind === 'backingOff' && twice.failures, 2)
})

test('safe to retry is the absence of a refusal (NPO-10)', async () => {
  const { pending } = make()
  assert.equal(pending.refusal(['v'], 'x'), undefined)
  const { resolve } = hang(pending, ['v'])
  assert.ok(pending.refusal(['v'], 'x'))
  resolve()
  await pending.idle()
  assert.equal(pending.refusal(['v'], 'x'), undefined)
})

test('idle means nothing runs, even while a slot backs off (NPO-11, without its wart, TA-9)', async () => {
  const { pending } = make()
  await failOnce(pending, ['v'], 'x')
  await pending.idle()
})

test('a crash inside an operation releases its key and is a failure, never a success (NPO-12, TA-4)', async () => {
  const { pending } = make()
  const started = pending.start(['v'], 'x', () => {
    throw new TypeError('undefined is not a function')
  })
  assert.equal(started.kind, 'started')
  await pending.idle()
  assert.equal(pending.isPending(['v']), false)
  assert.equal(pending.refusal(['v'], 'x')?.kind, 'backingOff')
})

test('mounts of a shared volume take turns and share a record; unmounts of its pods run side by side (NPO-13, TA-10, TA-11)', async () => {
  const { pending } = make()
  const first = hang(pending, ['v'], 'volume_mount')
  assert.equal(pending.refusal(['v'], 'volume_mount')?.kind, 'busy')
  first.reject(new Error('boom'))
  await pending.idle()
  assert.equal(pending.refusal(['v'], 'volume_mount')?.kind, 'backingOff')
  assert.equal(hang(pending, ['v', 'p'], 'volume_unmount').started.kind, 'started')
  assert.equal(hang(pending, ['v', 'q'], 'volume_unmount').started.kind, 'started')
})

test('attach and detach of a single-attach volume exclude each other, per node otherwise (NPO-13, TA-12)', () => {
  const { pending } = make()
  hang(pending, ['rwo'], 'volume_attach')
  assert.equal(pending.refusal(['rwo'], 'volume_detach')?.kind, 'busy')
  hang(pending, ['rwx', 'node-a'], 'volume_attach')
  assert.equal(pending.refusal(['rwx', 'node-b'], 'volume_detach'), undefined)
})

test('a released key is announced with the time of its next try', async () => {
  const { clock, pending } = make()
  const heard: unknown[] = []
  pending.onRelease((key, retryAt) => heard.push([key, retryAt && retryAt - clock.now()]))
  await failOnce(pending, ['v', 'p'], 'x')
  const started = pending.start(['w'], 'x', async () => {})
  if (started.kind === 'started') await started.finished
  assert.deepEqual(heard, [
    [['v', 'p'], 501],
    [['w'], undefined],
  ])
})

test('property: whatever is started, no two running keys overlap, and all keys come free', async () => {
  const key = fc.tuple(fc.constantFrom('a', 'b'), fc.option(fc.constantFrom('p', 'q'), { nil: undefined }))
  const action = fc.record({
    key,
    name: fc.constantFrom('x', 'y'),
    fail: fc.boolean(),
    finish: fc.nat(3),
    pass: fc.nat(700),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
      const { clock, pending } = make()
      const running: { key: PendingKey; end: () => void }[] = []
      for (const {
        key: [whole, part],
        name,
        fail,
        finish,
        pass,
      } of actions) {
        const next: PendingKey = part === undefined ? [whole] : [whole, part]
        const overlaps = running.some((other) => overlap(other.key, next))
        const work = Promise.withResolvers<void>()
        const answer = pending.start(next, name, () => work.promise)
        assert.equal(answer.kind === 'busy', overlaps)
        if (answer.kind === 'started') {
          running.push({ key: next, end: () => (fail ? work.reject(new Error('x')) : work.resolve()) })
        }
        for (const done of running.splice(0, finish)) done.end()
        await clock.advance(pass)
      }
      for (const done of running) done.end()
      await pending.idle()
      assert.equal(pending.size, 0)
    }),
  )
})

function overlap(a: PendingKey, b: PendingKey): boolean {
  return a[0] === b[0] && (a[1] === undefined || b[1] === undefined || a[1] === b[1])
}
