// Which words does each operation use when it cannot even begin, and whose path counts when a device goes? MNT-1, MNT-10, UMT-1,
// UMP-1, UMD-1 … UMD-6, UPD-1: operations alone, with a registry and a device that answer as told.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeName, PluginName, PodUid, UniqueVolumeName } from '../../api/names.ts'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { createPending } from '../../loop/pending.ts'
import { silentLog } from '../../telemetry/log.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { Operation } from '../../volume/operation.ts'
import { createRunner } from '../../volume/operation.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { ActualEvent } from '../volumes/actual.ts'
import { mapVolume } from './map.ts'
import { mountVolume } from './mount.ts'
import type { OperationDeps } from './steps.ts'
import { unmapDevice } from './unmap-device.ts'
import { unmapVolume } from './unmap.ts'
import { checkReferences, unmountDevice } from './unmount-device.ts'
import { unmountVolume } from './unmount.ts'

const volume = 'x/y/disk' as UniqueVolumeName
const plugin = 'x/y' as PluginName
const uid = 'u' as PodUid
const spec: VolumeSpec = {
  name: 'pv',
  from: 'persistentVolume',
  mode: 'Filesystem',
  readOnly: false,
  source: { kind: 'emptyDir', value: {} },
}
const pod = { metadata: { name: 'p', uid }, spec: { containers: [] } }
const record = {
  volume,
  plugin,
  spec,
  devicePath: '',
  device: { presence: 'present', path: '/stored', foundOnDisk: false },
  pods: new Map(),
}
const label = { asked: '', mounted: '' }
const mount = { desired: { volume, plugin, attachable: true, label }, mount: { spec, pod, uid }, actual: () => record }
const unmount = { actual: record, mount: { pod: uid, spec } }
const device = { volume, node: 'n1' as NodeName, planned: record, actual: () => record }

/** How the operation failed, in full, and what it said to users; or the events it made. */
async function run(operation: Operation<never, OperationDeps, ActualEvent>, work: unknown, deps: object) {
  const clock = createVirtualClock()
  const pending = createPending(clock)
  const runner = createRunner({ clock, pending, log: silentLog, metrics: createMetrics() })
  const [events, told]: [string[], string[]] = [[], []]
  runner.start(operation, work as never, deps as OperationDeps, {
    apply: ({ kind }) => void events.push(kind),
    tell: (type, reason, message) => void told.push(`${type} ${reason}: ${message}`),
    signal: new AbortController().signal,
  })
  await pending.idle()
  const refusal = pending.refusal([volume], operation.name) ?? pending.refusal([volume, uid], operation.name)
  return { events, told, error: refusal?.kind === 'backingOff' ? refusal.error : undefined }
}

const noPlugin = () => {
  throw new Error('no volume plugin matched')
}
const toMount = `for volume "pv" (UniqueName: "${volume}") pod "p" (UID: "u")`
const mounted = `for volume "${volume}" (UniqueName: "${volume}") pod "u" (UID: "u")`
const attached = `for volume "pv" (UniqueName: "${volume}") on node "n1"`
const unknownPlugin: readonly [string, Operation<never, OperationDeps, ActualEvent>, unknown, string][] = [
  ['MNT-1', mountVolume, mount, `MountVolume.FindPluginBySpec failed ${toMount}`],
  ['MAP-1', mapVolume, mount, `MapVolume.FindMapperPluginBySpec failed ${toMount}`],
  ['UMT-1', unmountVolume, unmount, `UnmountVolume.FindPluginByName failed ${mounted}`],
  ['UMP-1', unmapVolume, unmount, `UnmapVolume.FindMapperPluginByName failed ${mounted}`],
  ['UMD-1', unmountDevice, device, `UnmountDevice.FindDeviceMountablePluginByName failed ${attached}`],
  ['UPD-1', unmapDevice, device, `UnmapDevice.FindMapperPluginByName failed ${attached}`],
]
for (const [rule, operation, work, text] of unknownPlugin) {
  test(`without its plugin ${operation.label} fails in these words, changes nothing and backs off (${rule}, OP-4, MSG-3, WA-11, WA-25)`, async () => {
    const { events, told, error } = await run(operation, work, { registry: { find: noPlugin, byName: noPlugin } })
    assert.deepEqual([events, error], [[], `${text} : no volume plugin matched`])
    assert.equal(told.length, operation.failureReason ? 1 : 0, 'only ways in are told to users')
  })
}

const noMapper = 'failed to find BlockVolumeMapper plugin. Volume plugin is nil.'
const unable: readonly [string, Operation<never, OperationDeps, ActualEvent>, unknown, string][] = [
  ['MAP-1', mapVolume, mount, `MapVolume.FindMapperPluginBySpec ${noMapper} ${toMount}`],
  ['UMP-1', unmapVolume, unmount, `UnmapVolume.FindMapperPluginByName ${noMapper} ${mounted}`],
  ['UPD-1', unmapDevice, device, `UnmapDevice.FindMapperPluginByName ${noMapper} ${attached}`],
]
for (const [rule, operation, work, text] of unable) {
  test(`a plugin that maps no devices, ${operation.label} (${rule}, TA-42)`, async () => {
    const registered = () => ({ name: plugin, plugin: {} })
    const { error } = await run(operation, work, { registry: { find: registered, byName: registered } })
    assert.equal(error, `${text} : plugin x/y maps no block devices`)
  })
}

test('where the device is mounted already, its path is asked for the sake of an expansion, and says so (MNT-10)', async () => {
  const path = () => {
    throw new Error('no path')
  }
  const registered = { name: plugin, traits: { takesMountOptions: true }, plugin: { device: () => ({ path }) } }
  const deps = { registry: { find: () => registered }, ownNode: () => undefined }
  const { error } = await run(mountVolume, mount, deps)
  assert.equal(error, `MountVolume.GetDeviceMountPath failed for expansion ${toMount} : no path`)
  const fresh = { ...record, device: { presence: 'absent', path: '', foundOnDisk: false } }
  const before = await run(mountVolume, { ...mount, actual: () => fresh }, deps)
  assert.equal(before.error, `MountVolume.GetDeviceMountPath failed ${toMount} : no path`)
})

/** Unmounts a device whose plugin would look for it at /today, and answers where it was unmounted. */
async function unmountAt(at: string, references: readonly string[] = []) {
  const seen: string[] = []
  const deviceMounter = { path: () => '/today', unmount: async ({ path }: { path: string }) => void seen.push(path) }
  const answer = await run(
    unmountDevice,
    { ...device, planned: { ...record, device: { ...record.device, path: at } } },
    {
      registry: { byName: () => ({ plugin: { device: () => deviceMounter } }) },
      host: { mounts: { references: async () => references } },
      devices: { drop: async () => {} },
    },
  )
  return { ...answer, seen }
}

test('the device goes from where it was mounted; only without a record from where it would be today (UMD-2, UMD-6)', async () => {
  assert.deepEqual(await unmountAt('/stored'), {
    seen: ['/stored'],
    events: ['deviceUnmounted'],
    told: [],
    error: undefined,
  })
  assert.deepEqual((await unmountAt('')).seen, ['/today'])
})

test('a device that shows elsewhere is not unmounted; another name for the same place is no reason (UMD-3)', async () => {
  const { seen, error, events } = await unmountAt('/stored', ['/mnt/elsewhere'])
  assert.deepEqual([seen, events], [[], []])
  const text = 'the device mount path "/stored" is still mounted by other references [/mnt/elsewhere]'
  assert.equal(error, `GetDeviceMountRefs check failed ${attached} : ${text}`)
  const own = '/var/lib/kubelet/plugins/kubernetes.io/csi/x/globalmount'
  const moved = '/mnt/root/plugins/kubernetes.io/csi/x/globalmount'
  await checkReferences(own, async () => [own, moved])
  await assert.rejects(checkReferences(own, async () => ['/mnt/root/plugins/kubernetes.io/csi/y/globalmount']))
  await assert.rejects(
    checkReferences(own, () => Promise.reject(new Error('no mount table'))),
    /no mount table/,
  )
})
