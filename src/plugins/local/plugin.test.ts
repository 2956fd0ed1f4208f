// Do local volumes, directories and disks, reach several pods safely? LOCAL-1 … LOCAL-9, TP-13.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createModelPluginFixture, mountPoints, mounting, pod, root, signal } from '../../../test/kit/plugin-fixture.ts'
import { persistent } from '../../../test/kit/volume-specs.ts'
import { podUid } from '../../api/names.ts'

const directory = persistent({ local: { path: '/tmp/d' } }, { name: 'pv' })

test('the second pod with another group is warned and changes nothing (TP-13, LOCAL-4, LOCAL-5)', async () => {
  const bench = await createModelPluginFixture()
  await bench.host.files.mkdir('/tmp/d', 0o755, signal)
  const registry = bench.registry()
  const first = mounting(bench, directory, { ownership: { fsGroup: 1001 } })
  const second = mounting(bench, directory, { pod: pod({ uid: 'uid-2' }), ownership: { fsGroup: 1002 } })
  const { plugin } = registry.find(directory)
  await plugin.mount(first.request, signal)
  await plugin.mount(second.request, signal)
  assert.deepEqual(first.events, [])
  assert.deepEqual(second.events, [
    'AlreadyMountedVolume: The requested fsGroup is 1002, but the volume pv has GID 1001. The volume may not be shareable.',
  ])
  const stat = await bench.host.files.stat('/tmp/d', signal)
  assert.deepEqual([stat.gid, stat.mode], [1001, 0o2775])
  await bench.close()
})

test('two pods mounting at the same time do not both take themselves for the first', async () => {
  const bench = await createModelPluginFixture()
  await bench.host.files.mkdir('/tmp/d', 0o755, signal)
  const { plugin } = bench.registry().find(directory)
  const pods = ['uid-1', 'uid-2'].map((uid, index) =>
    mounting(bench, directory, { pod: pod({ uid }), ownership: { fsGroup: 1001 + index } }),
  )
  await Promise.all(pods.map(({ request }) => plugin.mount(request, signal)))
  assert.equal(pods.flatMap(({ events }) => events).length, 1)
  await bench.close()
})

test('two volumes that are one directory have one first pod (LOCAL-5)', async () => {
  const bench = await createModelPluginFixture()
  await bench.host.files.mkdir('/tmp/d', 0o755, signal)
  const twin = persistent({ local: { path: '/tmp/d/' } }, { name: 'twin' })
  const { plugin } = bench.registry().find(directory)
  const pods = [directory, twin].map((spec, index) =>
    mounting(bench, spec, { pod: pod({ uid: `uid-${index}` }), ownership: { fsGroup: 1001 + index } }),
  )
  await Promise.all(pods.map(({ request }) => plugin.mount(request, signal)))
  assert.equal(pods.flatMap(({ events }) => events).length, 1)
  await bench.close()
})

test('a missing path and a wrong kind are refused before anything is touched (LOCAL-2)', async () => {
  const bench = await createModelPluginFixture()
  const { plugin } = bench.registry().find(directory)
  await assert.rejects(plugin.prepare?.(directory, signal) ?? Promise.resolve(), {
    message: 'path "/tmp/d" does not exist',
  })
  await bench.host.files.writeFile('/tmp/d', '', { mode: 0o644 }, signal)
  await assert.rejects(plugin.prepare?.(directory, signal) ?? Promise.resolve(), {
    message: 'only directory and block device are supported',
  })
  const below = persistent({ local: { path: '/tmp/d/x' } })
  await assert.rejects(plugin.prepare?.(below, signal) ?? Promise.resolve(), {
    message: 'stat /tmp/d/x: not a directory',
  })
  const evil = persistent({ local: { path: '/tmp/../etc' } })
  await assert.rejects(plugin.prepare?.(evil, signal) ?? Promise.resolve(), { code: 'InvalidPath' })
  await bench.close()
})

test('a disk is mounted once with the volume’s options, and bound read-only where asked (LOCAL-3, PLUG-12)', async () => {
  const bench = await createModelPluginFixture()
  bench.host.addDisk('/dev/sdz')
  const facts = { mountOptions: ['noatime', 'nodev', ''] }
  const spec = persistent({ local: { path: '/dev/sdz' } }, facts)
  const { plugin, request } = mounting(bench, spec)
  const device = plugin.plugin.device?.(spec)
  assert.ok(device)
  assert.equal(device.path(spec), `${root}/plugins/kubernetes.io/local-volume/mounts/pv`)
  await device.mount({ spec, pod: request.pod, devicePath: '', path: device.path(spec) }, signal)
  await plugin.plugin.mount(request, signal)
  for (const path of [device.path(spec), request.target]) {
    const { options } = await bench.host.mounts.info(path, signal)
    assert.ok(options.includes('noatime') && options.includes('nodev'), path)
  }
  const reader = mounting(bench, { ...spec, readOnly: true }, { pod: pod({ uid: 'uid-2' }) })
  await plugin.plugin.mount(reader.request, signal)
  await assert.rejects(bench.host.files.writeFile(`${reader.request.target}/f`, '', { mode: 0o644 }, signal), {
    code: 'EROFS',
  })
  await bench.host.files.writeFile(`${request.target}/f`, '', { mode: 0o644 }, signal)
  await bench.close()
})

test('a disk of which nobody says whether it is mounted is not taken for mounted (LOCAL-3)', async () => {
  const bench = await createModelPluginFixture()
  bench.host.addDisk('/dev/sdz')
  const spec = persistent({ local: { path: '/dev/sdz' } })
  const { plugin, request } = mounting(bench, spec)
  const device = plugin.plugin.device?.(spec)
  assert.ok(device)
  bench.host.faults.plant({ call: 'mounts.isMountPoint', kind: 'fails', code: 'TIMEOUT', times: 1 })
  const mount = () => device.mount({ spec, pod: request.pod, devicePath: '', path: device.path(spec) }, signal)
  await assert.rejects(mount(), /failed to mount device .* TIMEOUT/)
  await mount()
  assert.equal((await bench.host.mounts.info(device.path(spec), signal)).source, '/dev/sdz')
  await bench.close()
})

test('unmounting the device of a directory source touches nothing (LOCAL-6)', async () => {
  const bench = await createModelPluginFixture()
  await bench.host.files.mkdir('/tmp/d', 0o755, signal)
  await bench.host.mounts.mount({ source: 'tmpfs', target: '/tmp/d', type: 'tmpfs', options: [] }, signal)
  const device = bench.registry().find(directory).plugin.device?.(directory)
  await device?.unmount({ path: '/tmp/d' }, signal)
  assert.equal(await bench.host.mounts.isMountPoint('/tmp/d', signal), true)
  await bench.close()
})

test('a disk is found again after a restart, and grows (LOCAL-7, LOCAL-9)', async () => {
  const bench = await createModelPluginFixture()
  const disk = bench.host.addDisk('/dev/sdz')
  const spec = persistent({ local: { path: '/dev/sdz' } })
  const { plugin, request } = mounting(bench, spec)
  const path = plugin.plugin.device?.(spec)?.path(spec) ?? ''
  await plugin.plugin.device?.(spec)?.mount({ spec, pod: request.pod, devicePath: '', path }, signal)
  await plugin.plugin.mount(request, signal)
  const restored = await plugin.plugin.restore?.(
    { volumeName: 'pv', pod: podUid('uid-1'), path: request.target, mode: 'Filesystem' },
    signal,
  )
  assert.deepEqual(restored?.source, { kind: 'local', value: { path: '/dev/sdz' } })
  disk.sizeBytes = 2n << 30n
  await bench.host.devices.refreshLoop('/dev/sdz', signal)
  await plugin.plugin.expand?.({ spec, oldBytes: 1n << 30n, newBytes: 2n << 30n, stagingPath: path }, signal)
  assert.equal((await bench.host.filesystems.usage(request.target, signal)).capacityBytes, 2n << 30n)
  assert.equal((await mountPoints(bench.host, root)).length, 2)
  await bench.close()
})

test('block devices have the escaped global directory (LAYOUT-6, LOCAL-8)', async () => {
  const bench = await createModelPluginFixture()
  const spec = persistent({ local: { path: '/dev/sdz/' } }, { mode: 'Block' })
  const { plugin } = bench.registry().find(spec)
  const mapper = plugin.block?.(spec)
  assert.equal(mapper?.globalMapPath(spec), `${root}/plugins/kubernetes.io~local-volume/volumeDevices/pv`)
  assert.equal(mapper?.devicePath?.(spec), '/dev/sdz/')
  assert.equal(plugin.device?.(spec), undefined)
  await bench.close()
})
