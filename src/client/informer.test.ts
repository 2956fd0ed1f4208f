// Does a cache follow the server through lists, watches, cuts and "too old", and does it never forget our own writes?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolume } from '../api/generated/types.ts'
import { expired, unknownResource } from '../api/status-error.ts'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createRandom } from '../clock/random.ts'
import { silentLog } from '../telemetry/log.ts'
import type { Client } from './client.ts'
import type { WatchEvent } from '../api/verbs.ts'
import { createFreshCache } from './fresh-cache.ts'
import { createInformer, createInformers } from './informer.ts'
import type { Change } from './informer.ts'
import { versionNumber } from './versions.ts'

const volume = (name: string, version: number, uid = `uid-${name}`, labels: Record<string, string> = {}) =>
  ({
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, uid, resourceVersion: String(version), labels },
    spec: {},
  }) as PersistentVolume

const told = (changes: Change<PersistentVolume>[]) =>
  changes.map(({ kind, key, object, previous }) =>
    [kind, key, previous?.metadata.resourceVersion ?? '-', object?.metadata.resourceVersion ?? '-'].join(' '),
  )

test('a listener hears present objects as added, then every change once', () => {
  const informer = createInformer<PersistentVolume>()
  informer.replace([volume('a', 1)], '1')
  const changes: Change<PersistentVolume>[] = []
  informer.subscribe((change) => changes.push(change))
  informer.apply({ type: 'modified', object: volume('a', 2) })
  informer.apply({ type: 'modified', object: volume('a', 2) })
  informer.apply({ type: 'added', object: volume('b', 3) })
  informer.apply({ type: 'deleted', object: volume('a', 4) })
  assert.deepEqual(told(changes), ['added a - 1', 'changed a 1 2', 'added b - 3', 'removed a 4 -'])
})

test('a removal missed by the watch is told with the last known object after the next list (WC-29)', () => {
  const informer = createInformer<PersistentVolume>()
  informer.replace([volume('a', 1), volume('b', 2)], '2')
  const changes: Change<PersistentVolume>[] = []
  informer.subscribe((change) => changes.push(change))
  changes.length = 0
  informer.replace([volume('b', 2)], '9')
  assert.deepEqual(told(changes), ['removed a 1 -'])
  assert.equal(informer.version, 9)
})

test('the same name with another uid is a removal and an addition (WC-15)', () => {
  const informer = createInformer<PersistentVolume>()
  informer.replace([volume('a', 1)], '1')
  const changes: Change<PersistentVolume>[] = []
  informer.subscribe((change) => changes.push(change))
  changes.length = 0
  informer.apply({ type: 'modified', object: volume('a', 5, 'other') })
  assert.deepEqual(told(changes), ['removed a 1 -', 'added a - 5'])
})

test('an index follows its objects', () => {
  const informer = createInformer<PersistentVolume>()
  const byColour = informer.index((object) => Object.values(object.metadata.labels ?? {}))
  informer.replace([volume('a', 1, 'u', { colour: 'red' }), volume('b', 2, 'v', { colour: 'red' })], '2')
  informer.apply({ type: 'modified', object: volume('a', 3, 'u', { colour: 'blue' }) })
  const names = (value: string) => Array.from(byColour.get(value), (object) => object.metadata.name)
  assert.deepEqual([names('red'), names('blue'), byColour.has('green')], [['b'], ['a'], false])
  informer.apply({ type: 'deleted', object: volume('a', 4, 'u', { colour: 'green' }) })
  assert.deepEqual([names('blue'), byColour.has('blue')], [[], false])
})

test('versions 1, 1, 2 are taken, then 1 is dropped, then 10 is taken; "xxx" is an error (TC-50, CTL-3)', () => {
  const informer = createInformer<PersistentVolume>()
  informer.replace([], '0')
  const fresh = createFreshCache(informer)
  const taken = [1, 1, 2, 1, 10].map((version) => {
    fresh.wrote(volume('a', version))
    return fresh.get('a')?.metadata.resourceVersion
  })
  assert.deepEqual(taken, ['1', '1', '2', '2', '10'])
  assert.throws(() => versionNumber('xxx'), /not a whole number/)
})

test('an own write is visible at once, and its echo in the watch tells nothing', () => {
  const informer = createInformer<PersistentVolume>()
  informer.replace([volume('a', 1)], '1')
  const fresh = createFreshCache(informer)
  const changes: string[] = []
  fresh.subscribe((change) => changes.push(`${change.object?.metadata.resourceVersion} own=${fresh.isOwnWrite}`))
  assert.equal(fresh.wrote(volume('a', 7)), true)
  informer.apply({ type: 'modified', object: volume('a', 4) })
  informer.apply({ type: 'modified', object: volume('a', 7) })
  informer.apply({ type: 'modified', object: volume('a', 8) })
  assert.deepEqual(changes, ['1 own=false', '7 own=true', '8 own=false'])
})

test('the answer to a write that arrives after the watch told of the removal does not bring the object back', () => {
  const informer = createInformer<PersistentVolume>()
  informer.replace([volume('a', 1)], '1')
  const fresh = createFreshCache(informer)
  informer.apply({ type: 'modified', object: volume('a', 5) })
  informer.apply({ type: 'deleted', object: volume('a', 6) })
  assert.equal(fresh.wrote(volume('a', 5)), false)
  assert.equal(fresh.get('a'), undefined)
})

test('the late removal of an old object leaves the new one of that name alone', () => {
  const informer = createInformer<PersistentVolume>()
  informer.replace([volume('a', 1, 'old')], '1')
  const fresh = createFreshCache(informer)
  fresh.wrote(volume('a', 9, 'new'))
  informer.apply({ type: 'deleted', object: volume('a', 8, 'old') })
  assert.equal(fresh.get('a')?.metadata.uid, 'new')
})

/** A server of one kind that a test feeds: lists what it holds, and plays each watch from a script. */
function scriptedServer(lists: PersistentVolume[][], watches: (WatchEvent<PersistentVolume> | Error | 'close')[][]) {
  const asked: string[] = []
  const client = {
    list: async () => {
      const items = lists.shift() ?? []
      const resourceVersion = String(Math.max(0, ...items.map((item) => Number(item.metadata.resourceVersion))))
      asked.push(`list@${resourceVersion}`)
      return { items, resourceVersion }
    },
    async *watch(_kind: string, options: { resourceVersion?: string }, signal: AbortSignal) {
      asked.push(`watch@${options.resourceVersion}`)
      for (const step of watches.shift() ?? []) {
        if (step instanceof Error) throw step
        if (step === 'close') return
        yield step
      }
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    },
  } as unknown as Client
  return { client, asked }
}

test('a cut watch resumes where it was, "too old" lists again, a bookmark moves the place to resume', async () => {
  const clock = createVirtualClock()
  const { client, asked } = scriptedServer(
    [[volume('a', 3)], [volume('b', 20)]],
    [
      [{ type: 'modified', object: volume('a', 4) }, new Error('connection reset')],
      [{ type: 'bookmark', resourceVersion: '11' }, 'close'],
      [expired('too old')],
      [{ type: 'added', object: volume('c', 21) }],
    ],
  )
  const informers = createInformers({ client, clock, random: createRandom(1), log: silentLog })
  const informer = informers.of('PersistentVolume')
  assert.equal(informer, informers.of('PersistentVolume'))
  const signal = new AbortController().signal
  const reached = informer.reached(21, signal)
  await informer.synced
  for (let round = 0; round < 20; round++) await clock.advance(1_000)
  await reached
  assert.deepEqual(asked, ['list@3', 'watch@3', 'watch@4', 'watch@11', 'list@20', 'watch@20'])
  assert.deepEqual([...informer.items.keys()].sort(), ['b', 'c'])
  await informers[Symbol.asyncDispose]()
})

test('watches that a server closes after a good while are resumed at once, however often that happens', async () => {
  const clock = createVirtualClock()
  const opened: number[] = []
  const client = {
    list: async () => ({ items: [], resourceVersion: '1' }),
    // oxlint-disable-next-line require-yield
    async *watch(_kind: string, _options: object, signal: AbortSignal) {
      opened.push(clock.now() - start)
      await clock.sleep(60_000, signal).catch(() => {})
    },
  } as unknown as Client
  const start = clock.now()
  const informers = createInformers({ client, clock, random: createRandom(1), log: silentLog })
  informers.of('PersistentVolume')
  for (let round = 0; round < 10; round++) await clock.advance(60_000)
  assert.deepEqual(
    opened.slice(0, 10),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((minute) => minute * 60_000),
  )
  const stopped = informers[Symbol.asyncDispose]()
  await clock.settle()
  await stopped
})

test('a kind that an older server lacks has no objects until it comes; any other kind is waited for', async () => {
  const clock = createVirtualClock()
  let installed = false
  const client = {
    list: async () => {
      if (!installed) throw unknownResource()
      return { items: [volume('gold', 5)], resourceVersion: '5' }
    },
    // oxlint-disable-next-line require-yield
    async *watch(_kind: string, _options: object, signal: AbortSignal) {
      await clock.sleep(600_000, signal).catch(() => {})
    },
  } as unknown as Client
  const informers = createInformers({ client, clock, random: createRandom(1), log: silentLog })
  const classes = informers.of('VolumeAttributesClass')
  const volumes = informers.of('PersistentVolume')
  await clock.advance(1_000)
  assert.deepEqual([classes.isSynced, classes.items.size, volumes.isSynced], [true, 0, false])
  installed = true
  await clock.advance(60_000)
  assert.deepEqual([[...classes.items.keys()], [...volumes.items.keys()]], [['gold'], ['gold']])
  const stopped = informers[Symbol.asyncDispose]()
  await clock.settle()
  await stopped
})
