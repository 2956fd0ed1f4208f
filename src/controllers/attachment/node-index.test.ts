import assert from 'node:assert/strict'
import test from 'node:test'
import { nodeName, podUid, uniqueVolumeName } from '../../api/names.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { createActualWorld } from './actual.ts'
import { createDesiredWorld } from './desired.ts'
import { createNodeIndex } from './node-index.ts'

const [a, b] = [nodeName('a'), nodeName('b')]
const [v, w] = [uniqueVolumeName('plugin/x/v'), uniqueVolumeName('plugin/x/w')]
const spec = { name: 'pv' } as VolumeSpec

function setUp() {
  const [desired, actual] = [createDesiredWorld(), createActualWorld()]
  return { desired, actual, index: createNodeIndex(desired, actual) }
}
const attached = (volume: typeof v, node: typeof a, devicePath: string) =>
  ({ kind: 'attached', volume, node, spec, devicePath, nodeVersion: 0 }) as const

test('doubtful volumes belong to the node, but only certain ones are reported, with their own device paths (ADA-9, ADA-10)', () => {
  const { actual, index } = setUp()
  actual.apply(attached(w, a, '/dev/w'))
  actual.apply(attached(w, b, '/dev/other'))
  actual.apply({ kind: 'attachFailed', volume: v, node: a, spec })
  assert.deepEqual([...index.attachedTo(a)].toSorted(), [v, w])
  assert.deepEqual(index.reported(a), [{ name: w, devicePath: '/dev/w' }])
  actual.apply(attached(v, a, ''))
  assert.deepEqual(
    index.reported(a).map(({ name }) => name),
    [v, w],
  )
  actual.apply({ kind: 'detached', volume: v, node: a })
  assert.deepEqual([...index.attachedTo(a)], [w])
})

test('a node concerns us while something is wanted on it or attached to it (WA-34)', () => {
  const { desired, actual, index } = setUp()
  const pod = { namespace: 'ns', name: 'p', uid: podUid('p') }
  desired.apply({ kind: 'wanted', volume: v, node: a, spec, pod, at: 1 })
  actual.apply(attached(v, a, ''))
  desired.apply({ kind: 'unwanted', volume: v, node: a, pod: pod.uid })
  assert.ok(index.concerns(a))
  actual.apply({ kind: 'detached', volume: v, node: a })
  assert.equal(index.concerns(a), false)
})

test('a word of a node wakes only the volumes that wait for it (DES-1)', () => {
  const { index } = setUp()
  index.waitsOn(v, [{ reason: 'inUse', node: a }])
  index.waitsOn(w, [{ reason: 'attachedElsewhere', node: a, holder: b }])
  assert.deepEqual([...index.waitingFor(a)], [v])
  index.waitsOn(v, [])
  assert.deepEqual([...index.waitingFor(a)], [])
})
