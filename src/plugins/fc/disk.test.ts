// Is the right Fibre Channel disk found, and does it leave the kernel cleanly? FC-1 … FC-4, DVC-1, DVC-2, against stand-in
// sysfs and udev trees: there is no Fibre Channel hardware on our machines.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signal } from '../../../test/kit/plugin-fixture.ts'
import { showFcDisk } from '../../../test/kit/fake-iscsi.ts'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { createDisk } from '../../host/model/disks.ts'
import { createModelHost } from '../../host/model/model-host.ts'
import { realDeviceTree as tree } from '../disk/multipath.ts'
import { diskOf, directoryName, findDisk, identityOf, parseDirectoryName, releaseDisk } from './disk.ts'

const wwn = '50060e801049cfd1'

async function world() {
  const host = createModelHost({ clock: createVirtualClock() })
  await showFcDisk(host, createDisk(1n << 30n), wwn, 0)
  return { host, tree }
}

test('identity and directory names, there and back (FC-1, FC-2)', () => {
  const byTarget = { targetWWNs: ['aa', 'bb'], lun: 3 }
  const byIdentifier = { wwids: ['3600508b 400105e21'] }
  assert.deepEqual([identityOf(byTarget), identityOf(byIdentifier)], ['[aa bb]:3', '[3600508b 400105e21]'])
  assert.deepEqual(
    [directoryName(diskOf(byTarget)), directoryName(diskOf(byIdentifier))],
    ['aa-bb-lun-3', '3600508b_400105e21'],
  )
  assert.deepEqual(parseDirectoryName('aa-bb-lun-3'), { kind: 'target', wwns: ['aa', 'bb'], lun: '3' })
  for (const wwids of [['3600a', '3600b'], ['SATA_ST1']])
    assert.deepEqual(parseDirectoryName(directoryName(diskOf({ wwids }))), { kind: 'identifier', wwids })
  assert.deepEqual(parseDirectoryName('3600508b_400105e21'), { kind: 'identifier', wwids: ['3600508b_400105e21'] })
  assert.throws(() => diskOf({}), /either targetWWNs/)
})

test('found by path and by identifier; a multipath device is preferred; none found after a scan is an error (FC-3)', async () => {
  const deps = await world()
  const { files } = deps.host
  assert.equal(await findDisk(deps, diskOf({ targetWWNs: [wwn.toUpperCase()], lun: 0 }), signal), '/dev/sdq')
  assert.equal(await findDisk(deps, diskOf({ wwids: ['3600508b400105e21'] }), signal), '/dev/sdq')
  await files.symlink('../../sdq', '/dev/disk/by-id/scsi-VENDOR_1234', signal)
  assert.equal(await findDisk(deps, diskOf({ wwids: ['VENDOR 1234'] }), signal), '/dev/sdq')
  await files.mkdirAll('/sys/block/dm-1/slaves/sdq', 0o755, signal)
  assert.equal(await findDisk(deps, diskOf({ targetWWNs: [wwn], lun: 0 }), signal), '/dev/dm-1')
  await assert.rejects(findDisk(deps, diskOf({ targetWWNs: [wwn], lun: 9 }), signal), { message: 'no fc disk found' })
  assert.equal(await files.readText('/sys/class/scsi_host/host0/scan', signal), '- - -')
})

test('releasing flushes the multipath map and deletes each path to the disk (FC-4)', async () => {
  const deps = await world()
  const flushed: string[] = []
  deps.host.programs.set('multipath', ({ argv }) => {
    flushed.push(argv.slice(1).join(' '))
    return { exitCode: 0, stdout: '', stderr: '' }
  })
  await deps.host.files.mkdirAll('/sys/block/dm-1/slaves/sdq', 0o755, signal)
  deps.host.addDisk('/dev/dm-1')
  await releaseDisk(deps, '/dev/dm-1', signal)
  assert.deepEqual(flushed, ['-f /dev/dm-1'])
  assert.equal(await deps.host.files.readText('/sys/block/sdq/device/delete', signal), '1')
  await releaseDisk(deps, '/dev/gone', signal)
})

test('while the multipath map cannot be removed, no path to the disk is taken from under it (FC-4)', async () => {
  const deps = await world()
  deps.host.programs.set('multipath', () => ({ exitCode: 1, stdout: '', stderr: 'map in use' }))
  await deps.host.files.mkdirAll('/sys/block/dm-1/slaves/sdq', 0o755, signal)
  deps.host.addDisk('/dev/dm-1')
  await assert.rejects(releaseDisk(deps, '/dev/dm-1', signal), { code: 'DeviceInUse', message: /map in use/ })
  assert.equal(await deps.host.files.readText('/sys/block/sdq/device/delete', signal), '')
})
