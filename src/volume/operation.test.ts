// The runner: steps tell the world, failures tell the user, marks come before the key is free (OP-1, OP-2, OP-5, MSG-1, MSG-2).
import assert from 'node:assert/strict'
import test from 'node:test'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createPending } from '../loop/pending.ts'
import { createLog } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { VolumeError } from './effect.ts'
import type { Effect } from './effect.ts'
import { subjects } from './messages.ts'
import type { Operation, OperationProgress, Step } from './operation.ts'
import { createRunner } from './operation.ts'

interface Request {
  readonly volume: string
}

function bench(
  body: (step: Step<string>, emit: (event: string) => void) => Promise<void>,
  signal = new AbortController().signal,
) {
  const clock = createVirtualClock()
  const pending = createPending(clock)
  const metrics = createMetrics()
  const seen: string[] = []
  const lines: string[] = []
  const progress: OperationProgress[] = []
  const log = createLog((level, message, fields) =>
    lines.push(`${level} ${message} ${String(fields['error'] ?? '')}`.trim()),
  )
  const runner = createRunner({ clock, pending, log, metrics, observer: { onOperation: (p) => progress.push(p) } })
  const operation: Operation<Request, undefined, string> = {
    name: 'volume_mount',
    label: 'MountVolume',
    failureReason: 'FailedMount',
    key: ({ volume }) => [volume],
    subject: ({ volume }) => subjects.toMount('pv1', volume, { name: 'web', uid: 'u1' }),
    plugin: () => 'kubernetes.io/nfs',
    run: (_request, _deps, { step, emit }) => body(step, emit),
  }
  pending.onRelease(() => seen.push('released'))
  const start = () =>
    runner.start(operation, { volume: 'v' }, undefined, {
      apply: (event) => void seen.push(event),
      tell: (type, reason, message) => void seen.push(`${type} ${reason}: ${message}`),
      signal,
    })
  return { start, seen, lines, metrics, pending, progress, clock }
}

const failing = (effect: Effect) => () => Promise.reject(new VolumeError('DriverFailed', 'boom', { effect }))
const marks = {
  done: () => 'marked done',
  failed: () => 'marked failed',
  uncertain: () => 'marked uncertain',
  deferred: () => 'marked deferred',
}

test('the world is told before the key is released; success says nothing to the user (OP-2, WA-7)', async () => {
  const { start, seen, pending } = bench(async (step) => {
    assert.equal(await step('WaitForAttach', async () => '/dev/x'), '/dev/x')
    await step('SetUp', async () => {}, marks)
  })
  start()
  await pending.idle()
  assert.deepEqual(seen, ['marked done', 'released'])
})

test('an event can be emitted between steps and is no step of its own (OP-2)', async () => {
  const { start, seen, pending, progress } = bench(async (step, emit) => {
    emit('withdrawn')
    await step('SetUp', async () => {}, marks)
  })
  start()
  await pending.idle()
  assert.deepEqual(seen, ['withdrawn', 'marked done', 'released'])
  assert.deepEqual(
    progress.flatMap(({ step = [] }) => step),
    ['SetUp'],
  )
})

const outcomes: readonly (readonly [Effect, string])[] = [
  ['none', 'marked failed'],
  ['unknown', 'marked uncertain'],
  ['untried', 'marked deferred'],
]
for (const [effect, mark] of outcomes) {
  test(`effect ${effect} is ${mark}, stops the operation and tells the user (MSG-1, MNT-15)`, async () => {
    const { start, seen, pending } = bench(async (step) => {
      await step('SetUp', failing(effect), marks)
      await step('Never', async () => {}, { done: () => 'must not happen' })
    })
    start()
    await pending.idle()
    assert.deepEqual(seen, [mark, 'Warning FailedMount: MountVolume.SetUp failed for volume "pv1" : boom', 'released'])
    assert.equal(pending.refusal(['v'], 'volume_mount')?.kind, 'backingOff')
  })
}

test('the log has the detailed sentence; a step may have words of its own (MSG-2)', async () => {
  const { start, lines, pending } = bench((step) =>
    step('NodeAffinity', failing('none'), { prefix: 'MountVolume.NodeAffinity check failed' }),
  )
  start()
  await pending.idle()
  assert.deepEqual(lines, [
    'warn operation failed MountVolume.NodeAffinity check failed for volume "pv1" (UniqueName: "v") pod "web" (UID: "u1") : boom',
  ])
})

test('a crash between steps is told as a failure and counted as one (OP-3, NPO-12; against WA-30, MEA-1)', async () => {
  const { start, seen, pending, metrics } = bench(async () => {
    throw new TypeError('x is undefined')
  })
  start()
  await pending.idle()
  assert.deepEqual(seen, ['Warning FailedMount: MountVolume failed for volume "pv1" : x is undefined', 'released'])
  assert.match(
    await metrics.text(),
    /duration_seconds_count\{volume_plugin="kubernetes.io\/nfs",operation_name="volume_mount",status="fail-unknown",migrated="false"\} 1/,
  )
})

test('what is given up because its process ends is no news for users, and no warning', async () => {
  const ending = new AbortController()
  const { start, seen, lines, pending } = bench(async (step) => {
    ending.abort()
    await step('SetUp', failing('unknown'), marks)
  }, ending.signal)
  start()
  await pending.idle()
  assert.deepEqual(seen, ['marked uncertain', 'released'])
  assert.match(lines.join(), /^debug operation given up MountVolume.SetUp failed .* boom$/)
})

test('nothing is measured or told when the operation may not start (OP-5)', async () => {
  const { start, seen, pending, metrics } = bench((step) => step('SetUp', failing('none')))
  start()
  await pending.idle()
  seen.length = 0
  assert.equal(start().kind, 'backingOff')
  assert.deepEqual(seen, [])
  assert.match(await metrics.text(), /duration_seconds_count\{[^}]*\} 1/)
})

test('the observer hears start, steps and end with their times', async () => {
  const { start, progress, pending } = bench((step) => step('SetUp', failing('unknown')))
  start()
  await pending.idle()
  assert.deepEqual(
    progress.map(({ phase, step, error }) => [phase, step, error?.message]),
    [
      ['started', undefined, undefined],
      ['step', 'SetUp', undefined],
      ['failed', undefined, 'boom'],
    ],
  )
})
