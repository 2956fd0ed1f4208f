// When is an OK believed? Each case is looked at on the model host, as on a node.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { createModelHost } from '../../host/model/model-host.ts'
import { hasTag } from '../../volume/effect.ts'
import { checkGone, checkMapped, checkPublished, hasNotGrown } from './effects.ts'

const { signal } = new AbortController()
const target = '/pods/p/mount'
const staging = '/plugins/s/globalmount'

async function prepared() {
  const host = createModelHost({ clock: createVirtualClock() })
  for (const path of [target, staging, '/storage']) await host.files.mkdirAll(path, 0o755, signal)
  return host
}
type Prepared = Awaited<ReturnType<typeof prepared>>
const bind = (host: Prepared, source: string, to: string) => host.mounts.bind({ source, target: to }, signal)

const published: readonly (readonly [string, (host: Prepared) => Promise<unknown>, RegExp | undefined])[] = [
  ['the volume is mounted', (host) => bind(host, '/storage', target), undefined],
  ['nothing is mounted', async () => {}, /NodePublishVolume, but nothing is mounted at \/pods/],
  ['the directory is gone', (host) => host.files.rmdir(target, signal), /nothing is mounted at \/pods/],
  [
    'the driver filled the directory itself',
    (host) => host.files.writeFile(`${target}/token`, 'x', { mode: 0o600 }, signal),
    undefined,
  ],
  [
    'the staged volume is mounted',
    async (host) => {
      await bind(host, '/storage', staging)
      await bind(host, staging, target)
    },
    undefined,
  ],
  ['the empty staging directory is mounted', (host) => bind(host, staging, target), /NodeStageVolume, but nothing/],
  [
    'the driver filled the staging directory itself',
    async (host) => {
      await host.files.writeFile(`${staging}/file`, 'x', { mode: 0o600 }, signal)
      await bind(host, staging, target)
    },
    undefined,
  ],
]

for (const [name, make, refused] of published)
  test(`NodePublishVolume answers OK and ${name}: ${refused ? 'refused' : 'believed'}`, async () => {
    const host = await prepared()
    await make(host)
    const check = checkPublished(host, { target, staging }, signal)
    if (refused === undefined) return check
    await assert.rejects(check, (error: Error) => {
      assert.match(error.message, refused)
      assert.equal(hasTag(error, 'notStaged'), name.includes('staging'))
      return true
    })
  })

test('a device is believed where there is one, and where something is bound over its file', async () => {
  const host = await prepared()
  await assert.rejects(checkMapped(host, '/dev-file', signal), /there is nothing at/)
  await host.files.writeFile('/dev-file', '', { mode: 0o600 }, signal)
  await assert.rejects(checkMapped(host, '/dev-file', signal), /is empty, and no device/)
  await host.files.writeFile('/other', '', { mode: 0o600 }, signal)
  await bind(host, '/other', '/dev-file')
  await checkMapped(host, '/dev-file', signal)
})

test('what is still mounted is not gone', async () => {
  const host = await prepared()
  await checkGone(host, 'NodeUnpublishVolume', target, signal)
  await checkGone(host, 'NodeUnpublishVolume', '/nowhere', signal)
  await bind(host, '/storage', target)
  await assert.rejects(checkGone(host, 'NodeUnpublishVolume', target, signal), /is still mounted/)
})

test('a filesystem counts as not grown only where that is clear', () => {
  const sizes = { oldBytes: 100n, newBytes: 200n }
  assert.equal(hasNotGrown({ before: 95n, after: 95n }, sizes), true)
  assert.equal(hasNotGrown({ before: 95n, after: 190n }, sizes), false, 'it grew')
  assert.equal(hasNotGrown({ before: 190n, after: 190n }, sizes), false, 'an earlier call grew it')
  assert.equal(hasNotGrown({ before: 900n, after: 900n }, sizes), false, 'a directory of a larger disk')
  assert.equal(
    hasNotGrown({ before: 95n, after: 95n }, { oldBytes: 100n, newBytes: 110n }),
    false,
    'too little to tell',
  )
  assert.equal(hasNotGrown({ before: 0n, after: 0n }, sizes), false, 'no size is told')
})
