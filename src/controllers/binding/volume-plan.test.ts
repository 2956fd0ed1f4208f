// Every branch of volume sync and of reclaiming as a table.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claim, volume } from '../../../test/claims/make.ts'
import { planReclaim, planVolume } from './volume-plan.ts'
import type { VolumeFacts } from './volume-plan.ts'

const mine = { name: 'c', uid: 'uid-c' }
const by = (provisioner: string) => ({ 'pv.kubernetes.io/provisioned-by': provisioner })

const table: readonly [string, VolumeFacts, string][] = [
  [
    'VOL-2 T-23: nobody’s',
    { volume: volume({ phase: 'Released' }), claim: undefined, live: false },
    'markAvailable VOL-2',
  ],
  [
    'VOL-3 T-23: reserved by name',
    { volume: volume({ claimRef: { name: 'c' } }), claim: claim(), live: false },
    'markAvailable VOL-3 reserved',
  ],
  [
    'VOL-4 T-28: the cache knows no such claim: ask',
    { volume: volume({ claimRef: mine, phase: 'Bound' }), claim: undefined, live: false },
    'askServer VOL-4',
  ],
  [
    'VOL-5 T-28: another uid in the cache: ask',
    { volume: volume({ claimRef: mine, phase: 'Bound' }), claim: claim({ uid: 'x' }), live: false },
    'askServer VOL-4',
  ],
  [
    'VOL-4 W-5: a released volume believes the cache',
    { volume: volume({ claimRef: mine, phase: 'Released' }), claim: undefined, live: false },
    'release VOL-6',
  ],
  [
    'VOL-6 T-24: really gone',
    { volume: volume({ claimRef: mine, phase: 'Bound' }), claim: undefined, live: true },
    'release VOL-6',
  ],
  [
    'VOL-6 T-24 T-45: another claim of that name',
    { volume: volume({ claimRef: mine, phase: 'Bound' }), claim: claim({ uid: 'x' }), live: true },
    'release VOL-6',
  ],
  [
    'VOL-7 T-22: modes differ',
    { volume: volume({ claimRef: mine, spec: { volumeMode: 'Block' } }), claim: claim(), live: false },
    'leave VOL-7 namedVolumeUnfit',
  ],
  [
    'VOL-8 T-25: an unbound claim is woken, nothing is written',
    { volume: volume({ claimRef: mine }), claim: claim(), live: false },
    'wakeClaim VOL-8',
  ],
  [
    'VOL-9: its partner',
    { volume: volume({ claimRef: mine }), claim: claim({ volumeName: 'v' }), live: false },
    'markBound VOL-9',
  ],
  [
    'VOL-10 T-47: the loser of two provisioners',
    {
      volume: volume({ claimRef: mine, policy: 'Delete', annotations: by('p') }),
      claim: claim({ volumeName: 'w' }),
      live: false,
    },
    'release VOL-10',
  ],
  [
    'VOL-11 T-26: bound elsewhere',
    { volume: volume({ claimRef: mine }), claim: claim({ volumeName: 'w' }), live: false },
    'unbind VOL-11',
  ],
  [
    'VOL-12: a loser with policy Retain is only unbound',
    { volume: volume({ claimRef: mine, annotations: by('p') }), claim: claim({ volumeName: 'w' }), live: false },
    'unbind VOL-11',
  ],
  [
    'VOL-13: a terminating volume follows the same rules',
    { volume: volume({ claimRef: mine, deleting: true }), claim: claim({ volumeName: 'v' }), live: false },
    'markBound VOL-9',
  ],
]
for (const [name, given, expected] of table) {
  test(name, () => {
    const { action, rule, waiting } = planVolume(given)
    assert.equal([action.kind, rule, ...waiting.map(({ reason }) => reason)].join(' '), expected)
  })
}

test('VOL-7: the two sentences', () => {
  const { events } = planVolume({
    volume: volume({ claimRef: mine, spec: { volumeMode: 'Block' } }),
    claim: claim(),
    live: false,
  })
  assert.deepEqual(
    events.map(({ on, event }) => [on, event.reason, event.message]),
    [
      [
        'volume',
        'VolumeMismatch',
        'Cannot bind PersistentVolume to requested PersistentVolumeClaim "c" due to incompatible volumeMode.',
      ],
      [
        'claim',
        'VolumeMismatch',
        'Cannot bind PersistentVolume "v" to requested PersistentVolumeClaim due to incompatible volumeMode.',
      ],
    ],
  )
})

const csi = { csi: { driver: 'd', volumeHandle: 'h' } }
const reclaims: readonly [string, Parameters<typeof volume>[0], string][] = [
  [
    'REC-1 T-46: migrated',
    { policy: 'Delete', annotations: { 'pv.kubernetes.io/migrated-to': 'd' } },
    'keep REC-1 externalDeleter',
  ],
  ['REC-2: Retain', {}, 'keep REC-2 retained'],
  [
    'REC-3 T-49: an unknown policy',
    { spec: { persistentVolumeReclaimPolicy: 'Shred' as 'Retain' } },
    'fail REC-3 Volume has unrecognized PersistentVolumeReclaimPolicy',
  ],
  [
    'REC-5 T-46: provisioned by an external one',
    { policy: 'Delete', annotations: by('example.com/csi') },
    'keep REC-5 externalDeleter',
  ],
  ['REC-5 T-46 W-18: a static CSI volume', { policy: 'Delete', spec: csi }, 'keep REC-5 externalDeleter'],
  [
    'REC-5: an in-tree name without a plugin',
    { policy: 'Delete', annotations: by('kubernetes.io/none') },
    'fail REC-5 no volume plugin matched name: kubernetes.io/none',
  ],
  [
    'REC-6: our plugin by name',
    { policy: 'Delete', annotations: by('kubernetes.io/disk') },
    'delete REC-6 kubernetes.io/disk',
  ],
  ['REC-6: our plugin by source', { policy: 'Delete' }, 'delete REC-6 kubernetes.io/host-path'],
  [
    'REC-5 T-27: no plugin for the source',
    { policy: 'Delete', spec: { local: { path: '/x' } } },
    'fail REC-5 error getting deleter volume plugin for volume "v": no volume plugin matched',
  ],
  [
    'REC-5: a plugin that can only wipe',
    { policy: 'Delete', spec: { nfs: { server: 's', path: '/' } } },
    'fail REC-5 error getting deleter volume plugin for volume "v": no deletable volume plugin matched',
  ],
  ['REC-7: Recycle', { policy: 'Recycle' }, 'recycle REC-7'],
]
for (const [name, wishes, expected] of reclaims) {
  test(name, () => {
    const plan = planReclaim({
      volume: volume(wishes),
      deleterByName: (plugin) => (plugin === 'kubernetes.io/disk' ? plugin : undefined),
      deleterBySource: ({ spec }) => (spec.hostPath ? 'kubernetes.io/host-path' : undefined),
    })
    const detail =
      plan.kind === 'keep'
        ? plan.waiting[0]?.reason
        : plan.kind === 'fail'
          ? plan.event.message
          : plan.kind === 'delete'
            ? plan.plugin
            : undefined
    assert.equal([plan.kind, plan.rule, ...(detail === undefined ? [] : [detail])].join(' '), expected)
  })
}
