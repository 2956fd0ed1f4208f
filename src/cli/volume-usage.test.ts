// Are figures and paths of volumes read right? From a node's summary, and from a mount table.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pathsHere, shortSize, usageIn } from './volume-usage.ts'

test('a claim has the figure of the node that mounts it; one without a figure has none', () => {
  const summary = {
    pods: [
      { volume: [{ usedBytes: 5, pvcRef: { name: 'a', namespace: 'n' } }, { usedBytes: 7 }] },
      { volume: [{ pvcRef: { name: 'b', namespace: 'n' } }] },
      {},
    ],
  }
  assert.deepEqual(usageIn(summary), [['n/a', 5]])
  assert.deepEqual(usageIn(undefined), [])
})

test('sizes are short', () => {
  assert.deepEqual([0, 900, 1_536, 20 << 20, 1.5 * 2 ** 30].map(shortSize), ['0', '900', '1.5Ki', '20Mi', '1.5Gi'])
})

test('the mounts of a volume are found by its name, in pods only', () => {
  const line = (at: string, source: string) => `36 35 98:0 / ${at} rw - ext4 ${source} rw`
  const table = [
    line('/var/lib/hawser/node/pods/uid/volumes/kubernetes.io~csi/pvc-1/mount', '/dev/sdb'),
    line('/var/lib/hawser/node/pods/uid/volumes/kubernetes.io~csi/pvc-12/mount', '/dev/sdc'),
    line('/var/lib/hawser/node/plugins/kubernetes.io/csi/pvc-1/globalmount', '/dev/sdb'),
  ].join('\n')
  assert.deepEqual(pathsHere('pvc-1', table), ['/var/lib/hawser/node/pods/uid/volumes/kubernetes.io~csi/pvc-1/mount'])
})
