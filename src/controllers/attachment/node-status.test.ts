import assert from 'node:assert/strict'
import test from 'node:test'
import { nodeName } from '../../api/names.ts'
import { notFound, serviceUnavailable } from '../../api/status-error.ts'
import type { AttachedVolume } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { silentLog } from '../../telemetry/log.ts'
import { createNodeStatusWriter } from './node-status.ts'

const [a, b] = [nodeName('a'), nodeName('b')]
const never = new AbortController().signal

function setUp() {
  const clock = createVirtualClock()
  const lists = new Map<string, AttachedVolume[]>()
  const stored = new Map<string, readonly AttachedVolume[]>()
  const writes: string[] = []
  const bodies: string[] = []
  let failing: Error | undefined
  // The server in miniature: a write takes 10 ms and may be refused.
  const patch = (async (_kind: string, ref: { name: string }, request: { body: unknown }) => {
    const { status } = request.body as { status: { volumesAttached: readonly AttachedVolume[] } }
    writes.push(ref.name)
    bodies.push(JSON.stringify(Object.keys(request.body as object)) + JSON.stringify(Object.keys(status)))
    await clock.sleep(10, never)
    if (failing) throw failing
    stored.set(ref.name, status.volumesAttached)
  }) as unknown as Client['patch']
  const writer = createNodeStatusWriter({
    client: { patch },
    clock,
    log: silentLog,
    listFor: (node) => lists.get(node) ?? [],
  })
  const fail = (error: Error | undefined) => void (failing = error)
  return { clock, lists, stored, writes, bodies, writer, fail }
}

const volume = (name: string): AttachedVolume => ({ name, devicePath: '' })
const nodeWith = (...names: string[]) => ({ metadata: { name: 'a' }, status: { volumesAttached: names.map(volume) } })

test('nothing is written when the API already has the list (ADS-1, ADS-3)', async () => {
  const { clock, lists, writes, writer } = setUp()
  lists.set('a', [volume('v1'), volume('v2')])
  writer.nodeAppeared(a, nodeWith('v2', 'v1'))
  await clock.advance(1000)
  assert.deepEqual(writes, [])
  await writer.flush(a, never)
})

test('changes during a write go into one further write (ADS-2, DES-7, WA-2)', async () => {
  const { clock, lists, stored, writes, writer } = setUp()
  writer.nodeAppeared(a, nodeWith())
  for (const name of ['v1', 'v2', 'v3', 'v4']) {
    lists.set('a', [...(lists.get('a') ?? []), volume(name)])
    writer.touch(a)
    await clock.advance(1)
  }
  await clock.advance(1000)
  assert.deepEqual(stored.get('a'), ['v1', 'v2', 'v3', 'v4'].map(volume))
  assert.equal(writes.length, 2)
})

test('A3: flush resolves only after the API confirmed a list made after the call (NSP-4)', async () => {
  const { clock, lists, stored, writer } = setUp()
  lists.set('a', [volume('v1')])
  writer.nodeAppeared(a, nodeWith())
  await clock.advance(5) // the first write, with v1, is under way
  lists.set('a', [])
  let confirmed = false
  const flushed = writer.flush(a, never).then(() => (confirmed = true))
  await clock.advance(6)
  assert.equal(confirmed, false) // the write under way was made before the call
  await clock.advance(100)
  await flushed
  assert.deepEqual(stored.get('a'), [])
})

test('a failed write is reported to its waiter and retried, and leaves other nodes alone (ADR-2 step 9, TA-31)', async () => {
  const { clock, lists, stored, writer, fail } = setUp()
  writer.nodeAppeared(a, nodeWith())
  await clock.advance(1)
  fail(serviceUnavailable('away'))
  lists.set('a', [volume('v1')])
  const flushed = writer.flush(a, never)
  const refused = assert.rejects(flushed, /away/)
  await clock.advance(20)
  await refused
  fail(undefined)
  lists.set('b', [volume('w1')])
  writer.nodeAppeared(b, nodeWith())
  await clock.advance(60_000)
  assert.deepEqual(stored.get('a'), [volume('v1')])
  assert.deepEqual(stored.get('b'), [volume('w1')])
})

test('a node that is gone needs no telling (ADS-2)', async () => {
  const { clock, lists, writes, writer, fail } = setUp()
  fail(notFound({ group: '', plural: 'nodes' }, 'a'))
  lists.set('a', [volume('v1')])
  const flushed = writer.flush(a, never)
  await clock.advance(100)
  await flushed
  writer.nodeGone(a)
  lists.set('a', [])
  await writer.flush(a, never)
  assert.equal(writes.length, 1)
})

test('a re-created Node gets its list again (AD-8)', async () => {
  const { clock, lists, stored, writer } = setUp()
  lists.set('a', [volume('v1')])
  writer.nodeAppeared(a, nodeWith('v1'))
  await clock.advance(100)
  assert.equal(stored.has('a'), false)
  writer.nodeGone(a)
  writer.nodeAppeared(a, nodeWith())
  await clock.advance(100)
  assert.deepEqual(stored.get('a'), [volume('v1')])
})

test('a flush that is given up ends at once', async () => {
  const { writer } = setUp()
  const giveUp = new AbortController()
  const flushed = writer.flush(a, giveUp.signal)
  giveUp.abort(new Error('enough'))
  await assert.rejects(flushed, /enough/)
})

test('the controller writes volumesAttached and nothing else (NSP-1)', async () => {
  const { clock, lists, bodies, writer } = setUp()
  lists.set('a', [volume('v1')])
  writer.touch(a)
  await clock.advance(100)
  assert.deepEqual(bodies, ['["status"]["volumesAttached"]'])
})
