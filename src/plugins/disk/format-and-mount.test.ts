// Is only a blank disk formatted, and is every failure named? FMT-1 … FMT-7, TP-17, TP-18.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { createModelHost } from '../../host/model/model-host.ts'
import { hasTag } from '../../volume/effect.ts'
import { formatAndMount } from './format-and-mount.ts'

const { signal } = new AbortController()

async function world() {
  const host = createModelHost({ clock: createVirtualClock() })
  const disk = host.addDisk('/dev/sda')
  const mount = (fsType = '', options: readonly string[] = []) =>
    formatAndMount(host, { device: '/dev/sda', target: '/tmp', fsType, options }, signal)
  return { host, disk, mount }
}

test('a blank disk is formatted as ext4 and mounted; again it is only mounted (TP-17)', async () => {
  const { host, disk, mount } = await world()
  await mount()
  assert.deepEqual(disk.content, { kind: 'filesystem', type: 'ext4' })
  await host.files.writeFile('/tmp/kept', 'x', { mode: 0o644 }, signal)
  await host.mounts.unmount('/tmp', {}, signal)
  await mount('ext4')
  assert.equal(await host.files.readText('/tmp/kept', signal), 'x')
})

test('a blank disk is never formatted for a read-only mount (TP-17)', async () => {
  const { disk, mount } = await world()
  const message = 'cannot mount unformatted disk /dev/sda as we are manipulating it in read-only mode'
  await assert.rejects(mount('', ['ro']), { code: 'UnformattedReadOnly', effect: 'none', message })
  assert.equal(disk.content.kind, 'blank')
})

test('errors that fsck leaves stop the mount; corrected ones do not; read-only mounts are not checked (TP-18)', async () => {
  const { host, disk, mount } = await world()
  await host.filesystems.make({ device: '/dev/sda', type: 'ext4' }, signal)
  disk.health = 'errorsLeft'
  await assert.rejects(mount(), { code: 'HasFilesystemErrors' })
  await mount('', ['ro'])
  await host.mounts.unmount('/tmp', {}, signal)
  disk.health = 'corrected'
  await mount()
})

test('another filesystem than asked for is a mismatch; partitions are never formatted over (TP-18, FMT-5)', async () => {
  const { host, disk, mount } = await world()
  await host.filesystems.make({ device: '/dev/sda', type: 'xfs' }, signal)
  const error = await mount('ext4').catch((caught: unknown) => caught)
  assert.ok(hasTag(error, 'filesystemMismatch'))
  assert.match(
    (error as Error).message,
    /^mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t ext4 -o defaults \/dev\/sda \/tmp\nOutput: [^]*\nThe disk holds xfs, not ext4\.\n$/,
  )
  disk.content = { kind: 'unknown', description: 'unknown data, probably partitions' }
  await assert.rejects(mount('ext4'), { code: 'FilesystemMismatch' })
  assert.equal(disk.content.kind, 'unknown')
})

test('a disk that cannot be looked at is not touched; a failing mkfs says so (TP-18)', async () => {
  const { host, disk, mount } = await world()
  host.faults.plant({ call: 'filesystems.detect', kind: 'fails', times: 1 })
  await assert.rejects(mount(), { code: 'GetDiskFormatFailed' })
  assert.equal(disk.content.kind, 'blank')
  host.faults.plant({ call: 'filesystems.make', kind: 'fails', times: 1 })
  await assert.rejects(mount(), { code: 'FormatFailed', effect: 'none' })
  await assert.rejects(mount('nofs', ['noatime']), {
    message:
      'format of disk "/dev/sda" failed: type:("nofs") target:("/tmp") options:("noatime,defaults") errcode:(executable file not found in $PATH) output:()',
  })
  host.faults.plant({ call: 'mounts.mount', kind: 'failsAfter', times: 1 })
  await assert.rejects(mount(), { code: 'UnknownMountError', effect: 'unknown' })
})
