// What does the agent report of a pod that has no status yet? The same class of service as the API server would.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '../../api/generated/types.ts'
import { qosClass } from '../../api/kinds/pod-lifecycle.ts'
import { podStatus } from './pod-status.ts'

test('the resources of the whole pod decide its class, as in the API server', () => {
  const limits = { cpu: '1', memory: '1Gi' }
  const pod: Pod = {
    metadata: { name: 'static', uid: 'u' },
    spec: { containers: [{ name: 'c' }], resources: { limits, requests: limits } },
  }
  const status = podStatus({
    pod,
    containers: new Map(),
    earlier: new Map(),
    ended: undefined,
    failure: undefined,
    volumesReady: false,
    volumeHealth: [],
    now: 0,
    seenAt: 0,
    address: '',
  })
  assert.deepEqual([status.qosClass, qosClass(pod)], ['Guaranteed', 'Guaranteed'])
})
