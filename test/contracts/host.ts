// Does a host keep the port's promises? The same questions for the real Linux host and for its in-memory twin.

import assert from 'node:assert/strict'
import { join } from 'node:path/posix'
import { after, before, describe, test } from 'node:test'
import type { Host } from '../../src/host/host.ts'
import { HostError } from '../../src/host/host-error.ts'

export interface HostUnderTest extends AsyncDisposable {
  readonly host: Host
  /** An empty directory on a filesystem that is not a mount of its own. */
  readonly root: string
  /** A sparse file that may back a loop device. */
  makeDiskFile(path: string, sizeBytes: number): Promise<void>
}

export function hostContract(name: string, make: () => Promise<HostUnderTest>): void {
  describe(`host contract: ${name}`, () => {
    let world: HostUnderTest
    let host: Host
    let count = 0
    const { signal } = new AbortController()
    before(async () => {
      world = await make()
      host = world.host
    })
    after(() => world[Symbol.asyncDispose]())
    const place = async (): Promise<string> => {
      const path = join(world.root, `t${(count += 1)}`)
      await host.files.mkdir(path, 0o755, signal)
      return path
    }
    const write = (path: string, text: string) => host.files.writeFile(path, text, { mode: 0o644 }, signal)
    const context = { place, write, signal, host: () => host, world: () => world }
    fileTests(context)
    treeTests(context)
    beneathTests(context)
    mountTests(context)
    bindTests(context)
    diskTests(context)
    runTests(context)
  })
}

interface Context {
  readonly place: () => Promise<string>
  readonly write: (path: string, text: string) => Promise<void>
  readonly signal: AbortSignal
  readonly host: () => Host
  readonly world: () => HostUnderTest
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call
  } catch (error) {
    assert.ok(error instanceof HostError, `expected a HostError, got ${String(error)}`)
    return error.code
  }
  return 'none'
}

function fileTests({ place, write, signal, host }: Context): void {
  test('directories and files get exactly the modes asked for', async () => {
    const { files } = host()
    const at = await place()
    await files.mkdirAll(join(at, 'a/b/c'), 0o777, signal)
    assert.equal((await files.stat(join(at, 'a/b'), signal)).mode, 0o777)
    await files.writeFile(join(at, 'f'), 'x', { mode: 0o666 }, signal)
    assert.equal((await files.stat(join(at, 'f'), signal)).mode, 0o666)
    await files.mkdirAll(join(at, 'a/b/c'), 0o700, signal)
    assert.equal((await files.stat(join(at, 'a/b/c'), signal)).mode, 0o777, 'what exists stays')
    assert.equal(await codeOf(files.mkdirAll(join(at, 'f/x'), 0o700, signal)), 'ENOTDIR')
    assert.equal(await codeOf(files.mkdir(join(at, 'a'), 0o700, signal)), 'EEXIST')
    assert.equal(await codeOf(files.mkdir(join(at, 'no/x'), 0o700, signal)), 'ENOENT')
  })

  test('bytes come back as written; durable and exclusive writing', async () => {
    const { files } = host()
    const at = await place()
    await files.writeFile(join(at, 'f'), new Uint8Array([0, 255, 10]), { mode: 0o600, durable: true }, signal)
    assert.deepEqual([...(await files.readFile(join(at, 'f'), signal))], [0, 255, 10])
    assert.equal(await codeOf(files.writeFile(join(at, 'f'), 'y', { mode: 0o600, exclusive: true }, signal)), 'EEXIST')
    assert.equal(
      await codeOf(files.writeFile(join(at, 'f'), 'y', { mode: 0o600, exclusive: true, durable: true }, signal)),
      'EEXIST',
    )
    await files.writeFile(join(at, 'f'), 'new', { mode: 0o640, durable: true }, signal)
    assert.equal(await files.readText(join(at, 'f'), signal), 'new')
    assert.equal((await files.stat(join(at, 'f'), signal)).mode, 0o640)
    assert.deepEqual(await files.readDir(at, signal), ['f'], 'no temporary file stays')
    assert.equal(await codeOf(files.readFile(join(at, 'none'), signal)), 'ENOENT')
    assert.equal(await codeOf(files.readFile(at, signal)), 'EISDIR')
  })

  test('links are followed by stat and exists, not by lstat', async () => {
    const { files } = host()
    const at = await place()
    await write(join(at, 'f'), 'x')
    await files.symlink('f', join(at, 'l'), signal)
    await files.symlink('nowhere', join(at, 'dangling'), signal)
    assert.equal((await files.stat(join(at, 'l'), signal)).kind, 'file')
    assert.equal((await files.lstat(join(at, 'l'), signal)).kind, 'symlink')
    assert.equal(await files.readlink(join(at, 'l'), signal), 'f')
    assert.equal(await files.realpath(join(at, 'l'), signal), join(at, 'f'))
    assert.equal(await files.exists(join(at, 'l'), signal), true)
    assert.equal(await files.exists(join(at, 'dangling'), signal), false)
    assert.equal(await files.exists(join(at, 'f/x'), signal), false)
    assert.equal(await codeOf(files.symlink('x', join(at, 'l'), signal)), 'EEXIST')
  })

  test('rename replaces, chmod and lchown change', async () => {
    const { files } = host()
    const at = await place()
    await write(join(at, 'a'), '1')
    await write(join(at, 'b'), '2')
    await files.rename(join(at, 'a'), join(at, 'b'), signal)
    assert.equal(await files.readText(join(at, 'b'), signal), '1')
    assert.equal(await files.exists(join(at, 'a'), signal), false)
    await files.lchown(join(at, 'b'), -1, 1234, signal)
    await files.chmod(join(at, 'b'), 0o2755, signal)
    const stat = await files.stat(join(at, 'b'), signal)
    assert.deepEqual([stat.uid, stat.gid, stat.mode], [0, 1234, 0o2755])
  })

  test('the watcher tells of changes below its directory', async () => {
    const { files } = host()
    const at = await place()
    await files.mkdir(join(at, 'sub'), 0o755, signal)
    const seen = new Set<string>()
    let wake = (): void => undefined
    using _watch = await files.watch(
      at,
      (path) => {
        seen.add(path)
        wake()
      },
      signal,
    )
    await write(join(at, 'sub', 'new'), 'x')
    while (!seen.has(join(at, 'sub', 'new')))
      await new Promise<void>((resolve) => {
        wake = resolve
      })
  })
}

function treeTests({ place, write, signal, host }: Context): void {
  test('removing: full directories refuse, trees go, absence is fine', async () => {
    const { files } = host()
    const at = await place()
    await files.mkdirAll(join(at, 'd/e'), 0o755, signal)
    await write(join(at, 'd/e/f'), 'x')
    assert.equal(await codeOf(files.rmdir(join(at, 'd'), signal)), 'ENOTEMPTY')
    assert.equal(await codeOf(files.remove(join(at, 'd'), signal)), 'ENOTEMPTY')
    assert.equal(await codeOf(files.removeEmptyTree(join(at, 'd'), signal)), 'ENOTEMPTY')
    assert.equal(await files.readText(join(at, 'd/e/f'), signal), 'x')
    await files.removeTree(join(at, 'd'), signal)
    assert.deepEqual(await files.readDir(at, signal), [])
    await files.remove(join(at, 'd'), signal)
    await files.removeTree(join(at, 'd'), signal)
    await files.mkdirAll(join(at, 'x/y'), 0o755, signal)
    await files.removeEmptyTree(join(at, 'x'), signal)
    assert.equal(await files.exists(join(at, 'x'), signal), false)
  })

  test('removing a tree deletes links, not what they point at', async () => {
    const { files } = host()
    const at = await place()
    await files.mkdirAll(join(at, 'outside'), 0o755, signal)
    await write(join(at, 'outside/keep'), 'x')
    await files.mkdir(join(at, 'tree'), 0o755, signal)
    await files.symlink('../outside', join(at, 'tree/link'), signal)
    await files.removeTree(join(at, 'tree'), signal)
    assert.equal(await files.readText(join(at, 'outside/keep'), signal), 'x')
  })

  test('MOUNT-25: removing a tree never crosses a mount; the planted bind mount survives', async () => {
    const { files, mounts } = host()
    const at = await place()
    await files.mkdirAll(join(at, 'precious'), 0o755, signal)
    await write(join(at, 'precious/data'), 'x')
    await files.mkdirAll(join(at, 'tree/deep/planted'), 0o755, signal)
    await mounts.bind({ source: join(at, 'precious'), target: join(at, 'tree/deep/planted') }, signal)
    assert.equal(await codeOf(files.removeTree(join(at, 'tree'), signal)), 'EBUSY')
    assert.equal(await codeOf(files.removeEmptyTree(join(at, 'tree'), signal)), 'EBUSY')
    assert.equal(await codeOf(files.removeTree(join(at, 'tree/deep/planted'), signal)), 'EBUSY')
    assert.equal(await files.readText(join(at, 'tree/deep/planted/data'), signal), 'x')
    await mounts.unmount(join(at, 'tree/deep/planted'), {}, signal)
    await files.removeTree(join(at, 'tree'), signal)
    assert.equal(await files.readText(join(at, 'precious/data'), signal), 'x')
  })

  test('FSG-2, FSG-3, T-15: the group walk adds bits, keeps links unfollowed, and does the root', async () => {
    const { files } = host()
    const at = await place()
    await write(join(at, 'outside'), 'x')
    await files.mkdirAll(join(at, 'v/d'), 0o700, signal)
    await files.writeFile(join(at, 'v/d/f'), 'x', { mode: 0o400 }, signal)
    await files.symlink('../outside', join(at, 'v/l'), signal)
    const result = await files.setGroup({ root: join(at, 'v'), gid: 777, readOnly: false }, signal)
    assert.deepEqual(result, { entries: 4, refused: 0 })
    const facts = async (path: string) => {
      const stat = await files.lstat(join(at, path), signal)
      return [stat.mode, stat.gid]
    }
    assert.deepEqual(await facts('v'), [0o2770, 777])
    assert.deepEqual(await facts('v/d'), [0o2770, 777])
    assert.deepEqual(await facts('v/d/f'), [0o660, 777])
    assert.equal((await facts('v/l'))[1], 777)
    assert.deepEqual(await facts('outside'), [0o644, 0])
  })

  test('a set of files is written below a root, links planted there are neither followed nor replaced', async () => {
    const { files } = host()
    const at = await place()
    const bytes = new TextEncoder().encode('x')
    await files.mkdir(join(at, 'v'), 0o755, signal)
    await files.mkdir(join(at, 'out'), 0o755, signal)
    await files.symlink('../out', join(at, 'v/planted'), signal)
    await files.writeTree(join(at, 'v'), [{ path: 'a/b/c', bytes, mode: 0o640, uid: 42 }], signal)
    const stat = await files.stat(join(at, 'v/a/b/c'), signal)
    assert.deepEqual([stat.mode, stat.uid, (await files.stat(join(at, 'v/a'), signal)).mode], [0o640, 42, 0o755])
    assert.notEqual(
      await codeOf(files.writeTree(join(at, 'v'), [{ path: 'planted/c', bytes, mode: 0o640 }], signal)),
      'none',
    )
    assert.equal(
      await codeOf(files.writeTree(join(at, 'v'), [{ path: 'planted', bytes, mode: 0o640 }], signal)),
      'EEXIST',
    )
    assert.deepEqual(await files.readDir(join(at, 'out'), signal), [])
    const found = [...(await files.readTree(join(at, 'v'), signal))].map(({ path, kind }) => `${path} ${kind}`).sort()
    assert.deepEqual(found, ['a/b/c file', 'planted symlink'])
  })

  test('METRIC-2: a tree counts its entries, hard work of du', async () => {
    const { files, filesystems } = host()
    const at = await place()
    await files.mkdir(join(at, 'd'), 0o755, signal)
    await write(join(at, 'd/f'), 'x'.repeat(5000))
    const { usedBytes, inodesUsed } = await filesystems.treeUsage(at, signal)
    assert.equal(inodesUsed, 3n)
    assert.ok(usedBytes >= 5000n)
    const whole = await filesystems.usage(at, signal)
    assert.ok(
      whole.capacityBytes >= whole.availableBytes && whole.usedBytes + whole.availableBytes <= whole.capacityBytes,
    )
  })
}

function beneathTests({ place, write, signal, host }: Context): void {
  test('SUBPATH-5: links inside the root are followed, links out of it are refused', async () => {
    const { files } = host()
    const at = await place()
    await files.mkdirAll(join(at, 'v/real'), 0o755, signal)
    await write(join(at, 'v/real/f'), 'inside')
    await write(join(at, 'secret'), 'outside')
    await files.symlink('real', join(at, 'v/inner'), signal)
    await files.symlink('../secret', join(at, 'v/outer'), signal)
    await files.symlink('/etc', join(at, 'v/absolute'), signal)
    await using opened = await files.openBeneath(join(at, 'v'), 'inner/f', signal)
    assert.equal(opened.stat.kind, 'file')
    assert.equal(opened.stat.inode, (await files.stat(join(at, 'v/real/f'), signal)).inode)
    assert.equal(await codeOf(files.openBeneath(join(at, 'v'), 'outer', signal)), 'EXDEV')
    assert.equal(await codeOf(files.openBeneath(join(at, 'v'), 'absolute', signal)), 'EXDEV')
    assert.equal(await codeOf(files.openBeneath(join(at, 'v'), '../secret', signal)), 'EXDEV')
    assert.equal(await codeOf(files.openBeneath(join(at, 'v'), 'none', signal)), 'ENOENT')
  })

  test('SUBPATH-4: missing directories are made below the root only', async () => {
    const { files } = host()
    const at = await place()
    await files.mkdirAll(join(at, 'v/real'), 0o755, signal)
    await files.mkdir(join(at, 'out'), 0o755, signal)
    await files.symlink('real', join(at, 'v/inner'), signal)
    await files.symlink('../out', join(at, 'v/outer'), signal)
    await files.mkdirBeneath(join(at, 'v'), 'inner/a/b', 0o2770, signal)
    assert.equal((await files.stat(join(at, 'v/real/a/b'), signal)).mode, 0o2770)
    await files.mkdirBeneath(join(at, 'v'), 'inner/a/b', 0o700, signal)
    assert.equal(await codeOf(files.mkdirBeneath(join(at, 'v'), 'outer/x', 0o755, signal)), 'EXDEV')
    assert.deepEqual(await files.readDir(join(at, 'out'), signal), [])
    await write(join(at, 'v/file'), 'x')
    assert.equal(await codeOf(files.mkdirBeneath(join(at, 'v'), 'file/x', 0o755, signal)), 'ENOTDIR')
  })

  test('SUBPATH-6: a bind from an open path shows the pinned file, whatever its name leads to now', async () => {
    const { files, mounts } = host()
    const at = await place()
    await files.mkdirAll(join(at, 'v/sub'), 0o755, signal)
    await write(join(at, 'v/sub/mine'), 'x')
    await files.mkdir(join(at, 'target'), 0o755, signal)
    await using opened = await files.openBeneath(join(at, 'v'), 'sub', signal)
    await files.rename(join(at, 'v/sub'), join(at, 'v/moved'), signal)
    await files.symlink('/etc', join(at, 'v/sub'), signal)
    await mounts.bind({ source: opened, target: join(at, 'target') }, signal)
    assert.deepEqual(await files.readDir(join(at, 'target'), signal), ['mine'])
    await mounts.unmount(join(at, 'target'), {}, signal)
  })
}

function mountTests({ place, write, signal, host }: Context): void {
  test('tmpfs: mount, ask, remount, unmount', async () => {
    const { files, mounts, filesystems } = host()
    const at = await place()
    const target = join(at, 'm')
    await files.mkdir(target, 0o755, signal)
    assert.equal(await mounts.isMountPoint(target, signal), false)
    await mounts.mount(
      { source: 'tmpfs', target, type: 'tmpfs', options: ['size=1048576', 'nodev', '_netdev'] },
      signal,
    )
    assert.equal(await mounts.isMountPoint(target, signal), true)
    const info = await mounts.info(target, signal)
    assert.deepEqual([info.mountPoint, info.type, info.source, info.root], [target, 'tmpfs', 'tmpfs', '/'])
    assert.ok(info.options.includes('nodev') && info.options.includes('rw'))
    assert.ok(info.superOptions.includes('size=1024k'))
    const usage = await filesystems.usage(target, signal)
    assert.deepEqual([usage.type, usage.capacityBytes], ['tmpfs', 1_048_576n])
    await mounts.remount(target, ['size=2097152'], signal)
    assert.equal((await filesystems.usage(target, signal)).capacityBytes, 2_097_152n)
    assert.ok((await mounts.info(target, signal)).options.includes('nodev'), 'a remount keeps the flags')
    await write(join(target, 'f'), 'x')
    assert.equal((await mounts.info(join(target, 'f'), signal)).id, info.id)
    await mounts.unmount(target, {}, signal)
    assert.deepEqual(await files.readDir(target, signal), [])
    await mounts.unmount(target, {}, signal)
    await mounts.unmount(join(at, 'none'), {}, signal)
    assert.equal(await codeOf(mounts.isMountPoint(join(at, 'none'), signal)), 'ENOENT')
  })

  test('a full tmpfs says ENOSPC', async () => {
    const { files, mounts } = host()
    const target = join(await place(), 'm')
    await files.mkdir(target, 0o755, signal)
    await mounts.mount({ source: 'tmpfs', target, type: 'tmpfs', options: ['size=65536'] }, signal)
    assert.equal(await codeOf(write(join(target, 'f'), 'x'.repeat(200_000))), 'ENOSPC')
    await mounts.unmount(target, {}, signal)
  })

  test('an unknown filesystem type and a missing target are errors', async () => {
    const { mounts } = host()
    const at = await place()
    assert.equal(
      await codeOf(mounts.mount({ source: 'x', target: at, type: 'nosuchfs', options: [] }, signal)),
      'ENODEV',
    )
    assert.equal(
      await codeOf(mounts.mount({ source: 'tmpfs', target: join(at, 'no'), type: 'tmpfs', options: [] }, signal)),
      'ENOENT',
    )
    assert.equal(await codeOf(mounts.bind({ source: join(at, 'no'), target: at }, signal)), 'ENOENT')
  })

  test('a mount hides what lies below and stacks', async () => {
    const { files, mounts } = host()
    const target = await place()
    await write(join(target, 'below'), 'x')
    await mounts.mount({ source: 'tmpfs', target, type: 'tmpfs', options: [] }, signal)
    await write(join(target, 'one'), 'x')
    await mounts.mount({ source: 'tmpfs', target, type: 'tmpfs', options: [] }, signal)
    assert.deepEqual(await files.readDir(target, signal), [])
    await mounts.unmount(target, {}, signal)
    assert.deepEqual(await files.readDir(target, signal), ['one'])
    await mounts.unmount(target, {}, signal)
    assert.deepEqual(await files.readDir(target, signal), ['below'])
  })

  test('a mount point is neither removed nor unmounted while a mount lies below it', async () => {
    const { files, mounts } = host()
    const target = await place()
    await mounts.mount({ source: 'tmpfs', target, type: 'tmpfs', options: [] }, signal)
    await files.mkdir(join(target, 'in'), 0o755, signal)
    await mounts.mount({ source: 'tmpfs', target: join(target, 'in'), type: 'tmpfs', options: [] }, signal)
    assert.equal(await codeOf(mounts.unmount(target, {}, signal)), 'EBUSY')
    assert.equal(await codeOf(files.rmdir(join(target, 'in'), signal)), 'EBUSY')
    await mounts.unmount(target, { lazy: true }, signal)
    assert.deepEqual(await files.readDir(target, signal), [])
    assert.equal(
      (await mounts.list(signal)).some(({ mountPoint }) => mountPoint.startsWith(target)),
      false,
    )
  })
}

function bindTests({ place, write, signal, host }: Context): void {
  test('T-20: a bind keeps the source flags, adds its own, and leaves the source writable', async () => {
    const { files, mounts } = host()
    const at = await place()
    await files.mkdirAll(join(at, 's'), 0o755, signal)
    await files.mkdirAll(join(at, 't'), 0o755, signal)
    await mounts.mount({ source: 'tmpfs', target: join(at, 's'), type: 'tmpfs', options: ['nosuid', 'nodev'] }, signal)
    await mounts.bind({ source: join(at, 's'), target: join(at, 't'), readOnly: true }, signal)
    const { options } = await mounts.info(join(at, 't'), signal)
    assert.ok(
      ['ro', 'nosuid', 'nodev'].every((word) => options.includes(word)),
      options.join(),
    )
    assert.equal(await codeOf(write(join(at, 't/x'), 'x')), 'EROFS')
    await write(join(at, 's/x'), 'x')
    assert.equal(await files.readText(join(at, 't/x'), signal), 'x')
    await mounts.unmount(join(at, 't'), {}, signal)
    await mounts.unmount(join(at, 's'), {}, signal)
  })

  test('T-21, MOUNT-17: references are the other places that show the same directory', async () => {
    const { files, mounts } = host()
    const at = await place()
    for (const name of ['a/sub', 'b', 'c', 'd']) await files.mkdirAll(join(at, name), 0o755, signal)
    await mounts.bind({ source: join(at, 'a/sub'), target: join(at, 'b') }, signal)
    await mounts.bind({ source: join(at, 'a/sub'), target: join(at, 'c') }, signal)
    await mounts.bind({ source: join(at, 'a'), target: join(at, 'd') }, signal)
    assert.deepEqual([...(await mounts.references(join(at, 'a/sub'), signal))].sort(), [join(at, 'b'), join(at, 'c')])
    assert.deepEqual(await mounts.references(join(at, 'b'), signal), [join(at, 'c')])
    assert.deepEqual(await mounts.references(join(at, 'none'), signal), [])
    for (const name of ['b', 'c', 'd']) await mounts.unmount(join(at, name), {}, signal)
    assert.deepEqual(await mounts.references(join(at, 'a/sub'), signal), [])
  })

  test('files can be bound onto files, and recursive binds carry submounts, read-only as well', async () => {
    const { files, mounts } = host()
    const at = await place()
    for (const name of ['s/in', 't']) await files.mkdirAll(join(at, name), 0o755, signal)
    await write(join(at, 'f'), 'bound')
    await write(join(at, 'g'), '')
    await mounts.bind({ source: join(at, 'f'), target: join(at, 'g') }, signal)
    assert.equal(await files.readText(join(at, 'g'), signal), 'bound')
    assert.equal(await mounts.isMountPoint(join(at, 'g'), signal), true)
    await mounts.unmount(join(at, 'g'), {}, signal)
    await mounts.mount({ source: 'tmpfs', target: join(at, 's/in'), type: 'tmpfs', options: [] }, signal)
    await write(join(at, 's/in/x'), 'x')
    await mounts.bind({ source: join(at, 's'), target: join(at, 't'), recursive: true, readOnly: true }, signal)
    assert.equal(await files.readText(join(at, 't/in/x'), signal), 'x')
    assert.equal(await codeOf(write(join(at, 't/in/y'), 'y')), 'EROFS')
    await mounts.unmount(join(at, 't'), { lazy: true }, signal)
    await mounts.unmount(join(at, 's/in'), {}, signal)
  })

  test('MOUNT-24: makeShared makes a directory a shared mount, once', async () => {
    const { mounts } = host()
    const at = await place()
    await mounts.bind({ source: at, target: at }, signal)
    await mounts.setPropagation(at, 'private', { recursive: false }, signal)
    await mounts.makeShared(at, signal)
    const first = await mounts.info(at, signal)
    assert.equal(first.propagation, 'shared')
    await mounts.makeShared(at, signal)
    assert.equal((await mounts.info(at, signal)).id, first.id)
    await mounts.unmount(at, {}, signal)
    assert.equal(await mounts.isMountPoint(at, signal), false)
  })
}

function diskTests({ place, write, signal, host, world }: Context): void {
  test('T-17: a loop device is formatted once, mounted, busy while mounted, and freed', async () => {
    const { files, mounts, devices, filesystems } = host()
    const at = await place()
    await world().makeDiskFile(join(at, 'disk'), 16 << 20)
    await files.mkdir(join(at, 'm'), 0o755, signal)
    const device = await devices.attachLoop({ file: join(at, 'disk'), readOnly: false }, signal)
    try {
      assert.deepEqual(await devices.loopsOf(join(at, 'disk'), signal), [device])
      assert.equal((await files.stat(device, signal)).kind, 'blockDevice')
      assert.equal(await devices.sizeBytes(device, signal), 16n << 20n)
      assert.equal(await devices.isReadOnly(device, signal), false)
      assert.deepEqual(await filesystems.detect(device, signal), { kind: 'blank' })
      await filesystems.make({ device, type: 'ext4' }, signal)
      assert.deepEqual(await filesystems.detect(device, signal), { kind: 'filesystem', type: 'ext4' })
      assert.equal(await codeOf(filesystems.make({ device, type: 'ext4' }, signal)), 'EEXIST')
      assert.equal((await filesystems.check(device, signal)).kind, 'clean')
      assert.equal(await devices.isInUse(device, signal), false)
      await mounts.mount({ source: device, target: join(at, 'm'), type: 'ext4', options: ['defaults'] }, signal)
      assert.equal(await devices.isInUse(device, signal), true)
      assert.equal((await mounts.info(join(at, 'm'), signal)).source, device)
      await write(join(at, 'm/f'), 'kept')
      await mounts.unmount(join(at, 'm'), {}, signal)
      await mounts.mount({ source: device, target: join(at, 'm'), type: 'ext4', options: ['ro'] }, signal)
      assert.equal(await files.readText(join(at, 'm/f'), signal), 'kept')
      assert.equal(await codeOf(write(join(at, 'm/g'), 'x')), 'EROFS')
      await mounts.unmount(join(at, 'm'), {}, signal)
    } finally {
      await devices.detachLoop(device, signal)
    }
    await devices.detachLoop(device, signal)
    assert.deepEqual(await devices.loopsOf(join(at, 'disk'), signal), [])
  })

  test('RESIZE-1: a grown disk grows its unmounted ext4 filesystem; a blank one is left alone', async () => {
    const { files, mounts, devices, filesystems } = host()
    const at = await place()
    await world().makeDiskFile(join(at, 'disk'), 16 << 20)
    await files.mkdir(join(at, 'm'), 0o755, signal)
    const device = await devices.attachLoop({ file: join(at, 'disk'), readOnly: false }, signal)
    try {
      assert.equal(await filesystems.mayGrow(device, join(at, 'm'), signal), false)
      assert.equal(await filesystems.grow({ device, mountPath: join(at, 'm') }, signal), false)
      await filesystems.make({ device, type: 'ext4' }, signal)
      await world().makeDiskFile(join(at, 'disk'), 32 << 20)
      await devices.refreshLoop(device, signal)
      assert.equal(await devices.sizeBytes(device, signal), 32n << 20n)
      assert.equal(await filesystems.mayGrow(device, join(at, 'm'), signal), true)
      assert.equal(await filesystems.grow({ device, mountPath: join(at, 'm') }, signal), true)
      await mounts.mount({ source: device, target: join(at, 'm'), type: 'ext4', options: [] }, signal)
      assert.ok((await filesystems.usage(join(at, 'm'), signal)).capacityBytes > 20n << 20n)
      await mounts.unmount(join(at, 'm'), {}, signal)
    } finally {
      await devices.detachLoop(device, signal)
    }
  })

  test('BLOCK-2: a device bound onto a file is that device, and a loop on it holds it open', async () => {
    const { files, mounts, devices } = host()
    const at = await place()
    await world().makeDiskFile(join(at, 'disk'), 4 << 20)
    const device = await devices.attachLoop({ file: join(at, 'disk'), readOnly: false }, signal)
    await write(join(at, 'map'), '')
    await mounts.bind({ source: device, target: join(at, 'map') }, signal)
    const mapped = await files.stat(join(at, 'map'), signal)
    assert.deepEqual([mapped.kind, mapped.deviceNode], ['blockDevice', (await files.stat(device, signal)).deviceNode])
    const holder = await devices.attachLoop({ file: join(at, 'map'), readOnly: true }, signal)
    assert.deepEqual(await devices.loopsOf(join(at, 'map'), signal), [holder])
    await devices.detachLoop(holder, signal)
    await mounts.unmount(join(at, 'map'), {}, signal)
    assert.equal((await files.stat(join(at, 'map'), signal)).kind, 'file')
    await devices.detachLoop(device, signal)
  })
}

function runTests({ signal, host }: Context): void {
  test('a missing program is NOPROGRAM, an exit code is an answer', async () => {
    assert.equal(await codeOf(host().run({ argv: ['hawser-no-such-program'], timeoutMs: 5000 }, signal)), 'NOPROGRAM')
    assert.equal((await host().run({ argv: ['false'], timeoutMs: 5000 }, signal)).exitCode, 1)
    assert.equal((await host().run({ argv: ['true'], timeoutMs: 5000 }, signal)).exitCode, 0)
  })

  test('an aborted signal stops a call before it begins', async () => {
    const aborted = AbortSignal.abort(new Error('no'))
    assert.equal(await codeOf(host().files.mkdir('/hawser-never', 0o755, aborted)), 'ABORTED')
    assert.equal(await codeOf(host().run({ argv: ['true'], timeoutMs: 5000 }, aborted)), 'ABORTED')
    assert.equal(await host().files.exists('/hawser-never', signal), false)
  })
}
