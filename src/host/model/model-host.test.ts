// Does the in-memory host keep the port's promises, and does it fail as told?

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { hostContract } from '../../../test/contracts/host.ts'
import { createModelHost } from './model-host.ts'

const { signal } = new AbortController()
const newHost = () => createModelHost({ clock: createVirtualClock() })

hostContract('model', async () => {
  const host = newHost()
  return {
    host,
    root: '/tmp',
    makeDiskFile: async (path, sizeBytes) => host.makeDiskFile(path, BigInt(sizeBytes)),
    async [Symbol.asyncDispose]() {
      const left = (await host.mounts.list(signal)).slice(1).map(({ mountPoint }) => mountPoint)
      assert.deepEqual(left, [], 'no mount is left behind')
      assert.deepEqual(host.loops(), [], 'no loop device is left behind')
    },
  }
})

test('a planted fault strikes the named call below the named path as often as told', async () => {
  const host = newHost()
  host.faults.plant({ call: 'files.mkdir', below: '/tmp/a', kind: 'fails', code: 'EIO', times: 1 })
  await host.files.mkdir('/tmp/b', 0o755, signal)
  await assert.rejects(host.files.mkdir('/tmp/a', 0o755, signal), { code: 'EIO', certain: true })
  await host.files.mkdir('/tmp/a', 0o755, signal)
})

test('a fault after the effect leaves the effect and says that it is uncertain', async () => {
  const host = newHost()
  using _fault = host.faults.plant({ call: 'mounts.mount', kind: 'failsAfter' })
  const request = { source: 'tmpfs', target: '/tmp', type: 'tmpfs', options: [] }
  await assert.rejects(host.mounts.mount(request, signal), { certain: false })
  assert.equal(await host.mounts.isMountPoint('/tmp', signal), true)
})

test('a hanging call ends only when the caller gives up', async () => {
  const host = newHost()
  host.faults.plant({ call: 'files.readDir', kind: 'hangs' })
  const caller = new AbortController()
  const call = host.files.readDir('/tmp', caller.signal)
  caller.abort()
  await assert.rejects(call, { code: 'ABORTED', certain: false })
})

test('a reboot forgets mounts and loop devices and keeps files and disks', async () => {
  const host = newHost()
  host.makeDiskFile('/var/disk', 1n << 24n)
  const device = await host.devices.attachLoop({ file: '/var/disk', readOnly: false }, signal)
  await host.filesystems.make({ device, type: 'ext4' }, signal)
  await host.mounts.mount({ source: device, target: '/tmp', type: 'ext4', options: [] }, signal)
  await host.files.writeFile('/tmp/kept', 'x', { mode: 0o644 }, signal)
  host.reboot()
  assert.deepEqual(await host.files.readDir('/tmp', signal), [])
  assert.deepEqual(host.loops(), [])
  const again = await host.devices.attachLoop({ file: '/var/disk', readOnly: false }, signal)
  await host.mounts.mount({ source: again, target: '/tmp', type: 'ext4', options: [] }, signal)
  assert.equal(await host.files.readText('/tmp/kept', signal), 'x')
})
