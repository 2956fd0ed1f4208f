// Which plugin serves a spec: MGR-2 … MGR-6, ID-5.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { PluginName } from '../api/names.ts'
import { definePlugin } from './plugin.ts'
import { createRegistry, inCluster, onNode } from './registry.ts'
import type { SourceKind } from './spec.ts'
import { specOfPodVolume } from './spec.ts'

const plugin = (name: string, source: SourceKind, supports?: () => boolean) =>
  onNode(
    definePlugin({
      name: name as PluginName,
      source,
      traits: { takesMountOptions: false, remountOnPodUpdate: false },
      volumeName: (spec) => spec.name,
      ...(supports ? { supports } : {}),
      node: () => ({ mount: async () => {}, unmount: async () => {} }),
    }),
    {},
  )
const nfs = specOfPodVolume({ name: 'data', nfs: { server: 's', path: '/p' } })

test('exactly one plugin by spec; none and several are errors in the upstream wording (MGR-5)', () => {
  const registry = createRegistry([plugin('kubernetes.io/nfs', 'nfs'), plugin('kubernetes.io/csi', 'csi')])
  assert.equal(registry.find(nfs).name, 'kubernetes.io/nfs')
  assert.equal(registry.find(nfs).volumeName(nfs), 'data')
  assert.throws(() => createRegistry([]).find(nfs), { message: 'no volume plugin matched' })
  const twice = createRegistry([plugin('a.io/one', 'nfs'), plugin('a.io/two', 'nfs')])
  assert.throws(() => twice.find(nfs), { message: 'multiple volume plugins matched: a.io/one,a.io/two' })
})

test('a plugin may decline a spec of its source (MGR-5)', () => {
  const registry = createRegistry([plugin('a.io/one', 'nfs', () => false), plugin('a.io/two', 'nfs')])
  assert.equal(registry.find(nfs).name, 'a.io/two')
})

test('by name; unknown and ambiguous names are errors (MGR-6)', () => {
  const registry = createRegistry([plugin('a.io/one', 'nfs')])
  assert.equal(registry.byName('a.io/one' as PluginName).name, 'a.io/one')
  assert.throws(() => registry.byName('x' as PluginName), { message: 'no volume plugin matched name: x' })
  registry.add(plugin('a.io/one', 'csi'))
  assert.throws(() => registry.byName('a.io/one' as PluginName), {
    message: 'multiple volume plugins matched: a.io/one,a.io/one',
  })
})

test('probed plugins are added, replaced and removed (MGR-3, MGR-4)', () => {
  const registry = createRegistry([plugin('a.io/one', 'csi')])
  registry.add(plugin('flex.io/x', 'nfs'))
  assert.equal(registry.find(nfs).name, 'flex.io/x')
  registry.add(plugin('flex.io/x', 'nfs', () => false))
  assert.throws(() => registry.find(nfs))
  registry.drop('flex.io/x' as PluginName)
  assert.deepEqual(
    registry.all().map(({ name }) => name),
    ['a.io/one'],
  )
})

test('invalid and duplicate names are refused by name (MGR-2)', () => {
  assert.throws(
    () => createRegistry([plugin('no-slash', 'nfs'), plugin('a.io/one', 'nfs'), plugin('a.io/one', 'csi')]),
    {
      message: 'volume plugin has invalid name: "no-slash"; volume plugin "a.io/one" was registered more than once',
    },
  )
})

test('a plugin without a cluster half offers nothing there', () => {
  const definition = definePlugin({
    name: 'a.io/one' as PluginName,
    source: 'nfs',
    traits: { takesMountOptions: false, remountOnPodUpdate: false },
    volumeName: (spec) => spec.name,
    node: () => ({ mount: async () => {}, unmount: async () => {} }),
  })
  assert.deepEqual(inCluster(definition, {} as never).plugin, {})
})

test('whoever waits for a plugin hears of each that comes or goes, and of nothing else (MGR-4, TP-27)', () => {
  const registry = createRegistry([plugin('a.io/one', 'nfs')])
  const heard: string[] = []
  const subscription = registry.subscribe(() =>
    heard.push(
      registry
        .all()
        .map(({ name }) => name)
        .join(' '),
    ),
  )
  registry.add(plugin('b.io/two', 'flexVolume'))
  registry.drop('b.io/two' as PluginName)
  registry.drop('b.io/two' as PluginName)
  subscription[Symbol.dispose]()
  registry.add(plugin('b.io/two', 'flexVolume'))
  assert.deepEqual(heard, ['a.io/one b.io/two', 'a.io/one'])
})
