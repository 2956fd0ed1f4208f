// Is each type of hostPath checked against each kind of file? TP-12, HOST-3.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { createModelHost } from '../../host/model/model-host.ts'
import { checkPathType } from './path-types.ts'

const { signal } = new AbortController()
const kinds = ['directory', 'file', 'socket', 'charDevice', 'blockDevice', 'missing'] as const

async function world() {
  const host = createModelHost({ clock: createVirtualClock() })
  await host.files.mkdir('/tmp/directory', 0o755, signal)
  await host.files.writeFile('/tmp/file', '', { mode: 0o644 }, signal)
  host.makeSpecial('/tmp/socket', 'socket')
  host.makeSpecial('/tmp/charDevice', 'charDevice')
  host.makeSpecial('/tmp/blockDevice', 'blockDevice')
  return host
}

const fits: Readonly<Record<string, readonly string[]>> = {
  '': [...kinds],
  Directory: ['directory'],
  DirectoryOrCreate: ['directory', 'missing'],
  File: ['file'],
  FileOrCreate: ['file', 'missing'],
  Socket: ['socket'],
  CharDevice: ['charDevice'],
  BlockDevice: ['blockDevice'],
}

test('each type against each kind of file (TP-12)', async () => {
  for (const [type, good] of Object.entries(fits)) {
    for (const kind of kinds) {
      const host = await world()
      const check = checkPathType(host.files, `/tmp/${kind}`, type, signal)
      if (good.includes(kind)) await check
      else await assert.rejects(check, { effect: 'none' }, `${type} on ${kind}`)
    }
  }
})

test('what is created has the modes of a kubelet, and FileOrCreate makes no parents', async () => {
  const host = await world()
  await checkPathType(host.files, '/tmp/new/deep', 'DirectoryOrCreate', signal)
  await checkPathType(host.files, '/tmp/new/f', 'FileOrCreate', signal)
  assert.deepEqual(
    [(await host.files.stat('/tmp/new', signal)).mode, (await host.files.stat('/tmp/new/f', signal)).mode],
    [0o755, 0o644],
  )
  await assert.rejects(checkPathType(host.files, '/tmp/no/f', 'FileOrCreate', signal), {
    message: 'open /tmp/no/f: no such file or directory',
  })
  await assert.rejects(checkPathType(host.files, '/tmp/file/f', 'FileOrCreate', signal), {
    message: 'open /tmp/file/f: not a directory',
  })
})

test('FileOrCreate makes what a link that leads nowhere names, and never empties a file (HOST-3)', async () => {
  const host = await world()
  await host.files.symlink('directory/later', '/tmp/link', signal)
  await checkPathType(host.files, '/tmp/link', 'FileOrCreate', signal)
  assert.equal((await host.files.lstat('/tmp/directory/later', signal)).kind, 'file')
  await host.files.writeFile('/tmp/directory/later', 'kept', { mode: 0o600 }, signal)
  await checkPathType(host.files, '/tmp/link', 'FileOrCreate', signal)
  assert.equal(await host.files.readText('/tmp/link', signal), 'kept')
})

test('messages are those users know; links are followed; .. and unknown types are refused', async () => {
  const host = await world()
  await assert.rejects(checkPathType(host.files, '/tmp/file', 'Directory', signal), {
    message: 'hostPath type check failed: /tmp/file is not a directory',
  })
  await assert.rejects(checkPathType(host.files, '/tmp/gone', 'Socket', signal), {
    message: 'hostPath type check failed: /tmp/gone is not a socket file',
  })
  await host.files.symlink('directory', '/tmp/link', signal)
  await checkPathType(host.files, '/tmp/link', 'Directory', signal)
  await assert.rejects(checkPathType(host.files, '/tmp/../etc', '', signal), /must not contain/)
  await assert.rejects(checkPathType(host.files, '/tmp', 'Fifo', signal), /invalid volume type/)
})
