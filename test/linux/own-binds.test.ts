// Are the binds of our own directories undone, and nothing else?
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { createOwnBinds } from '../../src/host/linux/own-binds.ts'
import { openPlace } from '../kit/scratch-host.ts'

const { signal } = new AbortController()

test('a bind that only a socket keeps busy is undone; one with a mount below stays', async () => {
  await using place = openPlace()
  const { host, root } = place
  const [data, directory] = [join(root, 'data'), join(root, 'node')]
  fs.mkdirSync(data)
  const binds = createOwnBinds(host, data)
  await binds.watch(directory, signal)
  await host.mounts.bind({ source: directory, target: directory }, signal)
  const server = createServer().listen(join(directory, 'driver.sock'))
  await once(server, 'listening')
  const below = join(directory, 'pod')
  fs.mkdirSync(below)
  await host.mounts.mount({ source: 'tmpfs', target: below, type: 'tmpfs', options: [] }, signal)
  await binds.undo()
  assert.equal(await host.mounts.isMountPoint(directory, signal), true)
  await host.mounts.unmount(below, {}, signal)

  const later = createOwnBinds(host, data)
  await later.watch(directory, signal)
  await later.undo()
  assert.equal(await host.mounts.isMountPoint(directory, signal), false)
  assert.deepEqual(fs.readdirSync(join(data, 'own-binds')), [])
  server.close()
})
