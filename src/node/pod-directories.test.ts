// Pods get directories that were made ahead; when there are none, or none can be used, theirs are made on the spot.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodUid } from '../api/names.ts'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createModelHost } from '../host/model/model-host.ts'
import { silentLog } from '../telemetry/log.ts'
import { createPodDirectories } from './pod-directories.ts'

const root = '/var/lib/node'
const { signal } = new AbortController()

async function createBench() {
  const clock = createVirtualClock()
  const { quiet, files: struck, faults } = createModelHost({ clock })
  const { files } = quiet
  const made: string[] = []
  const mkdirEach: typeof struck.mkdirEach = (base, ...rest) => {
    made.push(base.slice(root.length + 1))
    return struck.mkdirEach(base, ...rest)
  }
  await files.mkdirAll(`${root}/pods`, 0o750, signal)
  return {
    clock,
    files,
    faults,
    /** What was made on the spot or ahead, in this order. */
    made,
    open: () => createPodDirectories({ clock, log: silentLog, files: { ...struck, mkdirEach }, root }),
    spares: async () =>
      (await files.exists(`${root}/spare-pods`, signal)) ? files.readDir(`${root}/spare-pods`, signal) : [],
    async lookAt(uid: string) {
      const at = (name: string) => `${root}/pods/${uid}${name}`
      const modes = await Promise.all(['', '/volumes', '/plugins'].map((name) => files.lstat(at(name), signal)))
      return modes.map(({ mode }) => (mode & 0o7777).toString(8)).join(' ')
    },
  }
}

const pod = (name: string) => name as PodUid

test('a pod takes a directory that was made ahead, and another one is made when no pod comes any more', async () => {
  const bench = await createBench()
  await using directories = bench.open()
  directories.begin()
  await bench.clock.advance(10)
  assert.equal((await bench.spares()).length, 64)
  bench.made.length = 0
  for (let index = 0; index < 50; index++) {
    await directories.make(pod(`p${index}`), signal)
    await bench.clock.advance(10)
  }
  assert.deepEqual(
    [bench.made, (await bench.spares()).length],
    [[], 14],
    'a crowd takes, and nothing is made meanwhile',
  )
  assert.equal(await bench.lookAt('p49'), '750 750 750')
  await bench.clock.advance(200)
  assert.equal((await bench.spares()).length, 64)
})

test('a crowd larger than what was made ahead, and the first pods of a node, get theirs on the spot', async () => {
  const bench = await createBench()
  await using directories = bench.open()
  await directories.make(pod('early'), signal)
  directories.begin()
  await bench.clock.advance(300)
  bench.made.length = 0
  for (let index = 0; index < 70; index++) await directories.make(pod(`p${index}`), signal)
  assert.deepEqual(bench.made, ['pods/p64', 'pods/p65', 'pods/p66', 'pods/p67', 'pods/p68', 'pods/p69'])
  assert.deepEqual([await bench.lookAt('early'), await bench.lookAt('p69')], ['750 750 750', '750 750 750'])
})

test('a later life goes on with what it finds, and completes what was half made', async () => {
  const bench = await createBench()
  await bench.files.mkdirAll(`${root}/spare-pods/7`, 0o750, signal)
  await bench.files.writeFile(`${root}/spare-pods/strange`, '', { mode: 0o600 }, signal)
  await using directories = bench.open()
  directories.begin()
  await bench.clock.advance(10)
  assert.deepEqual(bench.made.slice(0, 3), ['spare-pods/7', 'spare-pods/8', 'spare-pods/9'])
  assert.equal((await bench.spares()).length, 65, 'nobody touches what is not ours')
  for (let index = 0; index < 64; index++) await directories.make(pod(`p${index}`), signal)
  assert.equal(await bench.lookAt('p63'), '750 750 750', 'the half made one')
})

test('what a pod has already stays, and nothing made ahead is lost by it', async () => {
  const bench = await createBench()
  await bench.files.mkdirAll(`${root}/pods/old/volumes/x`, 0o750, signal)
  await using directories = bench.open()
  directories.begin()
  await bench.clock.advance(10)
  for (let again = 0; again < 3; again++) await directories.make(pod('old'), signal)
  assert.deepEqual(await bench.files.readDir(`${root}/pods/old/volumes`, signal), ['x'])
  assert.equal(await bench.lookAt('old'), '750 750 750')
  await bench.clock.advance(1_000)
  assert.equal((await bench.spares()).length, 64)
})

test('a full disk: the pod is refused aloud, and nothing is made ahead in one breath', async () => {
  const bench = await createBench()
  using fault = bench.faults.plant({ call: 'files.mkdirEach', below: root, kind: 'fails', code: 'ENOSPC' })
  await using directories = bench.open()
  directories.begin()
  await assert.rejects(directories.make(pod('p'), signal), { code: 'ENOSPC' })
  await bench.clock.advance(60_000)
  assert.ok(bench.made.length < 10, `${bench.made.length} tries in a minute`)
  fault[Symbol.dispose]()
  await bench.clock.advance(60_000)
  assert.deepEqual(
    (await bench.spares()).map(Number).toSorted((a, b) => a - b),
    [...Array(64).keys()],
  )
})
