// What must every store do, durable or not? One list of promises that each implementation takes.
// The caller makes the store, empty and alone; `history` is small so that compaction happens within a test. The revision of an
// empty store need not be 0, but each change takes the next one.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { HistoryLimits } from '../../src/store/compaction.ts'
import type { Change, Store } from '../../src/store/store.ts'
import { isStoreError } from '../../src/store/store.ts'

export type MakeStore = (history?: HistoryLimits) => Store | Promise<Store>

const never = new AbortController().signal

export function storeContract(name: string, make: MakeStore): void {
  writes(name, make)
  lists(name, make)
  watches(name, make)
  compaction(name, make)
}

function writes(name: string, make: MakeStore): void {
  test(`${name}: every change takes the next revision`, async () => {
    await using store = await make()
    const base = store.revision()
    const created = await store.create('/a/1', 'one')
    const updated = await store.update('/a/1', 'two', created.revision)
    const removed = await store.remove('/a/1', updated.revision)
    assert.deepEqual(
      [created, updated, removed].map((entry) => [entry.value, entry.revision - base, entry.createRevision - base]),
      [
        ['one', 1, 1],
        ['two', 2, 1],
        ['two', 3, 1],
      ],
    )
    assert.equal(await store.get('/a/1'), undefined)
    assert.equal(store.revision(), base + 3)
  })

  test(`${name}: a write whose expectation fails changes nothing`, async () => {
    await using store = await make()
    const entry = await store.create('/a/1', 'one')
    const before = store.revision()
    await assert.rejects(store.create('/a/1', 'x'), (error) => isStoreError(error, 'exists'))
    await assert.rejects(store.update('/a/1', 'x', before + 98), (error) => isStoreError(error, 'conflict'))
    await assert.rejects(store.update('/a/2', 'x', 1), (error) => isStoreError(error, 'missing'))
    await assert.rejects(store.remove('/a/1', before + 98), (error) => isStoreError(error, 'conflict'))
    await assert.rejects(store.remove('/a/2', undefined), (error) => isStoreError(error, 'missing'))
    assert.deepEqual(await store.get('/a/1'), entry)
    assert.equal(store.revision(), before)
  })

  test(`${name}: of many writers that expect the same revision exactly one wins`, async () => {
    await using store = await make()
    const { revision } = await store.create('/a/1', '0')
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, writer) => store.update('/a/1', String(writer), revision)),
    )
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
    assert.equal(store.revision(), revision + 1)
  })

  test(`${name}: writes queued together apply in their order`, async () => {
    await using store = await make()
    const base = store.revision()
    const outcomes = await Promise.allSettled([
      store.create('/a/1', 'one'),
      store.remove('/a/1', undefined),
      store.create('/a/1', 'again'),
      store.create('/a/1', 'late'),
    ])
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'fulfilled', 'rejected'],
    )
    const entry = await store.get('/a/1')
    assert.deepEqual([entry?.value, entry?.createRevision], ['again', base + 3])
  })
}

function lists(name: string, make: MakeStore): void {
  test(`${name}: lists are sorted by key and keep to their prefix`, async () => {
    await using store = await make()
    for (const key of ['/b/1', '/a/2', '/a/10', '/ab/1', '/a/1', '/a-/1']) await store.create(key, key)
    assert.deepEqual(await keys(store, '/a/'), ['/a/1', '/a/10', '/a/2'])
    assert.deepEqual(await keys(store, '/'), ['/a-/1', '/a/1', '/a/10', '/a/2', '/ab/1', '/b/1'])
    assert.deepEqual(await keys(store, '/none/'), [])
  })

  test(`${name}: pages show one revision however the store changes between them`, async () => {
    await using store = await make()
    const base = store.revision()
    for (let index = 0; index < 7; index++) await store.create(`/a/${index}`, `v${index}`)
    const first = await store.list('/a/', { limit: 3 })
    assert.deepEqual([first.entries.length, first.remaining, first.revision], [3, 4, base + 7])
    await store.remove('/a/4', undefined)
    await store.create('/a/45', 'new')
    const fifth = await store.get('/a/5')
    await store.update('/a/5', 'changed', fifth?.revision ?? 0)
    await store.remove('/a/5', undefined)
    const second = await store.list('/a/', { limit: 3, after: '/a/2', at: first.revision })
    assert.deepEqual(
      second.entries.map((entry) => [entry.key, entry.value.toString()]),
      [
        ['/a/3', 'v3'],
        ['/a/4', 'v4'],
        ['/a/5', 'v5'],
      ],
    )
    assert.deepEqual([second.remaining, second.revision], [1, base + 7])
    assert.deepEqual(await keys(store, '/a/'), ['/a/0', '/a/1', '/a/2', '/a/3', '/a/45', '/a/6'])
  })

  test(`${name}: a revision that has not happened yet cannot be listed`, async () => {
    await using store = await make()
    const { revision } = await store.create('/a/1', 'one')
    await assert.rejects(store.list('/a/', { at: revision + 1 }), (error) => isStoreError(error, 'unavailable'))
  })
}

function watches(name: string, make: MakeStore): void {
  test(`${name}: a watch replays from its revision and then follows`, async () => {
    await using store = await make()
    const { revision } = await store.create('/a/1', 'one')
    await store.create('/a/2', 'two')
    const watch = store.watch('/a/', revision, never)
    const iterator = watch[Symbol.asyncIterator]()
    const first = await iterator.next()
    const pending = iterator.next()
    await store.create('/b/1', 'elsewhere')
    await store.remove('/a/1', undefined)
    const second = await pending
    assert.deepEqual(
      [summary(first.value), summary(second.value)],
      [
        ['created', '/a/2', revision + 1],
        ['removed', '/a/1', revision + 3],
      ],
    )
    await iterator.return?.()
  })

  test(`${name}: changes carry what they replaced`, async () => {
    await using store = await make()
    const base = store.revision()
    const created = await store.create('/a/1', 'one')
    await store.update('/a/1', 'two', created.revision)
    const changes = await take(store, '/a/', base, 2)
    assert.deepEqual(
      changes.map((change) => [change.previous?.value.toString(), change.entry.value.toString()]),
      [
        [undefined, 'one'],
        ['one', 'two'],
      ],
    )
  })

  test(`${name}: a quiet watch knows how far the store has come`, async () => {
    await using store = await make()
    const base = store.revision()
    const watch = store.watch('/a/', base, never)
    const iterator = watch[Symbol.asyncIterator]()
    const pending = iterator.next()
    await store.create('/b/1', 'x')
    await store.create('/b/2', 'x')
    assert.equal(watch.seen(), base + 2)
    await store.create('/a/1', 'x')
    await pending
    assert.equal(watch.seen(), base + 3)
    await iterator.return?.()
  })

  test(`${name}: an aborted watch ends, a closed store ends it with an error`, async () => {
    const store = await make()
    const stop = new AbortController()
    const aborted = store.watch('/', store.revision(), stop.signal)[Symbol.asyncIterator]().next()
    const broken = store.watch('/', store.revision(), never)[Symbol.asyncIterator]().next()
    const refused = assert.rejects(broken, (error) => isStoreError(error, 'unavailable'))
    stop.abort()
    assert.equal((await aborted).done, true)
    await store[Symbol.asyncDispose]()
    await refused
  })
}

function compaction(name: string, make: MakeStore): void {
  test(`${name}: what history no longer holds is too old`, async () => {
    await using store = await make({ changes: 5, bytes: 1_000_000 })
    const base = store.revision()
    for (let index = 0; index < 20; index++) await store.create(`/a/${index}`, 'x')
    assert.equal(store.oldest(), base + 15)
    assert.throws(
      () => store.watch('/a/', base + 14, never),
      (error) => isStoreError(error, 'tooOld'),
    )
    await assert.rejects(store.list('/a/', { at: base + 14 }), (error) => isStoreError(error, 'tooOld'))
    assert.equal((await take(store, '/a/', base + 15, 5)).length, 5)
    assert.equal((await keys(store, '/a/')).length, 20)
  })

  test(`${name}: a reader that falls behind is cut off and others are not`, async () => {
    await using store = await make({ changes: 5, bytes: 1_000_000 })
    const base = store.revision()
    const slow = store.watch('/a/', base, never)[Symbol.asyncIterator]()
    const idle = store.watch('/b/', base, never)[Symbol.asyncIterator]()
    const pending = idle.next()
    for (let index = 0; index < 20; index++) await store.create(`/a/${index}`, 'x')
    await assert.rejects(slow.next(), (error) => isStoreError(error, 'tooOld'))
    await store.create('/b/1', 'x')
    assert.deepEqual(summary((await pending).value), ['created', '/b/1', base + 21])
    await idle.return?.()
  })

  test(`${name}: explicit compaction keeps current entries`, async () => {
    await using store = await make()
    const created = await store.create('/a/1', 'one')
    await store.update('/a/1', 'two', created.revision)
    await store.create('/a/2', 'x')
    await store.remove('/a/2', undefined)
    await store.compact(store.revision())
    const base = store.revision()
    assert.equal(store.oldest(), base)
    assert.deepEqual(await keys(store, '/a/'), ['/a/1'])
    await store.create('/a/3', 'y')
    assert.deepEqual((await take(store, '/', base, 1)).map(summary), [['created', '/a/3', base + 1]])
  })
}

async function keys(store: Store, prefix: string): Promise<readonly string[]> {
  return (await store.list(prefix, {})).entries.map((entry) => entry.key)
}

async function take(store: Store, prefix: string, after: number, count: number): Promise<readonly Change[]> {
  const changes: Change[] = []
  for await (const change of store.watch(prefix, after, never)) {
    changes.push(change)
    if (changes.length === count) break
  }
  return changes
}

function summary(change: Change): readonly [string, string, number] {
  return [change.type, change.entry.key, change.revision]
}
