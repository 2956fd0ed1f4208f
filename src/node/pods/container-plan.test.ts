import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodUid } from '../../api/names.ts'
import type { Container, Pod, PodCondition } from '../../api/generated/types.ts'
import type { ContainerView, PodView } from './container-plan.ts'
import { planContainers, restartDelay } from './container-plan.ts'
import { podStatus } from './pod-status.ts'
import type { ContainerRecord } from '../runtime/port.ts'

const uid = 'u' as PodUid
const now = 1_000_000
const pod = (names: string[], more: Partial<Pod['spec'] & object> = {}): Pod => ({
  metadata: { name: 'p', namespace: 'n', uid },
  spec: { containers: names.map((name) => ({ name })), restartPolicy: 'Never', ...more },
})
const record = (name: string, code?: number, attempt = 0, ranMs = 1_000): ContainerRecord => ({
  pod: uid,
  name,
  attempt,
  id: `${name}${attempt}`,
  startedAt: now - ranMs,
  ...(code === undefined ? {} : { exit: { code, at: now, reason: code === 0 ? 'Completed' : 'Error' } }),
})
const view = (of: Pod, records: ContainerRecord[], more: Partial<PodView> = {}): PodView => ({
  pod: of,
  containers: new Map<string, ContainerView>(records.map((each) => [each.name, { record: each }])),
  volumesReady: true,
  terminating: false,
  now,
  ...more,
})
const brief = (given: PodView) => {
  const { start, stop, released, ended, again } = planContainers(given)
  return { start: start.map(({ container, attempt }) => `${container.name}:${attempt}`), stop, released, ended, again }
}
const nothing = { start: [], stop: [], released: false, ended: undefined, again: undefined }
const init = (name: string, more: Partial<Container> = {}): Container => ({ name, ...more })

const table: readonly [string, PodView, object][] = [
  ['no container starts before the volumes are there', view(pod(['a']), [], { volumesReady: false }), {}],
  ['all containers start together', view(pod(['a', 'b']), []), { start: ['a:0', 'b:0'] }],
  ['running containers are left alone', view(pod(['a']), [record('a')]), {}],
  [
    'init containers come one by one',
    view(pod(['a'], { initContainers: [init('i'), init('j')] }), []),
    { start: ['i:0'] },
  ],
  [
    'the next init container waits for the one before',
    view(pod(['a'], { initContainers: [init('i'), init('j')] }), [record('i')]),
    {},
  ],
  [
    'after the last init container all others start',
    view(pod(['a'], { initContainers: [init('i')] }), [record('i', 0)]),
    { start: ['a:0'] },
  ],
  [
    'a failed init container fails a pod that never restarts',
    view(pod(['a'], { initContainers: [init('i')] }), [record('i', 3)]),
    { released: true, ended: 'Failed' },
  ],
  [
    'a failed init container is tried again otherwise',
    view(pod(['a'], { initContainers: [init('i')], restartPolicy: 'Always' }), [record('i', 3)]),
    { start: ['i:1'] },
  ],
  [
    'a sidecar runs beside the others',
    view(pod(['a'], { initContainers: [init('s', { restartPolicy: 'Always' })] }), [record('s')]),
    { start: ['a:0'] },
  ],
  [
    'a pod ends when its containers do, and its sidecar is stopped',
    view(pod(['a'], { initContainers: [init('s', { restartPolicy: 'Always' })] }), [record('s'), record('a', 0)]),
    { stop: ['s'], ended: 'Succeeded' },
  ],
  [
    'one failed container fails the pod',
    view(pod(['a', 'b']), [record('a', 0), record('b', 1)]),
    { released: true, ended: 'Failed' },
  ],
  [
    'OnFailure restarts failures only',
    view(pod(['a', 'b'], { restartPolicy: 'OnFailure' }), [record('a', 0), record('b', 1)]),
    { start: ['b:1'] },
  ],
  [
    'Always restarts what ended well, too',
    view(pod(['a'], { restartPolicy: 'Always' }), [record('a', 0)]),
    { start: ['a:1'] },
  ],
  [
    'the second restart waits ten seconds',
    view(pod(['a'], { restartPolicy: 'Always' }), [record('a', 1, 1)]),
    { again: now + 10_000 },
  ],
  [
    'and comes when they have passed',
    view(pod(['a'], { restartPolicy: 'Always' }), [record('a', 1, 1)], { now: now + 10_000 }),
    { start: ['a:2'] },
  ],
  [
    'a terminating pod stops what runs',
    view(pod(['a', 'b']), [record('a'), record('b', 0)], { terminating: true }),
    { stop: ['a'] },
  ],
  [
    'a terminating pod without running containers releases its volumes',
    view(pod(['a']), [record('a', 0)], { terminating: true }),
    { released: true },
  ],
  [
    'an ephemeral container begins beside a pod that does not come up',
    view(pod(['a'], { initContainers: [init('i')], ephemeralContainers: [init('e')] }), [record('i')]),
    { start: ['e:0'] },
  ],
  [
    'an ephemeral container begins once, whatever the policy says',
    view(pod(['a'], { restartPolicy: 'Always', ephemeralContainers: [init('e'), init('f')] }), [
      record('a'),
      record('e', 1),
      record('f'),
    ]),
    {},
  ],
  [
    'a pod ends without waiting for its ephemeral containers, and takes them along',
    view(pod(['a'], { ephemeralContainers: [init('e')] }), [record('a', 0), record('e')]),
    { stop: ['e'], ended: 'Succeeded' },
  ],
  ['a terminating pod starts nothing', view(pod(['a']), [], { terminating: true }), { released: true }],
]
for (const [name, given, expected] of table)
  test(name, () => assert.deepEqual(brief(given), { ...nothing, ...expected }))

test('the back-off doubles to five minutes and is forgotten after ten good ones', () => {
  const delays = [0, 1, 2, 3, 4, 5, 6, 7].map((attempt) => restartDelay(record('a', 1, attempt)) / 1000)
  assert.deepEqual(delays, [0, 10, 20, 40, 80, 160, 300, 300])
  assert.equal(restartDelay(record('a', 1, 7, 600_000)), 0)
})

test('a status says what kubectl users expect at each stage', () => {
  const of = pod(['a'], { initContainers: [init('i')], restartPolicy: 'Always' })
  const stage = (records: ContainerRecord[]) => {
    const facts = { pod: of, earlier: new Map(), ended: undefined, failure: undefined, now, seenAt: now, address: '' }
    const status = podStatus({
      ...facts,
      volumesReady: true,
      volumeHealth: [],
      containers: view(of, records).containers,
    })
    const state = status.containerStatuses![0]!.state!
    const conditions = Object.fromEntries(status.conditions!.map(({ type, status: value }) => [type, value]))
    const word = state.waiting?.reason ?? (state.running ? 'running' : state.terminated?.reason)
    return [status.phase, word, conditions['Initialized'], conditions['Ready']]
  }
  assert.deepEqual(stage([]), ['Pending', 'PodInitializing', 'False', 'False'])
  assert.deepEqual(stage([record('i', 0)]), ['Pending', 'ContainerCreating', 'True', 'False'])
  assert.deepEqual(stage([record('i', 0), record('a')]), ['Running', 'running', 'True', 'True'])
  assert.deepEqual(stage([record('i', 0), record('a', 1, 2)]), ['Running', 'CrashLoopBackOff', 'True', 'False'])
})

test('a pod runs when each of its containers has started once, not when the first has (E3)', () => {
  const of = pod(['a', 'b'], { restartPolicy: 'Always' })
  const phase = (...records: ContainerRecord[]) => {
    const facts = { pod: of, earlier: new Map(), ended: undefined, failure: undefined, now, seenAt: now, address: '' }
    return podStatus({ ...facts, volumesReady: true, volumeHealth: [], containers: view(of, records).containers }).phase
  }
  assert.equal(phase(record('a')), 'Pending')
  assert.equal(phase(record('a'), record('b')), 'Running')
  assert.equal(phase(record('a'), record('b', 1, 2)), 'Running')
})

test('a pod is ready when its containers are and all its gates are open', () => {
  const gates = { readinessGates: [{ conditionType: 'foo/bar' }, { conditionType: 'baz' }] }
  const ready = (given: readonly PodCondition[], ...records: ContainerRecord[]) => {
    const of = { ...pod(['a'], gates), status: { conditions: given } }
    const facts = { pod: of, earlier: new Map(), ended: undefined, failure: undefined, now, seenAt: now, address: '' }
    const { containers } = view(of, records)
    const { conditions } = podStatus({ ...facts, volumesReady: true, volumeHealth: [], containers })
    const [said, own] = ['Ready', 'ContainersReady'].map((type) => conditions!.find((each) => each.type === type)!)
    return [own!.status, said!.status, said!.reason, said!.message]
  }
  const unready = 'containers with unready status: [a]'
  assert.deepEqual(ready([]), ['False', 'False', 'ContainersNotReady', unready])
  const both =
    'corresponding condition of pod readiness gate "foo/bar" does not exist., the status of pod readiness gate "baz" is not "True", but Unknown'
  const baz = (status: 'True' | 'Unknown') => ({ type: 'baz', status })
  assert.deepEqual(ready([baz('Unknown')], record('a')), ['True', 'False', 'ReadinessGatesNotReady', both])
  const open = [{ type: 'foo/bar', status: 'True' as const }, baz('True')]
  assert.deepEqual(ready(open, record('a')), ['True', 'True', undefined, undefined])
  assert.deepEqual(ready(open, record('a', 0)), ['False', 'False', 'ContainersNotReady', unready])
})

test('an ephemeral container has a state of its own that says nothing about the pod', () => {
  const of = pod(['a'], { restartPolicy: 'Always', ephemeralContainers: [{ name: 'e', image: 'i' }] })
  const stage = (...records: ContainerRecord[]) => {
    const facts = { pod: of, earlier: new Map(), ended: undefined, failure: undefined, now, seenAt: now, address: '' }
    const containers = view(of, [record('a'), ...records]).containers
    const status = podStatus({ ...facts, volumesReady: true, volumeHealth: [], containers })
    return [
      status.phase,
      status.conditions!.find(({ type }) => type === 'Ready')!.status,
      status.ephemeralContainerStatuses,
    ]
  }
  const common = { name: 'e', lastState: {}, ready: false, restartCount: 0, image: 'i', imageID: '' }
  const waiting = { reason: 'ContainerCreating' }
  assert.deepEqual(stage(), ['Running', 'True', [{ ...common, state: { waiting } }]])
  const ended = { startedAt: '1970-01-01T00:16:39Z', finishedAt: '1970-01-01T00:16:40Z', containerID: 'e0' }
  const terminated = { exitCode: 3, reason: 'Error', ...ended }
  assert.deepEqual(stage(record('e', 3)), [
    'Running',
    'True',
    [{ ...common, state: { terminated }, containerID: 'e0' }],
  ])
})
