// Does a node log in, share sessions and log out as it should? ISCSI-1 … ISCSI-10, against a stand-in for iscsiadm and sysfs:
// there is no iSCSI hardware on our machines.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createModelPluginFixture, inTime, mounting, pod, root, signal } from '../../../test/kit/plugin-fixture.ts'
import { FakeIscsi } from '../../../test/kit/fake-iscsi.ts'
import type { ModelPluginFixture } from '../../../test/kit/plugin-fixture.ts'
import { persistent } from '../../../test/kit/volume-specs.ts'
import { podUid } from '../../api/names.ts'
import { createDisk } from '../../host/model/disks.ts'
import type { DeviceMounter } from '../../volume/plugin.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { parseConfig } from './saved-config.ts'
import { sessionHosts } from './session.ts'
import { devicePathOf, parseDirectory, targetOf } from './target.ts'

const iqn = 'iqn.2026-01.dev.hawser:disk'
const base64 = (text: string): string => Buffer.from(text).toString('base64')
const iscsi = (more: object = {}, name = 'pv') =>
  persistent({ iscsi: { targetPortal: '10.0.0.1', iqn, lun: 0, ...more } }, { name })

function deviceOf(bench: ModelPluginFixture, spec: VolumeSpec): DeviceMounter {
  const device = bench.registry().find(spec).plugin.device?.(spec)
  assert.ok(device)
  return device
}

async function withMountedDisk(spec = iscsi()) {
  const bench = await createModelPluginFixture()
  const fake = new FakeIscsi(bench.host, createDisk(1n << 30n), iqn)
  const device = deviceOf(bench, spec)
  const path = device.path(spec)
  const devicePath = (await device.waitForAttach?.({ spec, devicePath: '', pod: pod() }, signal)) ?? ''
  await device.mount({ spec, pod: pod(), devicePath, path }, signal)
  return { bench, fake, device, path }
}

test('names of portals, interfaces, devices and directories (ISCSI-1 … ISCSI-3)', () => {
  const plain = targetOf(iscsi({ portals: ['10.0.0.2:3261', '10.0.0.1:3260'] }))
  assert.deepEqual([plain.portals, plain.interface], [['10.0.0.1:3260', '10.0.0.2:3261'], 'default'])
  assert.equal(targetOf(iscsi({ initiatorName: 'iqn.x' })).interface, '10.0.0.1:3260:pv')
  assert.equal(targetOf(iscsi({ targetPortal: '[fe80::1]' })).portals[0], '[fe80::1]:3260')
  assert.equal(devicePathOf('/dev', '10.0.0.1:3260', plain), `/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-${iqn}-lun-0`)
  const parsed = parseDirectory(`/x/iface-default/10.0.0.1:3260-${iqn}-lun-7`)
  assert.deepEqual([parsed?.portals, parsed?.iqn, parsed?.lun], [['10.0.0.1:3260'], iqn, '7'])
  assert.equal(parseDirectory('/x/y/z'), undefined)
})

test('login, metadata without secrets, mount; then everything is undone (ISCSI-4, ISCSI-5)', async () => {
  const bench = await createModelPluginFixture()
  const fake = new FakeIscsi(bench.host, createDisk(1n << 30n), iqn)
  const spec = iscsi()
  const device = deviceOf(bench, spec)
  const { request } = mounting(bench, spec)
  const path = device.path(spec)
  assert.equal(path, `${root}/plugins/kubernetes.io/iscsi/iface-default/10.0.0.1:3260-${iqn}-lun-0`)
  const devicePath = (await device.waitForAttach?.({ spec, devicePath: '', pod: request.pod }, signal)) ?? ''
  assert.equal(devicePath, fake.linkOf('10.0.0.1:3260'))
  const prefix = '-m discoverydb -t sendtargets -p 10.0.0.1:3260 -I default'
  const node = `-m node -p 10.0.0.1:3260 -T ${iqn} -I default`
  assert.deepEqual(fake.calls, [
    `${prefix} -o new`,
    `${prefix} --discover`,
    `${node} -o update -n node.session.scan -v manual`,
    `${node} --login`,
    `${node} -o update -n node.startup -v manual`,
  ])
  assert.equal(await bench.host.files.readText('/sys/class/scsi_host/host3/scan', signal), '0 0 0')
  fake.calls.length = 0
  await device.waitForAttach?.({ spec, devicePath: '', pod: request.pod }, signal)
  assert.deepEqual(fake.calls, [], 'a session that exists is used')
  await device.mount({ spec, pod: request.pod, devicePath, path }, signal)
  assert.equal(await bench.host.mounts.isMountPoint(path, signal), true)
  await device.unmount({ path }, signal)
  assert.deepEqual(fake.calls, [`${node} --logout`, `${node} -o delete`])
  assert.equal(await bench.host.files.exists(path, signal), false)
  await bench.close()
})

test('a disk whose server is gone answers nothing but errors, and is taken off all the same (MOUNT-12, ISCSI-8)', async () => {
  const { bench, fake, device, path } = await withMountedDisk()
  for (const call of ['files.exists', 'files.lstat', 'mounts.info', 'mounts.isMountPoint'])
    bench.host.faults.plant({ call, below: path, kind: 'fails', code: 'EIO', times: 1 })
  fake.calls.length = 0
  await device.unmount({ path }, signal)
  bench.host.faults.clear()
  assert.equal(await bench.host.files.exists(path, signal), false)
  assert.ok(fake.calls.some((call) => call.includes('--logout')))
  await bench.close()
})

test('the session stays while another disk of the target is used here (ISCSI-8)', async () => {
  const { bench, fake, device, path } = await withMountedDisk()
  await bench.host.files.mkdirAll(path.replace(/lun-0$/, 'lun-1'), 0o750, signal)
  fake.calls.length = 0
  await device.unmount({ path }, signal)
  assert.deepEqual(fake.calls, [])
  assert.equal(await bench.host.files.readText('/sys/block/sda/device/delete', signal), '1')
  await bench.close()
})

test('disks with interfaces of their own share a session, which the last of them ends by its real interface (ISCSI-8)', async () => {
  const initiatorName = 'iqn.2026-01.me'
  const { bench, fake, device, path } = await withMountedDisk(iscsi({ initiatorName }, 'pv1'))
  const other = device.path(iscsi({ initiatorName, lun: 1 }, 'pv2'))
  await bench.host.files.mkdirAll(other, 0o750, signal)
  await bench.host.files.writeFile(`${root}/plugins/kubernetes.io/iscsi/iface-file`, '', { mode: 0o600 }, signal)
  fake.calls.length = 0
  await device.unmount({ path }, signal)
  assert.deepEqual([fake.calls, fake.sessions.size], [[], 1])
  await device.unmount({ path: other }, signal)
  const node = `-m node -p 10.0.0.1:3260 -T ${iqn} -I 10.0.0.1:3260:pv1`
  assert.deepEqual(
    [fake.calls, fake.sessions.size],
    [
      [
        `${node} --logout`,
        `${node} -o delete`,
        '-m iface -I 10.0.0.1:3260:pv2 -o delete',
        '-m iface -I 10.0.0.1:3260:pv1 -o delete',
      ],
      0,
    ],
  )
  await bench.close()
})

test('of two disks that leave together, the second ends the session (ISCSI-8)', async () => {
  const { bench, fake, device, path } = await withMountedDisk()
  const other = path.replace(/lun-0$/, 'lun-1')
  await bench.host.files.mkdirAll(other, 0o750, signal)
  const { removeTree } = bench.host.files
  const removeSlowly: typeof removeTree = async (...parameters) => {
    for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    return removeTree(...parameters)
  }
  Object.assign(bench.host.files, { removeTree: removeSlowly })
  await Promise.all([path, other].map((one) => device.unmount({ path: one }, signal)))
  assert.equal(fake.sessions.size, 0)
  await bench.close()
})

test('CHAP comes from the secret; passwords go into the records and are no arguments (ISCSI-7, A14)', async () => {
  const bench = await createModelPluginFixture()
  const fake = new FakeIscsi(bench.host, createDisk(1n << 30n), iqn)
  const data = {
    'node.session.auth.username': base64('user'),
    'node.session.auth.password': base64('hunter2'),
    other: base64('x'),
  }
  await bench.client.create('Secret', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'chap', namespace: 'default' },
    data,
  })
  const spec = iscsi({ chapAuthSession: true, secretRef: { name: 'chap' } })
  const device = deviceOf(bench, spec)
  await device.waitForAttach?.({ spec, devicePath: '', pod: pod() }, signal)
  const updates = fake.calls.filter((call) => call.includes('auth')).map((call) => call.slice(call.indexOf('-n ')))
  assert.deepEqual(updates, ['-n node.session.auth.authmethod -v CHAP', '-n node.session.auth.username -v user'])
  assert.doesNotMatch(fake.calls.join('\n'), /hunter2/)
  const record = `/etc/iscsi/nodes/${iqn}/10.0.0.1,3260,1/default`
  const text = Buffer.from(await bench.host.files.readFile(record, signal)).toString()
  assert.match(text, /^node\.session\.auth\.password = hunter2\n# END RECORD$/m)
  assert.equal((await bench.host.files.stat(record, signal)).mode & 0o777, 0o600)
  bench.host.programs.set('iscsiadm', () => ({ exitCode: 0, stdout: '', stderr: '' }))
  const other = iscsi({ targetPortal: '10.0.0.9', chapAuthSession: true, secretRef: { name: 'chap' } })
  const error = await deviceOf(bench, other)
    .waitForAttach?.({ spec: other, devicePath: '', pod: pod() }, signal)
    .catch((caught: unknown) => caught)
  assert.match(String(error), /no node record of portal 10\.0\.0\.9:3260 .*: the CHAP password has no place/)
  assert.doesNotMatch(String(error), /hunter2/)
  const missing = iscsi({ chapAuthSession: true, secretRef: { name: 'none' } })
  await assert.rejects(
    deviceOf(bench, missing).waitForAttach?.({ spec: missing, devicePath: '', pod: pod() }, signal) ??
      Promise.resolve(),
    { effect: 'untried' },
  )
  await bench.close()
})

test('an initiator name makes an interface of its own, deleted again at the end (ISCSI-2)', async () => {
  const bench = await createModelPluginFixture()
  const fake = new FakeIscsi(bench.host, createDisk(1n << 30n), iqn)
  const spec = iscsi({ initiatorName: 'iqn.2026-01.me' })
  const device = deviceOf(bench, spec)
  const path = device.path(spec)
  const devicePath = (await device.waitForAttach?.({ spec, devicePath: '', pod: pod() }, signal)) ?? ''
  const face = '-m iface -I 10.0.0.1:3260:pv'
  assert.deepEqual(fake.calls.slice(0, 4), [
    '-m iface -I default -o show',
    `${face} -o new`,
    `${face} -o update -n iface.transport_name -v tcp`,
    `${face} -o update -n iface.initiatorname -v iqn.2026-01.me`,
  ])
  await device.mount({ spec, pod: pod(), devicePath, path }, signal)
  await device.unmount({ path }, signal)
  assert.equal(fake.calls.at(-1), `${face} -o delete`)
  await bench.close()
})

test('a portal that does not answer is no reason to fail while another does (ISCSI-6)', async () => {
  const bench = await createModelPluginFixture()
  const fake = new FakeIscsi(bench.host, createDisk(1n << 30n), iqn)
  const run = bench.host.programs.get('iscsiadm')
  assert.ok(run)
  bench.host.programs.set('iscsiadm', (command, own) =>
    command.argv.includes('10.0.0.2:3260') ? { exitCode: 8, stdout: '', stderr: 'no answer' } : run(command, own),
  )
  const spec = iscsi({ portals: ['10.0.0.2'] })
  const found = inTime(
    bench.clock,
    deviceOf(bench, spec).waitForAttach?.({ spec, devicePath: '', pod: pod() }, signal) ?? Promise.resolve(''),
  )
  assert.equal(await found, fake.linkOf('10.0.0.1:3260'))
  bench.host.programs.set('iscsiadm', () => ({ exitCode: 8, stdout: '', stderr: 'no answer' }))
  const dead = iscsi({ targetPortal: '10.0.0.3' })
  await assert.rejects(
    deviceOf(bench, dead).waitForAttach?.({ spec: dead, devicePath: '', pod: pod() }, signal) ?? Promise.resolve(),
    { code: 'LoginFailed', effect: 'none' },
  )
  await bench.close()
})

test('the disk of an adapter that speaks iSCSI itself is found by its own name, and given back (ISCSI-5)', async () => {
  const bench = await createModelPluginFixture()
  const fake = new FakeIscsi(bench.host, createDisk(1n << 30n), iqn)
  const spec = iscsi()
  const device = deviceOf(bench, spec)
  fake.prefix = 'pci-0000:05:00.0-'
  const devicePath = (await device.waitForAttach?.({ spec, devicePath: '', pod: pod() }, signal)) ?? ''
  assert.equal(devicePath, `/dev/disk/by-path/pci-0000:05:00.0-ip-10.0.0.1:3260-iscsi-${iqn}-lun-0`)
  const path = device.path(spec)
  await device.mount({ spec, pod: pod(), devicePath, path }, signal)
  const disk = await bench.host.files.realpath(devicePath, signal)
  await device.unmount({ path }, signal)
  assert.equal(await bench.host.files.exists(disk, signal), false)
  await bench.close()
})

test('a node without iscsiadm says so, in the words of a kubelet', async () => {
  const bench = await createModelPluginFixture()
  const spec = iscsi()
  await assert.rejects(
    deviceOf(bench, spec).waitForAttach?.({ spec, devicePath: '', pod: pod() }, signal) ?? Promise.resolve(),
    { message: 'executable file not found in $PATH', effect: 'none' },
  )
  await bench.close()
})

test('sessions are found by target; both addresses count, IPv6 in brackets; what cannot be read is passed over (DVC-3)', async () => {
  const { host } = await createModelPluginFixture()
  const tree = { sys: '/sys', dev: '/dev' }
  assert.deepEqual([...(await sessionHosts({ host, tree }, iqn, signal))], [])
  const write = async (path: string, text: string) => {
    const full = `/sys/class/iscsi_host/${path}`
    await host.files.mkdirAll(full.slice(0, full.lastIndexOf('/')), 0o755, signal)
    await host.files.writeFile(full, `${text}\n`, { mode: 0o444 }, signal)
  }
  const session = async (number: number, target: string, address: string) => {
    const device = `host${number}/device/session${number}`
    await write(`${device}/iscsi_session/session${number}/targetname`, target)
    const connection = `${device}/connection${number}:0/iscsi_connection/connection${number}:0`
    await write(`${connection}/address`, address)
    await write(`${connection}/port`, '3260')
    await write(`${connection}/persistent_address`, 'portal')
    await write(`${connection}/persistent_port`, '3261')
  }
  await session(3, iqn, 'fd00::1')
  await session(4, 'iqn.other', '10.0.0.4')
  await write('host5/device/session5/iscsi_session/session5/other', 'x')
  assert.deepEqual(
    [...(await sessionHosts({ host, tree }, iqn, signal))],
    [
      ['[fd00::1]:3260', 3],
      ['portal:3261', 3],
    ],
  )
})

test('a disk is found again by its mount, a device by its number; nothing found is an error (ISCSI-9, BLOCK-7)', async () => {
  const bench = await createModelPluginFixture()
  const fake = new FakeIscsi(bench.host, createDisk(1n << 30n), iqn)
  void fake
  const spec = iscsi()
  const { plugin, request } = mounting(bench, spec)
  const device = deviceOf(bench, spec)
  const restore = (mode: 'Filesystem' | 'Block', path: string) =>
    plugin.plugin.restore?.({ volumeName: 'pv', pod: podUid('uid-1'), path, mode }, signal) ??
    Promise.resolve(undefined)
  await assert.rejects(restore('Filesystem', request.target), { code: 'NotRestorable', effect: 'untried' })
  const devicePath = (await device.waitForAttach?.({ spec, devicePath: '', pod: pod() }, signal)) ?? ''
  await device.mount({ spec, pod: pod(), devicePath, path: device.path(spec) }, signal)
  await plugin.plugin.mount(request, signal)
  const value = { targetPortal: '10.0.0.1:3260', iqn, lun: 0, iscsiInterface: 'default' }
  assert.deepEqual((await restore('Filesystem', request.target))?.source, { kind: 'iscsi', value })

  const map = `${root}/plugins/kubernetes.io/iscsi/volumeDevices/iface-default/10.0.0.1:3260-${iqn}-lun-0`
  await bench.host.files.mkdirAll(map, 0o750, signal)
  await bench.host.files.writeFile(`${map}/uid-1`, '', { mode: 0o750 }, signal)
  await bench.host.mounts.bind({ source: '/dev/sda', target: `${map}/uid-1` }, signal)
  await bench.host.files.symlink('/dev/sda', '/tmp/link', signal)
  assert.deepEqual((await restore('Block', '/tmp/link'))?.source, { kind: 'iscsi', value })
  await assert.rejects(restore('Block', '/tmp/none'), { code: 'NotRestorable' })
  await bench.close()
})

test('a disk with an interface of its own is found again where it is mounted (ISCSI-3, ISCSI-9)', async () => {
  const spec = iscsi({ initiatorName: 'iqn.2026-01.me' })
  const { bench, device, path } = await withMountedDisk(spec)
  const { plugin, request } = mounting(bench, spec)
  await plugin.plugin.mount({ ...request, deviceMountPath: path }, signal)
  const wanted = { volumeName: 'pv', pod: podUid('uid-1'), path: request.target, mode: 'Filesystem' as const }
  const restored = await plugin.plugin.restore?.(wanted, signal)
  assert.ok(restored)
  assert.equal(device.path(restored), path)
  await bench.close()
})

test('a disk is mounted with the pod’s SELinux label, which is found again on the mount (PLUG-10, MOUNT-22)', async () => {
  const bench = await createModelPluginFixture()
  const fake = new FakeIscsi(bench.host, createDisk(1n << 30n), iqn)
  const spec = iscsi()
  const { plugin } = bench.registry().find(spec)
  const device = deviceOf(bench, spec)
  const { request } = mounting(bench, spec)
  const path = device.path(spec)
  await device.waitForAttach?.({ spec, devicePath: '', pod: request.pod }, signal)
  const seLinuxLabel = 'system_u:object_r:container_file_t:s0:c1,c2'
  assert.equal(plugin.seLinuxMount?.(spec), true)
  const devicePath = fake.linkOf('10.0.0.1:3260')
  await device.mount({ spec, devicePath, path, pod: request.pod, seLinuxLabel }, signal)
  await plugin.mount({ ...request, deviceMountPath: path }, signal)
  const { superOptions } = await bench.host.mounts.info(path, signal)
  assert.ok(superOptions.includes(`context="${seLinuxLabel}"`), superOptions.join())
  const found = { volumeName: 'pv', pod: podUid('uid-1'), path: request.target, mode: 'Filesystem' as const }
  assert.equal(await plugin.restoredLabel?.(found, signal), seLinuxLabel)
})

test('damaged metadata tells nothing (WART-6)', () => {
  assert.equal(parseConfig(''), undefined)
  assert.equal(parseConfig('{"Portals":[]}'), undefined)
  assert.equal(parseConfig(`{"Portals":["p"],"Iqn":"i","Lun":"3"}`)?.lun, '3')
})

test('without its metadata a disk is known by the spec of its directory, or else by its name (WART-6, ISCSI-8)', async () => {
  const initiatorName = 'iqn.2026-01.me'
  const spec = iscsi({ initiatorName, portals: ['10.0.0.2'] })
  const logoutOf = (portal: string) => `-m node -p ${portal}:3260 -T ${iqn} -I 10.0.0.1:3260:pv --logout`
  const table = [
    ['its own spec', spec, ['10.0.0.1', '10.0.0.2']],
    ['no spec', undefined, ['10.0.0.1']],
    ['the spec of another disk', iscsi({ initiatorName, portals: ['10.0.0.3'], lun: 9 }), ['10.0.0.1']],
  ] as const
  for (const [name, given, portals] of table) {
    const { bench, fake, device, path } = await withMountedDisk(iscsi({ initiatorName }))
    await bench.host.mounts.unmount(path, {}, signal)
    await bench.host.files.writeFile(`${path}/iscsi.json`, '', { mode: 0o600 }, signal)
    await device.unmount({ path, ...(given === undefined ? {} : { spec: given }) }, signal)
    const logouts = fake.calls.filter((call) => call.endsWith('--logout'))
    assert.deepEqual([logouts, fake.sessions.size], [portals.map(logoutOf), 0], name)
    assert.equal(fake.calls.at(-1), '-m iface -I 10.0.0.1:3260:pv -o delete', name)
    assert.equal(await bench.host.files.exists(path, signal), false, name)
    await bench.close()
  }
})

test('a mapped device whose metadata is damaged is torn down as well (WART-6, ISCSI-8)', async () => {
  const bench = await createModelPluginFixture()
  const fake = new FakeIscsi(bench.host, createDisk(1n << 30n), iqn)
  const spec = persistent({ iscsi: { targetPortal: '10.0.0.1', iqn, lun: 0 } }, { mode: 'Block' })
  const block = bench.registry().find(spec).plugin.block?.(spec)
  assert.ok(block)
  const devicePath = (await block.waitForAttach?.({ spec, devicePath: '', pod: pod() }, signal)) ?? ''
  const globalMapPath = block.globalMapPath(spec)
  await block.setUpDevice?.({ spec, pod: pod(), devicePath, globalMapPath }, signal)
  await bench.host.files.writeFile(`${globalMapPath}/iscsi.json`, '{', { mode: 0o600 }, signal)
  await block.tearDownDevice?.({ spec, globalMapPath, devicePath }, signal)
  assert.deepEqual([fake.sessions.size, await bench.host.files.exists(globalMapPath, signal)], [0, false])
  await bench.close()
})
