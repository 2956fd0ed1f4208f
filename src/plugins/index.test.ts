// Is the list complete, and are the types that are refused refused in clear words? MGR-11, GIT-1, IMG-1, PLUG-10.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inline, mounting, signal } from '../../test/plugins/bench.ts'
import { createModelBench } from '../../test/plugins/model-bench.ts'
import { persistent } from '../../test/plugins/volumes.ts'

test('MGR-11: the built-ins in their order; each names its volumes as Kubernetes does', async () => {
  const bench = await createModelBench()
  const registry = bench.registry()
  assert.deepEqual(
    registry.all().map(({ name }) => name.replace('kubernetes.io/', '')),
    [
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
    ],
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

test('PLUG-10: which plugins are attachable, mount devices, map blocks, take mount options', async () => {
  const bench = await createModelBench()
  const facts = (['Filesystem', 'Block'] as const).map((mode) =>
    [
      persistent({ local: { path: '/d' } }, { mode }),
      persistent({ iscsi: { targetPortal: 'p', iqn: 'i', lun: 0 } }, { mode }),
      persistent({ nfs: { server: 's', path: '/e' } }, { mode }),
    ].map((spec) => {
      const { plugin, traits } = bench.registry().find(spec)
      return [
        plugin.attachable?.(spec) ?? false,
        plugin.device?.(spec) !== undefined,
        plugin.block?.(spec) !== undefined,
        traits.mountOptions,
      ]
    }),
  )
  assert.deepEqual(facts, [
    [
      [false, true, false, true],
      [true, true, false, true],
      [false, false, false, true],
    ],
    [
      [false, false, true, true],
      [true, false, true, true],
      [false, false, false, true],
    ],
  ])
  await bench.close()
})

test('GIT-1: git repositories are always refused, and nothing is made', async () => {
  const bench = await createModelBench()
  const { plugin, request } = mounting(bench, inline({ gitRepo: { repository: 'https://x' } }))
  await assert.rejects(plugin.plugin.mount(request, signal), /git-repo volume plugin has been disabled/)
  assert.equal(await bench.host.files.exists(request.target, signal), false)
  await bench.close()
})

test('IMG-1: an image that is not unpacked here is refused, and said to be so', async () => {
  const bench = await createModelBench()
  const { plugin, request } = mounting(bench, inline({ image: { reference: 'r/app:1' } }))
  await assert.rejects(plugin.plugin.mount(request, signal), {
    effect: 'untried',
    message: /"r\/app:1" is not unpacked on this node/,
  })
  assert.equal(plugin.plugin.readOnly?.(request.spec), true)
  await bench.close()
})

test('a source without plugin matches none', async () => {
  const bench = await createModelBench()
  assert.throws(() => bench.registry().find(inline({ rbd: { monitors: [], image: 'x' } })), /no volume plugin matched/)
  assert.throws(
    () => bench.registry().find(inline({ flexVolume: { driver: 'acme/none' } })),
    /no volume plugin matched/,
  )
  await bench.close()
})
