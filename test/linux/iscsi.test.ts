// Does the iscsi plugin work end to end on a real machine? There is no iSCSI here: a stand-in for iscsiadm, stand-in sysfs and udev
// trees, and a loop device in place of the remote disk. Mounting, formatting and unmounting are real. Needs root.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createIscsiPlugin } from '../../src/plugins/iscsi/plugin.ts'
import { persistent } from '../kit/volume-specs.ts'
import { liveThrough, withLoopDisk } from './network-disk.ts'

const iqn = 'iqn.2026-01.dev.hawser:disk'

/** Shows and hides a session as the kernel would; answers 21 ("no objects found") to a second logout. */
function standInIscsiadm(directory: string, disk: string): string {
  const script = `#!/bin/sh
tree=${directory}
printf '%s\\n' "$*" >> $tree/calls
host=$tree/sys/class/iscsi_host/host7
link=$tree/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-${iqn}-lun-0
case "$*" in
  *--login)
    mkdir -p $host/device/session1/iscsi_session/session1 $host/device/session1/connection1:0/iscsi_connection/connection1:0
    echo ${iqn} > $host/device/session1/iscsi_session/session1/targetname
    echo 10.0.0.1 > $host/device/session1/connection1:0/iscsi_connection/connection1:0/address
    echo 3260 > $host/device/session1/connection1:0/iscsi_connection/connection1:0/port
    mkdir -p $tree/sys/class/scsi_host/host7 $tree/dev/disk/by-path
    : > $tree/sys/class/scsi_host/host7/scan
    ln -s ${disk} "$link" ;;
  *--logout)
    [ -d $host ] || exit 21
    rm -r $host "$link" ;;
esac
`
  fs.writeFileSync(join(directory, 'iscsiadm'), script, { mode: 0o755 })
  return `${directory}:/usr/sbin:/usr/bin:/sbin:/bin`
}

test('iscsi (stand-ins for iscsiadm, sysfs and udev; a loop device as the disk): login, format, mount, restore, logout', () =>
  withLoopDisk(async (tools, disk) => {
    const restored = await liveThrough({
      tools,
      searchPath: standInIscsiadm(tools, disk),
      folder: 'kubernetes.io~iscsi',
      spec: persistent({ iscsi: { targetPortal: '10.0.0.1', iqn, lun: 0, fsType: 'ext4' } }),
      create: createIscsiPlugin,
      found: () => assert.equal(fs.readFileSync(join(tools, 'sys/class/scsi_host/host7/scan'), 'utf8'), '0 0 0'),
    })
    assert.deepEqual(restored?.source.value, { targetPortal: '10.0.0.1:3260', iqn, lun: 0, iscsiInterface: 'default' })
    const calls = fs.readFileSync(join(tools, 'calls'), 'utf8').trim().split('\n')
    assert.match(calls.at(-2) ?? '', /--logout$/)
    assert.match(calls.at(-1) ?? '', /-o delete$/)
  }))
