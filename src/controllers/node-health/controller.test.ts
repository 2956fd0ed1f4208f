// A silent node becomes Unknown once, a living one never does, one without a lease is left alone.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease, Node } from '../../api/generated/types.ts'
import { planHealth } from './plan.ts'

const node = (status: 'True' | 'Unknown'): Node => ({
  metadata: { name: 'n' },
  spec: {},
  status: { conditions: [{ type: 'Ready', status, lastHeartbeatTime: 'h' }] },
})
const lease: Lease = { metadata: { name: 'n' }, spec: { leaseDurationSeconds: 40 } }
const plan = (of: Node, silentMs: number) => planHealth(of, lease, silentMs, 't')

test('forty seconds of silence make a node Unknown, keeping the time it was last heard (FD-2)', () => {
  const condition = {
    type: 'Ready',
    status: 'Unknown',
    reason: 'NodeStatusUnknown',
    message: 'Kubelet stopped posting node status.',
    lastTransitionTime: 't',
    lastHeartbeatTime: 'h',
  }
  assert.deepEqual(plan(node('True'), 40_000), { kind: 'markUnknown', condition })
})
test('a node heard of lately is looked at again when its lease is over', () => {
  assert.deepEqual(plan(node('True'), 10_000), { kind: 'lookAgain', afterMs: 30_000 })
})
test('a node that is Unknown already, or has no lease, is left alone', () => {
  assert.deepEqual(plan(node('Unknown'), 90_000), { kind: 'nothing' })
  assert.deepEqual(plan(node('True'), Number.NaN), { kind: 'nothing' })
})
