import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CSINode, Node, PersistentVolume, VolumeSnapshotContent } from '../../api/generated/types.ts'
import { managedByLabel, ownershipOf, planMode } from './ownership.ts'

const csiNode = (name: string, ...topologyKeys: string[]): CSINode => ({
  metadata: { name },
  spec: { drivers: [{ name: 'd', nodeID: name, ...(topologyKeys.length > 0 ? { topologyKeys } : {}) }] },
})
const without = (name: string): CSINode => ({ metadata: { name }, spec: { drivers: [] } })
const mode = (ownNode: string | undefined, csiNodes: readonly CSINode[], prefers?: string) =>
  planMode({ driver: 'd', ownNode, prefers, csiNodes })

test('an instance of a driver with a topology works for its own node, however many there are', () => {
  assert.deepEqual(
    ['a', 'b', 'c'].map((node) => mode(node, [csiNode('a', 'host'), csiNode('b', 'host'), without('c')])),
    ['own', 'own', 'none'],
  )
  assert.equal(mode('a', [csiNode('a', 'host')]), 'own')
})

test('of a driver without a topology one instance does everything', () => {
  const nodes = [csiNode('c'), csiNode('b'), csiNode('a')]
  assert.deepEqual(
    ['a', 'b', 'c'].map((node) => mode(node, nodes)),
    ['all', 'none', 'none'],
  )
  assert.deepEqual(
    ['a', 'b', 'c'].map((node) => mode(node, nodes, 'b')),
    ['none', 'all', 'none'],
  )
  assert.equal(mode('a', nodes, 'elsewhere'), 'all')
})

test('an instance that is not registered yet does nothing; one without a node everything', () => {
  assert.equal(mode('a', [csiNode('b', 'host')]), 'none')
  assert.equal(mode('a', []), 'none')
  assert.equal(mode(undefined, [csiNode('b', 'host')]), 'all')
})

const nodes = ['a', 'b', 'c'].map((name): Node => ({ metadata: { name, labels: { host: name, zone: 'z' } } }))
const lying = (key: string, value: string): PersistentVolume => ({
  metadata: { name: 'v' },
  spec: {
    nodeAffinity: {
      required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values: [value] }] }] },
    },
  },
})
const content = (handle: string | undefined, manager?: string): VolumeSnapshotContent => ({
  metadata: { name: 's', ...(manager === undefined ? {} : { labels: { [managedByLabel]: manager } }) },
  spec: {
    driver: 'd',
    deletionPolicy: 'Delete',
    source: handle === undefined ? { snapshotHandle: 'x' } : { volumeHandle: handle },
    volumeSnapshotRef: {},
  },
})
const owners = (ask: (owns: ReturnType<typeof ownershipOf>) => boolean) =>
  ['a', 'b', 'c'].filter((ownNode) =>
    ask(
      ownershipOf({
        driver: 'd',
        ownNode,
        csiNodes: [csiNode('b', 'host'), csiNode('a', 'host'), without('c')],
        node: (name) => nodes.find(({ metadata }) => metadata.name === name),
        volumeOf: (handle) => (handle === 'on b' ? lying('host', 'b') : undefined),
      }),
    ),
  )

test('every claim, volume and snapshot has exactly one instance', () => {
  assert.deepEqual(
    owners((owns) => owns.claim('b')),
    ['b'],
    'a claim goes to the node that was selected',
  )
  assert.deepEqual(
    owners((owns) => owns.claim(undefined)),
    ['a'],
    'without one, to the first',
  )
  assert.deepEqual(
    owners((owns) => owns.claim('c')),
    ['a'],
    'the first asks for another node than one without the driver',
  )
  assert.deepEqual(
    owners((owns) => owns.volume(lying('host', 'b'))),
    ['b'],
  )
  assert.deepEqual(
    owners((owns) => owns.volume(lying('zone', 'z'))),
    ['a'],
    'the first of all that reach it',
  )
  assert.deepEqual(
    owners((owns) => owns.volume({ metadata: { name: 'v' }, spec: {} })),
    ['a'],
  )
  assert.deepEqual(
    owners((owns) => owns.snapshot(content('on b'))),
    ['b'],
  )
  assert.deepEqual(
    owners((owns) => owns.snapshot(content('gone', 'b'))),
    ['b'],
    'who made it, also without its volume',
  )
  assert.deepEqual(
    owners((owns) => owns.snapshot(content(undefined))),
    ['a'],
  )
})

test('a volume whose node is away is nobody else’s', () => {
  assert.deepEqual(
    owners((owns) => owns.volume(lying('host', 'c'))),
    [],
  )
})
