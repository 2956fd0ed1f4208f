import assert from 'node:assert/strict'
import test from 'node:test'
import { nodeName, podUid, uniqueVolumeName } from '../../api/names.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { DesiredVolume } from './desired.ts'
import { createDesiredWorld, reduceDesired } from './desired.ts'

const volume = uniqueVolumeName('kubernetes.io/csi/driver^handle')
const node = nodeName('a')
const spec = { name: 'pv' } as VolumeSpec
const pod = (name: string) => ({ namespace: 'default', name, uid: podUid(name) })
const wanted = (name: string, on = node) => ({ kind: 'wanted', volume, node: on, spec, pod: pod(name), at: 1 }) as const
const unwanted = (name: string, on = node) => ({ kind: 'unwanted', volume, node: on, pod: podUid(name) }) as const

function after(...events: Parameters<typeof reduceDesired>[1][]): DesiredVolume | undefined {
  return events.reduce<DesiredVolume | undefined>(reduceDesired, undefined)
}

test('wanting twice is wanting once, and the first spec stays (ADD-1, ADD-2, ADD-4)', () => {
  const item = after(wanted('p'))
  assert.equal(reduceDesired(item, { ...wanted('p'), spec: { name: 'other' } as VolumeSpec }), item)
  assert.deepEqual([...after(wanted('p'), wanted('q'))!.nodes.get(node)!.pods.keys()], ['p', 'q'])
})

test('two PersistentVolumes of the same storage: each node is served under its own (ADD-1)', () => {
  const other = { ...wanted('q', nodeName('b')), spec: { name: 'other' } as VolumeSpec }
  assert.deepEqual(
    [...after(wanted('p'), other)!.nodes.values()].map((onNode) => onNode.spec.name),
    ['pv', 'other'],
  )
})

test('the last pod takes the node with it, the last node the volume (ADD-3)', () => {
  assert.equal(after(wanted('p'), wanted('q'), unwanted('p'))?.nodes.get(node)?.pods.size, 1)
  assert.equal(after(wanted('p'), unwanted('p')), undefined)
  assert.deepEqual([...after(wanted('p'), wanted('q', nodeName('b')), unwanted('p'))!.nodes.keys()], ['b'])
})

test('taking back what was never wanted changes nothing (TA-30)', () => {
  const item = after(wanted('p'))
  assert.equal(reduceDesired(item, unwanted('q')), item)
  assert.equal(reduceDesired(item, unwanted('p', nodeName('b'))), item)
  assert.equal(reduceDesired(undefined, unwanted('p')), undefined)
})

test('told users are remembered until the node stops wanting the volume (ADD-3, MA-4)', () => {
  const told = { kind: 'multiAttachReported', volume, node } as const
  assert.equal(after(wanted('p'), told)?.nodes.get(node)?.multiAttachReported, true)
  assert.equal(after(wanted('p'), told, wanted('q'))?.nodes.get(node)?.multiAttachReported, true)
  assert.equal(after(wanted('p'), told, unwanted('p'), wanted('p'))?.nodes.get(node)?.multiAttachReported, false)
  assert.equal(after(told), undefined)
})

test('the world tells its subscribers of changes only', () => {
  const world = createDesiredWorld()
  const heard: string[] = []
  world.subscribe((key, event) => heard.push(`${event.kind} ${key}`))
  world.apply(wanted('p'))
  world.apply(wanted('p'))
  world.apply(unwanted('p'))
  assert.deepEqual(heard, [`wanted ${volume}`, `unwanted ${volume}`])
  assert.equal(world.items.size, 0)
})
