// What survives at etcd? Members are killed under load, the quota is filled, history is compacted away: no acknowledged write is
// lost, no read shows less than what was acknowledged before it, and everything goes on afterwards.
import assert from 'node:assert/strict'
import test from 'node:test'
import { isStoreError } from '../../src/store/store.ts'
import type { Store } from '../../src/store/store.ts'
import { breakableLine } from '../kit/breakable-connection.ts'
import { startEtcd } from '../kit/etcd.ts'
import { openTestStore } from '../kit/etcd-store.ts'
import { until } from '../kit/machine.ts'

const never = new AbortController().signal

test('three members: one after the other is killed under load', { timeout: 240_000 }, async () => {
  await using etcd = await startEtcd({ members: 3 })
  await using store = await openTestStore(etcd.urls, '/faults')
  const written = new Map<string, string>()
  const stop = new AbortController()
  const watched: number[] = []
  const watching = (async () => {
    for await (const { revision } of store.watch('/', store.revision(), stop.signal)) watched.push(revision)
  })()
  const writers = ['a', 'b', 'c', 'd'].map((name) => writeUntil(store, `/w/${name}`, written, stop.signal))
  const acknowledged = () => [...written.values()].reduce((sum, count) => sum + Number(count), 0)
  for (const member of etcd.members) {
    await member.kill('SIGKILL')
    const before = acknowledged()
    // A majority is left: writes go on. What was under way may be uncertain: its writer looks, and goes on from there.
    await until(
      () => `writes go on without ${member.url}: ${acknowledged() - before} since then`,
      () => acknowledged() > before + 20,
      15_000,
    )
    await member.start()
    await new Promise((resolve) => setTimeout(resolve, 1_500))
  }
  stop.abort()
  await Promise.all([watching, ...writers])
  const { entries } = await store.list('/w/', {})
  const found = new Map(entries.map(({ key, value }) => [key, value]))
  for (const [key, value] of written)
    assert.ok(isSameOrLater(found.get(key), value), `${key}: ${found.get(key)}, acknowledged ${value}`)
  assert.deepEqual(
    watched,
    watched.toSorted((left, right) => left - right),
    'the watch kept the order of revisions',
  )
  assert.equal(new Set(watched).size, watched.length, 'and told each change once')
  assert.ok(written.size === 4, `writers came to ${written.size}`)
})

test('no quorum is told in time, and work goes on when it is back', { timeout: 120_000 }, async () => {
  await using etcd = await startEtcd({ members: 3 })
  await using store = await openTestStore(etcd.urls, '/quorum')
  await store.create('/a/1', 'one')
  const [first, second] = etcd.members
  await Promise.all([first?.kill('SIGKILL'), second?.kill('SIGKILL')])
  await assert.rejects(store.get('/a/1'), (error) => isStoreError(error, 'unavailable'))
  await assert.rejects(store.create('/a/2', 'two'), /uncertain/)
  await Promise.all([first?.start(), second?.start()])
  assert.equal((await store.get('/a/1'))?.value, 'one')
  await store.create('/a/3', 'three')
})

test('a full etcd refuses writes with the reason, still answers reads, and goes on when room was made', async () => {
  await using etcd = await startEtcd({ args: ['--quota-backend-bytes', String(16 * 1024 * 1024)] })
  await using store = await openTestStore(etcd.urls, '/full', { changeWaitMs: 50 })
  await store.create('/a/1', 'one')
  const fill = async () => {
    for (let index = 0; ; index++) await store.create(`/fill/${index}`, 'x'.repeat(1_000_000))
  }
  await assert.rejects(
    fill,
    (error) => isStoreError(error, 'unavailable') && /is full .*etcdctl alarm disarm/.test(error.message),
  )
  assert.equal((await store.get('/a/1'))?.value, 'one')
  // Others can still delete, and no marker can be written: the read is current all the same.
  etcd.ctl('del', '--prefix', '/full/fill/')
  etcd.ctl('del', '/elsewhere')
  assert.equal((await store.list('/fill/', {})).entries.length, 0)
  etcd.ctl('compact', String(store.revision()))
  etcd.ctl('defrag')
  etcd.ctl('alarm', 'disarm')
  await store.create('/a/2', 'room again')
})

test('history that etcd has forgotten meanwhile: watchers are told, the store reads everything again', async () => {
  await using etcd = await startEtcd()
  await using line = await breakableLine(Number(new URL(etcd.urls[0] ?? '').port))
  await using store = await openTestStore([`http://127.0.0.1:${line.port}`], '/gone')
  await store.create('/a/1', 'one')
  await store.create('/a/2', 'two')
  const reader = store.watch('/a/', store.revision(), never)[Symbol.asyncIterator]()
  const told = assert.rejects(reader.next(), (error) => isStoreError(error, 'tooOld'))
  line.cut()
  for (let index = 0; index < 5; index++) etcd.ctl('put', '/gone/a/1', `change ${index}`)
  etcd.ctl('del', '/gone/a/2')
  etcd.ctl('compact', String(store.revision() + 5))
  line.mend()
  const { entries } = await store.list('/a/', {})
  assert.deepEqual(
    entries.map(({ key, value }) => [key, value]),
    [['/a/1', 'change 4']],
  )
  await told
})

test('a connection that has silently died is noticed: the next read is current', { timeout: 60_000 }, async () => {
  await using etcd = await startEtcd()
  await using line = await breakableLine(Number(new URL(etcd.urls[0] ?? '').port))
  await using store = await openTestStore([`http://127.0.0.1:${line.port}`], '/silent')
  await store.create('/a/1', 'one')
  const seen = store.watch('/a/', store.revision(), never)[Symbol.asyncIterator]().next()
  line.silence()
  etcd.ctl('put', '/silent/a/1', 'two')
  assert.equal((await store.get('/a/1'))?.value, 'two')
  assert.equal((await seen).value?.entry.value, 'two')
})

test('an object that is too large is refused as such', async () => {
  await using etcd = await startEtcd()
  await using store = await openTestStore(etcd.urls, '/large')
  await assert.rejects(store.create('/a/1', 'x'.repeat(3_000_000)), (error) => isStoreError(error, 'tooLarge'))
})

async function writeUntil(store: Store, key: string, written: Map<string, string>, signal: AbortSignal): Promise<void> {
  let count = 0
  let entry = await store.create(key, '0')
  written.set(key, '0')
  while (!signal.aborted) {
    count++
    try {
      entry = await store.update(key, String(count), entry.revision)
      written.set(key, String(count))
      const read = await store.get(key)
      assert.ok(isSameOrLater(read?.value, String(count)), `read ${read?.value} after ${count} was acknowledged`)
    } catch (error) {
      if (!isStoreError(error, 'unavailable')) throw error
      entry = (await store.get(key)) ?? entry
    }
  }
}

function isSameOrLater(found: string | undefined, acknowledged: string): boolean {
  return Number(found) >= Number(acknowledged)
}
