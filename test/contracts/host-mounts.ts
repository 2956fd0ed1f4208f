// Does a host mount, bind and handle disks as the port promises? The second half of the host contract.

import assert from 'node:assert/strict'
import { join } from 'node:path/posix'
import { test } from 'node:test'
import type { HostContext } from './host-context.ts'
import { codeOf } from './host-context.ts'

export function mountTests({ place, write, signal, host }: HostContext): void {
  test('a tmpfs is mounted, asked about, remounted, and unmounted twice (MOUNT-7, MOUNT-9, MOUNT-10, MOUNT-21)', async () => {
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

export function bindTests({ place, write, signal, host }: HostContext): void {
  test('a bind keeps the source flags, adds its own, and leaves the source writable (TP-20, MOUNT-3, MOUNT-4)', async () => {
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

  test('references are the other places that show the same directory (TP-21, MOUNT-17)', async () => {
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

  test('files can be bound onto files, and recursive binds carry submounts, read-only as well (MOUNT-9)', async () => {
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

  test('makeShared makes a directory a shared mount, once (MOUNT-24)', async () => {
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

export function diskTests({ place, write, signal, host, world }: HostContext): void {
  test('a loop device is formatted once, mounted, busy while mounted, and freed (TP-17, BLOCK-5, MOUNT-19, MOUNT-23)', async () => {
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

  test('a grown disk grows its unmounted ext4 filesystem; a blank one is left alone (RESIZE-1, RESIZE-2)', async () => {
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

  test('a device bound onto a file is that device, and a loop on it holds it open (BLOCK-2)', async () => {
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
