// Every branch of claim sync as a table: facts in, decision, event and reason to wait out.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolume } from '../../api/generated/types.ts'
import { claim, pod, storageClass, volume } from '../../../test/kit/objects.ts'
import { planClaim } from './claim-plan.ts'
import type { ClaimFacts } from './claim-plan.ts'

const done = { 'pv.kubernetes.io/bind-completed': 'yes' }
const ours = { 'pv.kubernetes.io/bound-by-controller': 'yes' }
const free = (each: PersistentVolume) => ({ findVolume: () => ({ kind: 'free' as const, volume: each }) })
const late = storageClass('late', { volumeBindingMode: 'WaitForFirstConsumer' })
const selected = { 'volume.kubernetes.io/selected-node': 'n1' }

function facts(rest: Partial<ClaimFacts>): ClaimFacts {
  return {
    claim: claim(),
    storageClass: undefined,
    namedVolume: undefined,
    defaultClass: undefined,
    provisioningEnabled: true,
    findVolume: () => ({ kind: 'none' }),
    isBusy: () => false,
    unscheduledPods: () => [],
    canProvision: () => false,
    ...rest,
  }
}

/** `action event reason`, with `-` for nothing. */
function told(rest: Partial<ClaimFacts>): string {
  const { action, event, waiting } = planClaim(facts(rest))
  const detail =
    'volume' in action ? ` ${action.volume.metadata.name}` : 'provisioner' in action ? ` ${action.provisioner}` : ''
  return [
    action.kind + detail,
    event === undefined ? '-' : `${event.type} ${event.reason}`,
    waiting[0]?.reason ?? '-',
  ].join(' | ')
}

const table: readonly [string, Partial<ClaimFacts>, string][] = [
  ['a match is bound (CLM-6, TC-1)', free(volume()), 'bind v | - | -'],
  [
    'phase Bound without the mark is still unbound (CLM-2, TC-2)',
    { claim: claim({ phase: 'Bound' }) },
    'markPending | Normal FailedBinding | noVolumeFits',
  ],
  [
    'a terminating claim is bound like any other (CLM-3)',
    { claim: claim({ deleting: true }), ...free(volume()) },
    'bind v | - | -',
  ],
  [
    'a volume in flight is waited for (WC-17)',
    { ...free(volume()), isBusy: () => true },
    'waitForVolume v | - | volumeBusy',
  ],
  [
    'a class without binding mode is an error (CLM-4)',
    { claim: claim({ className: 'x' }), storageClass: { metadata: { name: 'x' }, provisioner: 'p' } },
    'fail | - | retrying',
  ],
  [
    'no match, the default class is taken (CLM-7, CLM-9, TC-43)',
    { claim: claim({ className: null }), defaultClass: storageClass('std') },
    'assignClass | - | -',
  ],
  [
    '"" is a decision (CLM-9)',
    { claim: claim(), defaultClass: storageClass('std') },
    'markPending | Normal FailedBinding | noVolumeFits',
  ],
  [
    'so is the beta annotation (CLM-9, TC-43)',
    {
      claim: claim({ className: null, annotations: { 'volume.beta.kubernetes.io/storage-class': '' } }),
      defaultClass: storageClass('std'),
    },
    'markPending | Normal FailedBinding | noVolumeFits',
  ],
  [
    'delayed, nobody uses it (CLM-8a, CLM-10, TC-8)',
    { claim: claim({ className: 'late' }), storageClass: late },
    'markPending | Normal WaitForFirstConsumer | firstConsumer',
  ],
  [
    'delayed, a pod waits (CLM-8a, CLM-10)',
    { claim: claim({ className: 'late' }), storageClass: late, unscheduledPods: () => [pod('p')] },
    'markPending | Normal WaitForPodScheduled | podUnscheduled',
  ],
  [
    'delayed with a node: provision (CLM-8b, TC-12, TC-41)',
    { claim: claim({ className: 'late', annotations: selected }), storageClass: late },
    'askProvisioner csi.example.com | Normal ExternalProvisioning | externalProvisioner',
  ],
  [
    'the class is missing (CLM-8b, PRV-2, TC-35)',
    { claim: claim({ className: 'x' }) },
    'leave | Warning ProvisioningFailed | classMissing',
  ],
  [
    'provisioning is off (PRV-1, CTL-10)',
    { claim: claim({ className: 'x' }), provisioningEnabled: false },
    'leave | - | provisioningDisabled',
  ],
  [
    'no such in-tree plugin (PRV-2, TC-35)',
    {
      claim: claim({ className: 'x' }),
      storageClass: storageClass('x', { provisioner: 'kubernetes.io/no-provisioner' }),
    },
    'leave | Warning ProvisioningFailed | noProvisioner',
  ],
  [
    'one of our plugins (PRV-2, PRV-8, TC-34)',
    {
      claim: claim({ className: 'x' }),
      storageClass: storageClass('x', { provisioner: 'kubernetes.io/disk' }),
      canProvision: () => true,
    },
    'provision | - | provisioning',
  ],
  [
    'nothing is made for a claim that goes away (WC-11)',
    {
      claim: claim({ className: 'x', deleting: true }),
      storageClass: storageClass('x', { provisioner: 'kubernetes.io/disk' }),
      canProvision: () => true,
    },
    'leave | - | provisioningDisabled',
  ],
  [
    'a migrated provisioner is asked by its new name (PRV-4, TC-42)',
    {
      claim: claim({ className: 'x' }),
      storageClass: storageClass('x', { provisioner: 'kubernetes.io/aws-ebs' }),
      canProvision: () => true,
    },
    'askProvisioner ebs.csi.aws.com | Normal ExternalProvisioning | externalProvisioner',
  ],
  [
    'the named volume is missing (CLM-11, TC-13)',
    { claim: claim({ volumeName: 'v', phase: 'Bound' }) },
    'markPending | - | namedVolumeMissing',
  ],
  [
    'named and fitting (CLM-12, TC-9, TC-16)',
    { claim: claim({ volumeName: 'v' }), namedVolume: volume({ size: '10Gi' }) },
    'bind v | - | -',
  ],
  [
    'named and lacking a mode (CLM-12, TC-10)',
    { claim: claim({ volumeName: 'v', modes: ['ReadWriteMany'] }), namedVolume: volume() },
    'markPending | Warning VolumeMismatch | namedVolumeUnfit',
  ],
  [
    'both name each other, nothing is checked (CLM-13, TC-14)',
    {
      claim: claim({ volumeName: 'v', request: '9Gi', className: 'x' }),
      namedVolume: volume({ claimRef: { name: 'c' } }),
    },
    'bind v | - | -',
  ],
  [
    'it belongs to somebody else (CLM-14, TC-15)',
    { claim: claim({ volumeName: 'v' }), namedVolume: volume({ claimRef: { name: 'd', uid: 'x' } }) },
    'markPending | Warning FailedBinding | namedVolumeTaken',
  ],
  [
    'the same after our own bind is an error (CLM-15, TC-15)',
    {
      claim: claim({ volumeName: 'v', annotations: ours }),
      namedVolume: volume({ claimRef: { name: 'd', uid: 'x' } }),
    },
    'fail | Warning FailedBinding | namedVolumeTaken',
  ],
  [
    'bound, but to nothing (CLM-16, TC-17)',
    { claim: claim({ annotations: done }) },
    'markLost | Warning ClaimLost | volumeLost',
  ],
  [
    'bound, the volume is gone (CLM-17, TC-17, RCL-11)',
    { claim: claim({ volumeName: 'v', annotations: done }) },
    'markLost | Warning ClaimLost | volumeLost',
  ],
  [
    'the volume forgot us: bind again (CLM-18, CLM-22, TC-18)',
    {
      claim: claim({
        volumeName: 'v',
        annotations: done,
        phase: 'Lost',
        spec: { selector: { matchLabels: { a: 'b' } } },
      }),
      namedVolume: volume(),
    },
    'bind v | - | -',
  ],
  [
    'right pair, finish the bind (CLM-19, TC-6, TC-20)',
    {
      claim: claim({ volumeName: 'v', annotations: done }),
      namedVolume: volume({ claimRef: { name: 'c', uid: 'uid-c' } }),
    },
    'bind v | - | -',
  ],
  [
    'the volume has another uid (CLM-20, TC-19)',
    {
      claim: claim({ volumeName: 'v', annotations: done }),
      namedVolume: volume({ claimRef: { name: 'c', uid: 'other' } }),
    },
    'markLost | Warning ClaimMisbound | misbound',
  ],
  [
    'or none (CLM-20)',
    { claim: claim({ volumeName: 'v', annotations: done }), namedVolume: volume({ claimRef: { name: 'c' } }) },
    'markLost | Warning ClaimMisbound | misbound',
  ],
]

for (const [name, given, expected] of table) test(name, () => assert.equal(told(given), expected))

test('an error of the search is an error of the look (CLM-5)', () => {
  const broken = () => {
    throw new Error('invalid selector')
  }
  assert.throws(() => planClaim(facts({ findVolume: broken })), /invalid selector/)
})

test('several pods are named in one sentence, without their namespace (CLM-10)', () => {
  const plan = planClaim(
    facts({ claim: claim({ className: 'late' }), storageClass: late, unscheduledPods: () => [pod('b'), pod('a')] }),
  )
  assert.equal(plan.event?.message, 'waiting for pods a,b to be scheduled')
})

test('the sentence that users know (PRV-5)', () => {
  const plan = planClaim(facts({ claim: claim({ className: 'x' }), storageClass: storageClass('x') }))
  assert.equal(
    plan.event?.message,
    "Waiting for a volume to be created either by the external provisioner 'csi.example.com' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.",
  )
})
