import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PluginName, PodUid, UniqueVolumeName } from '../../api/names.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { ActualEvent, ActualVolume } from './actual.ts'
import { createActualWorld, heldByPod, reduceActual } from './actual.ts'

const volume = 'kubernetes.io/csi/d^h' as UniqueVolumeName
const plugin = 'kubernetes.io/csi' as PluginName
const pod = 'p' as PodUid
const spec: VolumeSpec = {
  name: 'v',
  from: 'pod',
  mode: 'Filesystem',
  readOnly: false,
  source: { kind: 'emptyDir', value: {} },
}

const attached: ActualEvent = {
  kind: 'attached',
  volume,
  plugin,
  spec,
  attachable: true,
  devicePath: '/dev/x',
  sizeBytes: 0n,
}
const foundOnDisk: ActualEvent = { kind: 'foundOnDisk', volume, plugin, spec, pod, devicePath: '/g' }
const mounted: ActualEvent = { kind: 'mounted', volume, pod, spec, generation: 3, group: '7' }
const mountUncertain: ActualEvent = { kind: 'mountUncertain', volume, pod, spec, generation: -1, group: '' }
const setUp: ActualEvent = { ...mountUncertain, kind: 'setUp' }
const mountFailed: ActualEvent = { kind: 'mountFailed', volume, pod }
const unmountFailed: ActualEvent = { kind: 'unmountFailed', volume, pod }
const unmounted: ActualEvent = { kind: 'unmounted', volume, pod }
const deviceMounted: ActualEvent = { kind: 'deviceMounted', volume, path: '/g', devicePath: '/dev/x' }
const deviceUncertain: ActualEvent = { kind: 'deviceUncertain', volume, path: '/g', devicePath: '' }
const deviceMountFailed: ActualEvent = { kind: 'deviceMountFailed', volume }
const deviceUnmountFailed: ActualEvent = { kind: 'deviceUnmountFailed', volume }
const deviceUnmounted: ActualEvent = { kind: 'deviceUnmounted', volume }
const forgotten: ActualEvent = { kind: 'forgotten', volume }

const after = (...events: ActualEvent[]) =>
  events.reduce<ActualVolume | undefined>((item, event) => reduceActual(item, event), undefined)
const podState = (item: ActualVolume | undefined) => item?.pods.get(pod)?.presence ?? 'absent'

const podTable: readonly [string, ActualEvent[], string][] = [
  ['VOL-3, T-39 uncertain: NotMounted becomes doubtful', [attached, mountUncertain], 'uncertain'],
  ['T-39 final: NotMounted stays absent', [attached, mountFailed], 'absent'],
  ['VOL-1 doubt of our own resolves to absent', [attached, mountUncertain, mountFailed], 'absent'],
  ['VOL-2 doubt found on disk survives a failed retry', [foundOnDisk, mountFailed], 'uncertain'],
  [
    'INV-5 what was set up is there, and a failed retry does not take it away',
    [attached, setUp, mountFailed],
    'unready',
  ],
  ['INV-5 the same after doubt', [attached, mountUncertain, setUp, mountFailed], 'unready'],
  ['INV-5 the same after it was found on disk', [foundOnDisk, setUp, mountFailed], 'unready'],
  ['a mounted volume that is set up again stays mounted', [attached, mounted, setUp], 'present'],
  ['what was set up goes with an unmount', [attached, setUp, unmountFailed, unmounted], 'absent'],
  ['VOL-4 a mounted volume whose remount fails stays mounted', [attached, mounted, mountFailed], 'present'],
  ['INV-9 a mounted volume whose remount is uncertain stays mounted', [attached, mounted, mountUncertain], 'present'],
  ['UMT-3 a failed tear-down makes doubt', [attached, mounted, unmountFailed], 'uncertain'],
  ['doubt ends with a successful mount', [foundOnDisk, mounted], 'present'],
  ['T-45 after a clean mount, doubt is our own again', [foundOnDisk, mounted, unmountFailed, mountFailed], 'absent'],
  ['unmounted means absent', [attached, mounted, unmounted], 'absent'],
  ['T-46 an answer for a volume that is gone changes nothing', [mounted], 'absent'],
  ['KA-12 what is known is not made doubtful by disk', [attached, mounted, foundOnDisk], 'present'],
]
for (const [name, events, expected] of podTable) test(name, () => assert.equal(podState(after(...events)), expected))

const deviceTable: readonly [string, ActualEvent[], string][] = [
  ['DEV-3, T-38 timeout: device in doubt', [attached, deviceUncertain], 'uncertain'],
  ['T-38 final: device absent', [attached, deviceMountFailed], 'absent'],
  ['DEV-1 timeout then final: device absent', [attached, deviceUncertain, deviceMountFailed], 'absent'],
  ['DEV-2 found on disk, then final: still in doubt', [foundOnDisk, deviceMountFailed], 'uncertain'],
  [
    'DEV-4 mounted stays mounted whatever a retry says',
    [attached, deviceMounted, deviceUncertain, deviceMountFailed],
    'present',
  ],
  ['UMD-4 a failed unmount makes doubt', [attached, deviceMounted, deviceUnmountFailed], 'uncertain'],
  ['unmounted', [attached, deviceMounted, deviceUnmounted], 'absent'],
]
for (const [name, events, expected] of deviceTable) {
  test(name, () => assert.equal(after(...events)?.device.presence, expected))
}

test('KA-9, T-40: the device path survives the unmount of the device', () => {
  assert.equal(after(attached, deviceMounted, deviceUnmounted)?.devicePath, '/dev/x')
})

test('INV-4, KA-5: a record with a pod or a device is not forgotten; without both it is', () => {
  assert.ok(after(attached, mounted, forgotten))
  assert.ok(after(attached, deviceMounted, forgotten))
  assert.ok(after(attached, deviceUncertain, forgotten))
  assert.equal(after(attached, forgotten), undefined)
})

test('KA-13, T-45: the first word of node.status wins', () => {
  const told = (ok: boolean): ActualEvent => ({
    kind: 'nodeStatusRead',
    volume,
    attached: ok,
    devicePath: ok ? '/dev/y' : '',
  })
  const yes = after(foundOnDisk, told(true), told(false))
  assert.deepEqual([yes?.attachable, yes?.devicePath, yes?.devicePathUnread], ['yes', '/dev/y', false])
  assert.equal(after(foundOnDisk, told(false), told(true))?.attachable, 'no')
})

test('KA-10: the claim’s first size counts until a resize', () => {
  const sized = (bytes: bigint): ActualEvent => ({ kind: 'sized', volume, bytes })
  assert.equal(after(attached, sized(5n), sized(9n))?.sizeBytes, 5n)
  assert.equal(after(attached, sized(5n), { kind: 'resized', volume, bytes: 9n })?.sizeBytes, 9n)
})

test('KA-1, KA-2: a record means attached; it begins without pods, without a device, and without doubt', () => {
  const item = after(attached)
  assert.deepEqual(
    [item?.device, item?.pods.size, item?.devicePath, item?.attachable],
    [{ presence: 'absent', path: '', foundOnDisk: false }, 0, '/dev/x', 'yes'],
  )
})

test('KA-4: a mount replaces all that doubt had said of the pod, and a mount of an unknown volume says nothing', () => {
  const other: VolumeSpec = { ...spec, readOnly: true }
  const record = after(foundOnDisk, { ...mounted, spec: other } as ActualEvent)?.pods.get(pod)
  assert.deepEqual(record, { pod, presence: 'present', spec: other, foundOnDisk: false, generation: 3, group: '7' })
  assert.equal(after(mounted), undefined)
})

test('KA-4, MNT-11: what was found on disk stays so until it is mounted, also when it was set up and could not be finished', () => {
  const found = (...events: ActualEvent[]) => after(...events)?.pods.get(pod)?.foundOnDisk
  assert.equal(found(foundOnDisk, setUp), true)
  assert.equal(found(foundOnDisk, setUp, mountFailed, setUp), true)
  assert.equal(found(foundOnDisk, setUp, mounted), false)
  assert.equal(found(attached, setUp), false)
  assert.equal(found(foundOnDisk, setUp, mounted, unmountFailed, setUp), false)
})

test('KA-5: one pod’s unmount leaves the others; an unknown pod’s changes nothing', () => {
  const two = after(attached, mounted, { ...mounted, pod: 'q' as PodUid } as ActualEvent)
  assert.deepEqual([...(reduceActual(two, unmounted)?.pods.keys() ?? [])], ['q'])
  assert.equal(reduceActual(two, { ...unmounted, pod: 'r' as PodUid } as ActualEvent), two)
})

test('KA-14, W-29 mended: once mounted cleanly, a device found on disk is like any other', () => {
  assert.equal(after(foundOnDisk, deviceMounted)?.device.foundOnDisk, false)
  assert.equal(after(foundOnDisk, deviceMounted, deviceUnmounted, deviceUncertain)?.device.foundOnDisk, false)
})

test('KA-3: attaching again changes the device path only', () => {
  const again: ActualEvent = { ...attached, kind: 'attached', devicePath: '/dev/z', attachable: false } as ActualEvent
  const item = after(attached, mounted, again)
  assert.deepEqual([item?.devicePath, item?.attachable, podState(item)], ['/dev/z', 'yes', 'present'])
})

test('what a pod holds is found by its name, whatever became of it, until it is let go', () => {
  const other = 'q' as PodUid
  const world = createActualWorld()
  const heldBy = heldByPod(world)
  const held = () => [pod, other].map((uid) => heldBy(uid).length)
  world.apply(attached)
  world.apply(mountUncertain)
  world.apply(mountFailed)
  assert.deepEqual(held(), [0, 0])
  world.apply(mounted)
  world.apply({ ...foundOnDisk, pod: other })
  assert.deepEqual(held(), [1, 1])
  world.apply(unmountFailed)
  world.apply({ kind: 'unmounted', volume, pod: other })
  assert.deepEqual(held(), [1, 0])
  world.apply(unmounted)
  assert.deepEqual(held(), [0, 0])
})
