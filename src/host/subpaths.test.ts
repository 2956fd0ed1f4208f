// Is a part of a volume shown safely? SUBPATH-2 … SUBPATH-10, TP-23 and TP-24 on the in-memory host.

import assert from 'node:assert/strict'
import { join } from 'node:path/posix'
import { test } from 'node:test'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createModelHost } from './model/model-host.ts'
import { bindSubPath, cleanSubPaths, createSubPath, subPathProblem } from './subpaths.ts'

const { signal } = new AbortController()
const podDirectory = '/var/pods/u'
const target = `${podDirectory}/volume-subpaths/v/c/0`

async function world() {
  const host = createModelHost({ clock: createVirtualClock() })
  await host.files.mkdirAll('/var/volume/real', 0o2770, signal)
  await host.files.mkdirAll(podDirectory, 0o750, signal)
  await host.files.writeFile('/var/volume/real/f', 'inside', { mode: 0o644 }, signal)
  await host.files.writeFile('/var/outside', 'secret', { mode: 0o600 }, signal)
  const bind = async (subPath: string) => {
    const request = { volumePath: '/var/volume', subPath, target, podDirectory }
    await createSubPath(host, request, signal)
    await bindSubPath(host, request, signal)
  }
  return { host, bind }
}

test('absolute paths and .. are refused (SUBPATH-2)', () => {
  assert.deepEqual(
    ['a/b', '/a', '../a', 'a/../b', 'a..b', '..a'].map((path) => subPathProblem(path)?.words),
    [undefined, 'must not be an absolute path', "must not contain '..'", "must not contain '..'", undefined, undefined],
  )
})

test('a directory, a file and a socket are bound; links inside the volume are followed', async () => {
  const { host, bind } = await world()
  await host.files.symlink('real', '/var/volume/link', signal)
  host.makeSpecial('/var/volume/socket', 'socket')
  for (const [subPath, kind] of [
    ['real', 'directory'],
    ['link', 'directory'],
    ['link/f', 'file'],
    ['socket', 'socket'],
  ] as const) {
    await bind(subPath)
    assert.equal((await host.files.stat(target, signal)).kind, kind)
    await cleanSubPaths(host, podDirectory, 'v', signal)
    assert.deepEqual(await host.files.readDir(podDirectory, signal), [])
  }
})

test('a link out of the volume is refused and leaves nothing (TP-23)', async () => {
  const { host, bind } = await world()
  await host.files.symlink('../outside', '/var/volume/escape', signal)
  await host.files.symlink('/var/outside', '/var/volume/absolute', signal)
  for (const subPath of ['escape', 'absolute', 'escape/x']) await assert.rejects(bind(subPath), { code: 'EXDEV' })
  await host.files.mkdir('/var/place', 0o755, signal)
  await host.files.symlink('/var/place', '/var/volume/place', signal)
  await assert.rejects(createSubPath(host, { volumePath: '/var/volume', subPath: 'place/new' }, signal))
  assert.deepEqual(await host.files.readDir('/var/place', signal), [])
  assert.deepEqual(await host.files.readDir(podDirectory, signal), [])
  assert.equal((await host.mounts.list(signal)).length, 1)
})

test('a link that ends in the volume is followed however it is written (SUBPATH-4, SUBPATH-6)', async () => {
  const { host, bind } = await world()
  await host.files.mkdir('/var/volume/real/deep', 0o755, signal)
  await host.files.symlink('/var/volume/real', '/var/volume/absolute', signal)
  await host.files.symlink('../volume/real', '/var/volume/around', signal)
  for (const subPath of ['absolute', 'absolute/deep', 'around/deep', 'absolute/new/er']) {
    await bind(subPath)
    const { inode } = await host.files.stat(join('/var/volume/real', subPath.replace(/^\w+\/?/, '')), signal)
    assert.equal((await host.files.stat(target, signal)).inode, inode, subPath)
    await cleanSubPaths(host, podDirectory, 'v', signal)
  }
  await host.files.symlink('/var/volume/loop', '/var/volume/loop', signal)
  await assert.rejects(bind('loop'), { code: 'EXDEV' })
  await host.files.symlink('/var/nowhere', '/var/volume/dangling', signal)
  await assert.rejects(bind('dangling/x'), { code: 'EXDEV' })
  await assert.rejects(host.files.stat('/var/nowhere', signal), { code: 'ENOENT' })
})

test('a missing part is made with the mode of the volume root (SUBPATH-3)', async () => {
  const { host, bind } = await world()
  await host.files.chmod('/var/volume', 0o3770, signal)
  await bind('new/part')
  assert.equal((await host.files.stat('/var/volume/new/part', signal)).mode, 0o3770)
  const request = { volumePath: '/var/volume', subPath: 'real/f/x', target, podDirectory }
  await createSubPath(host, request, signal)
  await assert.rejects(bindSubPath(host, request, signal), { code: 'ENOTDIR' })
})

test('the same file is kept, a replaced one is bound anew (SUBPATH-8, TP-24)', async () => {
  const { host, bind } = await world()
  await bind('real')
  const first = (await host.mounts.info(target, signal)).id
  await bind('real')
  assert.equal((await host.mounts.info(target, signal)).id, first)
  await host.files.rename('/var/volume/real', '/var/volume/old', signal)
  await host.files.mkdir('/var/volume/real', 0o755, signal)
  await bind('real')
  assert.deepEqual(await host.files.readDir(target, signal), [])
})

test('when binding fails, what was prepared is taken away (SUBPATH-9)', async () => {
  const { host, bind } = await world()
  host.faults.plant({ call: 'mounts.bind', kind: 'fails', times: 1 })
  await assert.rejects(bind('real'), { code: 'EIO' })
  assert.deepEqual(await host.files.readDir(podDirectory, signal), [])
})

test('cleaning what is not there is fine; a mount that cannot be removed blocks (SUBPATH-10)', async () => {
  const { host, bind } = await world()
  await cleanSubPaths(host, podDirectory, 'v', signal)
  await bind('real')
  host.faults.plant({ call: 'mounts.unmount', kind: 'fails', code: 'EBUSY', times: 1 })
  await assert.rejects(cleanSubPaths(host, podDirectory, 'v', signal), { code: 'EBUSY' })
  await cleanSubPaths(host, podDirectory, 'v', signal)
  assert.deepEqual(await host.files.readDir(podDirectory, signal), [])
})
