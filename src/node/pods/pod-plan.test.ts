// Every decision about one pod: what is done next, and what it waits for. Each row is a near miss of another.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodUid } from '../../api/names.ts'
import type { Pod } from '../../api/generated/types.ts'
import type { ContainerRecord } from '../runtime/port.ts'
import type { PodFacts, PodPlan } from './pod-plan.ts'
import { planPod } from './pod-plan.ts'
import type { PodRecord } from './pod-record.ts'

const uid = 'u' as PodUid
const container = { name: 'c' }
const podOf = (more: { metadata?: object; spec?: object; status?: object } = {}): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid, ...more.metadata },
  spec: { containers: [container], ...more.spec },
  ...(more.status ? { status: more.status } : {}),
})
const plain = podOf()
const deleted = podOf({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 7 } })
const held = podOf({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x/y'] } })

/** A pod that waits for its volumes. */
const base: PodRecord = {
  uid,
  source: 'api',
  seenAt: 0,
  pod: plain,
  gone: false,
  returned: undefined,
  directories: 'made',
  volumes: 'wanted',
  volumesReady: false,
  volumesFor: plain,
  starting: false,
  stopping: undefined,
  containers: new Map(),
  earlier: new Map(),
  settings: new Map(),
  preStopCalled: new Set(),
  pausesTold: new Map(),
  failure: undefined,
  ended: undefined,
  volumeHealth: [],
  removalAskedFor: undefined,
}
const on = (more: Partial<PodRecord>): PodRecord => ({ ...base, ...more })
/** A pod whose object changed: its volumes are known for the object as it is now. */
const as = (pod: Pod | undefined, more: Partial<PodRecord> = {}) => on({ pod, volumesFor: pod, ...more })
const running = (attempt = 0, more: Partial<ContainerRecord> = {}): Partial<PodRecord> => {
  const record = { pod: uid, name: 'c', attempt, id: `c${attempt}`, startedAt: 0, ...more }
  return { containers: new Map([['c', { record }]]) }
}
const exited = (code: number, attempt = 0, at = 50_000) => running(attempt, { exit: { code, reason: 'x', at } })
const ready = { volumesReady: true }
const facts = (more: Partial<PodFacts> = {}): PodFacts => ({
  now: 100_000,
  awaitingVolumes: false,
  conflict: undefined,
  ...more,
})
const limited = (seconds: number, more: Partial<PodRecord> = {}) => {
  const status = { startTime: '1970-01-01T00:00:00Z' }
  return as(podOf({ spec: { activeDeadlineSeconds: seconds }, status }), { ...ready, ...running(), ...more })
}
const once = podOf({ spec: { restartPolicy: 'Never' } })
const released = { ...ready, volumes: 'gone' as const }
const removed = { ...released, directories: 'removed' as const }

type Row = readonly [name: string, record: PodRecord, facts: PodFacts, expected: Partial<PodPlan>]

const rows: readonly Row[] = [
  [
    'a pod that only the runtime knows is left alone until its source has spoken',
    as(undefined, { source: undefined, ...running() }),
    facts(),
    { waiting: [{ reason: 'notNamed' }] },
  ],
  [
    'directories come first',
    on({ directories: 'missing', volumes: 'none', volumesFor: undefined }),
    facts(),
    { actions: [{ kind: 'makeDirectories' }] },
  ],
  [
    'a pod that is to end needs no directories any more',
    as(deleted, { directories: 'missing', volumes: 'none' }),
    facts(),
    { actions: [{ kind: 'releaseVolumes' }] },
  ],
  [
    'then its volumes are wanted and waited for',
    on({ volumes: 'none', volumesFor: undefined }),
    facts(),
    {
      actions: [{ kind: 'wantVolumes', pod: plain }, { kind: 'awaitVolumes' }],
      waiting: [{ reason: 'volumesNotReady' }],
    },
  ],
  ['one wait is enough', base, facts({ awaitingVolumes: true }), { waiting: [{ reason: 'volumesNotReady' }] }],
  [
    'a changed pod tells its volumes again',
    on({ volumesFor: podOf() }),
    facts({ awaitingVolumes: true }),
    { actions: [{ kind: 'wantVolumes', pod: plain }], waiting: [{ reason: 'volumesNotReady' }] },
  ],
  [
    'with its volumes its containers start',
    on(ready),
    facts(),
    { actions: [{ kind: 'start', containers: [{ container, attempt: 0 }] }] },
  ],
  ['starts under way are not begun twice', on({ ...ready, starting: true }), facts(), {}],
  [
    'an earlier pod of its name that still runs is waited for',
    on(ready),
    facts({ conflict: 'o' as PodUid }),
    { waiting: [{ reason: 'nameConflict', other: 'o' as PodUid }] },
  ],
  ['a pod that runs has all it needs', on({ ...ready, ...running() }), facts(), {}],
  [
    'a restart that is held back is told once',
    on({ ...ready, ...exited(1, 2, 95_000) }),
    facts(),
    {
      actions: [{ kind: 'tellPause', container: 'c', until: 115_000 }],
      held: [{ container: 'c', kind: 'restart', message: 'it ended with code 1', until: 115_000 }],
      again: 115_000,
    },
  ],
  [
    'and not again',
    on({ ...ready, ...exited(1, 2, 95_000), pausesTold: new Map([['c', 115_000]]) }),
    facts(),
    {
      held: [{ container: 'c', kind: 'restart', message: 'it ended with code 1', until: 115_000 }],
      again: 115_000,
    },
  ],
  [
    'after the pause it starts again',
    on({ ...ready, ...exited(1, 2, 50_000) }),
    facts(),
    {
      actions: [{ kind: 'start', containers: [{ container, attempt: 3 }] }],
      held: [{ container: 'c', kind: 'restart', message: 'it ended with code 1', until: 70_000 }],
    },
  ],
  ['before its deadline a pod is looked at again when that comes', limited(101), facts(), { again: 101_000 }],
  ['at its deadline it expires', limited(100), facts(), { actions: [{ kind: 'expire' }] }],
  [
    'and expires once',
    limited(100, { failure: { reason: 'DeadlineExceeded', message: '' } }),
    facts(),
    { actions: [{ kind: 'stop', containers: ['c'], graceMs: 30_000 }] },
  ],
  [
    'a deleted pod stops with the grace of its deletion, and nobody waits for its volumes',
    as(deleted, running()),
    facts({ awaitingVolumes: true }),
    { actions: [{ kind: 'stopAwaiting' }, { kind: 'stop', containers: ['c'], graceMs: 7_000 }] },
  ],
  [
    'a stop under way goes on',
    as(deleted, { ...running(), stopping: { graceMs: 7_000 } }),
    facts(),
    { waiting: [{ reason: 'containersStopping' }] },
  ],
  [
    'a shorter grace overtakes it',
    as(deleted, { ...running(), stopping: { graceMs: 8_000 } }),
    facts(),
    { actions: [{ kind: 'stop', containers: ['c'], graceMs: 7_000 }] },
  ],
  [
    'volumes of a deleted pod that still runs are wanted when the agent first hears of it (KP-2)',
    as(deleted, { ...running(), volumes: 'none', volumesFor: undefined }),
    facts(),
    {
      actions: [
        { kind: 'wantVolumes', pod: deleted },
        { kind: 'stop', containers: ['c'], graceMs: 7_000 },
      ],
    },
  ],
  [
    'not when its containers have ended (KP-2)',
    as(deleted, { ...exited(0), volumes: 'none', volumesFor: undefined }),
    facts(),
    { actions: [{ kind: 'releaseVolumes' }] },
  ],
  [
    'volumes stay while containers are being started',
    as(deleted, { starting: true }),
    facts(),
    { waiting: [{ reason: 'containersStarting' }] },
  ],
  [
    'a pod that has done its work ends and releases its volumes',
    as(once, { ...ready, ...exited(0) }),
    facts(),
    { actions: [{ kind: 'end', phase: 'Succeeded' }, { kind: 'releaseVolumes' }] },
  ],
  [
    'it waits until they are unmounted',
    as(once, { ...ready, ...exited(0), ended: 'Succeeded', volumes: 'releasing' }),
    facts(),
    { waiting: [{ reason: 'volumesMounted' }] },
  ],
  [
    'an ended pod keeps its directories until its object is deleted',
    as(once, { ...released, ...exited(0), ended: 'Succeeded' }),
    facts(),
    { waiting: [{ reason: 'notDeleted' }] },
  ],
  ['then they go', as(deleted, released), facts(), { actions: [{ kind: 'removeRemains' }] }],
  ['then the object', as(deleted, removed), facts(), { actions: [{ kind: 'removeObject', pod: deleted }] }],
  [
    'which is asked for once',
    as(deleted, { ...removed, removalAskedFor: deleted }),
    facts(),
    { waiting: [{ reason: 'objectExists' }] },
  ],
  [
    'and again for a changed object',
    as(deleted, { ...removed, removalAskedFor: plain }),
    facts(),
    { actions: [{ kind: 'removeObject', pod: deleted }] },
  ],
  [
    'a finalizer keeps directories and object',
    as(held, released),
    facts(),
    { actions: [{ kind: 'removeObject', pod: held }] },
  ],
  [
    'a pod that its source no longer names keeps nothing, finalizer or not',
    as(held, { ...released, gone: true }),
    facts(),
    { actions: [{ kind: 'removeRemains' }] },
  ],
  ['and is forgotten', as(held, { ...removed, gone: true }), facts(), { actions: [{ kind: 'forget' }] }],
  [
    'so is a pod of which only the disk knew',
    as(undefined, { gone: true, volumes: 'none' }),
    facts(),
    { actions: [{ kind: 'releaseVolumes' }] },
  ],
  [
    'an evicted pod stops within a second',
    on({ ...ready, ...running(), failure: { reason: 'Evicted', message: '' } }),
    facts(),
    { actions: [{ kind: 'stop', containers: ['c'], graceMs: 1_000 }] },
  ],
]

for (const [name, record, given, expected] of rows) {
  test(name, () => {
    const nothing: PodPlan = { actions: [], waiting: [], held: [], again: undefined }
    assert.deepEqual(planPod(record, given), { ...nothing, ...expected })
  })
}
