// Do strategic merge patches merge lists by key and obey their directives?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { StatusError } from '../../api/status-error.ts'
import type { JsonMap } from './json.ts'
import { interleave, orderLists } from './list-order.ts'
import { applyMergePatch } from './merge-patch.ts'
import { applyStrategicMergePatch } from './strategic-merge.ts'

const pod = (spec: object): JsonMap => ({ metadata: { name: 'p' }, spec }) as unknown as JsonMap
const patched = (before: object, patch: object) =>
  (applyStrategicMergePatch('Pod', pod(before), { spec: patch }) as { spec?: unknown }).spec

interface Case {
  readonly name: string
  readonly before: object
  readonly patch: object
  readonly after: unknown
}

const cases: readonly Case[] = [
  {
    name: 'containers merge by name; what is new comes before what the patch does not name',
    before: { containers: [{ name: 'a', image: '1' }, { name: 'b' }] },
    patch: { containers: [{ name: 'a', image: '2' }, { name: 'c' }] },
    after: { containers: [{ name: 'a', image: '2' }, { name: 'c' }, { name: 'b' }] },
  },
  {
    name: 'an item is deleted by its key',
    before: { containers: [{ name: 'a' }, { name: 'b' }] },
    patch: { containers: [{ name: 'a', $patch: 'delete' }] },
    after: { containers: [{ name: 'b' }] },
  },
  {
    name: 'a list is replaced on demand',
    before: { containers: [{ name: 'a' }, { name: 'b' }] },
    patch: { containers: [{ name: 'c' }, { $patch: 'replace' }] },
    after: { containers: [{ name: 'c' }] },
  },
  {
    name: 'a map is replaced on demand',
    before: { securityContext: { runAsUser: 1, fsGroup: 2 } },
    patch: { securityContext: { $patch: 'replace', fsGroup: 3 } },
    after: { securityContext: { fsGroup: 3 } },
  },
  {
    name: 'a map is emptied on demand',
    before: { securityContext: { runAsUser: 1 } },
    patch: { securityContext: { $patch: 'delete' } },
    after: { securityContext: {} },
  },
  {
    name: 'retainKeys switches the source of a volume',
    before: { volumes: [{ name: 'v', emptyDir: {} }] },
    patch: { volumes: [{ name: 'v', $retainKeys: ['name', 'hostPath'], hostPath: { path: '/x' } }] },
    after: { volumes: [{ name: 'v', hostPath: { path: '/x' } }] },
  },
  {
    name: 'lists without a key are replaced',
    before: { tolerations: [{ key: 'a' }, { key: 'b' }] },
    patch: { tolerations: [{ key: 'c' }] },
    after: { tolerations: [{ key: 'c' }] },
  },
  {
    name: 'the order of a list is what the client says, others keep their place',
    before: { containers: [{ name: 'server' }, { name: 'a' }, { name: 'b' }] },
    patch: {
      containers: [{ name: 'c' }],
      '$setElementOrder/containers': [{ name: 'c' }, { name: 'b' }, { name: 'a' }],
    },
    after: { containers: [{ name: 'c' }, { name: 'server' }, { name: 'b' }, { name: 'a' }] },
  },
  {
    name: 'null removes, also inside what is new',
    before: { nodeName: 'n' },
    patch: { nodeName: null, affinity: { nodeAffinity: null, podAffinity: {} } },
    after: { affinity: { podAffinity: {} } },
  },
]

for (const { name, before, patch, after } of cases) {
  test(name, () => assert.deepEqual(patched(before, patch), after))
}

test('values of a set merge, and can be deleted', () => {
  const before = { metadata: { name: 'x', finalizers: ['a', 'b'] } }
  const after = applyStrategicMergePatch('PersistentVolume', before, {
    metadata: {
      '$deleteFromPrimitiveList/finalizers': ['a'],
      '$setElementOrder/finalizers': ['c', 'b'],
      finalizers: ['c'],
    },
  })
  assert.deepEqual(after, { metadata: { name: 'x', finalizers: ['c', 'b'] } })
})

test('patches that make no sense are refused', () => {
  const refuse = (patch: unknown) => {
    try {
      applyStrategicMergePatch('Pod', pod({ containers: [{ name: 'a' }] }), patch)
      return 0
    } catch (error) {
      assert.ok(error instanceof StatusError, String(error))
      return error.code
    }
  }
  assert.equal(refuse([]), 400)
  assert.equal(refuse({ $patch: 'whatever' }), 422)
  assert.equal(refuse({ spec: { containers: [{ image: 'x' }] } }), 422)
  assert.equal(refuse({ spec: { containers: ['x'] } }), 422)
  assert.equal(refuse({ spec: { $retainKeys: 'x' } }), 400)
  assert.equal(refuse({ spec: { $retainKeys: ['a'], nodeName: 'x' } }), 400)
  assert.equal(refuse({ metadata: { '$deleteFromPrimitiveList/finalizers': 'x' } }), 400)
  assert.equal(refuse({ metadata: { '$setElementOrder/finalizers': 'x' } }), 400)
})

test('law: without lists and directives it is a merge patch; applied twice it is applied once', () => {
  const value = fc.oneof(fc.string(), fc.integer(), fc.constant(null))
  const map = fc.dictionary(fc.constantFrom('a', 'b', 'c'), value, { noNullPrototype: true })
  const object = fc.record({ data: map, metadata: fc.record({ labels: map, annotations: map }) })
  fc.assert(
    fc.property(object, object, (before, patch) => {
      const plain = applyMergePatch('ConfigMap', {}, before)
      const once = applyStrategicMergePatch('ConfigMap', plain, patch)
      assert.deepEqual(once, applyMergePatch('ConfigMap', plain, patch))
      assert.deepEqual(applyStrategicMergePatch('ConfigMap', once, patch), once)
    }),
  )
})

test('orders: every item stays exactly once', () => {
  const names = fc.uniqueArray(fc.constantFrom<string[]>('a', 'b', 'c', 'd', 'e', 'f'))
  fc.assert(
    fc.property(names, names, (live, applied) => {
      const both = interleave(live, applied)
      assert.deepEqual([...both].toSorted(), [...new Set([...live, ...applied])].toSorted())
      assert.deepEqual(
        both.filter((name) => applied.includes(name)),
        applied,
      )
      const only = live.filter((name) => !applied.includes(name))
      assert.deepEqual(
        both.filter((name) => !applied.includes(name)),
        only,
      )
      assert.deepEqual([...orderLists(live, live, applied, undefined)].toSorted(), [...live].toSorted())
    }),
  )
  assert.deepEqual(interleave(['a', 'b'], ['c']), ['a', 'b', 'c'])
  assert.deepEqual(interleave(['a', 'x', 'b'], ['b', 'a']), ['b', 'a', 'x'])
})
