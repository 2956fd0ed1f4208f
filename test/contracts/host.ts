// Does a host keep the port's promises? The same questions for the real Linux host and for its in-memory twin.

import assert from 'node:assert/strict'
import { join } from 'node:path/posix'
import { after, before, describe, test } from 'node:test'
import type { Host } from '../../src/host/host.ts'
import type { HostContext, HostUnderTest } from './host-context.ts'
import { codeOf } from './host-context.ts'
import { bindTests, diskTests, mountTests } from './host-mounts.ts'

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

function fileTests({ place, write, signal, host }: HostContext): void {
  test('a path that somebody else could change is told, with the entry that is open', async () => {
    const { files } = host()
    const at = await place()
    await files.mkdirAll(join(at, 'open/closed'), 0o755, signal)
    await write(join(at, 'open/closed/f'), 'x')
    await files.symlink('open/closed/f', join(at, 'link'), signal)
    assert.equal(await files.distrust(join(at, 'link'), signal), undefined)
    assert.equal(await files.distrust(join(at, 'nothing'), signal), undefined)
    await files.chmod(join(at, 'open'), 0o777, signal)
    const { path, mode, problem } = (await files.distrust(join(at, 'link'), signal)) ?? {}
    assert.deepEqual({ path, mode, problem }, { path: join(at, 'open'), mode: 0o777, problem: 'writable' })
  })

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
    await files.mkdirEach(join(at, 'e'), ['x', 'y/z'], 0o700, signal)
    for (const name of ['e', 'e/x', 'e/y', 'e/y/z'])
      assert.equal((await files.stat(join(at, name), signal)).mode, 0o700)
    await files.mkdirEach(join(at, 'e'), ['x', 'w'], 0o750, signal)
    assert.deepEqual((await files.readDir(join(at, 'e'), signal)).toSorted(), ['w', 'x', 'y'])
    assert.equal(await codeOf(files.mkdirEach(join(at, 'f'), ['x'], 0o700, signal)), 'ENOTDIR')
    assert.equal(await codeOf(files.mkdir(join(at, 'a'), 0o700, signal)), 'EEXIST')
    assert.equal(await codeOf(files.mkdir(join(at, 'no/x'), 0o700, signal)), 'ENOENT')
    await files.mkdirDeep(join(at, 'd/e/f'), { mode: 0o777, parentMode: 0o750 }, signal)
    await files.writeFile(join(at, 'g/h/i'), 'x', { mode: 0o600, parentMode: 0o711 }, signal)
    const modes = await Promise.all(
      ['d', 'd/e', 'd/e/f', 'g', 'g/h', 'g/h/i'].map(async (name) => (await files.stat(join(at, name), signal)).mode),
    )
    assert.deepEqual(modes, [0o750, 0o750, 0o777, 0o711, 0o711, 0o600])
    assert.equal(await codeOf(files.mkdirDeep(join(at, 'd/e'), { mode: 0o777, parentMode: 0o700 }, signal)), 'EEXIST')
    assert.equal(await codeOf(files.mkdirDeep(join(at, 'f/x'), { mode: 0o777, parentMode: 0o700 }, signal)), 'ENOTDIR')
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

function treeTests({ place, write, signal, host }: HostContext): void {
  test('removing: full directories refuse, trees go, absence is fine', async () => {
    const { files } = host()
    const at = await place()
    await files.mkdirAll(join(at, 'd/e'), 0o755, signal)
    await write(join(at, 'd/e/f'), 'x')
    assert.equal(await codeOf(files.rmdir(join(at, 'd'), signal)), 'ENOTEMPTY')
    assert.equal(await codeOf(files.remove(join(at, 'd'), signal)), 'ENOTEMPTY')
    assert.equal(await codeOf(files.removeEmptyTree(join(at, 'd'), signal)), 'ENOTEMPTY')
    assert.equal(await codeOf(files.removeEmptyTree(join(at, 'd/e/f'), signal)), 'ENOTEMPTY')
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

  test('removing a tree never crosses a mount; the planted bind mount survives (MOUNT-25)', async () => {
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

  test('the group walk adds bits, keeps links unfollowed, and does the root (FSG-2, FSG-3, TP-15)', async () => {
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

  test('a tree counts its entries, hard work of du (METRIC-2, WART-14)', async () => {
    const { files, filesystems, mounts } = host()
    const at = await place()
    for (const name of ['d', 'm']) await files.mkdir(join(at, name), 0o755, signal)
    await write(join(at, 'd/f'), 'x'.repeat(5000))
    await mounts.mount({ source: 'tmpfs', target: join(at, 'm'), type: 'tmpfs', options: [] }, signal)
    await write(join(at, 'm/elsewhere'), 'x'.repeat(500_000))
    await write(join(at, 'z'), 'x'.repeat(5000))
    const { usedBytes, inodesUsed } = await filesystems.treeUsage(at, signal)
    await mounts.unmount(join(at, 'm'), {}, signal)
    assert.equal(inodesUsed, 4n, 'another device is passed over, and what stands beside it is not')
    assert.ok(usedBytes >= 10_000n && usedBytes < 500_000n)
    const whole = await filesystems.usage(at, signal)
    assert.ok(
      whole.capacityBytes >= whole.availableBytes && whole.usedBytes + whole.availableBytes <= whole.capacityBytes,
    )
  })
}

function beneathTests({ place, write, signal, host }: HostContext): void {
  test('links inside the root are followed, links out of it are refused (SUBPATH-5)', async () => {
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

  test('missing directories are made below the root only (SUBPATH-4, WART-11)', async () => {
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

  test('a bind from an open path shows the pinned file, whatever its name leads to now (SUBPATH-6)', async () => {
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

function runTests({ signal, host }: HostContext): void {
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
