// What if a volume was filled by somebody who means harm? Every walk through it ends in time and memory, stays inside, opens no
// pipe or device, follows no link, enters no mount, and treats names as bytes. Needs root.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { writeAtomically } from '../../src/host/atomic-files.ts'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import { openPlace } from '../kit/scratch-host.ts'

const { signal } = new AbortController()
const mebibyte = 1 << 20

/** Everything odd that fits into a directory. Names are bytes. Returns how many entries there are. */
function fill(volume: string): number {
  const run = (program: string, ...parameters: string[]) => {
    const { status, stderr } = spawnSync(program, parameters, { encoding: 'utf8' })
    assert.equal(status, 0, `${program}: ${stderr}`)
  }
  const names = [
    'vol_data.json',
    '..2026_01_01_00_00_00.1',
    '..data_tmp',
    '.hawser-delete-1-1',
    'lost+found',
    'new\nline',
  ]
  for (const name of names) fs.writeFileSync(join(volume, name), name)
  fs.writeFileSync(Buffer.concat([Buffer.from(`${volume}/`), Buffer.from([0xff, 0xfe, 0x0a])]), 'not UTF-8')
  fs.writeFileSync(join(volume, 'n'.repeat(255)), 'long')
  fs.symlinkSync('loop', join(volume, 'loop'))
  fs.symlinkSync('/etc', join(volume, '..data'))
  fs.symlinkSync('../outside', join(volume, 'way-out'))
  run('mkfifo', join(volume, 'pipe'))
  run('mknod', join(volume, 'disk'), 'b', '7', '250')
  run('mknod', join(volume, 'zero'), 'c', '1', '5')
  run('python3', '-c', 'import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])', join(volume, 'socket'))
  fs.writeFileSync(join(volume, 'setuid'), '', { mode: 0o755 })
  fs.chmodSync(join(volume, 'setuid'), 0o4755)
  fs.writeFileSync(join(volume, 'sparse'), '')
  fs.truncateSync(join(volume, 'sparse'), 8 * 1024 ** 4)
  fs.linkSync(join(volume, 'setuid'), join(volume, 'linked'))
  return names.length + 12
}

test('pipes, devices, sockets, links, sparse files and names that are no text are walked and deleted', async () => {
  await using place = openPlace()
  const { host, root } = place
  const [volume, outside] = [join(root, 'volume'), join(root, 'outside')]
  for (const path of [volume, outside]) fs.mkdirSync(path)
  fs.writeFileSync(join(outside, 'f'), 'x', { mode: 0o600 })
  const count = fill(volume)
  const { usedBytes, inodesUsed } = await host.filesystems.treeUsage(volume, signal)
  assert.equal(inodesUsed, BigInt(count)) // with the directory itself, and one file for its two names
  assert.ok(usedBytes < BigInt(mebibyte), `${usedBytes} bytes`)
  const { entries, refused } = await host.files.setGroup({ root: volume, gid: 777, readOnly: false }, signal)
  assert.deepEqual([entries, refused], [count + 1, 0])
  for (const name of fs.readdirSync(volume, { encoding: 'buffer' })) {
    const stat = fs.lstatSync(Buffer.concat([Buffer.from(`${volume}/`), name]))
    assert.equal(stat.gid, 777, name.toString())
  }
  const { mode, gid } = fs.statSync(join(outside, 'f'))
  assert.deepEqual([mode & 0o777, gid], [0o600, 0])
  await host.files.removeTree(volume, signal)
  assert.deepEqual(fs.readdirSync(root), ['outside'])
  assert.equal(fs.readFileSync(join(outside, 'f'), 'utf8'), 'x')
  assert.ok(fs.existsSync('/etc/passwd'))
})

test('a volume that is a pipe gets its group without waiting for a writer', { timeout: 10_000 }, async () => {
  await using place = openPlace()
  const { host, root } = place
  spawnSync('mkfifo', ['-m', '600', join(root, 'pipe')])
  const { entries } = await host.files.setGroup({ root: join(root, 'pipe'), gid: 777, readOnly: false }, signal)
  assert.equal(entries, 1)
  assert.equal(fs.statSync(join(root, 'pipe')).gid, 777)
})

test(
  '4,096 directories below each other are counted, given away and deleted with few open files',
  { timeout: 180_000 },
  async () => {
    await using place = openPlace()
    const { host, root } = place
    const depth = 4_096
    const script = `process.chdir(process.argv[1]); const fs = require('node:fs')
    for (let i = 0; i < ${depth}; i++) { fs.mkdirSync('d'); fs.writeFileSync('f', ''); process.chdir('d') }`
    const child = spawn(process.execPath, ['-e', script, root], { stdio: 'inherit' })
    assert.deepEqual(await once(child, 'exit'), [0, null])
    let most = 0
    const timer = setInterval(() => void (most = Math.max(most, fs.readdirSync('/proc/self/fd').length)), 1)
    const { inodesUsed } = await host.filesystems.treeUsage(root, signal)
    assert.equal(inodesUsed, BigInt(2 * depth + 1))
    const { entries } = await host.files.setGroup({ root, gid: 777, readOnly: false }, signal)
    assert.equal(entries, 2 * depth + 1)
    assert.equal(fs.statSync(join(root, ...Array.from({ length: 300 }, () => 'd'))).gid, 777)
    await host.files.removeTree(join(root, 'd'), signal)
    clearInterval(timer)
    assert.deepEqual(fs.readdirSync(root), ['f'])
    assert.ok(most < 400, `${most} files were open`)
  },
)

test('what is mounted inside a volume is neither counted, nor given away, nor deleted', async () => {
  await using place = openPlace()
  const { host, root } = place
  const [volume, precious] = [join(root, 'volume'), join(root, 'precious')]
  for (const path of [join(volume, 'sub/mounted'), precious]) fs.mkdirSync(path, { recursive: true })
  for (const path of [join(precious, 'data'), join(precious, 'more'), join(volume, 'file')])
    fs.writeFileSync(path, 'x', { mode: 0o600 })
  // The same filesystem, so a device number does not give it away; once a directory and once a file.
  await host.mounts.bind({ source: precious, target: join(volume, 'sub/mounted') }, signal)
  await host.mounts.bind({ source: join(precious, 'more'), target: join(volume, 'file') }, signal)
  assert.equal((await host.filesystems.treeUsage(volume, signal)).inodesUsed, 2n)
  const { entries } = await host.files.setGroup({ root: volume, gid: 777, readOnly: false }, signal)
  assert.equal(entries, 2)
  for (const name of ['data', 'more', '.']) assert.equal(fs.statSync(join(precious, name)).gid, 0, name)
  await assert.rejects(host.files.removeTree(volume, signal), { code: 'EBUSY' })
  assert.equal(fs.readFileSync(join(precious, 'data'), 'utf8'), 'x')
  for (const name of ['sub/mounted', 'file']) await host.mounts.unmount(join(volume, name), {}, signal)
  await host.files.removeTree(volume, signal)
  assert.deepEqual(fs.readdirSync(precious).toSorted(), ['data', 'more'])
})

test(
  '100,000 names in one directory cost little memory, and other calls are answered meanwhile',
  { timeout: 120_000 },
  async () => {
    await using place = openPlace()
    const { host, root } = place
    const volume = join(root, 'volume')
    fs.mkdirSync(volume)
    fs.writeFileSync(join(volume, 'f'), '')
    const script = `process.chdir(process.argv[1]); const fs = require('node:fs')
    for (let i = 0; i < 50_000; i++) { fs.symlinkSync('nowhere', 's' + i); fs.linkSync('f', 'l' + i) }`
    const child = spawn(process.execPath, ['-e', script, volume], { stdio: 'inherit' })
    assert.deepEqual(await once(child, 'exit'), [0, null])
    let answered = 0
    let over = false
    const others = (async () => {
      while (!over) {
        await host.files.stat(root, signal)
        answered += 1
      }
    })()
    const before = process.memoryUsage().rss
    assert.equal((await host.filesystems.treeUsage(volume, signal)).inodesUsed, 50_002n)
    assert.equal((await host.files.setGroup({ root: volume, gid: 777, readOnly: false }, signal)).entries, 100_002)
    await host.files.removeTree(volume, signal)
    over = true
    await others
    const grown = (process.memoryUsage().rss - before) / mebibyte
    assert.ok(grown < 200, `${Math.round(grown)} MiB more`)
    assert.ok(answered > 20, `${answered} calls answered`)
    assert.equal(fs.existsSync(volume), false)
  },
)

test(
  'a file that takes the name of another gets only its own mode: no setuid is handed over',
  { timeout: 60_000 },
  async () => {
    await using place = openPlace()
    const { host, root } = place
    const volume = join(root, 'volume')
    fs.mkdirSync(volume)
    // Somebody swaps their own setuid files with links to root's program, which has another mode. Only the bits of its group may
    // be added to that one.
    const roots = join(root, 'roots')
    fs.writeFileSync(roots, '', { mode: 0o700 })
    const script = `process.chdir(process.argv[1]); const fs = require('node:fs')
      const names = [...'abcdefgh']
      for (;;) {
        for (const name of names) {
          fs.writeFileSync('theirs-' + name, ''); fs.chownSync('theirs-' + name, 1000, 1000); fs.chmodSync('theirs-' + name, 0o6777)
          fs.linkSync('roots', 'link-' + name)
        }
        for (const name of names) fs.renameSync('theirs-' + name, 'volume/' + name)
        for (let turn = 0; turn < 200; turn++) {
          for (const name of names) { fs.renameSync('volume/' + name, 'kept'); fs.renameSync('link-' + name, 'volume/' + name); fs.renameSync('kept', 'link-' + name) }
        }
        for (const name of names) fs.rmSync('link-' + name)
        console.log('once more')
      }`
    const child = spawn(process.execPath, ['-e', script, root], { stdio: ['ignore', 'pipe', 'ignore'] })
    try {
      await once(child.stdout, 'data')
      child.stdout.resume()
      let most = 0
      for (let attempt = 0; attempt < 2_000; attempt += 1) {
        const gid = attempt % 2 === 0 ? 777 : 778
        const { entries } = await host.files.setGroup({ root: volume, gid, readOnly: false }, signal)
        most = Math.max(most, entries)
        const { mode } = fs.statSync(roots)
        assert.equal(mode & 0o6007, 0, `root's program has the mode ${(mode & 0o7777).toString(8)}`)
      }
      assert.ok(most > 4, `no more than ${most} entries were there at once`)
    } finally {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
  },
)

test('an immutable file stops a deletion with its name, and nothing outside is touched', async (context) => {
  await using place = openPlace()
  const { host, root } = place
  const volume = join(root, 'volume')
  fs.mkdirSync(join(volume, 'sub'), { recursive: true })
  const kept = join(volume, 'sub', 'kept')
  fs.writeFileSync(kept, '')
  if (spawnSync('chattr', ['+i', kept]).status !== 0) return context.skip('this filesystem has no immutable files')
  try {
    await assert.rejects(host.files.removeTree(volume, signal), /sub\/kept/)
    const { refused } = await host.files.setGroup({ root: volume, gid: 777, readOnly: false }, signal)
    assert.equal(refused, 1)
  } finally {
    spawnSync('chattr', ['-i', kept])
  }
  await host.files.removeTree(volume, signal)
})

test('what others put among the files of a projected volume is replaced, not read', { timeout: 30_000 }, async () => {
  const plants: Readonly<Record<string, (directory: string) => void>> = {
    pipe: (directory) => void spawnSync('mkfifo', [join(directory, 'pipe')]),
    'huge file': (directory) => {
      fs.writeFileSync(join(directory, 'huge'), '')
      fs.truncateSync(join(directory, 'huge'), 8 * 1024 ** 4)
    },
    'name that is no text': (directory) =>
      fs.writeFileSync(Buffer.concat([Buffer.from(`${directory}/`), Buffer.from([0xff])]), ''),
    'deep tree': (directory) =>
      void spawnSync(process.execPath, [
        '-e',
        `process.chdir(process.argv[1]); for (let i = 0; i < 500; i++) { require('node:fs').mkdirSync('d'); process.chdir('d') }`,
        directory,
      ]),
  }
  for (const [what, plant] of Object.entries(plants)) {
    await using place = openPlace()
    const { host, root } = place
    const payload = new Map([['key', { bytes: Buffer.from('value'), mode: 0o644 }]])
    let serial = 0
    const write = () =>
      writeAtomically({ files: host.files, now: () => 0, random: () => ++serial }, { directory: root, payload }, signal)
    assert.equal(await write(), true)
    assert.equal(await write(), false)
    plant(join(root, fs.readlinkSync(join(root, '..data'))))
    assert.equal(await write(), true, what)
    assert.deepEqual(fs.readdirSync(join(root, '..data')), ['key'], what)
    assert.equal(fs.readdirSync(root).length, 3, what)
  }
})

test('a walk needs no more than its own descriptors: a host ends with as many files open as it began with', async () => {
  const open = () => fs.readdirSync('/proc/self/fd').length
  await using place = openPlace()
  const volume = join(place.root, 'volume')
  fs.mkdirSync(join(volume, 'a/b/c'), { recursive: true })
  await using host = createLinuxHost()
  await host.files.stat(volume, signal)
  const before = open()
  for (let attempt = 0; attempt < 50; attempt += 1) {
    await host.filesystems.treeUsage(volume, signal)
    await host.files.setGroup({ root: volume, gid: 777 + attempt, readOnly: false }, signal)
    await host.files.readTree(volume, signal)
  }
  assert.ok(open() <= before + 4, `${open()} instead of ${before}`)
})
