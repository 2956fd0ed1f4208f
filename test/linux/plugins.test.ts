// Do the plugins work on a real Linux machine? tmpfs, bind mounts, loop devices, a real API server in memory. Needs root.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { podUid } from '../../src/api/names.ts'
import type { NodePlugin } from '../../src/volume/plugin.ts'
import type { Mounting, PluginFixture } from '../kit/plugin-fixture.ts'
import { createPluginFixture, inline, mounting, mountPoints, picture, pod, signal } from '../kit/plugin-fixture.ts'
import { persistent } from '../kit/volume-specs.ts'
import type { Place } from '../kit/scratch-host.ts'
import { openPlace } from '../kit/scratch-host.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')

async function openBench(place: Place): Promise<PluginFixture & AsyncDisposable> {
  const root = join(place.root, 'kubelet')
  for (const folder of ['pods/uid-1/volumes', 'pods/uid-1/plugins', 'pods/uid-2/volumes', 'plugins'])
    fs.mkdirSync(join(root, folder), { recursive: true })
  const bench = await createPluginFixture(place.host, root)
  return { ...bench, [Symbol.asyncDispose]: () => bench.close() }
}

async function mount({ plugin: { plugin }, request }: Mounting): Promise<void> {
  const { spec, pod: own } = request
  const device = plugin.device?.(spec)
  if (device !== undefined) await device.mount({ spec, pod: own, devicePath: '', path: device.path(spec) }, signal)
  await plugin.mount(request, signal)
}

async function unmount({ plugin: { plugin }, request }: Mounting): Promise<void> {
  const { spec, target, pod: own } = request
  await plugin.unmount({ volumeName: spec.name, pod: podUid(own.metadata.uid ?? ''), target }, signal)
}

async function unmountDevice(plugin: NodePlugin, { spec }: Mounting['request']): Promise<void> {
  const device = plugin.device?.(spec)
  await device?.unmount({ path: device.path(spec) }, signal)
}

async function assertClean(bench: PluginFixture): Promise<void> {
  assert.deepEqual(await mountPoints(bench.host, bench.root), [])
  const files = (await picture(bench.host, join(bench.root, 'pods'))).filter((line) => !/^[^ ]+ d /.test(line))
  assert.deepEqual(files, [])
}

test('emptyDir on disk and in memory: modes, size, group, full, gone (EMPTY-9, FSG-5)', async () => {
  await using place = openPlace()
  await using bench = await openBench(place)
  const disk = mounting(bench, inline({ emptyDir: {} }, 'disk'), { ownership: { fsGroup: 2000 } })
  const memory = mounting(bench, inline({ emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }, 'memory'))
  for (const one of [disk, memory]) await mount(one)
  const mode = (path: string) => fs.statSync(path).mode & 0o7777
  assert.deepEqual(
    [mode(disk.request.target), fs.statSync(disk.request.target).gid, mode(memory.request.target)],
    [0o2777, 2000, 0o1777],
  )
  assert.throws(() => fs.writeFileSync(join(memory.request.target, 'f'), Buffer.alloc(2 << 20)), { code: 'ENOSPC' })
  fs.writeFileSync(join(disk.request.target, 'f'), 'x')
  const usage = await disk.plugin.plugin.usage?.({ spec: disk.request.spec, path: disk.request.target }, signal)
  assert.equal(usage?.inodesUsed, 2n)
  for (const one of [disk, memory]) await unmount(one)
  await assertClean(bench)
})

test('a bind mount planted in an emptyDir survives the deletion of the volume', async () => {
  await using place = openPlace()
  await using bench = await openBench(place)
  const one = mounting(bench, inline({ emptyDir: {} }))
  await mount(one)
  const precious = join(place.root, 'precious')
  const planted = join(one.request.target, 'a/planted')
  fs.mkdirSync(precious)
  fs.writeFileSync(join(precious, 'data'), 'x')
  fs.mkdirSync(planted, { recursive: true })
  await bench.host.mounts.bind({ source: precious, target: planted }, signal)
  await assert.rejects(unmount(one), { code: 'EBUSY' })
  assert.equal(fs.readFileSync(join(precious, 'data'), 'utf8'), 'x')
  await bench.host.mounts.unmount(planted, {}, signal)
  await unmount(one)
  assert.equal(fs.readFileSync(join(precious, 'data'), 'utf8'), 'x')
  await assertClean(bench)
})

test('configMap, secret and projected volumes: layout, owners, update without a torn moment (ATOMIC-4)', async () => {
  await using place = openPlace()
  await using bench = await openBench(place)
  const metadata = { name: 'o', namespace: 'default' }
  await bench.client.create('ConfigMap', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata,
    data: { a: 'old', b: 'old' },
  })
  await bench.client.create('Secret', { apiVersion: 'v1', kind: 'Secret', metadata, data: { s: base64('hush') } })
  const projected = mounting(
    bench,
    inline({
      projected: {
        defaultMode: 0o644,
        sources: [
          { configMap: { name: 'o' } },
          { secret: { name: 'o', items: [{ key: 's', path: 'deep/s', mode: 0o400 }] } },
        ],
      },
    }),
    {
      ownership: { fsGroup: 3000 },
    },
  )
  await mount(projected)
  assert.deepEqual(await picture(bench.host, join(bench.root, 'pods/uid-1/volumes')), [
    'kubernetes.io~projected d 0755 0:0',
    'kubernetes.io~projected/v d 03777 0:3000',
    'kubernetes.io~projected/v/..ts d 02755 0:3000',
    'kubernetes.io~projected/v/..ts/a f 0644 0:3000 "old"',
    'kubernetes.io~projected/v/..ts/b f 0644 0:3000 "old"',
    'kubernetes.io~projected/v/..ts/deep d 02755 0:3000',
    'kubernetes.io~projected/v/..ts/deep/s f 0440 0:3000 "hush"',
    'kubernetes.io~projected/v/..data l 0:3000 -> ..ts',
    'kubernetes.io~projected/v/a l 0:3000 -> ..data/a',
    'kubernetes.io~projected/v/b l 0:3000 -> ..data/b',
    'kubernetes.io~projected/v/deep l 0:3000 -> ..data/deep',
  ])
  const { target } = projected.request
  let torn = 0
  let reading = true
  const reader = (async () => {
    while (reading) {
      // One look at ..data, then both files through it: what was seen together must belong together.
      const data = join(target, fs.readlinkSync(join(target, '..data')))
      try {
        if (fs.readFileSync(join(data, 'a'), 'utf8') !== fs.readFileSync(join(data, 'b'), 'utf8')) torn += 1
      } catch {
        // The directory was replaced and deleted meanwhile; ..data leads to the new one.
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
  })()
  for (let round = 0; round < 20; round += 1) {
    await bench.client.patch('ConfigMap', metadata, { type: 'merge', body: { data: { a: `${round}`, b: `${round}` } } })
    await projected.plugin.plugin.mount({ ...projected.request, remount: true }, signal)
  }
  reading = false
  await reader
  assert.equal(torn, 0)
  assert.equal(fs.readFileSync(join(target, 'b'), 'utf8'), '19')
  await unmount(projected)
  await assertClean(bench)
})

test('hostPath: real sockets and devices are told apart (HOST-3, MOUNT-26)', async () => {
  await using place = openPlace()
  await using bench = await openBench(place)
  for (const [path, type] of [
    ['/dev/null', 'CharDevice'],
    ['/tmp', 'Directory'],
    ['/etc/passwd', 'File'],
  ] as const) {
    await mount(mounting(bench, inline({ hostPath: { path, type } })))
  }
  await assert.rejects(mount(mounting(bench, inline({ hostPath: { path: '/dev/null', type: 'Socket' } }))), {
    message: 'hostPath type check failed: /dev/null is not a socket file',
  })
})

test('local directory for two pods, one of them read-only; the second group is warned', async () => {
  await using place = openPlace()
  await using bench = await openBench(place)
  const source = join(place.root, 'data')
  fs.mkdirSync(source)
  fs.writeFileSync(join(source, 'f'), 'x', { mode: 0o600 })
  const spec = persistent({ local: { path: source } })
  const first = mounting(bench, spec, { ownership: { fsGroup: 1001 } })
  const second = mounting(
    bench,
    { ...spec, readOnly: true },
    { pod: pod({ uid: 'uid-2' }), ownership: { fsGroup: 1002 } },
  )
  await mount(first)
  await mount(second)
  assert.equal(second.events.length, 1)
  assert.deepEqual([fs.statSync(join(source, 'f')).gid, fs.statSync(join(source, 'f')).mode & 0o777], [1001, 0o660])
  assert.throws(() => fs.writeFileSync(join(second.request.target, 'g'), ''), { code: 'EROFS' })
  fs.writeFileSync(join(first.request.target, 'g'), '')
  for (const one of [first, second]) await unmount(one)
  await unmountDevice(first.plugin.plugin, first.request)
  await assertClean(bench)
  assert.deepEqual(fs.readdirSync(source).sort(), ['f', 'g'])
})

test('a disk with data that nobody can name is not formatted, wherever the data is (WART-12)', async () => {
  for (const position of [4096, (16 << 20) - 4096]) {
    await using place = openPlace()
    await using bench = await openBench(place)
    const file = join(place.root, 'disk')
    await place.makeDiskFile(file, 16 << 20)
    const write = fs.openSync(file, 'r+')
    fs.writeSync(write, 'precious', position)
    fs.closeSync(write)
    const device = await place.host.devices.attachLoop({ file, readOnly: false }, signal)
    try {
      const one = mounting(bench, persistent({ local: { path: device, fsType: 'ext4' } }))
      await assert.rejects(mount(one), /The disk holds data that blkid does not name, not ext4/)
      assert.ok(fs.readFileSync(file).subarray(position).toString('latin1').startsWith('precious'))
      await assertClean(bench)
    } finally {
      await place.host.devices.detachLoop(device, signal)
    }
  }
})

test('local disk on a loop device: formatted once, restored after a restart, options kept, freed', async () => {
  await using place = openPlace()
  await using bench = await openBench(place)
  await place.makeDiskFile(join(place.root, 'disk'), 16 << 20)
  const device = await place.host.devices.attachLoop({ file: join(place.root, 'disk'), readOnly: false }, signal)
  try {
    const spec = persistent({ local: { path: device, fsType: 'ext4' } }, { mountOptions: ['noatime', 'nodev'] })
    const one = mounting(bench, spec, { ownership: { fsGroup: 2000 } })
    await mount(one)
    await mount(one)
    const { target } = one.request
    assert.deepEqual([fs.statSync(target).gid, fs.statSync(target).mode & 0o7777], [2000, 0o2775])
    const { options } = await bench.host.mounts.info(target, signal)
    assert.ok(options.includes('noatime') && options.includes('nodev'), options.join())
    const restored = await one.plugin.plugin.restore?.(
      { volumeName: 'pv', pod: podUid('uid-1'), path: target, mode: 'Filesystem' },
      signal,
    )
    assert.deepEqual(restored?.source, { kind: 'local', value: { path: device } })
    assert.equal(await bench.host.devices.isInUse(device, signal), true)
    await unmount(one)
    await unmountDevice(one.plugin.plugin, one.request)
    assert.equal(await bench.host.devices.isInUse(device, signal), false)
    const wrong = mounting(bench, persistent({ local: { path: device, fsType: 'xfs' } }))
    await assert.rejects(mount(wrong), { code: 'FilesystemMismatch' })
    await assertClean(bench)
  } finally {
    await place.host.devices.detachLoop(device, signal)
  }
})

/** A program named `mount` in front of the real one, and its helper: writes down its words, mounts a tmpfs for the network. */
function standInMount(directory: string, behaviour: string, helper = 'mount.nfs'): string {
  fs.mkdirSync(directory, { recursive: true })
  const script = `#!/bin/sh\nprintf '%s\\n' "$*" >> ${directory}/calls\n${behaviour}\n`
  fs.writeFileSync(join(directory, 'mount'), script, { mode: 0o755 })
  fs.writeFileSync(join(directory, helper), '#!/bin/sh\n', { mode: 0o755 })
  return `${directory}:/usr/sbin:/usr/bin:/sbin:/bin`
}

test('nfs (a stand-in for mount(8): our kernel has no NFS): the exact call, idempotence, unmount (NFS-1, NFS-2)', async () => {
  const tools = fs.mkdtempSync(join(tmpdir(), 'hawser-tools-'))
  const searchPath = standInMount(tools, 'for last in "$@"; do :; done\nexec /usr/bin/mount -t tmpfs tmpfs "$last"')
  await using place = openPlace({ searchPath })
  await using bench = await openBench(place)
  const spec = persistent(
    { nfs: { server: 'fd00::1', path: '/export' } },
    { mountOptions: ['vers=4.1', 'hard', 'hard'], readOnly: true },
  )
  const one = mounting(bench, spec)
  await mount(one)
  await mount(one)
  assert.equal(
    fs.readFileSync(join(tools, 'calls'), 'utf8'),
    `-t nfs -o hard,ro,vers=4.1 [fd00::1]:/export ${one.request.target}\n`,
  )
  await unmount(one)
  await assertClean(bench)
  fs.rmSync(tools, { recursive: true })
})

test('nfs (a stand-in for mount(8) that fails): the words of a kubelet, and no directory left (NFS-2)', async () => {
  const tools = fs.mkdtempSync(join(tmpdir(), 'hawser-tools-'))
  const searchPath = standInMount(tools, 'echo "mount.nfs: no route to host" >&2\nexit 32')
  await using place = openPlace({ searchPath })
  await using bench = await openBench(place)
  const one = mounting(bench, inline({ nfs: { server: '10.0.0.1', path: '/x' } }))
  await assert.rejects(mount(one), {
    message: `mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs 10.0.0.1:/x ${one.request.target}\nOutput: mount.nfs: no route to host\n\n`,
    effect: 'none',
  })
  assert.equal(fs.existsSync(one.request.target), false)
  await assertClean(bench)
  fs.rmSync(tools, { recursive: true })
})

test('nfs (a stand-in for mount(8) without its helper): the missing program is named', async (context) => {
  if (fs.existsSync('/usr/sbin/mount.nfs')) return context.skip('mount.nfs is installed here')
  const tools = fs.mkdtempSync(join(tmpdir(), 'hawser-tools-'))
  const searchPath = standInMount(tools, 'echo "mount: bad option" >&2\nexit 32', 'mount.other')
  await using place = openPlace({ searchPath })
  await using bench = await openBench(place)
  const one = mounting(bench, inline({ nfs: { server: '10.0.0.1', path: '/x' } }))
  await assert.rejects(mount(one), {
    code: 'NOPROGRAM',
    effect: 'none',
    message: /mount: bad option[^]*The program mount\.nfs is not installed\.\n$/,
  })
  await assertClean(bench)
  fs.rmSync(tools, { recursive: true })
})

test('nfs (a stand-in for mount(8) that hangs): the caller can give up, the program is killed, the outcome is unknown', async () => {
  const tools = fs.mkdtempSync(join(tmpdir(), 'hawser-tools-'))
  const searchPath = standInMount(tools, 'exec sleep 600')
  await using place = openPlace({ searchPath })
  await using bench = await openBench(place)
  const one = mounting(bench, inline({ nfs: { server: '10.0.0.1', path: '/x' } }))
  await assert.rejects(one.plugin.plugin.mount(one.request, AbortSignal.timeout(500)), { effect: 'unknown' })
  await unmount(one)
  await assertClean(bench)
  fs.rmSync(tools, { recursive: true })
})

test('a FlexVolume driver that is a real program: called, mounted, unmounted (FLEX-1, FLEX-9, FLEX-11)', async () => {
  const { probeFlexDrivers } = await import('../../src/plugins/index.ts')
  await using place = openPlace()
  await using bench = await openBench(place)
  const directory = join(place.root, 'exec')
  const folder = join(directory, 'acme~tmp')
  fs.mkdirSync(folder, { recursive: true })
  const script = `#!/bin/sh
case "$1" in
  init) echo '{"status":"Success","capabilities":{"attach":false}}' ;;
  mount) /usr/bin/mount -t tmpfs tmpfs "$2" && echo '{"status":"Success"}' ;;
  unmount) /usr/bin/umount "$2" && echo '{"status":"Success"}' ;;
  *) echo '{"status":"Not supported"}'; exit 1 ;;
esac
`
  const registry = bench.registry()
  await using prober = await probeFlexDrivers({ ...bench.deps, directory }, registry, signal)
  fs.writeFileSync(join(folder, 'tmp'), script, { mode: 0o755 })
  const spec = inline({ flexVolume: { driver: 'acme/tmp' } })
  // The watch brings it in by itself.
  for (let waited = 0; waited < 5000 && !registry.all().some(({ name }) => name === 'acme/tmp'); waited += 20)
    await new Promise((resolve) => setTimeout(resolve, 20))
  const one = mounting({ ...bench, registry: () => registry }, spec)
  await mount(one)
  assert.equal(await bench.host.mounts.isMountPoint(one.request.target, signal), true)
  await unmount(one)
  await assertClean(bench)
  await prober.probe()
})
