import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PluginName, PodUid, UniqueVolumeName } from '../../api/names.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { DesiredEvent, WantedEvent } from './desired.ts'
import { createDesiredWorld, indexByPod } from './desired.ts'

const volume = 'kubernetes.io/csi/d^h' as UniqueVolumeName
const spec: VolumeSpec = {
  name: 'v',
  from: 'pod',
  mode: 'Filesystem',
  readOnly: false,
  source: { kind: 'emptyDir', value: {} },
}
const wanted = (more: Partial<WantedEvent> = {}): DesiredEvent => ({
  kind: 'wanted',
  volume,
  plugin: 'kubernetes.io/csi' as PluginName,
  attachable: true,
  deviceMountable: true,
  group: '',
  label: { asked: '', mounted: '' },
  pod: { metadata: { name: 'p' }, spec: { containers: [] } },
  uid: 'p' as PodUid,
  spec,
  outerName: 'one',
  readOnly: false,
  claimBytes: 0n,
  at: 1,
  ...more,
})

test('one claim under two names is one mount with both names, and keeps its request time (KD-1, KD-7, TA-47)', () => {
  const world = createDesiredWorld()
  world.apply(wanted())
  world.apply(wanted({ outerName: 'two', at: 9 }))
  const mount = world.items.get(volume)?.pods.get('p' as PodUid)
  assert.deepEqual([mount?.outerNames, mount?.requestedAt], [['one', 'two'], 1])
})

test('fields of the volume are set when it enters and not again (KD-2)', () => {
  const world = createDesiredWorld()
  world.apply(wanted({ group: '7' }))
  world.apply(wanted({ uid: 'q' as PodUid, group: '8', attachable: false }))
  const item = world.items.get(volume)
  assert.deepEqual([item?.group, item?.attachable, item?.reportedInUse], ['7', true, false])
})

test('the last pod takes the volume with it, and the index follows (KD-4, KD-7, DES-4)', () => {
  const world = createDesiredWorld()
  const ofPod = indexByPod(world)
  world.apply(wanted())
  world.apply(wanted({ uid: 'q' as PodUid }))
  world.apply({ kind: 'released', volume, pod: 'p' as PodUid })
  assert.deepEqual([ofPod('p' as PodUid).length, ofPod('q' as PodUid).length], [0, 1])
  world.apply({ kind: 'released', volume, pod: 'q' as PodUid })
  assert.equal(world.items.size, 0)
  assert.equal(ofPod('q' as PodUid).length, 0)
})

test('what is reported, attachable or grown is said of volumes that are there, and of no others (KD-5, KD-8)', () => {
  const world = createDesiredWorld()
  world.apply(wanted())
  world.apply({ kind: 'reported', volume, inUse: true })
  world.apply({ kind: 'reported', volume: 'x/y/z' as UniqueVolumeName, inUse: true })
  world.apply({ kind: 'attachability', volume, attachable: false })
  world.apply({ kind: 'sized', volume, bytes: 7n })
  const item = world.items.get(volume)
  assert.deepEqual([item?.reportedInUse, item?.attachable, item?.sizeBytes, world.items.size], [true, false, 7n, 1])
  world.apply({ kind: 'reported', volume, inUse: false })
  assert.equal(world.items.get(volume)?.reportedInUse, false)
})

test('a refresh makes a new generation for that pod alone (KA-11)', () => {
  const world = createDesiredWorld()
  world.apply(wanted())
  world.apply(wanted({ uid: 'q' as PodUid }))
  world.apply({ kind: 'refresh', volume, pod: 'p' as PodUid, changed: true, at: 5 })
  const pods = world.items.get(volume)?.pods
  assert.deepEqual([pods?.get('p' as PodUid)?.generation, pods?.get('q' as PodUid)?.generation], [1, 0])
})
