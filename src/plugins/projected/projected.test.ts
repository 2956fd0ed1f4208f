// Do volumes made of API objects hold the right files, with the right owners, and keep them when a refresh fails?

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createModelPluginFixture, inline, mounting, picture, pod, signal } from '../../../test/kit/plugin-fixture.ts'
import type { PluginFixture } from '../../../test/kit/plugin-fixture.ts'
import { podUid } from '../../api/names.ts'
import type { Pod, VolumeProjection } from '../../api/generated/types.ts'
import type { Ownership } from '../../volume/plugin.ts'
import { fieldValue, formatMap } from './downward-api.ts'
import { nestedMountPoints } from './nested-mounts.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const metadata = (name: string) => ({ name, namespace: 'default' })

async function configMap(bench: PluginFixture, name: string, data: Readonly<Record<string, string>>): Promise<void> {
  await bench.client.create('ConfigMap', { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata(name), data })
}

function projected(
  bench: PluginFixture,
  sources: readonly VolumeProjection[],
  facts: { pod?: Pod; ownership?: Ownership; remount?: boolean } = {},
) {
  return mounting(bench, inline({ projected: { defaultMode: 0o644, sources } }), facts)
}

test('a configMap volume looks exactly like a kubelet made it; without a default mode there is none (ATOMIC-3, CONF-5)', async () => {
  const bench = await createModelPluginFixture()
  await configMap(bench, 'o', { k: 'v' })
  const { plugin, request } = mounting(
    bench,
    inline({ configMap: { name: 'o', defaultMode: 0o440, items: [{ key: 'k', path: 'd/k', mode: 0o400 }] } }),
    { ownership: { fsGroup: 2000 } },
  )
  await plugin.plugin.mount(request, signal)
  assert.deepEqual(await picture(bench.host, `${bench.root}/pods/uid-1/volumes`), [
    'kubernetes.io~configmap d 0755 0:0',
    'kubernetes.io~configmap/v d 02777 0:2000',
    'kubernetes.io~configmap/v/..ts d 02755 0:2000',
    'kubernetes.io~configmap/v/..ts/d d 02755 0:2000',
    'kubernetes.io~configmap/v/..ts/d/k f 0440 0:2000 "v"',
    'kubernetes.io~configmap/v/..data l 0:2000 -> ..ts',
    'kubernetes.io~configmap/v/d l 0:2000 -> ..data/d',
  ])
  const modeless = mounting(bench, inline({ configMap: { name: 'o' } }, 'm'))
  await assert.rejects(modeless.plugin.plugin.mount(modeless.request, signal), {
    message: 'no defaultMode used, not even the default value for it',
  })
  assert.equal(await bench.host.files.exists(modeless.request.target, signal), false)
  await bench.close()
})

test('on disk or in memory, marked as wrapped, read-only, restored by name, all gone at the end (CONF-1, CONF-2, CONF-12, MGR-10)', async () => {
  const bench = await createModelPluginFixture()
  await configMap(bench, 'o', { k: 'v' })
  await bench.client.create('Secret', { metadata: metadata('o'), data: { k: base64('v') } })
  const items = [{ path: 'k', fieldRef: { fieldPath: 'metadata.name' } }]
  const cases = [
    ['configmap', { configMap: { name: 'o', defaultMode: 0o644 } }, '', { kind: 'configMap', value: {} }],
    ['secret', { secret: { secretName: 'o', defaultMode: 0o644 } }, 'tmpfs', { secretName: 'v' }],
    ['downward-api', { downwardAPI: { items, defaultMode: 0o644 } }, 'tmpfs', {}],
    ['projected', { projected: { sources: [], defaultMode: 0o644 } }, 'tmpfs', {}],
  ] as const
  for (const [name, volume, type, restoredValue] of cases) {
    const { plugin, request } = mounting(bench, inline(volume))
    const before = await picture(bench.host, `${bench.root}/pods/uid-1`)
    await plugin.plugin.mount(request, signal)
    assert.equal(request.target, `${bench.root}/pods/uid-1/volumes/kubernetes.io~${name}/v`)
    const mounted = await bench.host.mounts.isMountPoint(request.target, signal)
    assert.equal(mounted ? (await bench.host.mounts.info(request.target, signal)).type : '', type, name)
    const marker = `${bench.root}/pods/uid-1/plugins/kubernetes.io~empty-dir/wrapped_v/ready`
    assert.equal((await bench.host.files.lstat(marker, signal)).kind, 'file')
    assert.deepEqual(
      [plugin.traits.remountOnPodUpdate, plugin.plugin.readOnly?.(request.spec)],
      [true, true],
      'set up again on every sync, and read-only to containers (PLUG-13)',
    )
    const restored = await plugin.plugin.restore?.(
      { volumeName: 'v', pod: podUid('uid-1'), path: request.target, mode: 'Filesystem' },
      signal,
    )
    assert.deepEqual('kind' in restoredValue ? restored?.source : restored?.source.value, restoredValue)
    await plugin.plugin.unmount({ volumeName: 'v', pod: podUid('uid-1'), target: request.target }, signal)
    const parents = /^(volumes|plugins)\/kubernetes\.io~[a-z-]+ d /
    const after = (await picture(bench.host, `${bench.root}/pods/uid-1`)).filter((line) => !parents.test(line))
    assert.deepEqual(
      after,
      before.filter((line) => !parents.test(line)),
    )
  }
  await bench.close()
})

test('what a first set-up made is taken back when its write fails (CONF-4)', async () => {
  const bench = await createModelPluginFixture()
  await configMap(bench, 'o', { k: 'v' })
  const { plugin, request } = mounting(bench, inline({ configMap: { name: 'o', defaultMode: 0o644 } }))
  bench.host.faults.plant({ call: 'files.writeTree', kind: 'fails', code: 'ENOSPC', times: 1 })
  await assert.rejects(plugin.plugin.mount(request, signal), { code: 'ENOSPC' })
  assert.equal(await bench.host.files.exists(request.target, signal), false)
  assert.equal(
    await bench.host.files.exists(`${bench.root}/pods/uid-1/plugins/kubernetes.io~empty-dir/wrapped_v`, signal),
    false,
  )
  await bench.close()
})

test('certificates need APIs that are not here and are refused by name; an optional bundle is an empty file of its user (CONF-10)', async () => {
  const bench = await createModelPluginFixture()
  const bundle = (optional: boolean) => ({ clusterTrustBundle: { name: 'b', path: 'ca.pem', optional } })
  const missing = projected(bench, [bundle(false)])
  await assert.rejects(missing.plugin.plugin.mount(missing.request, signal), /clusterTrustBundle sources are not/)
  const certificate = { podCertificate: { signerName: 'x/y', keyType: 'ED25519', credentialBundlePath: 'c' } }
  const refused = projected(bench, [certificate])
  await assert.rejects(refused.plugin.plugin.mount(refused.request, signal), /podCertificate sources are not/)
  const optional = projected(bench, [bundle(true)], { ownership: { fsUser: 1000 } })
  await optional.plugin.plugin.mount(optional.request, signal)
  const { sizeBytes, mode, uid } = await bench.host.files.stat(`${optional.request.target}/ca.pem`, signal)
  assert.deepEqual([sizeBytes, mode, uid], [0, 0o600, 1000])
  await bench.close()
})

test('missing objects and keys, optional or not; nothing is touched on failure (TP-6, CONF-3, CONF-6)', async () => {
  const bench = await createModelPluginFixture()
  await configMap(bench, 'o', { k: 'v' })
  const secret = mounting(bench, inline({ secret: { secretName: 'late', defaultMode: 0o644 } }))
  await assert.rejects(secret.plugin.plugin.mount(secret.request, signal), {
    message: 'secret "late" not found',
    effect: 'untried',
  })
  const map = mounting(bench, inline({ configMap: { name: 'late', defaultMode: 0o644 } }))
  await assert.rejects(map.plugin.plugin.mount(map.request, signal), { message: 'configmap "late" not found' })
  const key = mounting(
    bench,
    inline({ configMap: { name: 'o', defaultMode: 0o644, items: [{ key: 'none', path: 'x' }] } }),
  )
  await assert.rejects(key.plugin.plugin.mount(key.request, signal), {
    message: 'configmap references non-existent config key: none',
  })
  assert.deepEqual(await picture(bench.host, `${bench.root}/pods/uid-1/volumes`), [])
  const optional = mounting(bench, inline({ secret: { secretName: 'late', defaultMode: 0o644, optional: true } }))
  await optional.plugin.plugin.mount(optional.request, signal)
  assert.deepEqual(
    (await bench.host.files.readDir(optional.request.target, signal)).filter((name) => !name.startsWith('..')),
    [],
  )
  await bench.close()
})

test('the later source wins; failures are told together (TP-7, CONF-8)', async () => {
  const bench = await createModelPluginFixture()
  await configMap(bench, 'one', { p: '1' })
  await configMap(bench, 'two', { p: '2' })
  const { plugin, request } = projected(bench, [{ configMap: { name: 'one' } }, { configMap: { name: 'two' } }])
  await plugin.plugin.mount(request, signal)
  assert.equal(await bench.host.files.readText(`${request.target}/p`, signal), '2')
  const broken = projected(bench, [
    { configMap: { name: 'no' } },
    { configMap: { name: 'one' } },
    { secret: { name: 'no' } },
  ])
  await assert.rejects(broken.plugin.plugin.mount(broken.request, signal), {
    message: '[configmap "no" not found, secret "no" not found]',
  })
  assert.equal(await bench.host.files.readText(`${request.target}/p`, signal), '2')
  await bench.close()
})

test('a token file belongs to its user or group alone (TP-8, CONF-9)', async () => {
  const bench = await createModelPluginFixture()
  await bench.client.create('ServiceAccount', { apiVersion: 'v1', kind: 'ServiceAccount', metadata: metadata('robot') })
  const plain = pod({ spec: { containers: [{ name: 'c', image: 'i' }], serviceAccountName: 'robot' } })
  const { metadata: stored } = await bench.client.create('Pod', {
    ...plain,
    metadata: { name: 'p', namespace: 'default' },
  })
  const own = { ...plain, metadata: { ...stored, uid: 'uid-1' } }
  const sources = [{ serviceAccountToken: { path: 'token', expirationSeconds: 600 } }]
  const modes: string[] = []
  for (const ownership of [{}, { fsGroup: 2000 }, { fsUser: 1000 }, { fsUser: 1000, fsGroup: 2000 }]) {
    const world = await createModelPluginFixture({
      client: {
        ...bench.client,
        post: async () => ({ status: { token: 't', expirationTimestamp: '2026-01-01T01:00:00Z' } }),
      },
    })
    const { plugin, request } = projected(world, sources, { pod: own, ownership })
    await plugin.plugin.mount(request, signal)
    const stat = await world.host.files.stat(`${request.target}/token`, signal)
    modes.push(`${stat.mode.toString(8)} ${stat.uid}:${stat.gid}`)
    await world.close()
  }
  assert.deepEqual(modes, ['644 0:0', '640 0:2000', '600 1000:0', '640 1000:2000'])
  await bench.close()
})

test('tokens are bound to the pod, kept, renewed when most of their life is over, forgotten with the pod (CONF-9)', async () => {
  const bodies: unknown[] = []
  const bench = await createModelPluginFixture()
  const post = async (_kind: unknown, ref: unknown, subresource: string, body: unknown) => {
    bodies.push([ref, subresource, body])
    return {
      status: {
        token: `t${bodies.length}`,
        expirationTimestamp: new Date(world.clock.now() + 3_600_000).toISOString(),
      },
    }
  }
  const world = await createModelPluginFixture({ client: { ...bench.client, post } })
  const registry = world.registry()
  const spec = inline({
    projected: { defaultMode: 0o644, sources: [{ serviceAccountToken: { path: 'token', audience: 'vault' } }] },
  })
  const { request } = mounting(world, spec)
  const { plugin } = registry.find(spec)
  const token = async () => {
    await plugin.mount({ ...request, remount: true }, signal)
    return world.host.files.readText(`${request.target}/token`, signal)
  }
  assert.equal(await token(), 't1')
  await world.clock.advance(40 * 60_000)
  assert.equal(await token(), 't1')
  await world.clock.advance(10 * 60_000)
  assert.equal(await token(), 't2')
  assert.deepEqual(bodies[0], [
    { namespace: 'default', name: 'default' },
    'token',
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        audiences: ['vault'],
        expirationSeconds: 3600,
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'uid-1' },
      },
    },
  ])
  await world.close()
  await bench.close()
})

test('a service account that does not exist is told in the words of a kubelet', async () => {
  const bench = await createModelPluginFixture()
  const { plugin, request } = projected(bench, [{ serviceAccountToken: { path: 'token' } }], {
    pod: pod({ spec: { containers: [{ name: 'c' }], serviceAccountName: 'ghost' } }),
  })
  await assert.rejects(plugin.plugin.mount(request, signal), {
    message: 'failed to fetch token: serviceaccounts "ghost" not found',
  })
  await bench.close()
})

test('a refresh that fails leaves a running pod its files (WART-4)', async () => {
  const bench = await createModelPluginFixture()
  await configMap(bench, 'o', { k: 'old' })
  const { plugin, request } = projected(bench, [{ configMap: { name: 'o' } }])
  await plugin.plugin.mount(request, signal)
  await bench.client.patch('ConfigMap', metadata('o'), { type: 'merge', body: { data: { k: 'new' } } })
  for (const call of ['files.writeTree', 'files.setGroup', 'files.symlink', 'files.rename']) {
    using _fault = bench.host.faults.plant({ call, kind: 'fails', code: 'ENOSPC', times: 1 })
    const failed = await plugin.plugin.mount({ ...request, remount: true, ownership: { fsGroup: 5 } }, signal).then(
      () => false,
      () => true,
    )
    assert.equal(failed, true, call)
    assert.equal(await bench.host.files.readText(`${request.target}/k`, signal), 'old')
  }
  await plugin.plugin.mount({ ...request, remount: true }, signal)
  assert.equal(await bench.host.files.readText(`${request.target}/k`, signal), 'new')
  await bench.close()
})

test('a secret fits although the pod may use less memory than it is large (WART-26)', async () => {
  const bench = await createModelPluginFixture()
  await bench.client.create('Secret', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: metadata('big'),
    data: { k: base64('x'.repeat(300_000)) },
  })
  const own = pod({ spec: { containers: [{ name: 'c', resources: { limits: { memory: '64Ki' } } }] } })
  const { plugin, request } = mounting(bench, inline({ secret: { secretName: 'big', defaultMode: 0o644 } }), {
    pod: own,
  })
  await plugin.plugin.mount(request, signal)
  assert.equal((await bench.host.files.readText(`${request.target}/k`, signal)).length, 300_000)
  await bench.close()
})

test('mount points inside the volume, the outermost only, compared as paths (NEST-1, NEST-2)', () => {
  const mounts = (...paths: readonly [string, string][]): Pod =>
    pod({
      spec: { containers: [{ name: 'c', volumeMounts: paths.map(([name, mountPath]) => ({ name, mountPath })) }] },
    })
  assert.deepEqual(
    nestedMountPoints('v', mounts(['v', '/etc/cfg'], ['a', '/etc/cfg/sub/dir'], ['b', '/etc/cfg/sub/dir/deeper'])),
    ['sub/dir'],
  )
  assert.deepEqual(nestedMountPoints('v', mounts(['v', '/dir/nested'], ['a', '/dir/nested-vol'])), [])
  assert.deepEqual(nestedMountPoints('v', mounts(['v', '/a'], ['v', '/b'], ['x', '/a/1'], ['x', '/b/2'])), ['1', '2'])
  assert.deepEqual(nestedMountPoints('v', mounts(['v', '/a'], ['v', '/a/b'], ['x', '/a/b/c'])), ['b', 'c'])
  assert.deepEqual(nestedMountPoints('v', mounts(['v', '/a/'], ['v', '/a/b/'], ['v', '/'])), ['a', 'b'])
  assert.throws(() => nestedMountPoints('v', mounts(['v', '../x'])))
})

test('fields and maps are rendered as Go would (CONF-7)', () => {
  const own = pod({
    metadata: { labels: { b: '2', a: 'x"y' }, annotations: { note: 'two "quoted"\nlines', 'a/b': 'ü\u0001' } },
  })
  assert.equal(fieldValue('metadata.labels', own), 'a="x\\"y"\nb="2"')
  assert.equal(fieldValue("metadata.annotations['note']", own), 'two "quoted"\nlines')
  assert.equal(fieldValue("metadata.labels['none']", own), '')
  assert.equal(formatMap({ 'a/b': 'ü\u0001' }), 'a/b="ü\\x01"')
  assert.throws(() => fieldValue('spec.nodeName', own), /unsupported fieldPath/)
})

test('resources with divisors, rounded up; a missing or zero limit is what the node has (CONF-7)', async () => {
  const bench = await createModelPluginFixture()
  const resources = { requests: { cpu: '100m', memory: '10Mi' }, limits: { cpu: '250m', memory: '20Mi' } }
  const own = pod({
    spec: { containers: [{ name: 'c', resources }, { name: 'd' }, { name: 'e', resources: { limits: { cpu: '0' } } }] },
  })
  const item = (path: string, containerName: string, resource: string, divisor?: string) => ({
    path,
    resourceFieldRef: { containerName, resource, ...(divisor === undefined ? {} : { divisor }) },
  })
  const items = [
    item('cpu-limit-m', 'c', 'limits.cpu', '1m'),
    item('cpu-request', 'c', 'requests.cpu', '1'),
    item('mem-limit', 'c', 'limits.memory', '1Mi'),
    item('mem-request', 'c', 'requests.memory', '1'),
    item('default/mem', 'd', 'limits.memory'),
    item('zero/cpu', 'e', 'limits.cpu'),
    item('request/cpu', 'e', 'requests.cpu'),
  ]
  const { plugin, request } = mounting(bench, inline({ downwardAPI: { defaultMode: 0o644, items } }), { pod: own })
  await plugin.plugin.mount(request, signal)
  const read = (path: string) => bench.host.files.readText(`${request.target}/${path}`, signal)
  assert.deepEqual(await Promise.all(items.map(({ path }) => read(path))), [
    '250',
    '1',
    '20',
    '10485760',
    String(8n << 30n),
    '2',
    '0',
  ])
  await bench.close()
})
