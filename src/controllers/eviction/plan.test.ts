// Which pods leave a node with NoExecute taints, and when?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod, Taint, Toleration } from '../../api/generated/types.ts'
import { planEviction } from './plan.ts'

const now = Date.UTC(2026, 0, 1)
const taint = (key: string, rest: Partial<Taint> = {}): Taint => ({ key, effect: 'NoExecute', ...rest })
const node = (...taints: Taint[]): Node => ({ metadata: { name: 'n' }, spec: { taints } })
const pod = (...tolerations: Toleration[]): Pod => ({
  metadata: { name: 'p' },
  spec: { containers: [], nodeName: 'n', tolerations },
})
const toleration = (key: string, seconds?: number): Toleration => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  ...(seconds === undefined ? {} : { tolerationSeconds: seconds }),
})
const stay = { kind: 'stay' }

const rows: readonly [string, Pod, Node | undefined, number, unknown][] = [
  ['no node, no taints', pod(), undefined, 0, stay],
  ['a taint of another effect', pod(), node({ key: 'k', effect: 'NoSchedule' }), 0, stay],
  ['a taint that is not tolerated', pod(), node(taint('k')), 0, { kind: 'leave', taint: taint('k') }],
  ['one tolerated for ever', pod(toleration('k')), node(taint('k')), 9_999_999, stay],
  ['one tolerated for a while', pod(toleration('k', 300)), node(taint('k')), 0, { kind: 'leaveAt', at: now + 300_000 }],
  ['and then no longer', pod(toleration('k', 300)), node(taint('k')), 300_000, { kind: 'leave', taint: taint('k') }],
  ['no patience at all', pod(toleration('k', -5)), node(taint('k')), 0, { kind: 'leave', taint: taint('k') }],
  [
    'two taints: the one that is not tolerated decides',
    pod(toleration('a', 300)),
    node(taint('a'), taint('b')),
    0,
    { kind: 'leave', taint: taint('b') },
  ],
  [
    'two taints: the shorter time decides',
    pod(toleration('a', 300), toleration('b', 20), toleration('c')),
    node(taint('a'), taint('b'), taint('c')),
    0,
    { kind: 'leaveAt', at: now + 20_000 },
  ],
  [
    'two tolerations of one taint: the first decides',
    pod(toleration('a', 300), toleration('a', 1)),
    node(taint('a')),
    0,
    { kind: 'leaveAt', at: now + 300_000 },
  ],
  [
    'a taint that says when it was added',
    pod(toleration('a', 300)),
    node(taint('a', { timeAdded: '2025-12-31T23:59:00Z' })),
    0,
    { kind: 'leaveAt', at: now + 240_000 },
  ],
  ['a pod that has ended', { ...pod(), status: { phase: 'Succeeded' } }, node(taint('k')), 0, stay],
  [
    'a pod that goes already',
    { ...pod(), metadata: { name: 'p', deletionTimestamp: '2026-01-01T00:00:00Z' } },
    node(taint('k')),
    0,
    stay,
  ],
]
for (const [name, which, where, later, expected] of rows)
  test(`eviction: ${name}`, () => assert.deepEqual(planEviction(which, where, now, now + later), expected))
