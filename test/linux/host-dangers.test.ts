// What if others play foul or a server dies? Racing symlink swaps, deep and odd trees, hanging filesystems. Needs root.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { writeAtomically } from '../../src/host/atomic-files.ts'
import { cleanMountPoint } from '../../src/host/clean-mount-point.ts'
import { HostError } from '../../src/host/host-error.ts'
import * as libc from '../../src/host/linux/libc.ts'
import { bindSubPath, cleanSubPaths } from '../../src/host/subpaths.ts'
import { openPlace } from '../kit/scratch-host.ts'

const { signal } = new AbortController()

/** A process that swaps `name` between a directory and a link to outside as fast as it can. */
function startSwapping(directory: string, name: string, outside: string): AsyncDisposable {
  const script = `
    const fs = require('node:fs')
    process.chdir(process.argv[1])
    const [name, outside] = process.argv.slice(2)
    fs.symlinkSync(outside, 'evil')
    for (;;) {
      try { fs.renameSync(name, 'kept'); fs.renameSync('evil', name) } catch {}
      try { fs.renameSync(name, 'evil'); fs.renameSync('kept', name) } catch {}
    }`
  const child = spawn(process.execPath, ['-e', script, directory, name, outside], { stdio: 'ignore' })
  return {
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

const mayHappen = ['EXDEV', 'ENOENT', 'ENOTDIR', 'ELOOP', 'EAGAIN', 'EEXIST']

test(
  '10,000 openings and 300 binds of a racing sub-path never lead out of the volume (SUBPATH-1)',
  { timeout: 120_000 },
  async () => {
    await using place = openPlace()
    const { host, root } = place
    const [volume, outside, podDirectory] = ['volume', 'outside', 'pod'].map((name) => join(root, name)) as [
      string,
      string,
      string,
    ]
    for (const path of [join(volume, 'sub'), outside, podDirectory]) fs.mkdirSync(path, { recursive: true })
    fs.writeFileSync(join(volume, 'sub', 'f'), 'inside')
    fs.writeFileSync(join(outside, 'f'), 'outside')
    const inside = fs.statSync(join(volume, 'sub', 'f'), { bigint: true }).ino
    let [opened, refused, bound] = [0, 0, 0]
    await using swapping = startSwapping(volume, 'sub', '../outside')
    void swapping
    for (let attempt = 0; attempt < 10_000; attempt += 1) {
      try {
        await using file = await host.files.openBeneath(volume, 'sub/f', signal)
        assert.equal(file.stat.inode, inside, 'a file outside of the volume was opened')
        opened += 1
      } catch (error) {
        assert.ok(error instanceof HostError && mayHappen.includes(error.code), String(error))
        refused += 1
      }
    }
    const target = join(podDirectory, 'volume-subpaths/v/c/0')
    for (let attempt = 0; attempt < 300; attempt += 1) {
      try {
        await bindSubPath(host, { volumePath: volume, subPath: 'sub', target, podDirectory }, signal)
        assert.equal(fs.readFileSync(join(target, 'f'), 'utf8'), 'inside')
        bound += 1
        await cleanSubPaths(host, podDirectory, 'v', signal)
      } catch (error) {
        assert.ok(error instanceof HostError && mayHappen.includes(error.code), String(error))
      }
    }
    assert.ok(
      opened > 0 && refused > 0 && bound > 0,
      `the race was one-sided: ${opened} opened, ${refused} refused, ${bound} bound`,
    )
  },
)

test('10,000 racing directory creations never make one outside (SUBPATH-4)', { timeout: 120_000 }, async () => {
  await using place = openPlace()
  const { host, root } = place
  const [volume, outside] = [join(root, 'volume'), join(root, 'outside')]
  fs.mkdirSync(join(volume, 'sub'), { recursive: true })
  fs.mkdirSync(outside)
  await using swapping = startSwapping(volume, 'sub', '../outside')
  void swapping
  let made = 0
  for (let attempt = 0; attempt < 10_000; attempt += 1) {
    try {
      await host.files.mkdirBeneath(volume, `sub/d${attempt}`, 0o755, signal)
      made += 1
    } catch (error) {
      assert.ok(error instanceof HostError && mayHappen.includes(error.code), String(error))
    }
  }
  assert.deepEqual(fs.readdirSync(outside), [])
  assert.ok(made > 0)
})

test(
  '10,000 racing file writes and 300 racing atomic writes touch nothing outside (ATOMIC-1)',
  { timeout: 180_000 },
  async () => {
    await using place = openPlace()
    const { host, root } = place
    const [volume, outside] = [join(root, 'volume'), join(root, 'outside')]
    fs.mkdirSync(join(volume, 'sub'), { recursive: true })
    fs.mkdirSync(outside)
    fs.writeFileSync(join(outside, 'passwd'), 'root')
    const bytes = Buffer.from('evil')
    let written = 0
    {
      await using swapping = startSwapping(volume, 'sub', '../outside')
      void swapping
      for (let attempt = 0; attempt < 10_000; attempt += 1) {
        const path = attempt % 2 === 0 ? 'sub/passwd' : `sub/f${attempt}`
        try {
          await host.files.writeTree(volume, [{ path, bytes, mode: 0o644 }], signal)
          written += 1
        } catch (error) {
          assert.ok(error instanceof HostError && mayHappen.includes(error.code), String(error))
        }
      }
    }
    assert.deepEqual([fs.readdirSync(outside), fs.readFileSync(join(outside, 'passwd'), 'utf8')], [['passwd'], 'root'])
    assert.ok(written > 0)
    // An attacker inside the volume makes ..data lead out again and again.
    const directory = join(root, 'atomic')
    fs.mkdirSync(directory)
    const deps = {
      files: host.files,
      now: () => Date.now(),
      random: (limit: number) => Math.floor(Math.random() * limit),
    }
    const write = (text: string) =>
      writeAtomically(
        deps,
        { directory, payload: new Map([['passwd', { bytes: Buffer.from(text), mode: 0o644 }]]) },
        signal,
      )
    await write('first')
    {
      await using swapping = startSwapping(directory, '..data', '../outside')
      void swapping
      for (let attempt = 0; attempt < 300; attempt += 1) {
        await write(`try ${attempt}`).catch((error: unknown) => assert.ok(error instanceof HostError, String(error)))
      }
    }
    assert.deepEqual([fs.readdirSync(outside), fs.readFileSync(join(outside, 'passwd'), 'utf8')], [['passwd'], 'root'])
  },
)

test('a racing swap never lets the group walk change a file outside (FSG-2)', { timeout: 120_000 }, async () => {
  await using place = openPlace()
  const { host, root } = place
  const [volume, outside] = [join(root, 'volume'), join(root, 'outside')]
  fs.mkdirSync(join(volume, 'sub'), { recursive: true })
  fs.mkdirSync(outside)
  for (const path of [join(volume, 'sub/f'), join(outside, 'f')]) fs.writeFileSync(path, '', { mode: 0o600 })
  await using swapping = startSwapping(volume, 'sub', '../outside')
  void swapping
  for (let attempt = 0; attempt < 2_000; attempt += 1) {
    await host.files.setGroup({ root: volume, gid: 777, readOnly: false }, signal).catch((error: unknown) => {
      assert.ok(error instanceof HostError && mayHappen.includes(error.code), String(error))
    })
  }
  const stat = fs.statSync(join(outside, 'f'))
  assert.deepEqual([stat.gid, stat.mode & 0o777], [0, 0o600])
})

test(
  'a deep tree with odd names is deleted, and a mount at its bottom saves what it shows (MOUNT-25)',
  { timeout: 60_000 },
  async () => {
    await using place = openPlace()
    const { host, root } = place
    const script = `process.chdir(process.argv[1]); for (let i = 0; i < 1500; i++) { require('node:fs').mkdirSync('d'); process.chdir('d') }`
    const child = spawn(process.execPath, ['-e', script, root], { stdio: 'inherit' })
    assert.deepEqual(await once(child, 'exit'), [0, null])
    fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/d/`), Buffer.from([0xff, 0xfe])]), 'not UTF-8')
    fs.mkdirSync(join(root, 'precious'))
    fs.writeFileSync(join(root, 'precious', 'data'), 'x')
    const planted = join(root, ...Array.from({ length: 150 }, () => 'd'), 'planted')
    fs.mkdirSync(planted)
    await host.mounts.bind({ source: join(root, 'precious'), target: planted }, signal)
    const message = `${planted} is a mount point: not removed`
    await assert.rejects(host.files.removeTree(join(root, 'd'), signal), { code: 'EBUSY', message, path: planted })
    assert.equal(fs.readFileSync(join(planted, 'data'), 'utf8'), 'x')
    await host.mounts.unmount(planted, {}, signal)
    await host.files.removeTree(join(root, 'd'), signal)
    assert.deepEqual(fs.readdirSync(root), ['precious'])
  },
)

test('a file in a tree that may not be deleted is named with its whole path', async (context) => {
  await using place = openPlace()
  const file = join(place.root, 'tree/deep/file')
  fs.mkdirSync(dirname(file), { recursive: true })
  fs.writeFileSync(file, 'x')
  if (spawnSync('chattr', ['+i', file]).status !== 0) return context.skip('nothing can be made immutable here')
  const removal = place.host.files.removeTree(join(place.root, 'tree'), signal)
  await assert.rejects(removal, { code: 'EPERM', message: `unlinkat ${file}: operation not permitted` })
  spawnSync('chattr', ['-i', file])
  await place.host.files.removeTree(join(place.root, 'tree'), signal)
  assert.deepEqual(fs.readdirSync(place.root), [])
})

test('a hanging filesystem (a FUSE server that never answers) blocks only itself', { timeout: 60_000 }, async () => {
  await using place = openPlace()
  const { host, root } = place
  const target = join(root, 'hung')
  fs.mkdirSync(target)
  const fuse = fs.openSync('/dev/fuse', 'r+')
  // The threads are up, as in an agent that has run for a while.
  await host.files.exists(root, signal)
  await new Promise((resolve) => setTimeout(resolve, 500))
  try {
    libc.mount('hawser-test', target, 'fuse', 0, `fd=${fuse},rootmode=40000,user_id=0,group_id=0`)
    const giveUp = AbortSignal.timeout(600)
    const stuck = Array.from({ length: 2 }, (_, index) =>
      host.files.readDir(`${target}/x${index}`, giveUp).then(
        () => undefined,
        (error: unknown) => error,
      ),
    )
    const times: number[] = []
    for (let count = 0; count < 20; count += 1) {
      const begin = performance.now()
      await host.files.mkdirAll(join(root, `other${count}`), 0o755, signal)
      await host.mounts.mount(
        { source: 'tmpfs', target: join(root, `other${count}`), type: 'tmpfs', options: [] },
        signal,
      )
      await host.mounts.unmount(join(root, `other${count}`), {}, signal)
      times.push(performance.now() - begin)
    }
    // Two of twenty may be late because the machine is busy; a pool that waits for the dead server would make all late.
    assert.ok(
      times.filter((ms) => ms >= 100).length <= 2,
      `other volumes had to wait: ${times.map(Math.round).join()} ms`,
    )
    const errors = await Promise.all(stuck)
    for (const error of errors)
      assert.ok(error instanceof HostError && (error.code === 'ABORTED' || error.code === 'HUNG'), String(error))
    assert.ok(host.hung().length > 0)
    await assert.rejects(host.files.stat(`${target}/x0`, signal), { code: 'HUNG' })
    const begin = performance.now()
    await cleanMountPoint(host, target, { forceAfterMs: 500 }, signal)
    assert.ok(performance.now() - begin < 5000)
    assert.equal(fs.existsSync(target), false)
  } finally {
    // Without its server the filesystem dies and the hanging threads come back.
    fs.closeSync(fuse)
  }
  for (let waited = 0; host.hung().length > 0 && waited < 5000; waited += 50)
    await new Promise((resolve) => setTimeout(resolve, 50))
  assert.deepEqual(host.hung(), [])
})

test('a walk that is given up stops, and its place can be used again at once', async () => {
  await using place = openPlace()
  const { host, root } = place
  for (let index = 0; index < 20_000; index += 1) fs.writeFileSync(join(root, `f${index}`), '')
  const caller = new AbortController()
  const walk = host.files.setGroup({ root, gid: 7, readOnly: false, onProgress: () => caller.abort() }, caller.signal)
  await assert.rejects(walk, { code: 'ABORTED', certain: false })
  assert.equal((await host.files.stat(join(root, 'f0'), signal)).kind, 'file')
  assert.equal(fs.statSync(root).gid, 0, 'the root comes last, so the next pass will see that this one did not end')
})

test('a program that does not end is killed with its children when its time is over', async () => {
  await using place = openPlace()
  const { host, root } = place
  const pidFile = join(root, 'pid')
  await assert.rejects(
    host.run({ argv: ['/bin/sh', '-c', `sleep 600 & echo $! > ${pidFile}; wait`], timeoutMs: 300 }, signal),
    { code: 'TIMEOUT', certain: false },
  )
  const pid = Number(fs.readFileSync(pidFile, 'utf8'))
  for (
    let waited = 0;
    fs.existsSync(`/proc/${pid}/cmdline`) &&
    fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('sleep') &&
    waited < 2000;
    waited += 20
  )
    await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(
    fs.existsSync(`/proc/${pid}/cmdline`) && fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('sleep'),
    false,
  )
  const { stdout } = await host.run(
    { argv: ['head', '-c', '5000000', '/dev/zero'], timeoutMs: 5000, maxOutputBytes: 1000 },
    signal,
  )
  assert.equal(stdout.length, 1000)
  await assert.rejects(
    host.run({ argv: ['no-such-program', 'hunter2'], timeoutMs: 1000, secretArguments: [1] }, signal),
    (error: Error) => !error.message.includes('hunter2') && error.message.includes('<masked>'),
  )
})

test('online growth of ext4 needs CAP_SYS_RESOURCE, and its absence is said plainly', async (context) => {
  const capabilities = BigInt(
    `0x${/CapEff:\s*([0-9a-f]+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'}`,
  )
  const hasResource = (capabilities & (1n << 24n)) !== 0n
  await using place = openPlace()
  const { host, root } = place
  await place.makeDiskFile(join(root, 'disk'), 16 << 20)
  fs.mkdirSync(join(root, 'm'))
  const device = await host.devices.attachLoop({ file: join(root, 'disk'), readOnly: false }, signal)
  await host.filesystems.make({ device, type: 'ext4' }, signal)
  await host.mounts.mount({ source: device, target: join(root, 'm'), type: 'ext4', options: [] }, signal)
  await place.makeDiskFile(join(root, 'disk'), 64 << 20)
  await host.devices.refreshLoop(device, signal)
  const grown = host.filesystems.grow({ device, mountPath: join(root, 'm') }, signal)
  if (hasResource) assert.equal(await grown, true)
  else await assert.rejects(grown, /CAP_SYS_RESOURCE/)
  await host.mounts.unmount(join(root, 'm'), {}, signal)
  await host.devices.detachLoop(device, signal)
  context.diagnostic(hasResource ? 'grown online' : 'this root lacks CAP_SYS_RESOURCE')
})

for (const type of ['xfs', 'btrfs']) {
  const tools = { xfs: ['mkfs.xfs', 'xfs_growfs'], btrfs: ['mkfs.btrfs', 'btrfs'] }[type] ?? []
  const present = tools.every((tool) =>
    ['/usr/sbin', '/sbin', '/usr/bin'].some((folder) => fs.existsSync(join(folder, tool))),
  )
  test(
    `${type} grows while it is mounted (RESIZE-1)`,
    { skip: present ? false : `${tools.join(', ')} not installed` },
    async () => {
      await using place = openPlace()
      const { host, root } = place
      await place.makeDiskFile(join(root, 'disk'), 320 << 20)
      fs.mkdirSync(join(root, 'm'))
      const device = await host.devices.attachLoop({ file: join(root, 'disk'), readOnly: false }, signal)
      await host.filesystems.make({ device, type }, signal)
      await host.mounts.mount({ source: device, target: join(root, 'm'), type, options: [] }, signal)
      await place.makeDiskFile(join(root, 'disk'), 480 << 20)
      await host.devices.refreshLoop(device, signal)
      assert.equal(await host.filesystems.mayGrow(device, join(root, 'm'), signal), true)
      assert.equal(await host.filesystems.grow({ device, mountPath: join(root, 'm') }, signal), true)
      assert.ok((await host.filesystems.usage(join(root, 'm'), signal)).capacityBytes > 350n << 20n)
      await host.mounts.unmount(join(root, 'm'), {}, signal)
    },
  )
}

test('a full filesystem is told with its place, and an atomic write leaves the old contents and nothing of the new', async () => {
  await using place = openPlace()
  const { host, root } = place
  const directory = join(root, 'small')
  fs.mkdirSync(directory)
  await host.mounts.mount({ source: 'tmpfs', target: directory, type: 'tmpfs', options: ['size=64k'] }, signal)
  const deps = { files: host.files, now: () => Date.now(), random: () => fs.readdirSync(directory).length }
  const write = (bytes: number) =>
    writeAtomically(deps, { directory, payload: new Map([['f', { bytes: Buffer.alloc(bytes), mode: 0o644 }]]) }, signal)
  await write(10)
  const before = fs.readdirSync(directory)
  const error = await write(1 << 20).catch((caught: unknown) => caught as HostError)
  assert.ok(error instanceof HostError)
  assert.deepEqual([error.code, error.certain], ['ENOSPC', true])
  assert.match(error.message, /^write \/.*\/small\/\.\.[^/]+: no space left on device$/)
  assert.deepEqual([fs.readdirSync(directory), fs.statSync(join(directory, 'f')).size], [before, 10])
  await host.mounts.unmount(directory, {}, signal)
})
