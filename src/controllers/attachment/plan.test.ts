import assert from 'node:assert/strict'
import test from 'node:test'
import { nodeName, podUid, uniqueVolumeName } from '../../api/names.ts'
import type { ActualVolume, OnNode } from './actual.ts'
import type { DesiredVolume } from './desired.ts'
import type { AttachmentAction, AttachmentFacts, AttachmentPlan, NodeFacts } from './plan.ts'
import { planVolume } from './plan.ts'

const volume = uniqueVolumeName('kubernetes.io/csi/driver^handle')
const [a, b, c] = [nodeName('a'), nodeName('b'), nodeName('c')]
const minute = 60_000
const now = 100 * minute
const spec = { name: 'pv' } as DesiredVolume['spec']

function wanted(nodes: readonly string[], multiAttachReported = false): DesiredVolume | undefined {
  if (nodes.length === 0) return undefined
  const entry = (name: string) => {
    const pod = { namespace: 'default', name: `pod-${name}`, uid: podUid(`uid-${name}`) }
    return [
      nodeName(name),
      { spec, pods: new Map([[pod.uid, pod]]), since: now - minute, multiAttachReported },
    ] as const
  }
  return { volume, spec, nodes: new Map(nodes.map(entry)) }
}

function present(nodes: Readonly<Record<string, Partial<OnNode>>>): ActualVolume | undefined {
  const entries = Object.entries(nodes).map(([name, onNode]) => {
    const whole: OnNode = {
      presence: 'attached',
      devicePath: '',
      reported: true,
      detachWantedSince: undefined,
      nodeVersion: -1,
      ...onNode,
    }
    return [nodeName(name), whole] as const
  })
  return entries.length === 0 ? undefined : { volume, identity: { kind: 'known', spec }, nodes: new Map(entries) }
}

const healthy: NodeFacts = { exists: true, ready: true, outOfService: false, inUse: false }

function facts(changes: Partial<Omit<AttachmentFacts, 'node'>> = {}, node: Partial<NodeFacts> = {}): AttachmentFacts {
  return {
    now,
    steady: now,
    multiAttach: false,
    maxWaitForUnmountMs: 6 * minute,
    forceDetachOnTimeout: true,
    node: () => ({ ...healthy, ...node }),
    ...changes,
  }
}

const kinds = (plan: AttachmentPlan) => plan.actions.map(({ kind, node }) => `${kind} ${node}`)

test('a wanted volume that sits nowhere is attached; one that is attached is left alone (ADR-4)', () => {
  assert.deepEqual(planVolume(wanted(['a']), undefined, facts()), {
    actions: [{ kind: 'attach', node: a }],
    waiting: [],
  })
  assert.deepEqual(planVolume(wanted(['a']), present({ a: {} }), facts()), { actions: [], waiting: [] })
})

test('a doubtful attachment that is wanted is attached again (ADR-4)', () => {
  const plan = planVolume(wanted(['a']), present({ a: { presence: 'uncertain' } }), facts())
  assert.deepEqual(plan, { actions: [{ kind: 'attach', node: a }], waiting: [] })
})

test('wanting an attached volume again stops its detach timer (ADR-4)', () => {
  const plan = planVolume(wanted(['a']), present({ a: { detachWantedSince: now - minute } }), facts())
  assert.deepEqual(plan, { actions: [{ kind: 'cancelDetachTimer', node: a }], waiting: [] })
})

test('an unwanted volume that is not in use is detached, with the live check (FD-1, ADR-2)', () => {
  for (const presence of ['attached', 'uncertain'] as const) {
    const plan = planVolume(undefined, present({ a: { presence, detachWantedSince: now } }), facts())
    assert.deepEqual(plan, { actions: [{ kind: 'detach', node: a, force: undefined }], waiting: [] })
  }
})

test('an exclusive volume waits for the node that has it, or may have it (MA-1, MA-3, WA-36)', () => {
  assert.deepEqual(planVolume(wanted(['a', 'b'], true), present({ a: {} }), facts()), {
    actions: [],
    waiting: [{ reason: 'attachedElsewhere', node: b, holder: a }],
  })
  assert.deepEqual(
    planVolume(wanted(['b']), present({ a: { presence: 'uncertain', detachWantedSince: now } }), facts()),
    {
      actions: [{ kind: 'detach', node: a, force: undefined }],
      waiting: [{ reason: 'maybeAttachedElsewhere', node: b, holder: a }],
    },
  )
})

test('the users of the waiting node are told once, all who came within a moment together (MA-4, C-2)', () => {
  const first = planVolume(wanted(['b']), present({ a: { detachWantedSince: now } }), facts({}, { inUse: true }))
  assert.deepEqual(first.actions, [{ kind: 'reportMultiAttach', node: b, holders: [a] }])
  const early = planVolume(
    wanted(['b']),
    present({ a: { detachWantedSince: now } }),
    facts({ now: now - minute + 30 }, { inUse: true }),
  )
  assert.deepEqual(early, {
    actions: [],
    waiting: [
      { reason: 'inUse', node: a },
      { reason: 'attachedElsewhere', node: b, holder: a, until: now - minute + 100 },
    ],
  })
  const second = planVolume(wanted(['b'], true), present({ a: { detachWantedSince: now } }), facts({}, { inUse: true }))
  assert.deepEqual(second.actions, [])
})

test('two nodes that want an exclusive volume at once: the first is served, the other waits (MA-2, TA-19)', () => {
  assert.deepEqual(planVolume(wanted(['a', 'b']), undefined, facts()), {
    actions: [{ kind: 'attach', node: a }],
    waiting: [{ reason: 'anotherNodeFirst', node: b, holder: a }],
  })
})

test('two doubtful nodes that are both wanted do not wait for each other for ever', () => {
  const both = present({ a: { presence: 'uncertain' }, b: { presence: 'uncertain' } })
  assert.deepEqual(kinds(planVolume(wanted(['a', 'b']), both, facts())), ['attach a'])
  assert.deepEqual(kinds(planVolume(wanted(['b', 'a']), both, facts())), ['attach b'])
  assert.deepEqual(planVolume(wanted(['a']), both, facts()).waiting, [
    { reason: 'maybeAttachedElsewhere', node: a, holder: b },
  ])
})

test('a shared volume is attached and detached node by node, detaches first (ADR-1, DES-2, TA-18)', () => {
  const plan = planVolume(
    wanted(['a', 'b']),
    present({ b: {}, c: { detachWantedSince: now } }),
    facts({ multiAttach: true }),
  )
  assert.deepEqual(plan.actions, [
    { kind: 'detach', node: c, force: undefined },
    { kind: 'attach', node: a },
  ])
})

test('the first look that finds a volume unwanted starts its timer (ADR-2 step 3)', () => {
  assert.deepEqual(planVolume(undefined, present({ a: {} }), facts({}, { inUse: true, ready: false })), {
    actions: [{ kind: 'startDetachTimer', node: a }],
    waiting: [{ reason: 'inUseOnUnhealthyNode', node: a, until: now + 6 * minute + 1 }],
  })
})

// The state space of one node: desired × attached/uncertain/absent × in use × node health × timer × the off switch.
const healths = {
  ready: { exists: true, ready: true, outOfService: false },
  notReady: { exists: true, ready: false, outOfService: false },
  gone: { exists: false, ready: false, outOfService: false },
  outOfServiceReady: { exists: true, ready: true, outOfService: true },
  outOfServiceNotReady: { exists: true, ready: false, outOfService: true },
}
const timers = { unset: undefined, fresh: now - minute, atSixMinutes: now - 6 * minute, expired: now - 6 * minute - 1 }

test('the whole table of one volume on one node (ADR-2, ADR-3, WA-12, FD-1, FD-2, FD-3, FD-4, FD-5, FD-6)', () => {
  let states = 0
  for (const desired of [true, false]) {
    for (const presence of ['attached', 'uncertain', 'absent'] as const) {
      for (const inUse of [true, false]) {
        for (const [health, condition] of Object.entries(healths)) {
          for (const [timer, since] of Object.entries(timers)) {
            for (const forceDetachOnTimeout of [true, false]) {
              states++
              const actual = presence === 'absent' ? undefined : present({ a: { presence, detachWantedSince: since } })
              const given = facts({ forceDetachOnTimeout }, { ...condition, inUse })
              const plan = planVolume(desired ? wanted(['a']) : undefined, actual, given)
              const name = JSON.stringify({ desired, presence, inUse, health, timer, forceDetachOnTimeout })
              assert.deepEqual(plan, expected({ desired, presence, inUse, health, since, forceDetachOnTimeout }), name)
            }
          }
        }
      }
    }
  }
  assert.equal(states, 480)
})

/** The rules once more, written from the specification's sentences and in another order than the plan's code. */
function expected(state: {
  readonly desired: boolean
  readonly presence: 'attached' | 'uncertain' | 'absent'
  readonly inUse: boolean
  readonly health: string
  readonly since: number | undefined
  readonly forceDetachOnTimeout: boolean
}): AttachmentPlan {
  const { desired, presence, inUse, health, since, forceDetachOnTimeout } = state
  if (desired) {
    const timerRuns = presence === 'attached' && since !== undefined
    if (presence === 'attached')
      return { actions: timerRuns ? [{ kind: 'cancelDetachTimer', node: a }] : [], waiting: [] }
    return { actions: [{ kind: 'attach', node: a }], waiting: [] }
  }
  if (presence === 'absent') return { actions: [], waiting: [] }
  const stamp: AttachmentAction[] = since === undefined ? [{ kind: 'startDetachTimer', node: a }] : []
  const detach = (force: 'timeout' | 'outOfService' | undefined): AttachmentPlan => ({
    actions: [...stamp, { kind: 'detach', node: a, force }],
    waiting: [],
  })
  const unhealthy = health === 'notReady' || health === 'gone'
  const moreThanSixMinutes = since !== undefined && now - since > 6 * minute
  if (!inUse) return detach(undefined)
  if (health.startsWith('outOfService')) return detach('outOfService')
  if (unhealthy && moreThanSixMinutes && forceDetachOnTimeout) return detach('timeout')
  const wait = (reason: 'inUse' | 'forceDetachDisabled' | 'inUseOnUnhealthyNode', until?: number): AttachmentPlan => ({
    actions: stamp,
    waiting: [{ reason, node: a, ...(until === undefined ? {} : { until }) }],
  })
  if (!unhealthy) return wait('inUse')
  if (!forceDetachOnTimeout) return wait('forceDetachDisabled')
  return wait('inUseOnUnhealthyNode', (since ?? now) + 6 * minute + 1)
}

test('an exclusive volume, every pair of presences on two nodes: never an attach while another node may hold it', () => {
  const presences = ['absent', 'uncertain', 'attached'] as const
  const wishes = [[], ['a'], ['b'], ['a', 'b'], ['b', 'a']]
  for (const nodes of wishes) {
    for (const onA of presences) {
      for (const onB of presences) {
        const entries = [
          ...(onA === 'absent' ? [] : [['a', { presence: onA }]]),
          ...(onB === 'absent' ? [] : [['b', { presence: onB }]]),
        ]
        const actual = present(Object.fromEntries(entries) as Record<string, Partial<OnNode>>)
        const plan = planVolume(wanted(nodes), actual, facts({}, { inUse: true }))
        const attaches = plan.actions.filter(({ kind }) => kind === 'attach')
        assert.ok(attaches.length <= 1)
        for (const { node } of attaches) {
          const other = node === a ? onB : onA
          const otherWanted = nodes.includes(node === a ? 'b' : 'a')
          const own = node === a ? onA : onB
          // The one exception: both doubtful, both wanted; somebody must go first.
          const allowed = other === 'absent' || (other === 'uncertain' && own === 'uncertain' && otherWanted)
          assert.ok(allowed, JSON.stringify({ nodes, onA, onB }))
        }
      }
    }
  }
})

test('every reason to wait is met by some state, and each names its node', () => {
  const plans = [
    planVolume(undefined, present({ a: {} }), facts({}, { inUse: true })),
    planVolume(undefined, present({ a: {} }), facts({}, { inUse: true, ready: false })),
    planVolume(undefined, present({ a: {} }), facts({ forceDetachOnTimeout: false }, { inUse: true, ready: false })),
    planVolume(wanted(['b']), present({ a: {} }), facts()),
    planVolume(wanted(['b']), present({ a: { presence: 'uncertain' } }), facts()),
    planVolume(wanted(['a', 'b']), undefined, facts()),
  ]
  const reasons = plans.flatMap(({ waiting }) => waiting)
  assert.deepEqual(
    reasons.map(({ reason }) => reason),
    [
      'inUse',
      'inUseOnUnhealthyNode',
      'forceDetachDisabled',
      'attachedElsewhere',
      'maybeAttachedElsewhere',
      'anotherNodeFirst',
    ],
  )
  assert.ok(reasons.every(({ node }) => node === a || node === b))
})
