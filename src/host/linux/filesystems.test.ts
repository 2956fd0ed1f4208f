// Which programs are run on a disk, and what do their answers mean? FMT-2 … FMT-4, RESIZE-1, RESIZE-2, WART-12.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Command, CommandResult } from '../host.ts'
import { HostError } from '../host-error.ts'
import { createLinuxFilesystems } from './filesystems.ts'
import type { WorkerPool } from './worker-pool.ts'

const { signal } = new AbortController()
const device = '/dev/x'

/** Programs by name: an exit code, or what they print. One that is not named is not installed. */
function world(programs: Readonly<Record<string, number | string>>, calls: Readonly<Record<string, unknown>> = {}) {
  const ran: string[] = []
  const run = async ({ argv }: Command): Promise<CommandResult> => {
    ran.push(argv.join(' '))
    const answer = programs[argv[0]]
    if (answer === undefined) throw new HostError('NOPROGRAM', argv[0])
    return { exitCode: typeof answer === 'number' ? answer : 0, stdout: String(answer), stderr: '' }
  }
  // Only four calls are made here, none with a real device.
  const call = async (name: string) => {
    const usual: Readonly<Record<string, unknown>> = { deviceReadOnly: false, deviceSize: 1000n, endsAreZero: true }
    const value = { ...usual, ...calls }[name]
    if (value instanceof Error) throw value
    return value
  }
  return { ran, filesystems: createLinuxFilesystems({ call } as unknown as WorkerPool, run) }
}

test('blkid tells; exit 2 is blank only if the disk can be read and is zero; other failures are failures (FMT-2, WART-12)', async () => {
  const look = (blkid: number | string, calls = {}) => world({ blkid }, calls).filesystems.detect(device, signal)
  assert.deepEqual(await look('DEVNAME=/dev/x\nTYPE=ext4\n'), { kind: 'filesystem', type: 'ext4' })
  assert.deepEqual(await look('TYPE=ext4\nPTTYPE=dos\n'), {
    kind: 'unknown',
    description: 'unknown data, probably partitions',
  })
  assert.deepEqual(await look(2), { kind: 'blank' })
  assert.deepEqual(await look(2, { endsAreZero: false }), {
    kind: 'unknown',
    description: 'data that blkid does not name',
  })
  await assert.rejects(look(2, { endsAreZero: new HostError('EIO', 'unreadable') }), { code: 'EIO' })
  await assert.rejects(look(4), { code: 'CHILD' })
})

test('each kind of filesystem is made with its own words; what holds anything is never formatted (FMT-3)', async () => {
  for (const [type, words] of [
    ['ext3', 'mkfs.ext3 -O x -F -m0 /dev/x'],
    ['ext4', 'mkfs.ext4 -O x -F -m0 /dev/x'],
    ['xfs', 'mkfs.xfs -O x -f /dev/x'],
    ['btrfs', 'mkfs.btrfs -O x /dev/x'],
  ] as const) {
    const { ran, filesystems } = world({ blkid: 2, [`mkfs.${type}`]: '' })
    await filesystems.make({ device, type, options: ['-O', 'x'] }, signal)
    assert.equal(ran.at(-1), words)
  }
  for (const found of ['TYPE=ext4', 'PTTYPE=gpt']) {
    const { ran, filesystems } = world({ blkid: found, 'mkfs.ext4': '' })
    await assert.rejects(filesystems.make({ device, type: 'ext4' }, signal), { code: 'EEXIST' })
    assert.equal(ran.length, 1)
  }
})

test('the status of fsck is a set of bits; errors left stop, everything else does not (FMT-4, WART-12)', async () => {
  const kinds: Record<string, string> = {}
  for (const exit of [0, 1, 2, 3, 4, 5, 6, 8, 12, 16])
    kinds[exit] = (await world({ fsck: exit }).filesystems.check(device, signal)).kind
  assert.deepEqual(kinds, {
    0: 'clean',
    1: 'corrected',
    2: 'corrected',
    3: 'corrected',
    4: 'errorsLeft',
    5: 'errorsLeft',
    6: 'errorsLeft',
    8: 'failed',
    12: 'errorsLeft',
    16: 'failed',
  })
  const { ran, filesystems } = world({})
  assert.equal((await filesystems.check(device, signal)).kind, 'unavailable')
  assert.deepEqual(ran, ['fsck -a /dev/x'])
})

test('what can grow, by which program; read-only and blank disks are left alone (RESIZE-1, RESIZE-2)', async () => {
  const may = (type: string, programs = {}, calls = {}) =>
    world({ blkid: type === '' ? 2 : `TYPE=${type}`, ...programs }, calls).filesystems.mayGrow(device, '/m', signal)
  assert.deepEqual([await may(''), await may('ext4'), await may('xfs')], [false, true, true])
  assert.equal(await may('ext4', {}, { deviceReadOnly: true }), false)
  const superblock = (total: number) => ({ btrfs: `total_bytes\t\t${total}\nsectorsize\t\t100\n` })
  assert.deepEqual([await may('btrfs', superblock(900)), await may('btrfs', superblock(899))], [false, true])
  await assert.rejects(may('ext2'), { code: 'ENOTSUP' })
  for (const [type, words] of [
    ['ext3', 'resize2fs /dev/x'],
    ['xfs', 'xfs_growfs -d /m'],
    ['btrfs', 'btrfs filesystem resize max /m'],
  ] as const) {
    const { ran, filesystems } = world({ blkid: `TYPE=${type}`, [words.split(' ')[0]!]: '' })
    assert.equal(await filesystems.grow({ device, mountPath: '/m' }, signal), true)
    assert.equal(ran.at(-1), words)
  }
})
