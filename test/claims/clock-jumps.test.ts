// What happens when somebody sets the clock? Each test sets it once, forward or back, while something waits or is held.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease } from '../../src/api/generated/types.ts'
import { createEventFilter } from '../../src/client/event-filter.ts'
import { createInformers } from '../../src/client/informer.ts'
import { createLeaseSilence } from '../../src/client/lease-silence.ts'
import type { Recorder } from '../../src/client/recorder.ts'
import { microTimestamp } from '../../src/clock/clock.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import { createNodeHealthController } from '../../src/controllers/node-health/controller.ts'
import { createEventThrottle } from '../../src/controllers/shared/event-throttle.ts'
import { createPending } from '../../src/loop/pending.ts'
import { createSchedule } from '../../src/loop/schedule.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { createTestApi } from '../kit/api.ts'

const year = 365 * 86_400_000
const jumps = [
  { name: 'forward a year', ms: year },
  { name: 'back a year', ms: -year },
]
const namespace = 'kube-node-lease'

/** A node with its lease, the controller that judges it, and an agent on another machine, whose clock is right. */
async function createCluster() {
  const stack = new AsyncDisposableStack()
  const clock = createVirtualClock()
  const random = createRandom(1)
  const { client } = stack.use(await createTestApi({ clock, random }))
  const informers = stack.use(createInformers({ client, clock, random, log: silentLog }))
  const never = new AbortController().signal
  const conditions = [{ type: 'Ready', status: 'True' as const }]
  await client.create('Node', { metadata: { name: 'n' }, spec: {} }, {}, never)
  await client.patch(
    'Node',
    { name: 'n' },
    { type: 'merge', body: { status: { conditions } } },
    { subresource: 'status' },
    never,
  )
  let agentTime = clock.now()
  const spec = () => ({ holderIdentity: 'n', leaseDurationSeconds: 40, renewTime: microTimestamp(agentTime) })
  await client.create('Lease', { metadata: { name: 'n', namespace }, spec: spec() }, {}, never)
  stack.use(createNodeHealthController({ client, informers, clock, log: silentLog }))
  return {
    clock,
    client,
    informers,
    /** Ten seconds in which the agent renews its lease, or does not. */
    async tenSeconds({ renew = true } = {}): Promise<void> {
      await clock.advance(10_000)
      agentTime += 10_000
      if (renew)
        await client.patch('Lease', { name: 'n', namespace }, { type: 'merge', body: { spec: spec() } }, {}, never)
      await clock.settle()
    },
    ready: async () => (await client.get('Node', { name: 'n' }, never)).status?.conditions?.[0]?.status,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

for (const { name, ms } of jumps) {
  test(`set ${name}: a node that renews its lease stays Ready, one that falls silent is Unknown after 40 s`, async () => {
    await using cluster = await createCluster()
    for (let turn = 0; turn < 6; turn++) await cluster.tenSeconds()
    cluster.clock.jump(ms)
    // Anything that changes the Node makes the controller look at once.
    const touch = { type: 'merge' as const, body: { metadata: { labels: { touched: 'yes' } } } }
    await cluster.client.patch('Node', { name: 'n' }, touch, {}, new AbortController().signal)
    for (let turn = 0; turn < 10; turn++) {
      await cluster.tenSeconds()
      assert.equal(await cluster.ready(), 'True', `after ${turn + 1} turns`)
    }
    for (let turn = 0; turn < 4; turn++) await cluster.tenSeconds({ renew: false })
    await cluster.clock.advance(2_000)
    assert.equal(await cluster.ready(), 'Unknown')
  })

  test(`set ${name}: a retry that was due in a minute is due in a minute`, async () => {
    const clock = createVirtualClock()
    const due: number[] = []
    const begun = clock.steady()
    const schedule = createSchedule<string>(clock, () => due.push(clock.steady() - begun))
    schedule.set('retry', clock.now() + 60_000)
    clock.jump(ms)
    await clock.advance(61_000)
    assert.deepEqual(due, [60_000])
  })

  test(`set ${name}: what failed may be tried again after its back-off`, async () => {
    const clock = createVirtualClock()
    const pending = createPending(clock)
    const failing = pending.start(['v'], 'mount', () => Promise.reject(new Error('no')))
    assert.equal(failing.kind, 'started')
    await clock.settle()
    assert.equal(pending.refusal(['v'], 'mount')?.kind, 'backingOff')
    clock.jump(ms)
    await clock.advance(501)
    assert.equal(pending.refusal(['v'], 'mount'), undefined)
  })

  test(`set ${name}: an object has events as often as before`, async () => {
    const clock = createVirtualClock()
    const filter = createEventFilter(clock)
    const about = { subject: 'pod a', type: 'Warning', reason: 'Failed' }
    const accepted = () => Array.from({ length: 40 }, () => filter.accept(about, 'no')).filter((each) => each).length
    assert.equal(accepted(), 25)
    clock.jump(ms)
    assert.equal(accepted(), 0, 'the bucket is empty')
    await clock.advance(3_000_000)
    assert.equal(accepted(), 10, 'and gets one more every five minutes')
  })

  test(`set ${name}: the same event is told again after its pause, and not before`, async () => {
    const clock = createVirtualClock()
    const told: string[] = []
    const recorder: Recorder = {
      event: (_about, _type, reason) => void told.push(reason),
      flush: async () => {},
      [Symbol.asyncDispose]: async () => {},
    }
    const throttle = createEventThrottle(recorder, clock)
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', uid: 'u' } }
    const tell = () => throttle.record('Pod', pod, { type: 'Warning', reason: 'Failed', message: 'no' })
    tell()
    clock.jump(ms)
    tell()
    assert.equal(told.length, 1)
    await clock.advance(3_600_000)
    tell()
    assert.equal(told.length, 2)
  })
}

test('a lease from the future counts from the moment we saw it', async () => {
  await using cluster = await createCluster()
  const { clock, client, informers } = cluster
  const silence = createLeaseSilence(informers.of('Lease'), clock)
  const spec = { holderIdentity: 'x', renewTime: microTimestamp(clock.now() + year) }
  const lease: Lease = await client.create(
    'Lease',
    { metadata: { name: 'x', namespace }, spec },
    {},
    new AbortController().signal,
  )
  await clock.advance(15_000)
  assert.equal(silence.silentMs(lease), 15_000)
  silence[Symbol.dispose]()
})
