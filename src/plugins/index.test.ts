// Is the list complete, and are the types that are refused refused in clear words? MGR-11, GIT-1, IMG-1, PLUG-10.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inline, mounting, signal } from '../../test/plugins/bench.ts'
import { createModelBench } from '../../test/plugins/model-bench.ts'
import { persistent } from '../../test/plugins/volumes.ts'
import type { VolumeSpec } from '../volume/spec.ts'

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

test('PLUG-1, PLUG-2, PLUG-3, PLUG-4, PLUG-5, PLUG-6, PLUG-10: what each plugin can do', async () => {
  const bench = await createModelBench()
  const registry = bench.registry()
  const can = (spec: VolumeSpec) => {
    const { name, plugin, traits } = registry.find(spec)
    const block: VolumeSpec = { ...spec, mode: 'Block' }
    const abilities = {
      attach: plugin.attachable?.(spec) === true,
      device: plugin.device?.(spec) !== undefined,
      block: plugin.block?.(block) !== undefined,
      expand: plugin.expand !== undefined,
      options: traits.mountOptions,
      again: traits.remountOnPodUpdate,
    }
    const modes = (traits.accessModes ?? []).map((mode) => mode.replace(/[a-z]/g, '')).join()
    return [
      name.slice('kubernetes.io/'.length),
      modes,
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
    'empty-dir  expand',
    'configmap  again',
    'secret  again',
    'downward-api  again',
    'projected  again',
    'git-repo ',
    'image ',
    'host-path RWO',
    'nfs RWO,ROM,RWM options',
    'local-volume RWO device block expand options',
    'iscsi RWO,ROM attach device block options',
    'fc RWO,ROM attach device block options',
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
