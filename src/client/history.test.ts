// Is the story of every object kept, bounded, and never told twice? On virtual time against an in-memory server.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom } from '../clock/random.ts'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { silentLog } from '../telemetry/log.ts'
import { createObservedApi } from '../../test/kit/observed-api.ts'
import { createHistory, defaultHistoryLimits } from './history.ts'
import type { HistoryLimits } from './history.ts'

const subject = { actor: 'binding', operation: 'bind', key: 'PersistentVolumeClaim/ns/c' }

async function setUp(limits: Partial<HistoryLimits> = {}) {
  const clock = createVirtualClock()
  const server = await createObservedApi({ clock, random: createRandom(1) })
  const start = (client: Parameters<typeof createHistory>[0]['client'] = server) =>
    createHistory({
      client,
      clock,
      log: silentLog,
      owns: (actor) => actor === 'binding',
      limits: { ...defaultHistoryLimits, ...limits },
    })
  const stories = () =>
    server
      .all('Operation')
      .map(({ spec, status }) => [
        spec.operation,
        status?.phase,
        status?.step ?? status?.waiting?.map(({ reason }) => reason).join(' ') ?? '',
        status?.attempts ?? 0,
      ])
  return { clock, server, start, stories }
}

test('a quick operation is one write with its duration', async () => {
  const { clock, server, start, stories } = await setUp()
  const history = start()
  const startedAt = clock.now()
  history.tell({ ...subject, phase: 'Running', startedAt })
  await clock.advance(100)
  history.tell({ ...subject, phase: 'Running', step: 'Write', startedAt })
  history.tell({ ...subject, phase: 'Succeeded', startedAt, finishedAt: clock.now() })
  await clock.advance(3_000)
  assert.deepEqual(stories(), [['bind', 'Succeeded', '', 1]])
  const [record] = server.all('Operation')
  assert.equal(Date.parse(record!.status!.finishedAt!) - Date.parse(record!.status!.startedAt!), 100)
  assert.deepEqual(server.writes.length, 1)
  await history[Symbol.asyncDispose]()
})

test('a failed operation keeps its error, its step and its count while it is tried again', async () => {
  const { clock, server, start, stories } = await setUp()
  const history = start()
  for (let attempt = 0; attempt < 3; attempt++) {
    const startedAt = clock.now()
    history.tell({ ...subject, phase: 'Running', startedAt })
    history.tell({ ...subject, phase: 'Running', step: 'Attach', startedAt })
    history.tell({
      ...subject,
      phase: 'Failed',
      startedAt,
      finishedAt: clock.now(),
      error: { code: 'UNAVAILABLE', message: 'no socket' },
    })
    await clock.advance(2_000)
  }
  assert.deepEqual(stories(), [['bind', 'Failed', 'Attach', 3]])
  history.tell({ ...subject, phase: 'Running', startedAt: clock.now() })
  await clock.advance(2_000)
  assert.equal(server.all('Operation')[0]?.status?.error?.code, 'UNAVAILABLE')
  history.tell({ ...subject, phase: 'Succeeded', startedAt: clock.now(), finishedAt: clock.now() })
  await clock.advance(2_000)
  assert.equal(server.all('Operation')[0]?.status?.error, undefined)
  await history[Symbol.asyncDispose]()
})

test('a wait keeps the time since which it holds, over a pause between two tries', async () => {
  const { clock, server, start } = await setUp()
  const history = start()
  const wait = { ...subject, operation: 'wait' }
  history.waits(wait, [{ reason: 'backingOff', until: clock.now() + 500 }])
  await clock.advance(1_000)
  const since = server.all('Operation')[0]?.status?.waiting?.[0]?.since
  history.waits(wait, [])
  history.waits(wait, [{ reason: 'backingOff', until: clock.now() + 1_000 }])
  await clock.advance(1_000)
  const [record] = server.all('Operation')
  assert.equal(record?.status?.phase, 'Waiting')
  assert.equal(record?.status?.waiting?.[0]?.since, since)
  history.waits(wait, [])
  await clock.advance(3_000)
  assert.equal(server.all('Operation')[0]?.status?.phase, 'Succeeded')
  await history[Symbol.asyncDispose]()
})

test('a wait that is over before anybody could read of it leaves no trace', async () => {
  const { clock, start, stories } = await setUp()
  const history = start()
  history.waits({ ...subject, operation: 'wait' }, [{ reason: 'volumeBusy' }])
  await clock.advance(100)
  history.waits({ ...subject, operation: 'wait' }, [])
  await clock.advance(5_000)
  assert.deepEqual(stories(), [])
  await history[Symbol.asyncDispose]()
})

test('a wait that ends while it is being written does not stay, whether the write is heard of or not', async () => {
  for (const isHeard of [true, false]) {
    for (let endsAfterMs = 0; endsAfterMs <= 1_500; endsAfterMs += 50) {
      const { clock, server, start, stories } = await setUp()
      const create: typeof server.create = async (...args) => {
        await clock.sleep(200, new AbortController().signal)
        const made = await server.create(...args)
        await clock.sleep(200, new AbortController().signal)
        if (!isHeard) throw new Error('the connection was lost')
        return made
      }
      const history = start({ ...server, create })
      history.waits(subject, [{ reason: 'driverUnreachable' }])
      await clock.advance(endsAfterMs)
      history.waits(subject, [])
      await clock.advance(30_000)
      const [story] = stories()
      assert.notEqual(story?.[1], 'Waiting', `ended after ${endsAfterMs} ms`)
      await history[Symbol.asyncDispose]()
    }
  }
})

test('there are never more records than allowed; the oldest finished ones go first', async () => {
  const { clock, server, start } = await setUp({ records: 5 })
  const history = start()
  history.waits({ ...subject, operation: 'wait' }, [{ reason: 'classMissing' }])
  for (let index = 0; index < 20; index++) {
    const now = clock.now()
    history.tell({ ...subject, key: String(index), phase: 'Succeeded', startedAt: now, finishedAt: now })
    await clock.advance(2_000)
  }
  await clock.advance(5_000)
  assert.equal(server.all('Operation').length, 5)
  assert.equal(server.all('Operation').filter(({ spec }) => spec.operation === 'wait').length, 1)
  await history[Symbol.asyncDispose]()
})

test('what an earlier process left unfinished goes unless it is told again; its finished stories stay', async () => {
  const { clock, start, stories } = await setUp()
  const first = start()
  const now = clock.now()
  first.tell({ ...subject, key: 'done', phase: 'Succeeded', startedAt: now, finishedAt: now })
  first.waits({ ...subject, operation: 'wait', key: 'a' }, [{ reason: 'classMissing' }])
  first.waits({ ...subject, operation: 'wait', key: 'b' }, [{ reason: 'firstConsumer' }])
  await clock.advance(3_000)
  await first[Symbol.asyncDispose]()
  const second = start()
  await clock.advance(1_000)
  second.waits({ ...subject, operation: 'wait', key: 'b' }, [{ reason: 'firstConsumer' }])
  await clock.advance(60_000)
  assert.deepEqual(stories().toSorted(), [
    ['bind', 'Succeeded', '', 1],
    ['wait', 'Waiting', 'firstConsumer', 0],
  ])
  await second[Symbol.asyncDispose]()
})

test('a history that has ended leaves no timer behind: its process may go at once', async () => {
  for (const waitMs of [0, 1_000]) {
    const { clock, start } = await setUp()
    const first = start()
    first.waits({ ...subject, operation: 'wait', key: 'a' }, [{ reason: 'classMissing' }])
    await clock.advance(3_000)
    await first[Symbol.asyncDispose]()
    const second = start()
    await clock.advance(waitMs)
    await second[Symbol.asyncDispose]()
    await clock.settle()
    assert.equal(clock.next(), undefined, `stopped after ${waitMs} ms`)
  }
})

test('a server that refuses is asked again later', async () => {
  const { clock, server, stories } = await setUp()
  let refusals = 2
  const history = createHistory({
    client: {
      ...server,
      get: server.get,
      list: server.list,
      update: server.update,
      remove: server.remove,
      create: (...given) => {
        if (refusals-- > 0) throw new Error('not now')
        return server.create(...given)
      },
    },
    clock,
    log: silentLog,
    owns: () => true,
  })
  const now = clock.now()
  history.tell({ ...subject, phase: 'Succeeded', startedAt: now, finishedAt: now })
  await clock.advance(20_000)
  assert.deepEqual(stories(), [['bind', 'Succeeded', '', 1]])
  await history[Symbol.asyncDispose]()
})

test('the stories of a burst are written a few at a time, and soon all of them: then nothing is left to do', async () => {
  const { clock, server, start } = await setUp()
  const history = start()
  for (let index = 0; index < 1_000; index++) {
    const finishedAt = clock.now()
    history.tell({ ...subject, key: `claim ${index}`, phase: 'Succeeded', startedAt: finishedAt, finishedAt })
  }
  await clock.advance(defaultHistoryLimits.successDelayMs)
  assert.equal(server.all('Operation').length, defaultHistoryLimits.together)
  await clock.advance(5_500)
  assert.equal(server.all('Operation').length, 1_000)
  const { length } = server.writes
  await clock.advance(600_000)
  assert.equal(server.writes.length, length)
  await history[Symbol.asyncDispose]()
})

for (const told of ['after', 'before'] as const)
  test(`a new process goes on from what the earlier one told; it speaks ${told} it has read that`, async () => {
    const { clock, server, start } = await setUp()
    const waits = { ...subject, key: 'PersistentVolumeClaim/ns/waits' }
    const begun = clock.now()
    const first = start()
    first.tell({ ...subject, phase: 'Running', startedAt: begun })
    const error = { code: 'INTERNAL', message: 'broken' }
    first.tell({ ...subject, phase: 'Failed', step: 'Call', startedAt: begun, finishedAt: begun, error })
    first.waits(waits, [{ reason: 'firstConsumer' }])
    await clock.advance(5_000)
    await first[Symbol.asyncDispose]()
    await clock.advance(10_000)
    const second = start()
    if (told === 'after') await clock.advance(1_000)
    second.tell({ ...subject, phase: 'Running', startedAt: clock.now() })
    second.waits(waits, [{ reason: 'firstConsumer' }])
    await clock.advance(60_000)
    const statuses = server.all('Operation').map(({ status }) => status)
    const running = statuses.find((status) => status?.phase === 'Running')
    assert.equal(Date.parse(running?.failingSince ?? ''), begun)
    assert.deepEqual([running?.error?.message, running?.attempts], ['broken', 2])
    const waiting = statuses.find((status) => status?.phase === 'Waiting')
    assert.equal(Date.parse(waiting?.waiting?.[0]?.since ?? ''), begun)
    assert.equal(statuses.length, 2)
    await second[Symbol.asyncDispose]()
  })

test('a failure that an earlier process told can be over', async () => {
  const { clock, start, stories } = await setUp()
  const first = start()
  first.tell({ ...subject, phase: 'Failed', startedAt: clock.now(), error: { message: 'broken' } })
  await clock.advance(5_000)
  await first[Symbol.asyncDispose]()
  const second = start()
  await clock.advance(1_000)
  second.recovered(subject)
  await clock.advance(5_000)
  assert.deepEqual(stories(), [['bind', 'Succeeded', '', 0]])
  await second[Symbol.asyncDispose]()
})
