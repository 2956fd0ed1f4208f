// Every branch of volume sync and of reclaiming as a table.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claim, volume } from '../../../test/kit/objects.ts'
import { planReclaim, planVolume } from './volume-plan.ts'
import type { VolumeFacts } from './volume-plan.ts'

const mine = { name: 'c', uid: 'uid-c' }
const by = (provisioner: string) => ({ 'pv.kubernetes.io/provisioned-by': provisioner })

const table: readonly [string, VolumeFacts, string][] = [
  [
    'nobody’s (VOL-2, TC-23)',
    { volume: volume({ phase: 'Released' }), claim: undefined, live: false },
    'markAvailable',
  ],
  [
    'reserved by name (VOL-3, TC-23)',
    { volume: volume({ claimRef: { name: 'c' } }), claim: claim(), live: false },
    'markAvailable reserved',
  ],
  [
    'the cache knows no such claim: ask (VOL-4, TC-28)',
    { volume: volume({ claimRef: mine, phase: 'Bound' }), claim: undefined, live: false },
    'askServer',
  ],
  [
    'another uid in the cache: ask (VOL-5, TC-28)',
    { volume: volume({ claimRef: mine, phase: 'Bound' }), claim: claim({ uid: 'x' }), live: false },
    'askServer',
  ],
  [
    'a released volume believes the cache (VOL-4, WC-5)',
    { volume: volume({ claimRef: mine, phase: 'Released' }), claim: undefined, live: false },
    'release',
  ],
  [
    'really gone (VOL-6, TC-24)',
    { volume: volume({ claimRef: mine, phase: 'Bound' }), claim: undefined, live: true },
    'release',
  ],
  [
    'another claim of that name (VOL-6, TC-24, TC-45)',
    { volume: volume({ claimRef: mine, phase: 'Bound' }), claim: claim({ uid: 'x' }), live: true },
    'release',
  ],
  [
    'modes differ (VOL-7, TC-22)',
    { volume: volume({ claimRef: mine, spec: { volumeMode: 'Block' } }), claim: claim(), live: false },
    'leave namedVolumeUnfit',
  ],
  [
    'an unbound claim is woken, nothing is written (VOL-8, TC-25)',
    { volume: volume({ claimRef: mine }), claim: claim(), live: false },
    'wakeClaim',
  ],
  [
    'its partner (VOL-9)',
    { volume: volume({ claimRef: mine }), claim: claim({ volumeName: 'v' }), live: false },
    'markBound',
  ],
  [
    'the loser of two provisioners (VOL-10, TC-47)',
    {
      volume: volume({ claimRef: mine, policy: 'Delete', annotations: by('p') }),
      claim: claim({ volumeName: 'w' }),
      live: false,
    },
    'release',
  ],
  [
    'bound elsewhere (VOL-11, TC-26)',
    { volume: volume({ claimRef: mine }), claim: claim({ volumeName: 'w' }), live: false },
    'unbind',
  ],
  [
    'a loser with policy Retain is only unbound (VOL-12)',
    { volume: volume({ claimRef: mine, annotations: by('p') }), claim: claim({ volumeName: 'w' }), live: false },
    'unbind',
  ],
  [
    'a terminating volume follows the same rules (VOL-13)',
    { volume: volume({ claimRef: mine, deleting: true }), claim: claim({ volumeName: 'v' }), live: false },
    'markBound',
  ],
]
for (const [name, given, expected] of table) {
  test(name, () => {
    const { action, waiting } = planVolume(given)
    assert.equal([action.kind, ...waiting.map(({ reason }) => reason)].join(' '), expected)
  })
}

test('the two sentences (VOL-7)', () => {
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
    'migrated (RCL-1, TC-46)',
    { policy: 'Delete', annotations: { 'pv.kubernetes.io/migrated-to': 'd' } },
    'keep externalDeleter',
  ],
  ['Retain (RCL-2)', {}, 'keep retained'],
  [
    'an unknown policy (RCL-3, TC-49)',
    { spec: { persistentVolumeReclaimPolicy: 'Shred' as 'Retain' } },
    'fail Volume has unrecognized PersistentVolumeReclaimPolicy',
  ],
  [
    'provisioned by an external one (RCL-5, TC-46)',
    { policy: 'Delete', annotations: by('csi.example.com') },
    'keep externalDeleter',
  ],
  ['a static CSI volume (RCL-5, TC-46, WC-18)', { policy: 'Delete', spec: csi }, 'keep externalDeleter'],
  [
    'an in-tree name without a plugin (RCL-5)',
    { policy: 'Delete', annotations: by('kubernetes.io/none') },
    'fail no volume plugin matched name: kubernetes.io/none',
  ],
  [
    'our plugin by name (RCL-6)',
    { policy: 'Delete', annotations: by('kubernetes.io/disk') },
    'delete kubernetes.io/disk',
  ],
  ['our plugin by source (RCL-6)', { policy: 'Delete' }, 'delete kubernetes.io/host-path'],
  [
    'no plugin for the source (RCL-5, TC-27)',
    { policy: 'Delete', spec: { local: { path: '/x' } } },
    'fail error getting deleter volume plugin for volume "v": no volume plugin matched',
  ],
  [
    'a plugin that can only wipe (RCL-5)',
    { policy: 'Delete', spec: { nfs: { server: 's', path: '/' } } },
    'fail error getting deleter volume plugin for volume "v": no deletable volume plugin matched',
  ],
  ['Recycle (RCL-7)', { policy: 'Recycle' }, 'recycle'],
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
    assert.equal([plan.kind, ...(detail === undefined ? [] : [detail])].join(' '), expected)
  })
}
