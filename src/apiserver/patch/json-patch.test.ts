// Do JSON patches and merge patches obey their RFCs and answer as Kubernetes recorded (scenario 325)?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { StatusError } from '../../api/status-error.ts'
import type { JsonMap } from './json.ts'
import { applyJsonPatch } from './json-patch.ts'
import { applyMergePatch } from './merge-patch.ts'

function failure(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error))
    return `${error.code} ${error.reason} ${error.message}`
  }
  return 'no failure'
}

const rejected = '422 Invalid the server rejected our request due to an error in our request'

test('325: test, replace, remove, and adding to a list', () => {
  const object = { metadata: { labels: { a: '1', b: '2' } }, mountOptions: ['x', 'y'] }
  const patched = applyJsonPatch(object, [
    { op: 'test', path: '/metadata/labels/a', value: '1' },
    { op: 'replace', path: '/metadata/labels/a', value: '3' },
    { op: 'remove', path: '/metadata/labels/b' },
    { op: 'add', path: '/mountOptions/-', value: 'z' },
    { op: 'add', path: '/mountOptions/0', value: 'w' },
    { op: 'copy', from: '/mountOptions/1', path: '/metadata/labels/x~1y~0' },
    { op: 'move', from: '/mountOptions/2', path: '/mountOptions/0' },
  ])
  assert.deepEqual(patched, {
    metadata: { labels: { a: '3', 'x/y~': 'x' } },
    mountOptions: ['y', 'w', 'x', 'z'],
  })
  assert.deepEqual(object, { metadata: { labels: { a: '1', b: '2' } }, mountOptions: ['x', 'y'] })
})

test('325: a key that is not there can be replaced, an index counts from the end', () => {
  const object = { map: {}, list: ['a', 'b', 'c'] }
  const patched = applyJsonPatch(object, [
    { op: 'replace', path: '/map/x', value: 1 },
    { op: 'remove', path: '/list/-1' },
    { op: 'add', path: '/list/-1', value: 'd' },
    { op: 'replace', path: '/list/-3', value: 'e' },
  ])
  assert.deepEqual(patched, { map: { x: 1 }, list: ['e', 'b', 'd'] })
})

const unread = '400 BadRequest error decoding patch: json: cannot unmarshal'

test('325: what cannot be applied is 422, what cannot be read is 400', () => {
  const object = { metadata: { labels: { a: '3' } }, list: [1] }
  const cases: readonly (readonly [unknown, string])[] = [
    [[{ op: 'test', path: '/metadata/labels/a', value: 'zzz' }], rejected],
    [[{ op: 'remove', path: '/metadata/labels/zzz' }], rejected],
    [[{ op: 'destroy', path: '/metadata/labels/a' }], rejected],
    [[{ op: 'add', path: '/list/2', value: 1 }], rejected],
    [[{ op: 'add', path: '/list/01', value: 1 }], rejected],
    [[{ op: 'add', path: '/x/y', value: 1 }], rejected],
    [[{ op: 'add', path: 'x', value: 1 }], rejected],
    [[{ op: 'move', from: '/metadata', path: '/metadata/labels' }], rejected],
    [[{ op: 'replace', path: '', value: 1 }], rejected],
    [[{ op: 'add', path: '/x' }], rejected],
    [[{}], rejected],
    [[{ op: 'remove', path: '/list/-2' }], rejected],
    [{}, `${unread} object into Go value of type []handlers.jsonPatchOp`],
    [[1], `${unread} number into Go value of type handlers.jsonPatchOp`],
  ]
  for (const [patch, text] of cases)
    assert.equal(
      failure(() => applyJsonPatch(object, patch)),
      text,
    )
})

test('a patch may neither hold too many operations nor copy itself to death', () => {
  const many = Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/a', value: 1 }))
  assert.match(
    failure(() => applyJsonPatch({ a: 1 }, many)),
    /^413 .*maximum operations in a JSON patch is 10000, got 10001/,
  )
  const doubling = Array.from({ length: 60 }, (_, index) => ({ op: 'copy', from: '/a', path: `/a/${index}` }))
  assert.match(
    failure(() => applyJsonPatch({ a: { start: 'x' } }, doubling)),
    /^413 /,
  )
  assert.equal(
    failure(() => applyJsonPatch({ a: { start: 'x'.repeat(10_000) } }, doubling)),
    rejected,
  )
})

test('copies of large maps and pointers without end cost no more than 50 ms', () => {
  const large = { data: Object.fromEntries(Array.from({ length: 8_000 }, (_, at) => [`k${at}`, 'v'])) }
  const copies = Array.from({ length: 2_000 }, (_, at) => ({ op: 'copy', from: '/data', path: `/data/x${at}` }))
  const doubling = Array.from({ length: 40 }, (_, at) => ({ op: 'copy', from: '', path: `/a${at}` }))
  const endless = [{ op: 'add', path: `/data${'/~1~0'.repeat(400_000)}`, value: 'v' }]
  for (const [answer, operations] of [
    [/^413 /, copies],
    [/^413 /, doubling],
    [/^422 /, endless],
  ] as const) {
    const costs = Array.from({ length: 5 }, () => {
      const before = process.threadCpuUsage()
      assert.match(
        failure(() => applyJsonPatch(large, operations)),
        answer,
      )
      const { user, system } = process.threadCpuUsage(before)
      return (user + system) / 1_000
    })
    assert.ok(Math.min(...costs) < 50, `${operations.length} operations: ${costs.join(', ')} ms`)
  }
})

test('a copied value and its origin change apart', () => {
  const patched = applyJsonPatch({ a: { list: [1] } }, [
    { op: 'add', path: '/a/list/-', value: 2 },
    { op: 'copy', from: '/a', path: '/b' },
    { op: 'add', path: '/b/list/-', value: 3 },
    { op: 'add', path: '/a/list/0', value: 0 },
    { op: 'move', from: '/a', path: '/c' },
    { op: 'remove', path: '/c/list/0' },
  ])
  assert.deepEqual(patched, { b: { list: [1, 2, 3] }, c: { list: [1, 2] } })
})

test('values of operations stay as they were sent', () => {
  const value = { list: [1] }
  const patch = [
    { op: 'add', path: '/a', value },
    { op: 'add', path: '/b', value },
    { op: 'add', path: '/a/list/-', value: 2 },
  ]
  assert.deepEqual(applyJsonPatch({}, patch), { a: { list: [1, 2] }, b: { list: [1] } })
  assert.deepEqual(value, { list: [1] })
})

test('10,000 operations change a map of 45,000 keys; as many at the front of such a list are refused', () => {
  const keys = Array.from({ length: 45_000 }, (_, at) => [`k${at}`, 'v'] as const)
  const replace = Array.from({ length: 10_000 }, (_, at) => ({ op: 'replace', path: `/data/k${at}`, value: 'w' }))
  const { data } = applyJsonPatch({ data: Object.fromEntries(keys) }, replace)
  assert.equal(Object.values(data as JsonMap).filter((value) => value === 'w').length, 10_000)
  const insert = Array.from({ length: 10_000 }, () => ({ op: 'add', path: '/list/0', value: 1 }))
  assert.equal(
    failure(() => applyJsonPatch({ list: keys.map(([key]) => key) }, insert)),
    '413 RequestEntityTooLarge Request entity too large: the patch changes large lists or maps too often',
  )
})

test('a patch cannot build a value too deep to walk', () => {
  const steps = 60
  const deep = JSON.parse(`${'{"a":'.repeat(100)}{}${'}'.repeat(100)}`) as JsonMap
  const patch = Array.from({ length: steps }, (_, step) => ({
    op: 'add',
    path: '/a'.repeat(100 * step + 1),
    value: deep,
  }))
  assert.equal(
    failure(() => applyJsonPatch({}, patch)),
    rejected,
  )
  const copies = Array.from({ length: steps }, () => ({ op: 'copy', from: '', path: '/a'.repeat(99) }))
  assert.equal(
    failure(() => applyJsonPatch(deep, copies)),
    rejected,
  )
})

test('keys of the language are plain data', () => {
  const added = applyJsonPatch({}, [{ op: 'add', path: '/__proto__', value: { polluted: true } }])
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
  assert.equal(JSON.stringify(added), '{"__proto__":{"polluted":true}}')
  assert.equal(
    failure(() => applyJsonPatch({}, [{ op: 'remove', path: '/constructor' }])),
    rejected,
  )
  const merged = applyMergePatch('ConfigMap', {}, JSON.parse('{"__proto__": {"polluted": true}}'))
  assert.equal(JSON.stringify(merged), '{"__proto__":{"polluted":true}}')
})

test('325: merge patch: null removes, lists are replaced, only objects are patches', () => {
  const object = { metadata: { labels: { a: '1', b: '2' } }, mountOptions: ['x'] }
  assert.deepEqual(
    applyMergePatch('StorageClass', object, {
      metadata: { labels: { a: null, c: '4', gone: null } },
      mountOptions: ['q'],
      fresh: { kept: 1, dropped: null },
    }),
    { metadata: { labels: { b: '2', c: '4' } }, mountOptions: ['q'], fresh: { kept: 1 } },
  )
  assert.equal(
    failure(() => applyMergePatch('StorageClass', object, ['x'])),
    '400 BadRequest error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}',
  )
})

const json = fc.jsonValue({ maxDepth: 3 })
const map = fc.dictionary(fc.string({ maxLength: 3 }), json, { maxKeys: 4 })
const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as JsonMap

test('laws: a merge patch applied twice is applied once; added then removed is as before', () => {
  fc.assert(
    fc.property(map, map, (object, patch) => {
      const once = applyMergePatch('ConfigMap', plain(object), plain(patch))
      assert.deepEqual(applyMergePatch('ConfigMap', once, plain(patch)), once)
    }),
  )
  fc.assert(
    fc.property(map, json, (object, value) => {
      const before = plain(object)
      const path = '/a~1new~0key'
      const after = applyJsonPatch(before, [
        { op: 'add', path, value },
        { op: 'test', path, value },
        { op: 'remove', path },
      ])
      assert.deepEqual(after, before)
    }),
  )
})

test('any garbage is answered with a status, never with a crash', () => {
  const operation = fc.record(
    {
      op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test', 'x'),
      path: fc.oneof(fc.string(), fc.constantFrom('', '/', '/a', '/a/0', '/a/-')),
      from: fc.constantFrom('', '/a', '/b'),
      value: json,
    },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(map, fc.oneof(json, fc.array(operation)), (object, patch) => {
      failure(() => applyJsonPatch(plain(object), patch))
    }),
  )
})
