// Does the fc plugin work end to end on a real machine? There is no Fibre Channel here: stand-in sysfs and udev trees, and a
// loop device in place of the remote disk. Mounting, formatting, flushing and unmounting are real. Needs root.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { createFcPlugin } from '../../src/plugins/fc/plugin.ts'
import { persistent } from '../kit/volume-specs.ts'
import { liveThrough, withLoopDisk } from './network-disk.ts'

const wwn = '50060e801049cfd1'

/** What kernel and udev show of a disk once an adapter has found it. */
function showDisk(tools: string, disk: string): string {
  const links = join(tools, 'dev/disk/by-path')
  const control = join(tools, 'sys/block', basename(disk), 'device')
  for (const directory of [links, control]) fs.mkdirSync(directory, { recursive: true })
  fs.symlinkSync(disk, join(links, `pci-0000:05:00.0-fc-0x${wwn}-lun-3`))
  fs.writeFileSync(join(control, 'delete'), '')
  return join(control, 'delete')
}

test('fc (stand-ins for sysfs and udev; a loop device as the disk): found, formatted, mounted, restored, let go (FC-2, FC-3, FC-4)', () =>
  withLoopDisk(async (tools, disk) => {
    const control = showDisk(tools, disk)
    const restored = await liveThrough({
      tools,
      folder: 'kubernetes.io~fc',
      spec: persistent({ fc: { targetWWNs: [wwn], lun: 3, fsType: 'ext4' } }),
      create: createFcPlugin,
      found: (devicePath) => assert.equal(devicePath, disk),
    })
    assert.deepEqual(restored?.source.value, { targetWWNs: [wwn], lun: 3 })
    assert.equal(fs.readFileSync(control, 'utf8'), '1')
  }))

test('fc (stand-ins for sysfs and udev): a disk that no adapter finds is told after each of them has scanned (FC-3)', () =>
  withLoopDisk(async (tools) => {
    const adapters = ['host3', 'host4'].map((name) => join(tools, 'sys/class/scsi_host', name))
    for (const adapter of adapters) fs.mkdirSync(adapter, { recursive: true })
    const life = {
      tools,
      folder: 'kubernetes.io~fc',
      spec: persistent({ fc: { targetWWNs: [wwn], lun: 9 } }),
      create: createFcPlugin,
    }
    await assert.rejects(liveThrough(life), { message: 'no fc disk found', effect: 'none' })
    assert.deepEqual(
      adapters.map((adapter) => fs.readFileSync(join(adapter, 'scan'), 'utf8')),
      ['- - -', '- - -'],
    )
  }))
