// What do words after -o mean, and how are mount tables read? MOUNT-1, MOUNT-15, MOUNT-22, WART-13. Pure.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseBlkid } from './filesystems.ts'
import { needsHelper, parseMountOptions, splitOptions } from './mount-options.ts'
import { parseMountinfo, unescapeOctal } from './mountinfo.ts'

test('flag words become flags, userspace words vanish, the rest is data (MOUNT-1)', () => {
  const parsed = parseMountOptions([
    'ro',
    'nosuid,noexec',
    '_netdev',
    'x-systemd.automount',
    'nofail',
    'defaults',
    'size=1m',
    'discard',
  ])
  assert.equal(parsed.flags, 1 | 2 | 8)
  assert.deepEqual(parsed.data, ['size=1m', 'discard'])
  assert.equal(parsed.attributesSet, 1n | 2n | 8n)
})

test('later words win over earlier ones', () => {
  assert.equal(parseMountOptions(['ro', 'rw']).flags, 0)
  assert.equal(parseMountOptions(['rw', 'ro']).flags, 1)
  const atime = parseMountOptions(['noatime', 'relatime'])
  assert.equal(atime.attributesSet, 0n)
})

test('commas inside quotes do not split (MOUNT-22)', () => {
  assert.deepEqual(splitOptions('rw,context="a,b",x'), ['rw', 'context="a,b"', 'x'])
})

test('only network and fuse filesystems need a helper program (MOUNT-1, WART-1)', () => {
  assert.deepEqual(['nfs', 'cifs', 'fuse.sshfs', 'ext4', 'tmpfs', 'xfs'].map(needsHelper), [
    true,
    true,
    true,
    false,
    false,
    false,
  ])
})

test('mountinfo lines are parsed and their escapes decoded (MOUNT-15, WART-13)', () => {
  const line = '36 35 98:0 /mnt1 /mnt\\040two\\134x rw,noatime shared:7 master:1 - ext4 /dev/root rw,errors=continue\n'
  const [mount] = parseMountinfo(line)
  assert.deepEqual(
    [
      mount?.mountPoint,
      mount?.root,
      mount?.device,
      mount?.type,
      mount?.source,
      mount?.propagation,
      mount?.superOptions,
    ],
    ['/mnt two\\x', '/mnt1', '98:0', 'ext4', '/dev/root', 'shared', ['rw', 'errors=continue']],
  )
  assert.throws(() => parseMountinfo('36 35 98:0 / /x rw'))
  assert.equal(unescapeOctal('\\303\\244'), 'ä')
})

test('what blkid says (FMT-2)', () => {
  assert.deepEqual(parseBlkid('DEVNAME=/dev/x\nTYPE=ext4\n', '/dev/x'), { kind: 'filesystem', type: 'ext4' })
  assert.equal(parseBlkid('PTTYPE=dos\n', '/dev/x').kind, 'unknown')
  assert.equal(parseBlkid('TYPE=LVM2_member\n', '/dev/x').kind, 'filesystem')
  assert.throws(() => parseBlkid('garbage\n', '/dev/x'), { code: 'FORMAT' })
})
