// Where may a volume lie? SIDE-15 as cases.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CSINode, Node, StorageClass } from '../../api/generated/types.ts'
import { affinityOf, planTopology } from './topology.ts'

const node = (name: string, zone?: string): Node => ({
  metadata: { name, ...(zone !== undefined && { labels: { zone } }) },
})
const csiNode = (name: string, topologyKeys = ['zone']): CSINode => ({
  metadata: { name },
  spec: { drivers: [{ name: 'd', nodeID: name, topologyKeys }] },
})
const nodes = [node('n1', 'a'), node('n2', 'b'), node('n3', 'c'), node('n4', 'b')]
const csiNodes = nodes.map(({ metadata }) => csiNode(metadata.name))
const storageClass: StorageClass = { metadata: { name: 'c' }, provisioner: 'd' }
const zones = (...values: string[]) => values.map((zone) => ({ segments: { zone } }))
const facts = { driver: 'd', claimName: 'claim', storageClass, selectedNode: 'n2', nodes, csiNodes, strict: false }

test('a selected node comes first in the rotation; strict asks for nothing else', () => {
  assert.deepEqual(planTopology(facts), {
    kind: 'required',
    requirements: { requisite: zones('a', 'b', 'c'), preferred: zones('b', 'c', 'a') },
  })
  assert.deepEqual(planTopology({ ...facts, strict: true }), {
    kind: 'required',
    requirements: { requisite: zones('b'), preferred: zones('b') },
  })
})

test('allowedTopologies limit the choice and may exclude the selected node', () => {
  const allowed = (...values: string[]) => ({
    ...storageClass,
    allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values }] }],
  })
  const plan = planTopology({ ...facts, storageClass: allowed('b', 'a') })
  assert.deepEqual(plan, { kind: 'required', requirements: { requisite: zones('a', 'b'), preferred: zones('b', 'a') } })
  assert.throws(() => planTopology({ ...facts, storageClass: allowed('c') }), /allowedTopologies/)
})

test('a node or driver entry that is gone means another choice; no keys at all is an error', () => {
  assert.equal(planTopology({ ...facts, selectedNode: 'gone' }).kind, 'reschedule')
  assert.equal(planTopology({ ...facts, csiNodes: [] }).kind, 'reschedule')
  assert.equal(planTopology({ ...facts, nodes: [node('n2')] }).kind, 'reschedule')
  assert.throws(() => planTopology({ ...facts, csiNodes: [csiNode('n2', [])] }), /no topology key/)
})

test('immediate claims of one set are spread one after the other, the same way each time', () => {
  const first = (claimName: string) => {
    const { selectedNode: _none, ...rest } = facts
    const plan = planTopology({ ...rest, selectedNode: undefined, claimName })
    assert.ok(plan.kind === 'required')
    return plan.requirements.preferred[0]?.segments['zone']
  }
  const spread = ['data-web-0', 'data-web-1', 'data-web-2'].map(first)
  assert.deepEqual(new Set(spread), new Set(['a', 'b', 'c']))
  assert.deepEqual(['data-web-0', 'data-web-1', 'data-web-2'].map(first), spread)
  assert.equal(first('data-web-3'), spread[0])
})

test('segments become alternatives, their keys requirements (SIDE-19)', () => {
  assert.equal(affinityOf([]), undefined)
  assert.deepEqual(affinityOf([{ segments: { z: '1', a: '2' } }]), {
    required: {
      nodeSelectorTerms: [
        {
          matchExpressions: [
            { key: 'a', operator: 'In', values: ['2'] },
            { key: 'z', operator: 'In', values: ['1'] },
          ],
        },
      ],
    },
  })
})
