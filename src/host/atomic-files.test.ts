// Do many files change at once, and only if they differ? ATOMIC-1 … ATOMIC-6 and TP-1 … TP-5 on the in-memory host.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import type { Payload } from './atomic-files.ts'
import { cleanPayload, writeAtomically } from './atomic-files.ts'
import { createModelHost } from './model/model-host.ts'

const { signal } = new AbortController()
const directory = '/tmp/v'

function payload(files: Readonly<Record<string, string>>, mode = 0o644): Payload {
  return new Map(Object.entries(files).map(([path, text]) => [path, { bytes: new TextEncoder().encode(text), mode }]))
}

async function world() {
  const clock = createVirtualClock()
  const host = createModelHost({ clock })
  await host.files.mkdir(directory, 0o777, signal)
  let next = 1
  const deps = { files: host.files, now: () => clock.now(), random: () => next++ }
  const write = (files: Readonly<Record<string, string>>) =>
    writeAtomically(deps, { directory, payload: payload(files) }, signal)
  const read = (path: string) => host.files.readText(`${directory}/${path}`, signal)
  const names = async () => (await host.files.readDir(directory, signal)).sort()
  return { host, deps, write, read, names }
}

test('the first write makes a timestamped directory, ..data, and a link per top-level name (TP-1)', async () => {
  const { host, write, read, names } = await world()
  assert.equal(await write({ a: '1', 'd/b': '2' }), true)
  assert.deepEqual(await names(), ['..2026_01_01_00_00_00.1', '..data', 'a', 'd'])
  assert.equal(await host.files.readlink(`${directory}/..data`, signal), '..2026_01_01_00_00_00.1')
  assert.equal(await host.files.readlink(`${directory}/d`, signal), '..data/d')
  assert.deepEqual([await read('a'), await read('d/b')], ['1', '2'])
})

test('the same contents again change nothing (TP-2)', async () => {
  const { write, names } = await world()
  await write({ a: '1' })
  const before = await names()
  assert.equal(await write({ a: '1' }), false)
  assert.deepEqual(await names(), before)
})

test('a dropped file leaves with its link and the old directory (TP-3)', async () => {
  const { write, names } = await world()
  await write({ a: '1', 'd/b': '2' })
  assert.equal(await write({ a: '1' }), true)
  assert.deepEqual(await names(), ['..2026_01_01_00_00_00.2', '..data', 'a'])
})

test('links lost after the switch come back although the contents are equal (TP-4, ATOMIC-5)', async () => {
  const { host, write, names } = await world()
  await write({ a: '1' })
  await host.files.unlink(`${directory}/a`, signal)
  assert.equal(await write({ a: '1' }), false)
  assert.deepEqual(await names(), ['..2026_01_01_00_00_00.1', '..data', 'a'])
})

test('a bad path rejects the whole payload (TP-5, ATOMIC-2)', async () => {
  const { write, names } = await world()
  for (const path of ['', '/x', 'a/../b', '..x', `${'n'.repeat(256)}`, `${'n/'.repeat(2048)}x`, '.', './']) {
    await assert.rejects(write({ good: '1', [path]: '2' }), { code: 'EINVAL' }, JSON.stringify(path))
  }
  assert.deepEqual(await names(), [])
  await write({ 'a/..x': '1' })
  assert.deepEqual([...cleanPayload(payload({ './a//b': '1', 'a/b': '2' })).keys()], ['a/b'])
})

test('a path with a slash at its end names the file without it (ATOMIC-2)', async () => {
  const { write, read, names } = await world()
  await write({ 'conf/': '1', 'd//e//': '2' })
  assert.deepEqual([await read('conf'), await read('d/e')], ['1', '2'])
  assert.equal(await write({ conf: '1', 'd/e': '2' }), false)
  assert.deepEqual(await names(), ['..2026_01_01_00_00_00.1', '..data', 'conf', 'd'])
})

test('a file may become a directory and back', async () => {
  const { write, read } = await world()
  await write({ a: '1' })
  await write({ 'a/b': '2' })
  assert.equal(await read('a/b'), '2')
  await write({ a: '3' })
  assert.equal(await read('a'), '3')
})

test('leftovers of a crash (..data_tmp, old timestamped directories) do not stop later writes (WART-4)', async () => {
  const { host, write, names } = await world()
  await write({ a: '1' })
  await host.files.symlink('nowhere', `${directory}/..data_tmp`, signal)
  await host.files.mkdir(`${directory}/..2025_12_31_23_59_59.7`, 0o755, signal)
  await write({ a: '2' })
  assert.deepEqual(await names(), ['..2026_01_01_00_00_00.2', '..data', 'a'])
})

test('a permission callback that fails leaves the old contents shown and nothing new behind', async () => {
  const { deps, write, read, names } = await world()
  await write({ a: '1' })
  const applyPermissions = () => Promise.reject(new Error('no'))
  await assert.rejects(
    writeAtomically(deps, { directory, payload: payload({ a: '2' }), applyPermissions }, signal),
    /no/,
  )
  assert.equal(await read('a'), '1')
  assert.deepEqual(await names(), ['..2026_01_01_00_00_00.1', '..data', 'a'])
})

test('a ..data that leads elsewhere is not followed: what it points at is neither read nor deleted', async () => {
  const { host, write, read } = await world()
  await host.files.mkdirAll('/tmp/precious', 0o755, signal)
  await host.files.writeFile('/tmp/precious/a', 'keep', { mode: 0o644 }, signal)
  await host.files.symlink('../precious', `${directory}/..data`, signal)
  await write({ a: '1' })
  assert.equal(await read('a'), '1')
  assert.equal(await host.files.readText('/tmp/precious/a', signal), 'keep')
})

test('every step may fail: afterwards the contents are all old or all new, and a retry brings the new', async () => {
  for (let after = 0; ; after += 1) {
    const { host, write, read } = await world()
    await write({ a: 'old', b: 'old' })
    host.faults.plant({ call: '*', kind: 'fails', after, times: 1 })
    await write({ a: 'new', b: 'new' }).catch(() => undefined)
    const { struck } = host.faults
    host.faults.clear()
    const seen = `${await read('a')} ${await read('b')}`
    assert.ok(seen === 'old old' || seen === 'new new', `after call ${after}: ${seen}`)
    await write({ a: 'new', b: 'new' })
    assert.equal(`${await read('a')} ${await read('b')}`, 'new new')
    if (struck === 0) return
  }
})
