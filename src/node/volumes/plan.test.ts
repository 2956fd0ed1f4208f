import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PluginName, PodUid, UniqueVolumeName } from '../../api/names.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { ActualMount, ActualVolume } from './actual.ts'
import type { DesiredMount, DesiredVolume } from './desired.ts'
import type { NodeFacts } from './plan.ts'
import { planVolume } from './plan.ts'

const volume = 'kubernetes.io/csi/d^h' as UniqueVolumeName
const plugin = 'kubernetes.io/csi' as PluginName
const [a, b, c] = ['a', 'b', 'c'] as PodUid[] as [PodUid, PodUid, PodUid]
const spec: VolumeSpec = {
  name: 'v',
  from: 'pod',
  mode: 'Filesystem',
  readOnly: false,
  source: { kind: 'emptyDir', value: {} },
}

const wanted = (uid: PodUid, more: Partial<DesiredMount> = {}): [PodUid, DesiredMount] => [
  uid,
  {
    pod: { metadata: { name: uid }, spec: { containers: [] } },
    uid,
    spec,
    outerNames: ['v'],
    requestedAt: 0,
    generation: 0,
    readOnly: false,
    claimBytes: 0n,
    ...more,
  },
]
const desired = (pods: [PodUid, DesiredMount][], more: Partial<DesiredVolume> = {}): DesiredVolume => ({
  volume,
  plugin,
  attachable: true,
  deviceMountable: true,
  reportedInUse: true,
  group: '',
  label: { asked: '', mounted: '' },
  sizeBytes: 0n,
  claimChanges: 0,
  pods: new Map(pods),
  ...more,
})
const on = (pod: PodUid, more: Partial<ActualMount> = {}): [PodUid, ActualMount] => [
  pod,
  { pod, presence: 'present', spec, foundOnDisk: false, generation: 0, group: '', ...more },
]
const actual = (pods: [PodUid, ActualMount][], more: Partial<ActualVolume> = {}): ActualVolume => ({
  volume,
  plugin,
  spec,
  attachable: 'yes',
  devicePath: '',
  device: { presence: 'present', path: '/g', foundOnDisk: false },
  label: undefined,
  restored: false,
  devicePathUnread: false,
  sizeBytes: 0n,
  expansion: { refusedInUse: false, failedFinally: false, deferred: undefined },
  pods: new Map(pods),
  ...more,
})
const deferred = (bytes: bigint, claimChanges: number): ActualVolume['expansion'] => ({
  refusedInUse: false,
  failedFinally: false,
  deferred: { bytes, claimChanges },
})
const facts = (more: Partial<NodeFacts> = {}): NodeFacts => ({
  podListComplete: true,
  unresolvedPods: new Set(),
  runningPods: new Set(),
  unexplained: false,
  expandable: true,
  listedAttached: true,
  triedLast: undefined,
  ...more,
})
const absent = { presence: 'absent', path: '', foundOnDisk: false } as const
const found = { presence: 'uncertain', path: '/g', foundOnDisk: true } as const

const mismatch = `waiting for unmount of volume "${volume}", because it is already mounted to a different pod with a different SELinux label`

const table: readonly [string, DesiredVolume | undefined, ActualVolume | undefined, NodeFacts, object][] = [
  ['nothing wanted, nothing there: nothing to do', undefined, undefined, facts(), {}],
  [
    'with another SELinux label it is unmounted, the wanted pod’s mount too (KD-6, KA-6, REC-4)',
    desired([wanted(a), wanted(b)], { label: { asked: 'new', mounted: 'new' } }),
    actual([on(a)], { label: 'old' }),
    facts(),
    {
      actions: [{ kind: 'unmount', pod: a }],
      waiting: [
        { reason: 'labelMismatch', pod: a, error: mismatch },
        { reason: 'labelMismatch', pod: b, error: mismatch },
      ],
    },
  ],
  [
    'then its device goes, and the record of the old label with it (KD-6)',
    desired([wanted(a)], { label: { asked: 'new', mounted: 'new' } }),
    actual([], { label: '' }),
    facts(),
    { actions: [{ kind: 'unmountDevice' }], waiting: [{ reason: 'labelMismatch', pod: a, error: mismatch }] },
  ],
  [
    'the same label is no reason to wait (KA-6)',
    desired([wanted(a)], { label: { asked: 'new', mounted: 'new' } }),
    actual([], { label: 'new' }),
    facts(),
    { actions: [{ kind: 'mount', pod: a, remount: false }] },
  ],
  [
    'whoever comes after the pod that was tried last has the first turn (REC-4, NPO-13)',
    desired([wanted(a), wanted(b), wanted(c)]),
    actual([]),
    facts({ triedLast: a }),
    { actions: [b, c, a].map((pod) => ({ kind: 'mount', pod, remount: false })) },
  ],
  [
    'a pod that was tried last and is gone changes no turns (REC-4)',
    desired([wanted(a), wanted(b)]),
    actual([]),
    facts({ triedLast: c }),
    { actions: [a, b].map((pod) => ({ kind: 'mount', pod, remount: false })) },
  ],
  [
    'an attachable volume waits until it is reported in use (REC-5)',
    desired([wanted(a), wanted(b)], { reportedInUse: false }),
    undefined,
    facts(),
    {
      waiting: [
        { reason: 'notReportedInUse', pod: a },
        { reason: 'notReportedInUse', pod: b },
      ],
    },
  ],
  [
    'it waits for volumesAttached as far as we have heard (VCA-2)',
    desired([wanted(a)]),
    undefined,
    facts({ listedAttached: false }),
    { waiting: [{ reason: 'notAttached', pod: a }] },
  ],
  [
    'an unreadable copy of the node is no reason to wait (VCA-2)',
    desired([wanted(a)]),
    undefined,
    facts({ listedAttached: undefined }),
    { actions: [{ kind: 'verifyAttached', pod: a }] },
  ],
  [
    'reported and attached, it is verified once for all pods (REC-5, EXEC-4)',
    desired([wanted(a), wanted(b)]),
    undefined,
    facts(),
    { actions: [{ kind: 'verifyAttached', pod: a }] },
  ],
  [
    'what nobody attaches is entered at once, without asking the API (REC-5, VCA-4)',
    desired([wanted(a), wanted(b)], { attachable: false, reportedInUse: false }),
    undefined,
    facts({ listedAttached: false }),
    { actions: [{ kind: 'enter', pod: a }] },
  ],
  [
    'attached and not mounted, it is mounted, even before the pod list is complete (REC-4)',
    desired([wanted(a)]),
    actual([]),
    facts({ podListComplete: false }),
    { actions: [{ kind: 'mount', pod: a, remount: false }] },
  ],
  [
    'doubt about a wanted mount is resolved by mounting again (RCS-10)',
    desired([wanted(a)]),
    actual([on(a, { presence: 'uncertain', foundOnDisk: true })], { devicePathUnread: true }),
    facts(),
    { actions: [{ kind: 'mount', pod: a, remount: false }] },
  ],
  [
    'a newer generation is a remount (KA-11)',
    desired([wanted(a, { generation: 2 })]),
    actual([on(a, { generation: 1 })]),
    facts(),
    { actions: [{ kind: 'mount', pod: a, remount: true }] },
  ],
  ['mounted and unchanged: nothing to do', desired([wanted(a)]), actual([on(a)]), facts(), {}],
  [
    'a grown volume is expanded once for all pods (KA-7, REC-7)',
    desired([wanted(a), wanted(b)], { sizeBytes: 15n }),
    actual([on(a), on(b)], { sizeBytes: 10n }),
    facts(),
    { actions: [{ kind: 'expand', pod: a }] },
  ],
  [
    'a pod that may write grows it, not one that only reads (EXN-3)',
    desired([wanted(a, { readOnly: true }), wanted(b)], { sizeBytes: 15n }),
    actual([on(a), on(b)], { sizeBytes: 10n }),
    facts(),
    { actions: [{ kind: 'expand', pod: b }] },
  ],
  [
    'remount comes before growth (KA-6)',
    desired([wanted(a, { generation: 1 })], { sizeBytes: 15n }),
    actual([on(a)], { sizeBytes: 10n }),
    facts(),
    { actions: [{ kind: 'mount', pod: a, remount: true }] },
  ],
  [
    'a driver that refused in use is not asked again (TA-41)',
    desired([wanted(a)], { sizeBytes: 15n }),
    actual([on(a)], { sizeBytes: 10n, expansion: { refusedInUse: true, failedFinally: false, deferred: undefined } }),
    facts(),
    {},
  ],
  [
    'an expansion not allowed yet is not tried in a circle (WA-24)',
    desired([wanted(a)], { sizeBytes: 15n }),
    actual([on(a)], { sizeBytes: 10n, expansion: deferred(15n, 0) }),
    facts(),
    {},
  ],
  [
    'it is tried again when the size is another one (WA-24)',
    desired([wanted(a)], { sizeBytes: 16n }),
    actual([on(a)], { sizeBytes: 10n, expansion: deferred(15n, 0) }),
    facts(),
    { actions: [{ kind: 'expand', pod: a }] },
  ],
  [
    'it is tried again when the claim has changed (WA-24)',
    desired([wanted(a)], { sizeBytes: 15n, claimChanges: 1 }),
    actual([on(a)], { sizeBytes: 10n, expansion: deferred(15n, 0) }),
    facts(),
    { actions: [{ kind: 'expand', pod: a }] },
  ],
  [
    'a volume of unknown size has the size of its claim (KA-10)',
    desired([wanted(a, { claimBytes: 10n, readOnly: true }), wanted(b, { claimBytes: 12n })], { sizeBytes: 15n }),
    actual([on(a), on(b)]),
    facts(),
    { actions: [{ kind: 'size', bytes: 12n }] },
  ],
  [
    'a known size is left alone (KA-10)',
    desired([wanted(a, { claimBytes: 12n })], { sizeBytes: 15n }),
    actual([on(a)], { sizeBytes: 15n }),
    facts(),
    {},
  ],
  ['an unknown size never grows', desired([wanted(a)], { sizeBytes: 15n }), actual([on(a)]), facts(), {}],
  [
    'a pod that no longer wants it is unmounted, before others are mounted (REC-3)',
    desired([wanted(b)]),
    actual([on(a)]),
    facts(),
    {
      actions: [
        { kind: 'unmount', pod: a },
        { kind: 'mount', pod: b, remount: false },
      ],
    },
  ],
  [
    'nothing is unmounted before the pod list is complete (INV-7, REC-2)',
    undefined,
    actual([on(a)]),
    facts({ podListComplete: false }),
    { waiting: [{ reason: 'podListIncomplete', pod: a }] },
  ],
  [
    'nothing is unmounted before node.status was read (INV-7, REC-2)',
    undefined,
    actual([on(a)], { devicePathUnread: true }),
    facts(),
    { waiting: [{ reason: 'devicePathUnread', pod: a }] },
  ],
  [
    'a running pod whose claims are unresolved keeps what was found on disk (WA-8, DES-9)',
    undefined,
    actual([on(a, { presence: 'uncertain', foundOnDisk: true })]),
    facts({ unresolvedPods: new Set([a]) }),
    { waiting: [{ reason: 'claimsUnresolved', pod: a }] },
  ],
  [
    'a pod that nobody names keeps its volumes while its containers run (KP-9)',
    undefined,
    actual([on(a), on(b)]),
    facts({ runningPods: new Set([a]) }),
    { actions: [{ kind: 'unmount', pod: b }], waiting: [{ reason: 'containersRunning', pod: a }] },
  ],
  [
    'another pod being unresolved does not hold this one',
    undefined,
    actual([on(a, { presence: 'uncertain', foundOnDisk: true })]),
    facts({ unresolvedPods: new Set([b]) }),
    { actions: [{ kind: 'unmount', pod: a }] },
  ],
  [
    'the device stays while a pod is on it (INV-6)',
    undefined,
    actual([on(a)]),
    facts(),
    { actions: [{ kind: 'unmount', pod: a }] },
  ],
  [
    'without pods the device is unmounted (REC-6)',
    undefined,
    actual([]),
    facts(),
    { actions: [{ kind: 'unmountDevice' }] },
  ],
  [
    'a doubtful device too (REC-6)',
    undefined,
    actual([], { device: { presence: 'uncertain', path: '/g', foundOnDisk: false } }),
    facts(),
    { actions: [{ kind: 'unmountDevice' }] },
  ],
  [
    'with the device gone the record goes (INV-4)',
    undefined,
    actual([], { device: absent }),
    facts(),
    { actions: [{ kind: 'forget' }] },
  ],
  [
    'a device found on disk waits for the pod list',
    undefined,
    actual([], { device: found }),
    facts({ podListComplete: false }),
    { waiting: [{ reason: 'podListIncomplete' }] },
  ],
  [
    'a device found on disk waits for node.status',
    undefined,
    actual([], { device: found, devicePathUnread: true }),
    facts(),
    { waiting: [{ reason: 'devicePathUnread' }] },
  ],
  [
    'a device found on disk waits while an unresolved pod may be on it (WA-8, DES-9)',
    undefined,
    actual([], { device: found }),
    facts({ unresolvedPods: new Set([b]), unexplained: true }),
    { waiting: [{ reason: 'claimsUnresolved' }] },
  ],
  [
    'and not while others wait for claims that may never come (DES-9)',
    undefined,
    actual([], { device: found }),
    facts({ unresolvedPods: new Set([b]) }),
    { actions: [{ kind: 'unmountDevice' }] },
  ],
]

for (const [name, want, have, given, result] of table) {
  test(name, () => {
    assert.deepEqual(planVolume(want, have, given), { actions: [], waiting: [], ...result })
  })
}
