// Is the list complete, and are the types that are refused refused in clear words? MGR-11, GIT-1, IMG-1, PLUG-10.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createModelPluginFixture, inline, mounting, signal } from '../../test/kit/plugin-fixture.ts'
import { persistent } from '../../test/kit/volume-specs.ts'
import type { VolumeSpec } from '../volume/spec.ts'

test('the built-ins in their order; each names its volumes as Kubernetes does (MGR-11)', async () => {
  const bench = await createModelPluginFixture()
  const registry = bench.registry()
  // Types of our own may stand among them.
  const kubernetes = [
    'empty-dir',
    'git-repo',
    'host-path',
    'nfs',
    'secret',
    'iscsi',
    'downward-api',
    'fc',
    'configmap',
    'projected',
    'local-volume',
    'image',
  ].map((name) => `kubernetes.io/${name}`)
  const names = registry.all().map(({ name }) => `${name}`)
  assert.deepEqual(
    names.filter((name) => kubernetes.includes(name)),
    kubernetes,
  )
  const named = [
    inline({ emptyDir: {} }),
    inline({ configMap: { name: 'c' } }),
    inline({ secret: { secretName: 's' } }),
    inline({ hostPath: { path: '/x' } }),
    inline({ nfs: { server: 's', path: '/e' } }),
    persistent({ local: { path: '/d' } }),
    persistent({ iscsi: { targetPortal: '10.0.0.1', iqn: 'iqn.x', lun: 3 } }),
    persistent({ fc: { wwids: ['a', 'b'] } }),
  ].map((spec) => registry.find(spec).volumeName(spec))
  assert.deepEqual(named, ['v', 'v/c', 's', '/x', 's//e', 'pv', '10.0.0.1:iqn.x:3', '[a b]'])
  await bench.close()
})

test('what each plugin can do (PLUG-1, PLUG-3, PLUG-4, PLUG-5, PLUG-6, PLUG-10)', async () => {
  const bench = await createModelPluginFixture()
  const registry = bench.registry()
  const can = (spec: VolumeSpec) => {
    const { name, plugin, traits } = registry.find(spec)
    const block: VolumeSpec = { ...spec, mode: 'Block' }
    const abilities = {
      attach: plugin.attachable?.(spec) === true,
      device: plugin.device?.(spec) !== undefined,
      block: plugin.block?.(block) !== undefined,
      expand: plugin.expand !== undefined,
      options: traits.takesMountOptions,
      again: traits.remountOnPodUpdate,
    }
    return [
      name.slice('kubernetes.io/'.length),
      ...Object.entries(abilities).flatMap(([key, yes]) => (yes ? [key] : [])),
    ]
  }
  const table = [
    inline({ emptyDir: {} }),
    inline({ configMap: {} }),
    inline({ secret: {} }),
    inline({ downwardAPI: {} }),
    inline({ projected: {} }),
    inline({ gitRepo: { repository: 'r' } }),
    inline({ image: {} }),
    persistent({ hostPath: { path: '/d' } }),
    persistent({ nfs: { server: 's', path: '/e' } }),
    persistent({ local: { path: '/d' } }),
    persistent({ iscsi: { targetPortal: 'p', iqn: 'i', lun: 0 } }),
    persistent({ fc: { wwids: ['w'] } }),
  ].map((spec) => can(spec).join(' '))
  assert.deepEqual(table, [
    'empty-dir expand',
    'configmap again',
    'secret again',
    'downward-api again',
    'projected again',
    'git-repo',
    'image',
    'host-path',
    'nfs options',
    'local-volume device block expand options',
    'iscsi attach device block options',
    'fc attach device block options',
  ])
  await bench.close()
})

test('what the node is told of a volume: the objects it shows, time, its size limit, a missing path (PLUG-1, EMPTY-10)', async () => {
  const bench = await createModelPluginFixture()
  const registry = bench.registry()
  const told = (spec: VolumeSpec) => {
    const { sourceObjects, changesByTime, sizeLimit, createsMissingDirectory } = registry.find(spec).traits
    return [
      sourceObjects?.(spec).map(({ kind, name }) => `${kind}/${name}`),
      changesByTime?.(spec) ?? false,
      sizeLimit?.(spec),
      createsMissingDirectory?.(spec) ?? false,
    ]
  }
  const token = { serviceAccountToken: { path: 't' } }
  const sources = [{ configMap: { name: 'c' } }, { secret: { name: 's' } }, { downwardAPI: {} }]
  const exceededMessage = 'Usage of EmptyDir volume "v" exceeds the limit "1Ki". '
  const nothing = [undefined, false, undefined, false]
  const rows: readonly [VolumeSpec, readonly unknown[]][] = [
    [inline({ configMap: { name: 'c' } }), [['ConfigMap/c'], false, undefined, false]],
    [inline({ configMap: {} }), [[], false, undefined, false]],
    [inline({ secret: { secretName: 's' } }), [['Secret/s'], false, undefined, false]],
    [inline({ projected: { sources } }), [['ConfigMap/c', 'Secret/s'], false, undefined, false]],
    [inline({ projected: { sources: [token] } }), [[], true, undefined, false]],
    [inline({ downwardAPI: {} }), nothing],
    [inline({ emptyDir: { sizeLimit: '1Ki' } }), [undefined, false, { bytes: 1024n, exceededMessage }, false]],
    [inline({ emptyDir: { sizeLimit: '0' } }), nothing],
    [inline({ emptyDir: { sizeLimit: '1Ki', medium: 'Memory' } }), nothing],
    [inline({ hostPath: { path: '/x' } }), [undefined, false, undefined, true]],
    [inline({ hostPath: { path: '/x', type: 'Directory' } }), nothing],
    [inline({ nfs: { server: 's', path: '/e' } }), nothing],
  ]
  assert.deepEqual(
    rows.map(([spec]) => told(spec)),
    rows.map(([, expected]) => expected),
  )
  await bench.close()
})

test('git repositories are always refused, and nothing is made (GIT-1)', async () => {
  const bench = await createModelPluginFixture()
  const { plugin, request } = mounting(bench, inline({ gitRepo: { repository: 'https://x' } }))
  await assert.rejects(plugin.plugin.mount(request, signal), /git-repo volume plugin has been disabled/)
  assert.equal(await bench.host.files.exists(request.target, signal), false)
  await bench.close()
})

test('an image that is not unpacked here is refused, and said to be so (IMG-1)', async () => {
  const bench = await createModelPluginFixture()
  const { plugin, request } = mounting(bench, inline({ image: { reference: 'r/app:1' } }))
  await assert.rejects(plugin.plugin.mount(request, signal), {
    effect: 'untried',
    message: /"r\/app:1" is not unpacked on this node/,
  })
  assert.equal(plugin.plugin.readOnly?.(request.spec), true)
  await bench.close()
})

test('a source without plugin matches none', async () => {
  const bench = await createModelPluginFixture()
  assert.throws(() => bench.registry().find(inline({ rbd: { monitors: [], image: 'x' } })), /no volume plugin matched/)
  assert.throws(
    () => bench.registry().find(inline({ flexVolume: { driver: 'acme/none' } })),
    /no volume plugin matched/,
  )
  await bench.close()
})
