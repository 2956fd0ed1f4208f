// When does a server stop by itself? On virtual time, with an etcd that answers as it is told.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { silentLog } from '../../telemetry/log.ts'
import type { EtcdClient } from './client.ts'
import { EtcdError } from './errors.ts'
import { takeHold } from './hold.ts'
import type { EtcdPlace } from './layout.ts'

const leaseSeconds = 15
const place = { prefix: '/registry' } as EtcdPlace // no entry is looked at

/** Nobody else holds the key; `keepAlive` answers for etcd. */
function clientWith(keepAlive: EtcdClient['keepAlive']): EtcdClient {
  const answers: Readonly<Record<string, unknown>> = {
    Range: { kvs: [] },
    LeaseGrant: { id: 7n },
    Txn: { succeeded: true, header: { revision: 3n }, responses: [] },
  }
  const call = async ({ name }: { readonly name: string }) => ({ answer: answers[name], repeated: false })
  return {
    where: 'here',
    call: call as unknown as EtcdClient['call'],
    watch: neverCalled,
    keepAlive,
    [Symbol.dispose]() {},
  }
}

function neverCalled(): never {
  throw new Error('nobody else holds the key')
}

async function hold(keepAlive: (signal: AbortSignal) => Promise<number>) {
  const clock = createVirtualClock()
  const { signal } = new AbortController()
  const client = clientWith((_lease, until) => keepAlive(until))
  const deps = { client, place, clock, log: silentLog, holder: { id: 'a', name: 'a' }, leaseSeconds }
  const held = await takeHold({ ...deps, standby: false, onWait: () => {} }, signal)
  const begun = clock.steady()
  const ended = { at: undefined as number | undefined, error: undefined as Error | undefined }
  const running = held.run(signal).catch((error: Error) => {
    ended.at = clock.steady() - begun
    ended.error = error
  })
  return { clock, held, ended, running }
}

const mayWrite = (held: { permit(): unknown }) => {
  try {
    held.permit()
    return true
  } catch {
    return false
  }
}

test('a server whose renewal hangs or fails stops a fifth of the lease before etcd ends it', async () => {
  const hangs = (signal: AbortSignal) =>
    new Promise<number>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
  const fails = async () => {
    throw new EtcdError('unreachable', 'etcd is away')
  }
  for (const silent of [hangs, fails]) {
    const { clock, held, ended, running } = await hold(silent)
    await clock.advance(11_999)
    assert.equal(mayWrite(held), true)
    assert.equal(ended.at, undefined)
    await clock.advance(1)
    assert.equal(mayWrite(held), false)
    await running
    assert.equal(ended.at, 12_000)
    assert.match(ended.error!.message, /its lease could not be renewed in time/)
  }
})

test('a renewal counts from when it was asked for, not from when it was answered', async () => {
  let asked = 0
  const { clock, held } = await hold((signal) => {
    if (asked++ > 0)
      return new Promise<number>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
    return clock.sleep(4_000, signal).then(() => leaseSeconds)
  })
  // Asked at 1.5 s, answered at 5.5 s: good until 13.5 s.
  await clock.advance(13_499)
  assert.equal(mayWrite(held), true)
  await clock.advance(1)
  assert.equal(mayWrite(held), false)
})

test('setting the clock of the machine neither ends nor lengthens the hold', async () => {
  const { clock, held } = await hold(async () => leaseSeconds)
  await clock.advance(60_000)
  assert.equal(mayWrite(held), true)
  clock.jump(3_600_000)
  assert.equal(mayWrite(held), true)
  clock.jump(-7_200_000)
  await clock.advance(60_000)
  assert.equal(mayWrite(held), true)
})

test('a lease that etcd has ended is lost at once', async () => {
  const { clock, held, ended, running } = await hold(async () => 0)
  await clock.advance(1_500)
  await running
  assert.equal(ended.at, 1_500)
  assert.match(ended.error!.message, /its lease has ended/)
  assert.equal(mayWrite(held), false)
})
