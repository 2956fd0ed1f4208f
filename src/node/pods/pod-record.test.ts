// A pod's record changes only by events: ends are never taken back, late answers change nothing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodUid } from '../../api/names.ts'
import type { Pod } from '../../api/generated/types.ts'
import type { ContainerRecord } from '../runtime/port.ts'
import type { PodEvent, PodRecord } from './pod-record.ts'
import { reducePod } from './pod-record.ts'

const uid = 'u' as PodUid
const pod = (more: Partial<Pod['metadata']> = {}, spec: Partial<Pod['spec']> = {}): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid, ...more },
  spec: { containers: [{ name: 'c' }], ...spec },
})
const record = (attempt: number, more: Partial<ContainerRecord> = {}): ContainerRecord => ({
  pod: uid,
  name: 'c',
  attempt,
  id: `c${attempt}`,
  startedAt: attempt,
  ...more,
})
const exit = { code: 1, reason: 'Error', at: 9 }
const health = { started: true, ready: true, failed: false }

const named: PodEvent = { kind: 'named', uid, pod: pod(), source: 'file', at: 5 }
const after = (...events: readonly PodEvent[]): PodRecord | undefined =>
  events.reduce<PodRecord | undefined>(reducePod, undefined)
const changes = (before: readonly PodEvent[], ...events: readonly PodEvent[]) => {
  const from = after(...before)
  return events.reduce<PodRecord | undefined>(reducePod, from) !== from
}

test('a pod that the API names carries when and by whom it was named', () => {
  const known = after({ ...named, source: 'api' })
  assert.deepEqual(known?.pod?.metadata.annotations, {
    'kubernetes.io/config.seen': '1970-01-01T00:00:00Z',
    'kubernetes.io/config.source': 'api',
  })
  assert.deepEqual([known?.source, known?.seenAt, known?.volumes, known?.gone], ['api', 5, 'none', false])
})

test('containers that were found before their pod was named belong to it', () => {
  const found = after({ kind: 'containerSeen', uid, record: record(0) })
  assert.deepEqual([found?.source, found?.pod], [undefined, undefined])
  const known = after({ kind: 'containerSeen', uid, record: record(0) }, named)
  assert.deepEqual([known?.source, known?.containers.get('c')?.record?.id], ['file', 'c0'])
})

test('a pod that nobody will name is gone; one that somebody named is not', () => {
  assert.deepEqual(
    [after({ kind: 'leftBehind', uid, at: 1 })?.gone, after({ kind: 'leftBehind', uid, at: 1 })?.pod],
    [true, undefined],
  )
  assert.equal(changes([named], { kind: 'leftBehind', uid, at: 6 }), false)
})

test('a pod that is named again while it goes begins anew after its end, unless it is removed again', () => {
  const again = { ...named, pod: pod({ labels: { a: 'b' } }) }
  const back = after(named, { kind: 'removed', uid }, again)
  assert.deepEqual([back?.gone, back?.pod, back?.returned], [true, pod(), { pod: again.pod, source: 'file' }])
  assert.equal(after(named, { kind: 'removed', uid }, again, { kind: 'removed', uid })?.returned, undefined)
})

test('what is said of a pod that nobody knows changes nothing', () => {
  const late: readonly PodEvent[] = [
    { kind: 'removed', uid },
    { kind: 'volumesReady', uid },
    { kind: 'stopEnded', uid, graceMs: 1 },
    { kind: 'containerStarted', uid, record: record(0), settings: { env: {}, workingDirectory: '/', groups: [] } },
    { kind: 'forgotten', uid },
  ]
  for (const event of late) assert.equal(after(event), undefined, event.kind)
})

test('volumes go one way: wanted, ready, released, gone', () => {
  const wanted: PodEvent = { kind: 'volumesWanted', uid, pod: pod() }
  const ready: PodEvent = { kind: 'volumesReady', uid }
  const released: PodEvent = { kind: 'volumesReleased', uid }
  const gone: PodEvent = { kind: 'volumesGone', uid }
  const state = (...events: readonly PodEvent[]) => {
    const { volumes, volumesReady } = after(named, ...events)!
    return [volumes, volumesReady]
  }
  assert.deepEqual(state(wanted), ['wanted', false])
  assert.deepEqual(state(ready), ['none', false])
  assert.deepEqual(state(wanted, ready), ['wanted', true])
  assert.deepEqual(state(wanted, ready, released), ['releasing', true])
  assert.deepEqual(state(wanted, gone), ['wanted', false])
  assert.deepEqual(state(wanted, released, ready, gone), ['gone', false])
  assert.deepEqual(state(wanted, released, gone, released, wanted), ['gone', false])
})

test('an ephemeral container with a volume of its own makes the pod wait for volumes again', () => {
  const ready: readonly PodEvent[] = [named, { kind: 'volumesWanted', uid, pod: pod() }, { kind: 'volumesReady', uid }]
  const volumes = [{ name: 'v', emptyDir: {} }]
  const ephemeralContainers = [{ name: 'e', volumeMounts: [{ name: 'v', mountPath: '/v' }] }]
  const more = { ...named, pod: pod({}, { volumes, ephemeralContainers }) }
  assert.deepEqual([after(...ready, named)?.volumesReady, after(...ready, more)?.volumesReady], [true, false])
})

test('an end is never taken back', () => {
  const failed: PodEvent = { kind: 'failed', uid, reason: 'Evicted', message: 'm' }
  const expired: PodEvent = { kind: 'expired', uid, reason: 'DeadlineExceeded', message: 'd' }
  assert.equal(after(named, failed, expired)?.failure?.reason, 'Evicted')
  const ended: PodEvent = { kind: 'ended', uid, phase: 'Succeeded' }
  assert.equal(after(named, ended, { ...ended, phase: 'Failed' })?.ended, 'Succeeded')
})

test('the latest start of a container counts; an older one, or an older word about it, does not', () => {
  const seen = (each: ContainerRecord): PodEvent => ({ kind: 'containerSeen', uid, record: each })
  const both = after(named, seen(record(0, { exit })), seen(record(1)))
  assert.deepEqual([both?.containers.get('c')?.record?.id, both?.earlier.get('c')?.id], ['c1', 'c0'])
  assert.equal(changes([named, seen(record(1))], seen(record(0))), false)
  assert.equal(changes([named, seen(record(1, { exit }))], seen(record(1))), false)
})

test('what probes found holds for one start of a container', () => {
  const seen = (each: ContainerRecord): PodEvent => ({ kind: 'containerSeen', uid, record: each })
  const well: PodEvent = { kind: 'healthSeen', uid, container: 'c', health }
  const before = [named, seen(record(0)), well]
  assert.equal(after(...before, seen(record(0)))?.containers.get('c')?.health, health)
  assert.equal(after(...before, seen(record(0, { exit })))?.containers.get('c')?.health, undefined)
  assert.equal(after(...before, seen(record(1)))?.containers.get('c')?.health, undefined)
  assert.equal(changes(before, well), false)
  assert.equal(changes([named], well), false)
})

test('a start that failed keeps the last record, and a start that worked forgets the failure', () => {
  const error = { reason: 'RunContainerError', message: 'm', retryAt: 3, failures: 1 }
  const failed: PodEvent = { kind: 'startFailed', uid, container: 'c', error }
  const settings = { env: {}, workingDirectory: '/', groups: [] }
  const started: PodEvent = { kind: 'containerStarted', uid, record: record(1), settings }
  const ended: PodEvent = { kind: 'containerSeen', uid, record: record(0, { exit }) }
  assert.deepEqual(after(named, ended, failed)?.containers.get('c'), { record: record(0, { exit }), startError: error })
  const then = after(named, ended, failed, started)
  assert.deepEqual([then?.containers.get('c'), then?.settings.get('c')], [{ record: record(1) }, settings])
})

test('a stop that was overtaken by one with a shorter grace does not end it', () => {
  const began = (graceMs: number): PodEvent => ({ kind: 'stopBegan', uid, graceMs })
  const ended = (graceMs: number): PodEvent => ({ kind: 'stopEnded', uid, graceMs })
  assert.deepEqual(after(named, began(30), began(1), ended(30))?.stopping, { graceMs: 1 })
  assert.equal(after(named, began(30), began(1), ended(30), ended(1))?.stopping, undefined)
})
