// Is a mount point taken away for good, without harm to data and without waiting for the dead? MOUNT-7 … MOUNT-14, WART-27.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { cleanMountPoint, isAlreadyMounted, isMounted } from './clean-mount-point.ts'
import { HostError, isDeadMount } from './host-error.ts'
import { createModelHost } from './model/model-host.ts'

const { signal } = new AbortController()
const path = '/tmp/m'

async function world() {
  const host = createModelHost({ clock: createVirtualClock() })
  await host.files.mkdir(path, 0o750, signal)
  const mount = () => host.mounts.mount({ source: 'tmpfs', target: path, type: 'tmpfs', options: [] }, signal)
  const clean = () => cleanMountPoint(host, path, {}, signal)
  return { host, mount, clean }
}

test('which errors mean that a mount is broken (MOUNT-12)', () => {
  const broken = ['ENOTCONN', 'ESTALE', 'EIO', 'EACCES', 'EHOSTDOWN', 'EWOULDBLOCK', 'ENODEV']
  for (const code of broken) assert.ok(isDeadMount(new HostError(code, '')), code)
  for (const code of ['ENOENT', 'EBUSY', 'EPERM']) assert.equal(isDeadMount(new HostError(code, '')), false, code)
})

test('absent, not mounted, mounted, mounted twice: gone in the end (MOUNT-7, MOUNT-13)', async () => {
  const { host, mount, clean } = await world()
  await mount()
  await mount()
  await clean()
  assert.equal(await host.files.exists(path, signal), false)
  await clean()
  await host.files.mkdir(path, 0o750, signal)
  await clean()
  assert.equal(await host.files.exists(path, signal), false)
})

test('a directory that holds something under the mount is an error, and keeps it (MOUNT-14)', async () => {
  const { host, mount, clean } = await world()
  await host.files.writeFile(`${path}/below`, 'precious', { mode: 0o600 }, signal)
  await mount()
  await assert.rejects(clean(), { code: 'ENOTEMPTY' })
  assert.equal(await isMounted(host, path, signal), false)
  assert.equal(await host.files.readText(`${path}/below`, signal), 'precious')
})

test('a path that answers with a broken mount is there and mounted; one that is missing is neither (MOUNT-11)', async () => {
  const { host } = await world()
  host.faults.plant({ call: 'mounts.isMountPoint', kind: 'fails', code: 'ESTALE', times: 1 })
  assert.equal(await isMounted(host, path, signal), true)
  assert.equal(await isMounted(host, '/tmp/none', signal), false)
  host.faults.plant({ call: 'mounts.isMountPoint', kind: 'fails', code: 'EPERM', times: 1 })
  await assert.rejects(isMounted(host, path, signal), { code: 'EPERM' })
})

test('who would mount believes in a mount that does not answer only if the table has it', async () => {
  const { host, mount } = await world()
  for (const code of ['ESTALE', 'EIO', 'TIMEOUT', 'HUNG']) {
    host.faults.plant({ call: 'mounts.isMountPoint', kind: 'fails', code, times: 1 })
    await assert.rejects(isAlreadyMounted(host, path, signal), { code })
  }
  assert.equal(await isAlreadyMounted(host, path, signal), false)
  assert.equal(await isAlreadyMounted(host, '/tmp/none', signal), false)
  await mount()
  assert.equal(await isAlreadyMounted(host, path, signal), true)
  host.faults.plant({ call: 'mounts.isMountPoint', kind: 'fails', code: 'ESTALE', times: 1 })
  assert.equal(await isAlreadyMounted(host, path, signal), true)
})

test('a server that does not answer is left by force; a busy program is not (MOUNT-8, WART-27)', async () => {
  const { host, mount, clean } = await world()
  await mount()
  host.faults.plant({ call: 'mounts.unmount', kind: 'fails', code: 'TIMEOUT', times: 1 })
  await clean()
  assert.equal(await host.files.exists(path, signal), false)

  await host.files.mkdir(path, 0o750, signal)
  await mount()
  host.faults.plant({ call: 'mounts.unmount', kind: 'fails', code: 'EBUSY', times: 1 })
  await assert.rejects(clean(), { code: 'EBUSY' })
  assert.equal(await isMounted(host, path, signal), true)
})
