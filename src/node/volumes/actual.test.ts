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
  ['uncertain: NotMounted becomes doubtful (VSP-3, TA-39)', [attached, mountUncertain], 'uncertain'],
  ['final: NotMounted stays absent (TA-39)', [attached, mountFailed], 'absent'],
  ['doubt of our own resolves to absent (VSP-1)', [attached, mountUncertain, mountFailed], 'absent'],
  ['doubt found on disk survives a failed retry (VSP-2)', [foundOnDisk, mountFailed], 'uncertain'],
  [
    'what was set up is there, and a failed retry does not take it away (INV-5)',
    [attached, setUp, mountFailed],
    'unready',
  ],
  ['the same after doubt (INV-5)', [attached, mountUncertain, setUp, mountFailed], 'unready'],
  ['the same after it was found on disk (INV-5)', [foundOnDisk, setUp, mountFailed], 'unready'],
  ['a mounted volume that is set up again stays mounted', [attached, mounted, setUp], 'present'],
  ['what was set up goes with an unmount', [attached, setUp, unmountFailed, unmounted], 'absent'],
  ['a mounted volume whose remount fails stays mounted (VSP-4)', [attached, mounted, mountFailed], 'present'],
  ['a mounted volume whose remount is uncertain stays mounted (INV-9)', [attached, mounted, mountUncertain], 'present'],
  ['a failed tear-down makes doubt (UMT-3)', [attached, mounted, unmountFailed], 'uncertain'],
  ['doubt ends with a successful mount', [foundOnDisk, mounted], 'present'],
  ['after a clean mount, doubt is our own again (TA-45)', [foundOnDisk, mounted, unmountFailed, mountFailed], 'absent'],
  ['unmounted means absent', [attached, mounted, unmounted], 'absent'],
  ['an answer for a volume that is gone changes nothing (TA-46)', [mounted], 'absent'],
  ['what is known is not made doubtful by disk (KA-12)', [attached, mounted, foundOnDisk], 'present'],
]
for (const [name, events, expected] of podTable) test(name, () => assert.equal(podState(after(...events)), expected))

const deviceTable: readonly [string, ActualEvent[], string][] = [
  ['timeout: device in doubt (DEV-3, TA-38)', [attached, deviceUncertain], 'uncertain'],
  ['final: device absent (TA-38)', [attached, deviceMountFailed], 'absent'],
  ['timeout then final: device absent (DEV-1)', [attached, deviceUncertain, deviceMountFailed], 'absent'],
  ['found on disk, then final: still in doubt (DEV-2)', [foundOnDisk, deviceMountFailed], 'uncertain'],
  [
    'mounted stays mounted whatever a retry says (DEV-4)',
    [attached, deviceMounted, deviceUncertain, deviceMountFailed],
    'present',
  ],
  ['a failed unmount makes doubt (UMD-4)', [attached, deviceMounted, deviceUnmountFailed], 'uncertain'],
  ['unmounted', [attached, deviceMounted, deviceUnmounted], 'absent'],
]
for (const [name, events, expected] of deviceTable) {
  test(name, () => assert.equal(after(...events)?.device.presence, expected))
}

test('the device path survives the unmount of the device (KA-9, TA-40)', () => {
  assert.equal(after(attached, deviceMounted, deviceUnmounted)?.devicePath, '/dev/x')
})

test('a record with a pod or a device is not forgotten; without both it is (INV-4, KA-5)', () => {
  assert.ok(after(attached, mounted, forgotten))
  assert.ok(after(attached, deviceMounted, forgotten))
  assert.ok(after(attached, deviceUncertain, forgotten))
  assert.equal(after(attached, forgotten), undefined)
})

test('the first word of node.status wins (KA-13, TA-45)', () => {
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

test('the claim’s first size counts until a resize (KA-10)', () => {
  const sized = (bytes: bigint): ActualEvent => ({ kind: 'sized', volume, bytes })
  assert.equal(after(attached, sized(5n), sized(9n))?.sizeBytes, 5n)
  assert.equal(after(attached, sized(5n), { kind: 'resized', volume, bytes: 9n })?.sizeBytes, 9n)
})

test('a record means attached; it begins without pods, without a device, and without doubt (KA-1, KA-2)', () => {
  const item = after(attached)
  assert.deepEqual(
    [item?.device, item?.pods.size, item?.devicePath, item?.attachable],
    [{ presence: 'absent', path: '', foundOnDisk: false }, 0, '/dev/x', 'yes'],
  )
})

test('a mount replaces all that doubt had said of the pod, and a mount of an unknown volume says nothing (KA-4)', () => {
  const other: VolumeSpec = { ...spec, readOnly: true }
  const record = after(foundOnDisk, { ...mounted, spec: other } as ActualEvent)?.pods.get(pod)
  assert.deepEqual(record, { pod, presence: 'present', spec: other, foundOnDisk: false, generation: 3, group: '7' })
  assert.equal(after(mounted), undefined)
})

test('what was found on disk stays so until it is mounted, also when it was set up and could not be finished (KA-4, MNT-11)', () => {
  const found = (...events: ActualEvent[]) => after(...events)?.pods.get(pod)?.foundOnDisk
  assert.equal(found(foundOnDisk, setUp), true)
  assert.equal(found(foundOnDisk, setUp, mountFailed, setUp), true)
  assert.equal(found(foundOnDisk, setUp, mounted), false)
  assert.equal(found(attached, setUp), false)
  assert.equal(found(foundOnDisk, setUp, mounted, unmountFailed, setUp), false)
})

test('one pod’s unmount leaves the others; an unknown pod’s changes nothing (KA-5)', () => {
  const two = after(attached, mounted, { ...mounted, pod: 'q' as PodUid } as ActualEvent)
  assert.deepEqual([...(reduceActual(two, unmounted)?.pods.keys() ?? [])], ['q'])
  assert.equal(reduceActual(two, { ...unmounted, pod: 'r' as PodUid } as ActualEvent), two)
})

test('mended: once mounted cleanly, a device found on disk is like any other (KA-14, WA-29)', () => {
  assert.equal(after(foundOnDisk, deviceMounted)?.device.foundOnDisk, false)
  assert.equal(after(foundOnDisk, deviceMounted, deviceUnmounted, deviceUncertain)?.device.foundOnDisk, false)
})

test('attaching again changes the device path only (KA-3)', () => {
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
