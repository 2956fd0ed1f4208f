// Is "staged" judged by the kernel, not by a mark of a stage that failed? Facts in, answer out; then whole drivers on a model host.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { createModelHost } from '../../host/model/model-host.ts'
import { createLocalDriver } from './driver.ts'
import { isStaged } from './staged.ts'
import { parseMark } from './stages.ts'

const facts = { mounted: false, pathExists: true, bound: true }
const cases: readonly (readonly [string, Parameters<typeof isStaged>, boolean])[] = [
  ['a mount is there', ['mount', { ...facts, mounted: true }], true],
  ['a mount that failed is no stage, even with its loop device', ['mount', facts], false],
  ['a block stage is its loop device', ['block', facts], true],
  ['a block stage ends with a reboot', ['block', { ...facts, bound: false }], false],
  ['an older mark with its directory may be a block stage', ['unknown', facts], true],
  [
    'an older mark whose directory was removed is a mount that failed',
    ['unknown', { ...facts, pathExists: false }],
    false,
  ],
  ['a mark in a restored backup is no stage', ['unknown', { ...facts, bound: false }], false],
]
for (const [name, given, expected] of cases) test(name, () => assert.equal(isStaged(...given), expected))

test('a mark that was cut short is none', () => {
  assert.deepEqual(['', 'mount', '/a b', 'mount /a b', 'block /c'].map(parseMark), [
    [],
    [],
    [{ path: '/a b', access: 'unknown' }],
    [{ path: '/a b', access: 'mount' }],
    [{ path: '/c', access: 'block' }],
  ])
})

const signal = new AbortController().signal

/** A volume as version 0.1 left it: a mark of the path alone, and a loop device. */
async function olderVersion(pathExists: boolean) {
  const clock = createVirtualClock()
  const host = createModelHost({ clock })
  const directory = '/var/driver/volumes/vol-1'
  const record = { id: 'vol-1', name: 'v', capacityBytes: '16777216', parameters: {}, attachments: {}, node: 'n1' }
  await host.files.mkdirAll(`${directory}/stages`, 0o700, signal)
  await host.files.writeFile(`${directory}/record.json`, JSON.stringify(record), { mode: 0o600 }, signal)
  host.makeDiskFile(`${directory}/image`, 1n << 24n)
  const mark = createHash('sha256').update('/var/node/globalmount').digest('hex').slice(0, 32)
  await host.files.writeFile(`${directory}/stages/${mark}`, '/var/node/globalmount', { mode: 0o600 }, signal)
  await host.devices.attachLoop({ file: `${directory}/image`, readOnly: false }, signal)
  if (pathExists) await host.files.mkdirAll('/var/node/globalmount', 0o750, signal)
  const setSize = async () => {}
  const options = { dataDirectory: '/var/driver', nodeId: 'n1', mode: 'local' as const }
  await createLocalDriver({ host, clock, setSize }, options, signal)
  return {
    loops: host.loops().length,
    marks: (await host.files.readDir(`${directory}/stages`, signal)).length,
    image: await host.files.exists(`${directory}/image`, signal),
  }
}

test('a start heals what the failed stage of an older version left, and keeps the image', async () => {
  assert.deepEqual(await olderVersion(false), { loops: 0, marks: 0, image: true })
})

test('a start leaves a block stage of an older version alone', async () => {
  assert.deepEqual(await olderVersion(true), { loops: 1, marks: 1, image: true })
})
