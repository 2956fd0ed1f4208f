// Does every patch stay below n·log n, whatever a client sends? (Attack A4: one request of 220 KB
// held the server for seconds.)
import { test } from 'node:test'
import { applyServerSide } from '../../src/apiserver/patch/apply.ts'
import { applyJsonPatch } from '../../src/apiserver/patch/json-patch.ts'
import { updateManagedFields } from '../../src/apiserver/patch/managed-fields.ts'
import { createManagedFieldsCache } from '../../src/apiserver/patch/managed-fields-cache.ts'
import { applyMergePatch } from '../../src/apiserver/patch/merge-patch.ts'
import { applyStrategicMergePatch } from '../../src/apiserver/patch/strategic-merge.ts'
import { answered, assertGrowth, mapOf, times, type Work } from '../kit/growth.ts'

const patchSizes = [100, 1_000, 10_000] as const
/** Patches that change large values again and again are refused; this is how far they may come. */
const refusedMs = 600

/** As many operations as the size, on an object of four times that. */
function jsonPatch(
  name: string,
  object: (size: number) => object,
  operation: (at: number, size: number) => object,
): Work {
  return {
    name: `JSON patch: ${name}`,
    sizes: patchSizes,
    boundMs: refusedMs,
    prepare(size) {
      const current = object(size * 4)
      const operations = times(size, (at) => operation(at, size))
      return answered(() => applyJsonPatch(current, operations))
    },
  }
}

const largeMap = (size: number) => ({ data: mapOf(size) })
const largeList = (size: number) => ({ list: times(size, (at) => at) })
const chain = () => JSON.parse(`${'{"a":'.repeat(150)}{}${'}'.repeat(150)}`) as object

const jsonPatches: readonly Work[] = [
  jsonPatch('adding keys', largeMap, (at) => ({ op: 'add', path: `/data/new-${at}`, value: 'v' })),
  jsonPatch('replacing keys', largeMap, (at) => ({ op: 'replace', path: `/data/key-${at}`, value: 'w' })),
  jsonPatch('removing keys', largeMap, (at) => ({ op: 'remove', path: `/data/key-${at}` })),
  jsonPatch('copying keys', largeMap, (at) => ({ op: 'copy', from: `/data/key-${at}`, path: `/data/new-${at}` })),
  jsonPatch('copying a large map', largeMap, (at) => ({ op: 'copy', from: '/data', path: `/new-${at}` })),
  jsonPatch('moving keys', largeMap, (at) => ({ op: 'move', from: `/data/key-${at}`, path: `/data/new-${at}` })),
  jsonPatch('moving a large map down and up', largeMap, (at) =>
    at % 3 === 0
      ? { op: 'add', path: '/x', value: {} }
      : at % 3 === 1
        ? { op: 'move', from: '/data', path: '/x/data' }
        : { op: 'move', from: '/x/data', path: '/data' },
  ),
  jsonPatch('testing a large map', largeMap, (at, size) =>
    at === 0 ? { op: 'test', path: '/data', value: mapOf(size * 4) } : { op: 'add', path: '/data/key-0', value: 'v' },
  ),
  jsonPatch('looking at a large map', largeMap, () => ({ op: 'replace', path: '/data/key-1', value: {} })),
  jsonPatch('adding at the front of a list', largeList, () => ({ op: 'add', path: '/list/0', value: 1 })),
  jsonPatch('adding at the end of a list', largeList, () => ({ op: 'add', path: '/list/-', value: 1 })),
  jsonPatch('removing from the front of a list', largeList, () => ({ op: 'remove', path: '/list/0' })),
  jsonPatch('replacing in a list', largeList, (at) => ({ op: 'replace', path: `/list/${at}`, value: {} })),
  jsonPatch('paths that go on below the end', chain, (_at, size) => ({ op: 'add', path: '/a'.repeat(size), value: 1 })),
  jsonPatch('changing in the depth', chain, () => ({ op: 'add', path: `${'/a'.repeat(150)}/b`, value: 1 })),
]

const finalizers = (size: number) => times(size, (at) => `example.com/f${at}`)
const volumes = (size: number) => times(size, (at) => ({ name: `v${at}` }))

function strategic(name: string, current: (size: number) => object, patch: (size: number) => object): Work {
  return {
    name: `strategic merge patch: ${name}`,
    sizes: [200, 2_000, 10_000],
    boundMs: refusedMs,
    prepare(size) {
      const [before, change] = [current(size), patch(size)]
      return answered(() => applyStrategicMergePatch('Pod', before, change))
    },
  }
}

const podWith = (size: number) => ({ spec: { volumes: volumes(size) } })
const finalized = (size: number) => ({ metadata: { finalizers: finalizers(size) } })
const labelled = (size: number) => ({ metadata: { labels: mapOf(size) } })

const mergePatches: readonly Work[] = [
  strategic('the same items in another order', podWith, (size) => ({ spec: { volumes: volumes(size).toReversed() } })),
  strategic('other items', podWith, (size) => ({ spec: { volumes: times(size, (at) => ({ name: `w${at}` })) } })),
  strategic('items deleted', podWith, (size) => ({
    spec: { volumes: volumes(size).map((item) => ({ ...item, $patch: 'delete' })) },
  })),
  strategic(
    'one item again and again',
    (size) => ({
      spec: { containers: [{ name: 'c', env: times(size, (at) => ({ name: `E${at}` })) }] },
    }),
    (size) => ({ spec: { containers: times(size, () => ({ name: 'c', env: [] })) } }),
  ),
  strategic('a new order', podWith, (size) => ({ spec: { '$setElementOrder/volumes': volumes(size).toReversed() } })),
  strategic('values added', finalized, (size) => ({ metadata: { finalizers: finalizers(size * 2).toReversed() } })),
  strategic('values deleted', finalized, (size) => ({
    metadata: { '$deleteFromPrimitiveList/finalizers': finalizers(size).toReversed() },
  })),
  strategic('keys retained', labelled, (size) => ({
    metadata: { labels: { ...mapOf(size), $retainKeys: Object.keys(mapOf(size)).toReversed() } },
  })),
  {
    name: 'merge patch',
    sizes: [500, 5_000, 50_000],
    prepare(size) {
      const [current, patch] = [labelled(size), { metadata: { labels: { ...mapOf(size), more: null } } }]
      return () => applyMergePatch('Pod', current, patch)
    },
  },
]

const configMap = (size: number) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c', namespace: 'default' },
  data: mapOf(size),
})

/** As many owners as the size, each of its own field: a client may write such entries at once. */
function ownedByMany(size: number, operation: 'Apply' | 'Update') {
  const managedFields = times(size, (at) => ({
    manager: `m${at}`,
    operation,
    apiVersion: 'v1',
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:data': { [`f:key-${at}`]: {} } },
  }))
  return { ...configMap(size), metadata: { ...configMap(0).metadata, managedFields } } as const
}

function apply(name: string, run: (size: number) => () => unknown): Work {
  return { name: `server-side apply: ${name}`, sizes: [200, 2_000, 10_000], prepare: (size) => answered(run(size)) }
}

const applied = { kind: 'ConfigMap', manager: 'm0', now: 0 } as const
const applies: readonly Work[] = [
  apply('many fields', (size) => {
    const config = configMap(size)
    const { object } = applyServerSide({ ...applied, live: undefined, config, force: false })
    return () => applyServerSide({ ...applied, live: object, config: configMap(size / 2), force: false })
  }),
  apply('many owners', (size) => {
    const live = ownedByMany(size, 'Apply')
    return () => applyServerSide({ ...applied, live, config: configMap(0), force: false })
  }),
  apply('conflicts with many owners', (size) => {
    const live = ownedByMany(size, 'Apply')
    const config = { ...configMap(0), data: Object.fromEntries(times(size, (at) => [`key-${at}`, 'w'])) }
    return () => applyServerSide({ ...applied, live, config, force: false })
  }),
  apply('fields taken from many owners', (size) => {
    const live = ownedByMany(size, 'Apply')
    const config = { ...configMap(0), data: Object.fromEntries(times(size, (at) => [`key-${at}`, 'w'])) }
    return () => applyServerSide({ ...applied, live, config, force: true })
  }),
  apply('a plain write over many owners', (size) => {
    const before = ownedByMany(size, 'Update')
    const after = { ...before, data: { x: 'y' } }
    const write = { kind: 'ConfigMap', before, after, manager: 'm', now: 0 } as const
    return () => updateManagedFields(write, createManagedFieldsCache())
  }),
]

for (const work of [...jsonPatches, ...mergePatches, ...applies]) {
  test(`${work.name} takes time below n·log n`, () => assertGrowth(work))
}
