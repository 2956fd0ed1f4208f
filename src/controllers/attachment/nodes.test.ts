import assert from 'node:assert/strict'
import test from 'node:test'
import { nodeName, uniqueVolumeName } from '../../api/names.ts'
import type { Node } from '../../api/generated/types.ts'
import type { NodeEvent, NodeRecord } from './nodes.ts'
import { factsOf, managedAnnotation, outOfServiceTaint, reduceNode } from './nodes.ts'

const name = nodeName('a')
const volume = uniqueVolumeName('kubernetes.io/csi/driver^handle')
const readyTrue = { type: 'Ready', status: 'True' } as const

function node(
  changes: {
    uid?: string
    annotations?: Record<string, string>
    ready?: 'True' | 'False' | 'Unknown'
    inUse?: string[]
    taint?: string
  } = {},
): Node {
  const { uid = '1', annotations = {}, ready, inUse, taint } = changes
  return {
    metadata: { name, uid, annotations },
    spec: taint ? { taints: [{ key: taint, effect: 'NoExecute' }] } : {},
    status: { conditions: ready ? [{ type: 'Ready', status: ready }] : [], ...(inUse ? { volumesInUse: inUse } : {}) },
  }
}

const seen = (object: Node, fresh = false): NodeEvent => ({ kind: 'nodeSeen', name, node: object, fresh })
const after = (...events: NodeEvent[]) => events.reduce<NodeRecord | undefined>(reduceNode, undefined)

test('the annotation makes a node ours, and its loss does not make it foreign again (AD-8)', () => {
  assert.equal(after(seen(node()))?.managed, false)
  const managed = node({ annotations: { [managedAnnotation]: '' } })
  assert.equal(after(seen(managed))?.managed, true)
  assert.equal(after(seen(managed), seen(node()))?.managed, true)
})

test('ready means the condition says True; a missing condition or object is unhealthy (ADR-2 step 5)', () => {
  assert.equal(after(seen(node({ ready: 'True' })))?.ready, true)
  assert.equal(after(seen(node({ ready: 'Unknown' })))?.ready, false)
  assert.equal(after(seen(node()))?.ready, false)
  assert.equal(
    after(seen(node({ ready: 'True' })), { kind: 'nodeGone', name, last: node({ ready: 'True' }) })?.ready,
    false,
  )
})

test('any value and effect of the out-of-service taint counts (FD-4, C-19)', () => {
  assert.equal(after(seen(node({ taint: outOfServiceTaint })))?.outOfService, true)
  assert.equal(after(seen(node({ taint: 'other' })))?.outOfService, false)
})

test('a deleted node keeps its in-use set: the last words if they were heard, all of it if not (AD-9, FD-6, WA-38)', () => {
  const used = seen(node({ ready: 'True', inUse: [volume] }))
  const heard = after(used, { kind: 'nodeGone', name, last: node({ ready: 'True', inUse: [] }) })
  assert.equal(factsOf(heard, volume, undefined).inUse, false)
  const missed = after(seen(node({ ready: 'True', inUse: [] })), { kind: 'nodeGone', name, last: undefined })
  assert.equal(factsOf(missed, volume, undefined).inUse, true)
  assert.equal(factsOf(undefined, volume, undefined).inUse, true)
})

test('a Node made anew says nothing of its machine until the machine has spoken', () => {
  const used = seen(node({ ready: 'True', inUse: [volume] }))
  const remade = after(
    used,
    { kind: 'nodeGone', name, last: node({ ready: 'True', inUse: [volume] }) },
    seen(node({ uid: '2' })),
  )
  assert.equal(factsOf(remade, volume, undefined).inUse, true)
  const touched = reduceNode(remade, seen(node({ uid: '2', annotations: { touched: 'yes' } })))
  assert.equal(factsOf(touched, volume, undefined).inUse, true)
  const lost = { type: 'Ready', status: 'Unknown', reason: 'NodeStatusNeverUpdated' } as const
  const judged = reduceNode(touched, seen({ ...node({ uid: '2' }), status: { conditions: [lost] } }))
  assert.equal(factsOf(judged, volume, undefined).inUse, true) // the node controller's word is not the machine's
  const spoken = reduceNode(judged, seen(node({ uid: '2', ready: 'True' })))
  assert.equal(factsOf(spoken, volume, undefined).inUse, false)
  const listed = reduceNode(judged, seen({ ...node({ uid: '2' }), status: { volumesInUse: [] } }))
  assert.equal(factsOf(listed, volume, undefined).inUse, false) // an empty list is a word
})

test('at a fresh start a silent node may use anything; one that has spoken is believed', () => {
  assert.equal(factsOf(after(seen(node(), true)), volume, undefined).inUse, true)
  assert.equal(factsOf(after(seen(node({ ready: 'True' }), true)), volume, undefined).inUse, false)
})

test('a freshly reported volume counts as used until the node is heard again (ADA-3, ADA-8)', () => {
  const record = after(seen(node({ ready: 'True' })))!
  const onNode = {
    presence: 'attached',
    devicePath: '',
    reported: true,
    detachWantedSince: undefined,
    nodeVersion: record.version,
  } as const
  assert.equal(factsOf(record, volume, onNode).inUse, true)
  assert.equal(factsOf(reduceNode(record, seen(node({ ready: 'True' }))), volume, onNode).inUse, false)
})

test('an unchanged list of used volumes keeps its set', () => {
  const first = after(seen(node({ ready: 'True', inUse: [volume] })))!
  const second = reduceNode(
    first,
    seen({ ...node({ inUse: [volume] }), status: { conditions: [readyTrue], volumesInUse: [volume] } }),
  )!
  assert.equal(second.inUse, first.inUse)
})
