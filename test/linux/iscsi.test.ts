// Does the iscsi plugin work end to end on a real machine? There is no iSCSI here: a stand-in for iscsiadm, stand-in sysfs and udev
// trees, and a loop device in place of the remote disk. Mounting, formatting and unmounting are real. Needs root.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { podUid } from '../../src/api/names.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createIscsiPlugin } from '../../src/plugins/iscsi/plugin.ts'
import { createPluginBench, mountPoints, pod, signal } from '../plugins/bench.ts'
import { persistent } from '../plugins/volumes.ts'
import { openPlace } from './scratch-place.ts'

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

test('iscsi (stand-ins for iscsiadm, sysfs and udev; a loop device as the disk): login, format, mount, restore, logout', async () => {
  const tools = fs.mkdtempSync(join(tmpdir(), 'hawser-tools-'))
  const file = join(tools, 'disk')
  await using maker = openPlace()
  await maker.makeDiskFile(file, 16 << 20)
  const disk = await maker.host.devices.attachLoop({ file, readOnly: false }, signal)
  try {
    const searchPath = standInIscsiadm(tools, disk)
    await using place = openPlace({ searchPath })
    const root = join(place.root, 'kubelet')
    const bench = await createPluginBench(place.host, root)
    const deps = {
      ...bench.deps,
      clock: createSystemClock(),
      deviceTree: { sys: join(tools, 'sys'), dev: join(tools, 'dev') },
    }
    const plugin = createIscsiPlugin(deps)
    const spec = persistent({ iscsi: { targetPortal: '10.0.0.1', iqn, lun: 0, fsType: 'ext4' } })
    const device = plugin.device?.(spec)
    assert.ok(device)
    const path = device.path(spec)
    const devicePath = (await device.waitForAttach?.({ spec, devicePath: '', pod: pod() }, signal)) ?? ''
    assert.equal(fs.readFileSync(join(tools, 'sys/class/scsi_host/host7/scan'), 'utf8'), '0 0 0')
    await device.mount({ spec, pod: pod(), devicePath, path }, signal)
    const target = join(root, 'pods/uid-1/volumes/kubernetes.io~iscsi/pv')
    const request = {
      spec,
      pod: pod(),
      target,
      deviceMountPath: path,
      ownership: { fsGroup: 2000 },
      foundOnDisk: false,
      remount: false,
      notify: () => undefined,
    }
    await plugin.mount(request, signal)
    fs.writeFileSync(join(target, 'f'), 'x')
    assert.equal(fs.statSync(target).gid, 2000)
    const restored = await createIscsiPlugin(deps).restore?.(
      { volumeName: 'pv', pod: podUid('uid-1'), path: target, mode: 'Filesystem' },
      signal,
    )
    assert.deepEqual(restored?.source.value, { targetPortal: '10.0.0.1:3260', iqn, lun: 0, iscsiInterface: 'default' })
    await plugin.unmount({ volumeName: 'pv', pod: podUid('uid-1'), target }, signal)
    await device.unmount({ path }, signal)
    assert.deepEqual(await mountPoints(place.host, root), [])
    assert.equal(fs.existsSync(path), false)
    const calls = fs.readFileSync(join(tools, 'calls'), 'utf8').trim().split('\n')
    assert.match(calls.at(-2) ?? '', /--logout$/)
    assert.match(calls.at(-1) ?? '', /-o delete$/)
    await bench.close()
  } finally {
    await maker.host.devices.detachLoop(disk, signal)
    fs.rmSync(tools, { recursive: true })
  }
})
