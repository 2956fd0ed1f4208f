// Does an emptyDir have the right medium, size and mode, and is it gone afterwards without harm to anything else?

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createModelPluginFixture, inline, mounting, pod, signal } from '../../../test/kit/plugin-fixture.ts'
import { podUid } from '../../api/names.ts'
import type { EmptyDirVolumeSource, Pod } from '../../api/generated/types.ts'
import { memorySize } from '../shared/scratch.ts'

const withLimits = (...limits: readonly (string | undefined)[]): Pod =>
  pod({
    spec: {
      containers: limits.map((memory, index) => ({
        name: `c${index}`,
        ...(memory === undefined ? {} : { resources: { limits: { memory } } }),
      })),
    },
  })

test('the smallest of node, pod and volume limit is the size (TP-9, EMPTY-6)', () => {
  const allocatable = () => ({ memory: '8Gi' })
  const size = (own: Pod, sizeLimit?: string) => memorySize({ allocatable }, { pod: own, sizeLimit }) >> 20n
  assert.equal(size(withLimits('2Gi'), '1Gi'), 1024n)
  assert.equal(size(withLimits('2Gi'), '4Gi'), 2048n)
  assert.equal(size(withLimits('1Gi', '1Gi')), 2048n)
  assert.equal(size(withLimits('1Gi', undefined)), 8192n, 'a container without limit: the pod has none')
  assert.equal(size(withLimits(undefined), '0'), 8192n)
  assert.equal(size(pod({ spec: { containers: [{ name: 'c' }], resources: { limits: { memory: '3Gi' } } } })), 3072n)
})

test('only for pods; marked when ready; its name brings it back and takes it away (EMPTY-1, EMPTY-2, EMPTY-10, EMPTY-11, EMPTY-13)', async () => {
  const bench = await createModelPluginFixture()
  const marker = `${bench.root}/pods/uid-1/plugins/kubernetes.io~empty-dir/v`
  for (const emptyDir of [{ sizeLimit: '1Ki' }, { medium: 'Memory' }] as const) {
    const { plugin, request } = mounting(bench, inline({ emptyDir }))
    assert.deepEqual([plugin.name, plugin.volumeName(request.spec)], ['kubernetes.io/empty-dir', 'v'])
    assert.equal(plugin.supports({ ...request.spec, from: 'persistentVolume' }), false)
    const target = `${bench.root}/pods/uid-1/volumes/kubernetes.io~empty-dir/v`
    assert.equal(request.target, target)
    await plugin.plugin.mount(request, signal)
    const { mode, kind } = await bench.host.files.lstat(marker, signal)
    assert.deepEqual([mode, kind], [0o750, 'directory'])
    // A size on disk is for eviction, not for the plugin.
    await bench.host.files.writeFile(`${target}/f`, 'x'.repeat(5000), { mode: 0o600 }, signal)
    const pods = podUid('uid-1')
    const restored = await plugin.plugin.restore?.(
      { volumeName: 'v', pod: pods, path: target, mode: 'Filesystem' },
      signal,
    )
    assert.deepEqual(restored?.source, { kind: 'emptyDir', value: {} })
    // The marker goes first: a deletion that fails halfway leaves a volume that counts as unfinished.
    bench.host.faults.plant({ call: 'files.removeTree', below: target, kind: 'fails', times: 1 })
    await assert.rejects(plugin.plugin.unmount({ volumeName: 'v', pod: pods, target }, signal))
    assert.equal(await bench.host.files.exists(marker, signal), false)
    await plugin.plugin.unmount({ volumeName: 'v', pod: pods, target }, signal)
    await plugin.plugin.unmount({ volumeName: 'v', pod: pods, target }, signal)
    assert.equal(await bench.host.files.exists(target, signal), false)
  }
  await bench.close()
})

test('memory that never goes to swap is an option of the node (EMPTY-7)', async () => {
  for (const noSwap of [true, false]) {
    const bench = await createModelPluginFixture({ noSwap })
    const { plugin, request } = mounting(bench, inline({ emptyDir: { medium: 'Memory' } }))
    await plugin.plugin.mount(request, signal)
    const { superOptions } = await bench.host.mounts.info(request.target, signal)
    assert.equal(superOptions.includes('noswap'), noSwap)
    await bench.close()
  }
})

test('modes and mounts are those of a kubelet (EMPTY-5, EMPTY-6)', async () => {
  const bench = await createModelPluginFixture()
  const disk = mounting(bench, inline({ emptyDir: {} }, 'disk'))
  const memory = mounting(bench, inline({ emptyDir: { medium: 'Memory', sizeLimit: '2Mi' } }, 'memory'))
  for (const { plugin, request } of [disk, memory]) await plugin.plugin.mount(request, signal)
  assert.equal((await bench.host.files.stat(disk.request.target, signal)).mode, 0o777)
  const info = await bench.host.mounts.info(memory.request.target, signal)
  assert.deepEqual([info.type, info.source, info.superOptions.includes('size=2048k')], ['tmpfs', 'tmpfs', true])
  assert.equal(
    (await bench.host.files.stat(`${bench.root}/pods/uid-1/plugins/kubernetes.io~empty-dir/disk/ready`, signal)).mode,
    0o644,
  )
  await bench.close()
})

test('a ready marker without its directory does not count (TP-11, EMPTY-4)', async () => {
  const bench = await createModelPluginFixture()
  const { plugin, request } = mounting(bench, inline({ emptyDir: {} }))
  await plugin.plugin.mount(request, signal)
  await bench.host.files.rmdir(request.target, signal)
  await plugin.plugin.mount(request, signal)
  assert.equal((await bench.host.files.stat(request.target, signal)).kind, 'directory')
  await bench.close()
})

test('huge pages need exactly one requested size, or the size that is named (TP-10, EMPTY-8)', async () => {
  const bench = await createModelPluginFixture()
  const tries = async (emptyDir: EmptyDirVolumeSource, sizes: readonly string[]): Promise<string> => {
    const limits = Object.fromEntries(sizes.map((size) => [`hugepages-${size}`, size]))
    const { plugin, request } = mounting(bench, inline({ emptyDir }), {
      pod: pod({ spec: { containers: [{ name: 'c', resources: { limits } }] } }),
    })
    try {
      await plugin.plugin.mount(request, signal)
    } catch (error) {
      return (error as Error).message
    }
    const { superOptions } = await bench.host.mounts.info(request.target, signal)
    await plugin.plugin.unmount({ volumeName: 'v', pod: podUid('uid-1'), target: request.target }, signal)
    return superOptions.join()
  }
  assert.match(
    await tries({ medium: 'HugePages' }, []),
    /^medium HugePages: hugePages storage requested, but there is no resource request for huge pages$/,
  )
  assert.equal(
    await tries({ medium: 'HugePages' }, ['2Mi', '1Gi']),
    "medium: HugePages can't be used if container requests multiple huge page sizes",
  )
  for (const medium of ['HugePages-', 'HugePages-abc'] as readonly string[] as readonly 'HugePages'[])
    // as written by users
    assert.match(String(await tries({ medium }, ['2Mi'])), /^quantities must match the regular expression/)
  assert.equal(await tries({ medium: 'HugePages' }, ['2Mi']), 'rw,pagesize=2M')
  assert.equal(await tries({ medium: 'HugePages-1Gi' }, ['2Mi', '1Gi']), 'rw,pagesize=1G')
  assert.equal(
    await tries({ medium: 'HugePages-1Gi' }, ['2Mi']),
    'medium HugePages-1Gi: hugePages storage requested, but there is no resource request for huge pages',
  )
  await bench.close()
})

test('an unknown medium is refused before anything is made (EMPTY-3)', async () => {
  const bench = await createModelPluginFixture()
  for (const medium of ['Floppy', 'HugePagesX']) {
    const { plugin, request } = mounting(bench, inline({ emptyDir: { medium: medium as never } }))
    const message = `unknown storage medium "${medium}"`
    await assert.rejects(plugin.plugin.mount(request, signal), { message, effect: 'none' })
    assert.equal(await bench.host.files.exists(request.target, signal), false)
  }
  await bench.close()
})

test('a bind mount planted in an emptyDir stops its deletion; what it shows survives', async () => {
  const bench = await createModelPluginFixture()
  const { files, mounts } = bench.host
  const { plugin, request } = mounting(bench, inline({ emptyDir: {} }))
  await plugin.plugin.mount(request, signal)
  await files.mkdirAll('/tmp/precious', 0o755, signal)
  await files.writeFile('/tmp/precious/data', 'x', { mode: 0o644 }, signal)
  await files.mkdir(`${request.target}/planted`, 0o755, signal)
  await mounts.bind({ source: '/tmp/precious', target: `${request.target}/planted` }, signal)
  const unmount = () => plugin.plugin.unmount({ volumeName: 'v', pod: podUid('uid-1'), target: request.target }, signal)
  await assert.rejects(unmount(), { code: 'EBUSY' })
  assert.equal(await files.readText('/tmp/precious/data', signal), 'x')
  await mounts.unmount(`${request.target}/planted`, {}, signal)
  await unmount()
  assert.equal(await files.exists(request.target, signal), false)
  await bench.close()
})

test('a memory volume can grow while it is mounted (EMPTY-12)', async () => {
  const bench = await createModelPluginFixture()
  const { plugin, request } = mounting(bench, inline({ emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }))
  const resize = (newBytes: bigint) =>
    plugin.plugin.expand?.({ spec: request.spec, oldBytes: 0n, newBytes, path: request.target }, signal)
  await assert.rejects(resize(2n << 20n) ?? Promise.resolve(), { effect: 'untried' })
  await plugin.plugin.mount(request, signal)
  await resize(2n << 20n)
  assert.equal((await bench.host.filesystems.usage(request.target, signal)).capacityBytes, 2n << 20n)
  await bench.close()
})

test('a memory volume that is mounted but cannot be marked is in doubt, not absent: it must be undone (EMPTY-6)', async () => {
  const bench = await createModelPluginFixture()
  const { plugin, request } = mounting(bench, inline({ emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }))
  bench.host.faults.plant({ call: 'files.writeFile', kind: 'fails', code: 'ENOSPC' })
  await assert.rejects(plugin.plugin.mount(request, signal), { effect: 'unknown', code: 'ENOSPC' })
  assert.equal(await bench.host.mounts.isMountPoint(request.target, signal), true)
  bench.host.faults.clear()
  await plugin.plugin.unmount({ volumeName: 'v', pod: podUid('uid-1'), target: request.target }, signal)
  assert.equal(await bench.host.files.exists(request.target, signal), false)
  await bench.close()
})
