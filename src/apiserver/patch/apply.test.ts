// Does server-side apply keep ownership as Kubernetes does? Conflicts, force, removal, co-ownership, and the
// managedFields of plain writes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { KubeObject } from '../../api/meta.ts'
import { StatusError } from '../../api/status-error.ts'
import { applyServerSide } from './apply.ts'
import { difference, equalSets, fromFieldsV1, intersection, toFieldsV1, union } from './field-set.ts'
import { createManagedFieldsCache } from './managed-fields-cache.ts'
import { updateManagedFields as update, type WriteRecord } from './managed-fields.ts'

const cache = createManagedFieldsCache()
const updateManagedFields = (write: WriteRecord) => update(write, cache)
const now = Date.parse('2026-01-01T00:00:00Z')
const later = now + 60_000
const configMap = (data: object, metadata: object = {}): KubeObject =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm', ...metadata }, data }) as KubeObject

interface Options {
  readonly force?: boolean
  readonly at?: number
}

function apply(live: KubeObject | undefined, manager: string, config: object, options: Options = {}) {
  const { force = false, at = now } = options
  return applyServerSide({ kind: 'ConfigMap', live, config, manager, force, now: at }).object
}

const dataOf = (object: KubeObject) => (object as { data?: unknown }).data
const ownedBy = (object: KubeObject, manager: string) =>
  object.metadata.managedFields?.find((entry) => entry.manager === manager)?.fieldsV1

function conflictOf(run: () => unknown): StatusError {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error))
    return error
  }
  throw new assert.AssertionError({ message: 'no conflict' })
}

test('the first apply creates, and owns what it names', () => {
  const made = apply(undefined, 'alice', configMap({ a: '1' }, { labels: { l: 'x' } }))
  assert.deepEqual(made, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: 'm',
      labels: { l: 'x' },
      managedFields: [
        {
          manager: 'alice',
          operation: 'Apply',
          apiVersion: 'v1',
          time: '2026-01-01T00:00:00Z',
          fieldsType: 'FieldsV1',
          fieldsV1: { 'f:data': { 'f:a': {} }, 'f:metadata': { 'f:labels': { 'f:l': {} } } },
        },
      ],
    },
    data: { a: '1' },
  })
})

test('applying the same again changes nothing, not even the time', () => {
  const config = configMap({ a: '1' })
  const once = apply(undefined, 'alice', config)
  assert.deepEqual(
    applyServerSide({ kind: 'ConfigMap', live: once, config, manager: 'alice', force: false, now: later }),
    {
      object: once,
      changed: false,
    },
  )
})

test('a field that its only owner drops disappears; a co-owned field stays', () => {
  const alice = apply(undefined, 'alice', configMap({ a: '1', b: '2' }))
  const both = apply(alice, 'bob', configMap({ b: '2', c: '3' }))
  assert.deepEqual(dataOf(both), { a: '1', b: '2', c: '3' })
  const dropped = apply(both, 'alice', configMap({ a: '1' }))
  assert.deepEqual(dataOf(dropped), { a: '1', b: '2', c: '3' })
  const gone = apply(dropped, 'bob', configMap({ c: '3' }))
  assert.deepEqual(dataOf(gone), { a: '1', c: '3' })
  assert.deepEqual(ownedBy(gone, 'alice'), { 'f:data': { 'f:a': {} } })
})

test('a conflict names the owner and the field; force takes the field over', () => {
  const alice = apply(undefined, 'alice', configMap({ a: '1', b: '2' }))
  const one = conflictOf(() => apply(alice, 'bob', configMap({ a: '9' })))
  assert.equal(one.code, 409)
  assert.equal(one.reason, 'Conflict')
  assert.equal(one.message, 'Apply failed with 1 conflict: conflict with "alice": .data.a')
  assert.deepEqual(one.details?.causes, [
    { reason: 'FieldManagerConflict', message: 'conflict with "alice"', field: '.data.a' },
  ])
  const two = conflictOf(() => apply(alice, 'bob', configMap({ a: '9', b: '9' })))
  assert.equal(two.message, 'Apply failed with 2 conflicts: conflicts with "alice":\n- .data.a\n- .data.b')
  const forced = apply(alice, 'bob', configMap({ a: '9' }), { force: true })
  assert.deepEqual(dataOf(forced), { a: '9', b: '2' })
  assert.deepEqual(ownedBy(forced, 'alice'), { 'f:data': { 'f:b': {} } })
})

test('fields of a plain write conflict too, with its version; the write takes fields from appliers', () => {
  const made = configMap({ a: '1' })
  const managedFields = updateManagedFields({ kind: 'ConfigMap', before: undefined, after: made, manager: 'edit', now })
  assert.deepEqual(managedFields[0]?.fieldsV1, { 'f:data': { '.': {}, 'f:a': {} } })
  const live = { ...made, metadata: { ...made.metadata, managedFields } }
  const conflict = conflictOf(() => apply(live, 'bob', configMap({ a: '2' })))
  assert.equal(conflict.message, 'Apply failed with 1 conflict: conflict with "edit" using v1: .data.a')

  const applied = apply(undefined, 'alice', configMap({ a: '1', b: '1' }))
  const edited = { ...configMap({ a: '7', b: '1' }), metadata: applied.metadata }
  const entries = updateManagedFields({
    kind: 'ConfigMap',
    before: applied,
    after: edited,
    manager: 'edit',
    now: later,
  })
  assert.deepEqual(
    entries.map((entry) => [entry.manager, entry.operation, entry.time, entry.fieldsV1]),
    [
      ['alice', 'Apply', '2026-01-01T00:00:00Z', { 'f:data': { 'f:b': {} } }],
      ['edit', 'Update', '2026-01-01T00:01:00Z', { 'f:data': { 'f:a': {} } }],
    ],
  )
})

test('322: a write that changes nothing keeps the entries as they are', () => {
  const live = apply(undefined, 'alice', configMap({ a: '1' }))
  const { managedFields: entries, ...metadata } = live.metadata
  const same = { ...live, metadata: { ...metadata, resourceVersion: '9' } }
  assert.equal(updateManagedFields({ kind: 'ConfigMap', before: live, after: same, manager: 'x', now: later }), entries)
})

test('status is owned apart from the rest', () => {
  const before: KubeObject = { metadata: { name: 'v' } }
  const after = { ...before, status: { phase: 'Bound' } } as KubeObject
  const write = { kind: 'PersistentVolume', before, after, manager: 'ctl', subresource: 'status', now } as const
  assert.deepEqual(updateManagedFields(write), [
    {
      manager: 'ctl',
      operation: 'Update',
      apiVersion: 'v1',
      time: '2026-01-01T00:00:00Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:status': { 'f:phase': {} } },
      subresource: 'status',
    },
  ])
})

const pod = (containers: readonly object[], more: object = {}): KubeObject =>
  ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers, ...more } }) as KubeObject
const applyPod = (live: KubeObject | undefined, manager: string, config: unknown, force = false) =>
  applyServerSide({ kind: 'Pod', live, config, manager, force, now }).object
const specOf = (object: KubeObject) => (object as { spec?: { containers?: readonly { name: string }[] } }).spec

test('list items merge by key, and are owned by key', () => {
  const first = applyPod(undefined, 'alice', pod([{ name: 'a', image: '1', ports: [{ containerPort: 80 }] }]))
  assert.deepEqual(ownedBy(first, 'alice'), {
    'f:spec': {
      'f:containers': {
        'k:{"name":"a"}': {
          '.': {},
          'f:image': {},
          'f:name': {},
          'f:ports': { 'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {} } },
        },
      },
    },
  })
  const second = applyPod(first, 'bob', pod([{ name: 'b', image: '2' }]))
  assert.deepEqual(
    specOf(second)?.containers?.map((container) => container.name),
    ['a', 'b'],
  )
  const conflict = conflictOf(() =>
    applyPod(
      second,
      'bob',
      pod([
        { name: 'a', image: '3' },
        { name: 'b', image: '2' },
      ]),
    ),
  )
  assert.equal(
    conflict.message,
    'Apply failed with 1 conflict: conflict with "alice": .spec.containers[name="a"].image',
  )
  const withoutB = applyPod(second, 'bob', pod([]))
  assert.deepEqual(specOf(withoutB)?.containers, [{ name: 'a', image: '1', ports: [{ containerPort: 80 }] }])
})

test('an item goes with its defaulted fields when its only owner drops it', () => {
  const first = applyPod(undefined, 'alice', pod([{ name: 'a' }, { name: 'b' }]))
  const defaulted = {
    ...first,
    spec: {
      containers: [
        { name: 'a', imagePullPolicy: 'Always' },
        { name: 'b', imagePullPolicy: 'Always' },
      ],
    },
  } as KubeObject
  const next = applyPod(defaulted, 'alice', pod([{ name: 'a' }]))
  assert.deepEqual(specOf(next), { containers: [{ name: 'a', imagePullPolicy: 'Always' }] })
})

test('atomic values are replaced and owned as a whole', () => {
  const claim = (selector: object) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'c' },
    spec: { selector, resources: { requests: { storage: '1024Mi' } } },
  })
  const run = (live: KubeObject | undefined, config: unknown) =>
    applyServerSide({ kind: 'PersistentVolumeClaim', live, config, manager: 'a', force: false, now }).object
  const first = run(undefined, claim({ matchLabels: { x: '1' } }))
  const second = run(first, claim({ matchLabels: { y: '2' } }))
  assert.deepEqual((second as { spec?: unknown }).spec, {
    selector: { matchLabels: { y: '2' } },
    resources: { requests: { storage: '1Gi' } },
  })
  assert.deepEqual(ownedBy(second, 'a'), {
    'f:spec': { 'f:resources': { 'f:requests': { 'f:storage': {} } }, 'f:selector': {} },
  })
})

test('configurations that cannot be applied are a 400', () => {
  const code = (config: unknown) => conflictOf(() => applyPod(undefined, 'a', config)).code
  assert.equal(code('x'), 400)
  assert.equal(code({ apiVersion: 'v1', kind: 'Node' }), 400)
  assert.equal(code(pod([{ image: 'x' }])), 400)
  assert.equal(code(pod([{ name: 'x' }, { name: 'x' }])), 400)
  assert.equal(code({ ...pod([]), metadata: { name: 'p', managedFields: [{ manager: 'x' }] } }), 400)
  assert.equal(code({ ...pod([]), metadata: 3 }), 400)
})

test('clients may reset or rewrite the entries, but not by accident', () => {
  const live = apply(undefined, 'alice', configMap({ a: '1' }))
  const write = (managedFields: unknown) =>
    updateManagedFields({
      kind: 'ConfigMap',
      before: live,
      after: { ...live, metadata: { ...live.metadata, managedFields } } as KubeObject,
      manager: 'x',
      now,
    }).map((entry) => entry.manager)
  assert.deepEqual(write([{}]), [])
  assert.deepEqual(write([]), ['alice'])
  assert.deepEqual(write([{ manager: 'z', operation: 'What' }]), ['alice'])
  const [entry] = live.metadata.managedFields ?? []
  assert.deepEqual(write([{ ...entry, manager: 'kubectl' }]), ['kubectl'])
})

test('ever new writers are folded together', () => {
  let live: KubeObject | undefined
  for (let round = 0; round < 30; round += 1) {
    const data = Object.fromEntries(Array.from({ length: round + 1 }, (_, index) => [`k${index}`, 'v']))
    const after = { ...configMap(data) }
    const write = {
      kind: 'ConfigMap',
      before: live,
      after,
      manager: `writer-${round}`,
      now: now + round * 1000,
    } as const
    live = { ...after, metadata: { ...after.metadata, managedFields: updateManagedFields(write) } }
  }
  const managers = live?.metadata.managedFields?.map((entry) => entry.manager) ?? []
  assert.equal(managers.length, 10)
  assert.ok(managers.includes('ancient-changes') && managers.includes('writer-29'))
})

const data = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.constantFrom('1', '2'), { noNullPrototype: true })

test('laws: apply twice is apply once; forced apply always wins; nobody owns what is not there', () => {
  const step = fc.record({ manager: fc.constantFrom('alice', 'bob', 'carol'), data })
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 6 }), (steps) => {
      let live: KubeObject | undefined
      for (const { manager, data: wanted } of steps) {
        live = apply(live, manager, configMap(wanted), { force: true })
        const have = (dataOf(live) ?? {}) as Record<string, string>
        for (const [key, value] of Object.entries(wanted)) assert.equal(have[key], value)
        assert.equal(apply(live, manager, configMap(wanted), { at: later }), live)
        const owned = new Set<string>()
        for (const entry of live.metadata.managedFields ?? []) {
          const fields = (entry.fieldsV1 as { 'f:data'?: object } | undefined)?.['f:data'] ?? {}
          for (const field of Object.keys(fields)) if (field !== '.') owned.add(field.slice(2))
        }
        assert.deepEqual([...owned].toSorted(), Object.keys(have).toSorted())
      }
    }),
  )
})

const fields = fc.letrec((tie) => ({
  node: fc.dictionary(
    fc.constantFrom('f:a', 'f:b', 'k:{"name":"x"}', 'v:"y"', 'i:0', '.'),
    fc.oneof({ depthSize: 'small' }, fc.constant({}), tie('node')),
    { maxKeys: 3, noNullPrototype: true },
  ),
})).node

test('laws: field sets survive their text form, and set algebra holds', () => {
  fc.assert(
    fc.property(fields, fields, (one, two) => {
      const left = fromFieldsV1(one)
      const right = fromFieldsV1(two)
      if (left === undefined || right === undefined) return // "." that holds something is not FieldsV1
      const again = fromFieldsV1(toFieldsV1(left))
      assert.ok(again !== undefined && (left.owned || equalSets(again, left)))
      assert.ok(equalSets(union(left, right), union(right, left)))
      assert.ok(equalSets(union(difference(left, right), intersection(left, right)), left))
    }),
  )
  assert.equal(fromFieldsV1({ x: {} }), undefined)
  assert.equal(fromFieldsV1({ 'k:nope': {} }), undefined)
  assert.equal(fromFieldsV1([]), undefined)
})

// As kubectl leaves it after a client-side apply of { a: '1', b: '2' }.
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'
function appliedByClient(): KubeObject {
  const text = JSON.stringify(configMap({ a: '1', b: '2' }, { annotations: {} }))
  const after = configMap({ a: '1', b: '2' }, { annotations: { [lastApplied]: text } })
  const manager = 'kubectl-client-side-apply'
  const managedFields = updateManagedFields({ kind: 'ConfigMap', before: undefined, after, manager, now })
  return { ...after, metadata: { ...after.metadata, managedFields } }
}

test('apply --server-side takes over what kubectl applied before, and the annotation follows', () => {
  const taken = apply(appliedByClient(), 'kubectl', configMap({ a: '<3>', b: '2' }))
  assert.deepEqual(dataOf(taken), { a: '<3>', b: '2' })
  assert.equal(
    taken.metadata.annotations?.[lastApplied],
    String.raw`{"apiVersion":"v1","data":{"a":"\u003c3\u003e","b":"2"},"kind":"ConfigMap","metadata":{"name":"m"}}` +
      '\n',
  )
  assert.deepEqual(ownedBy(taken, 'kubectl'), { 'f:data': { 'f:a': {}, 'f:b': {} } })
  assert.equal(apply(taken, 'kubectl', configMap({ a: '<3>', b: '2' }), { at: later }), taken)
})

test('coming to own what is already so is no write: the entry has no time', () => {
  const shared = apply(apply(undefined, 'alice', configMap({ a: '1' })), 'bob', configMap({ a: '1' }), { at: later })
  const times = shared.metadata.managedFields?.map(({ manager, time }) => [manager, time])
  assert.deepEqual(times, [
    ['bob', undefined],
    ['alice', '2026-01-01T00:00:00Z'],
  ])
})

test('another field manager inherits nothing from kubectl apply', () => {
  const error = conflictOf(() => apply(appliedByClient(), 'other', configMap({ a: '3' })))
  assert.match(error.message, /conflict with "kubectl-client-side-apply" using v1: \.data\.a/)
})

test('what someone changed after kubectl apply is a conflict for kubectl too, and the only one named', () => {
  const before = appliedByClient()
  const after = { ...before, data: { a: '1', b: '9' } } as KubeObject
  const managedFields = updateManagedFields({ kind: 'ConfigMap', before, after, manager: 'editor', now: later })
  const live = { ...after, metadata: { ...after.metadata, managedFields } }
  const error = conflictOf(() => apply(live, 'kubectl', configMap({ a: '3', b: '4' })))
  assert.equal(error.message, 'Apply failed with 1 conflict: conflict with "editor" using v1: .data.b')
})

test('an annotation that is no configuration is no heritage', () => {
  const live = appliedByClient()
  for (const text of ['', 'nonsense', '[]', '{"apiVersion":"v2","data":{"a":"1"}}']) {
    const spoiled = { ...live, metadata: { ...live.metadata, annotations: { [lastApplied]: text } } }
    assert.equal(conflictOf(() => apply(spoiled, 'kubectl', configMap({ a: '3' }))).code, 409, text)
  }
})
