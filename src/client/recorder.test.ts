// Do users see each fact once, counted, and never a flood?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom } from '../clock/random.ts'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { silentLog } from '../telemetry/log.ts'
import { createObservedApi } from '../../test/kit/observed-api.ts'
import { claim, volume } from '../../test/kit/objects.ts'
import { createRecorder } from './recorder.ts'

async function setUp() {
  const clock = createVirtualClock()
  const server = await createObservedApi({ clock, random: createRandom(1) })
  const recorder = createRecorder({ client: server, clock, log: silentLog, component: 'tester', host: 'h' })
  const about = { kind: 'PersistentVolumeClaim', object: claim() } as const
  return { clock, server, recorder, about }
}

test('an event carries its object, times, source, and lies in the object’s namespace', async () => {
  const { server, recorder, about } = await setUp()
  recorder.event(about, 'Warning', 'Lost', 'it is gone')
  await recorder.flush()
  const [event] = server.all('Event')
  assert.match(event!.metadata.name, /^c\.[0-9a-f]+$/)
  assert.deepEqual(
    [
      event?.metadata.namespace,
      event?.involvedObject,
      event?.type,
      event?.reason,
      event?.message,
      event?.count,
      event?.source,
      event?.firstTimestamp,
    ],
    [
      'ns',
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        namespace: 'ns',
        name: 'c',
        uid: 'uid-c',
        resourceVersion: '1',
      },
      'Warning',
      'Lost',
      'it is gone',
      1,
      { component: 'tester', host: 'h' },
      '2026-01-01T00:00:00Z',
    ],
  )
})

test('an event about an object without namespace lies in default', async () => {
  const { server, recorder } = await setUp()
  recorder.event({ kind: 'PersistentVolume', object: volume() }, 'Normal', 'A', 'b')
  await recorder.flush()
  assert.equal(server.all('Event')[0]?.metadata.namespace, 'default')
})

test('the same words again are counted by a patch; after the event was deleted a new one is made', async () => {
  const { clock, server, recorder, about } = await setUp()
  for (let round = 0; round < 3; round++) {
    recorder.event(about, 'Normal', 'A', 'b')
    await recorder.flush()
    await clock.advance(60_000)
  }
  const [event] = server.all('Event')
  assert.deepEqual([server.all('Event').length, event?.count, event?.lastTimestamp], [1, 3, '2026-01-01T00:02:00Z'])
  await server.remove('Event', { namespace: 'ns', name: event!.metadata.name })
  recorder.event(about, 'Normal', 'A', 'b')
  await recorder.flush()
  assert.deepEqual(
    server.all('Event').map(({ count }) => count),
    [1],
  )
})

test('many different messages of one reason are combined', async () => {
  const { server, recorder, about } = await setUp()
  for (let round = 0; round < 20; round++) recorder.event(about, 'Normal', 'A', `message ${round}`)
  await recorder.flush()
  const messages = server.all('Event').map(({ message }) => message)
  assert.equal(messages.length, 10)
  assert.match(messages.at(-1) ?? '', /^\(combined from similar events\): message \d+$/)
})

test('one object gets 25 events at once, then one every five minutes; other objects are not concerned', async () => {
  const { clock, server, recorder, about } = await setUp()
  const total = () => server.all('Event').reduce((sum, { count }) => sum + (count ?? 0), 0)
  for (let round = 0; round < 40; round++) recorder.event(about, 'Normal', 'A', 'b')
  await recorder.flush()
  assert.equal(total(), 25)
  recorder.event({ kind: 'PersistentVolumeClaim', object: claim({ name: 'd' }) }, 'Normal', 'A', 'b')
  await recorder.flush()
  assert.equal(total(), 26)
  await clock.advance(300_000)
  recorder.event(about, 'Normal', 'A', 'b')
  recorder.event(about, 'Normal', 'A', 'b')
  await recorder.flush()
  assert.equal(total(), 27)
})

test('two recorders that speak about one object in the same moment do not step on each other', async () => {
  const { clock, server, recorder, about } = await setUp()
  const other = createRecorder({ client: server, clock, log: silentLog, component: 'other' })
  recorder.event(about, 'Normal', 'A', 'b')
  other.event(about, 'Normal', 'A', 'b')
  await recorder.flush()
  await other.flush()
  assert.deepEqual(
    server
      .all('Event')
      .map(({ source }) => source?.component)
      .sort(),
    ['other', 'tester'],
  )
})
