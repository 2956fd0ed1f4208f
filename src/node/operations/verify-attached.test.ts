// Both lists of the live Node must name the volume before it counts as attached (NSP-2, NSP-9 improved, VCA-4 … VCA-6).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PluginName, PodUid, UniqueVolumeName } from '../../api/names.ts'
import type { Node } from '../../api/generated/types.ts'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { createPending } from '../../loop/pending.ts'
import { silentLog } from '../../telemetry/log.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createRunner } from '../../volume/operation.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { ActualEvent } from '../volumes/actual.ts'
import type { MountWork, OperationDeps } from './steps.ts'
import { verifyAttached } from './verify-attached.ts'

const volume = 'kubernetes.io/csi/d^h' as UniqueVolumeName
const spec: VolumeSpec = {
  name: 'pv',
  from: 'pod',
  mode: 'Filesystem',
  readOnly: false,
  source: { kind: 'emptyDir', value: {} },
}

async function verify(
  status: NonNullable<Node['status']>,
  find: () => unknown = () => ({ name: 'kubernetes.io/csi' }),
): Promise<string[]> {
  const clock = createVirtualClock()
  const pending = createPending(clock)
  const events: ActualEvent[] = []
  const work = {
    desired: { volume, plugin: 'kubernetes.io/csi' as PluginName, attachable: true },
    mount: { pod: { metadata: { name: 'p' }, spec: { containers: [] } }, uid: 'u' as PodUid, spec, claimBytes: 5n },
  } as unknown as MountWork // the operation reads these fields only
  const deps = {
    node: 'n',
    registry: { find },
    client: { get: async () => ({ metadata: { name: 'n' }, spec: {}, status }) },
  } as unknown as OperationDeps
  const runner = createRunner({ clock, pending, log: silentLog, metrics: createMetrics() })
  const signal = new AbortController().signal
  const tell = () => assert.fail('no events (VCA-7)')
  runner.start(verifyAttached, work, deps, { apply: (event) => void events.push(event), tell, signal })
  await pending.idle()
  const refusal = pending.refusal([volume], 'verify_controller_attached_volume')
  const said = refusal?.kind === 'backingOff' ? [refusal.error] : []
  return [...events.map((event) => (event.kind === 'attached' ? `attached ${event.sizeBytes}` : event.kind)), ...said]
}

const details = `(UniqueName: "${volume}") pod "p" (UID: "u")`
const listed = { volumesAttached: [{ name: volume, devicePath: '/dev/x' }] }

test('in use and attached in the live Node: the volume is entered (NSP-2, VCA-3, VCA-6)', async () => {
  assert.deepEqual(await verify({ ...listed, volumesInUse: [volume] }), ['attached 5'])
})
test('attached but not reported in use in the live Node: nothing is entered (NSP-9, VCA-5, VCA-7, DES-6; against WA-4)', async () => {
  assert.deepEqual(await verify(listed), [
    `Volume has not been added to the list of VolumesInUse in the node's volume status for volume "pv" ${details} : the node does not report it in use`,
  ])
})
test('another volume in the lists counts for nothing (NSP-9, VCA-5, VCA-6)', async () => {
  const other = `${volume}-2` as UniqueVolumeName
  const [notInUse, notAttached] = [
    await verify({ ...listed, volumesInUse: [other] }),
    await verify({ volumesInUse: [volume, other], volumesAttached: [{ name: other, devicePath: '/dev/x' }] }),
  ]
  assert.match(notInUse.join(), /^Volume has not been added to the list of VolumesInUse/)
  assert.match(notAttached.join(), /^Volume not attached according to node status/)
})
test('after a gap the control plane must list it again (NSP-10, VCA-6)', async () => {
  assert.deepEqual(await verify({ volumesInUse: [volume] }), [
    `Volume not attached according to node status for volume "pv" ${details} : the control plane does not list it`,
  ])
})
test('no plugin: a failed operation with back-off, not an error ten times a second (VCA-1, MSG-2, OP-4)', async () => {
  const find = () => {
    throw new Error('no volume plugin matched')
  }
  assert.deepEqual(await verify({}, find), [
    `VerifyControllerAttachedVolume.FindPluginBySpec failed for volume "pv" ${details} : no volume plugin matched`,
  ])
})
