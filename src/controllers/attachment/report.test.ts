import assert from 'node:assert/strict'
import test from 'node:test'
import { nodeName, podUid, uniqueVolumeName } from '../../api/names.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { createActualWorld } from './actual.ts'
import { createDesiredWorld } from './desired.ts'
import type { AttachmentWaiting } from './plan.ts'
import { createAttachmentMetrics, multiAttachText, waitingText } from './report.ts'

const volume = uniqueVolumeName('kubernetes.io/csi/driver^handle')
const spec = { name: 'pv1', source: { kind: 'csi', value: { driver: 'driver', volumeHandle: 'handle' } } } as VolumeSpec
const [a, b] = [nodeName('a'), nodeName('b')]
const pod = (namespace: string, name: string) => ({ namespace, name, uid: podUid(`${namespace}-${name}`) })

function wantedBy(...users: readonly ReturnType<typeof pod>[]) {
  const world = createDesiredWorld()
  world.apply({ kind: 'wanted', volume, node: b, spec, pod: pod('mine', 'waiter'), at: 1 })
  for (const user of users) world.apply({ kind: 'wanted', volume, node: a, spec, pod: user, at: 1 })
  return world
}

test('four sentences, and no pod of another namespace by name (MA-4, MA-5, TA-25, INV-12)', () => {
  const say = (...users: readonly ReturnType<typeof pod>[]) =>
    multiAttachText(wantedBy(...users).items.get(volume)!, { node: b, pod: pod('mine', 'waiter') }, [a])
  const prefix = 'Multi-Attach error for volume "pv1" '
  assert.equal(say(), `${prefix}Volume is already exclusively attached to one node and can't be attached to another`)
  assert.equal(say(pod('mine', 'p1'), pod('mine', 'p2')), `${prefix}Volume is already used by pod(s) p1, p2`)
  assert.equal(say(pod('theirs', 'p1')), `${prefix}Volume is already used by 1 pod(s) in different namespaces`)
  assert.equal(
    say(pod('mine', 'p1'), pod('theirs', 'p2'), pod('others', 'p3')),
    `${prefix}Volume is already used by pod(s) p1 and 2 pod(s) in different namespaces`,
  )
})

test('every reason to wait can be said, with its node, its holder and its time', () => {
  const until = Date.UTC(2026, 0, 1)
  const all: AttachmentWaiting[] = [
    { reason: 'inUse', node: a },
    { reason: 'inUseOnUnhealthyNode', node: a, until },
    { reason: 'forceDetachDisabled', node: a },
    { reason: 'attachedElsewhere', node: a, holder: b },
    { reason: 'maybeAttachedElsewhere', node: a, holder: b },
    { reason: 'anotherNodeFirst', node: a, holder: b },
    { reason: 'busy', node: a, detail: 'volume_attach' },
    { reason: 'backingOff', node: a, until, detail: 'no' },
  ]
  for (const waiting of all) {
    const text = waitingText(waiting)
    assert.match(text, /node a/)
    if (waiting.holder) assert.match(text, /node b/)
    if (waiting.until !== undefined) assert.match(text, /2026-01-01T00:00:00Z/)
  }
})

test('volumes are counted per plugin and world, forced detaches by reason (MEA-5, MEA-6, MEA-4)', async () => {
  const metrics = createMetrics()
  const desired = wantedBy(pod('mine', 'p1'))
  const actual = createActualWorld()
  actual.apply({ kind: 'attached', volume, node: a, spec, devicePath: '', nodeVersion: 0 })
  actual.apply({
    kind: 'foundInNodeStatus',
    volume: uniqueVolumeName('kubernetes.io/csi/x^y'),
    node: a,
    devicePath: '',
    nodeVersion: 0,
  })
  const measured = createAttachmentMetrics(metrics, { desired, actual })
  measured.forcedDetach('timeout')
  measured.forcedDetach('outOfService')
  const text = await metrics.text()
  const has = (line: string) => assert.ok(text.includes(line), `${line} in\n${text}`)
  has('attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi:driver",state="desired_state_of_world"} 2')
  has('attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi:driver",state="actual_state_of_world"} 1')
  has('attach_detach_controller_attachdetach_controller_forced_detaches{reason="timeout"} 1')
  has('attach_detach_controller_attachdetach_controller_forced_detaches{reason="out-of-service"} 1')
  has('storage_count_attachable_volumes_in_use{node="a",volume_plugin="kubernetes.io/csi:driver"} 1')
})
