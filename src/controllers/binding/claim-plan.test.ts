// Every branch of claim sync as a table: facts in, decision, rule, event and reason to wait out.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolume } from '../../api/types.ts'
import { claim, pod, storageClass, volume } from '../../../test/claims/make.ts'
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

/** `action rule event reason`, with `-` for nothing. */
function told(rest: Partial<ClaimFacts>): string {
  const { action, rule, event, waiting } = planClaim(facts(rest))
  const detail =
    'volume' in action ? ` ${action.volume.metadata.name}` : 'provisioner' in action ? ` ${action.provisioner}` : ''
  return [
    action.kind + detail,
    rule,
    event === undefined ? '-' : `${event.type} ${event.reason}`,
    waiting[0]?.reason ?? '-',
  ].join(' | ')
}

const table: readonly [string, Partial<ClaimFacts>, string][] = [
  ['CLM-6 T-1: a match is bound', free(volume()), 'bind v | CLM-6 | - | -'],
  [
    'CLM-2 T-2: phase Bound without the mark is still unbound',
    { claim: claim({ phase: 'Bound' }) },
    'markPending | CLM-8c | Normal FailedBinding | noVolumeFits',
  ],
  [
    'CLM-3: a terminating claim is bound like any other',
    { claim: claim({ deleting: true }), ...free(volume()) },
    'bind v | CLM-6 | - | -',
  ],
  [
    'W-17: a volume in flight is waited for',
    { ...free(volume()), isBusy: () => true },
    'waitForVolume v | W-17 | - | volumeBusy',
  ],
  [
    'CLM-4: a class without binding mode is an error',
    { claim: claim({ className: 'x' }), storageClass: { metadata: { name: 'x' }, provisioner: 'p' } },
    'fail | CLM-4 | - | retrying',
  ],
  [
    'CLM-7 CLM-9 T-43: no match, the default class is taken',
    { claim: claim({ className: null }), defaultClass: storageClass('std') },
    'assignClass | CLM-9 | - | -',
  ],
  [
    'CLM-9: "" is a decision',
    { claim: claim(), defaultClass: storageClass('std') },
    'markPending | CLM-8c | Normal FailedBinding | noVolumeFits',
  ],
  [
    'CLM-9 T-43: so is the beta annotation',
    {
      claim: claim({ className: null, annotations: { 'volume.beta.kubernetes.io/storage-class': '' } }),
      defaultClass: storageClass('std'),
    },
    'markPending | CLM-8c | Normal FailedBinding | noVolumeFits',
  ],
  [
    'CLM-8a CLM-10 T-8: delayed, nobody uses it',
    { claim: claim({ className: 'late' }), storageClass: late },
    'markPending | CLM-8a | Normal WaitForFirstConsumer | firstConsumer',
  ],
  [
    'CLM-8a CLM-10: delayed, a pod waits',
    { claim: claim({ className: 'late' }), storageClass: late, unscheduledPods: () => [pod('p')] },
    'markPending | CLM-8a | Normal WaitForPodScheduled | podUnscheduled',
  ],
  [
    'CLM-8b T-12 T-41: delayed with a node: provision',
    { claim: claim({ className: 'late', annotations: selected }), storageClass: late },
    'askProvisioner example.com/csi | PRV-4 | Normal ExternalProvisioning | externalProvisioner',
  ],
  [
    'CLM-8b PRV-2 T-35: the class is missing',
    { claim: claim({ className: 'x' }) },
    'leave | PRV-2 | Warning ProvisioningFailed | classMissing',
  ],
  [
    'PRV-1 CTL-10: provisioning is off',
    { claim: claim({ className: 'x' }), provisioningEnabled: false },
    'leave | PRV-1 | - | provisioningDisabled',
  ],
  [
    'PRV-2 T-35: no such in-tree plugin',
    {
      claim: claim({ className: 'x' }),
      storageClass: storageClass('x', { provisioner: 'kubernetes.io/no-provisioner' }),
    },
    'leave | PRV-2 | Warning ProvisioningFailed | noProvisioner',
  ],
  [
    'PRV-2 PRV-8 T-34: one of our plugins',
    {
      claim: claim({ className: 'x' }),
      storageClass: storageClass('x', { provisioner: 'kubernetes.io/disk' }),
      canProvision: () => true,
    },
    'provision | PRV-8 | - | provisioning',
  ],
  [
    'W-11: nothing is made for a claim that goes away',
    {
      claim: claim({ className: 'x', deleting: true }),
      storageClass: storageClass('x', { provisioner: 'kubernetes.io/disk' }),
      canProvision: () => true,
    },
    'leave | W-11 | - | provisioningDisabled',
  ],
  [
    'PRV-4 T-42: a migrated provisioner is asked by its new name',
    {
      claim: claim({ className: 'x' }),
      storageClass: storageClass('x', { provisioner: 'kubernetes.io/aws-ebs' }),
      canProvision: () => true,
    },
    'askProvisioner ebs.csi.aws.com | PRV-4 | Normal ExternalProvisioning | externalProvisioner',
  ],
  [
    'CLM-11 T-13: the named volume is missing',
    { claim: claim({ volumeName: 'v', phase: 'Bound' }) },
    'markPending | CLM-11 | - | namedVolumeMissing',
  ],
  [
    'CLM-12 T-9 T-16: named and fitting',
    { claim: claim({ volumeName: 'v' }), namedVolume: volume({ size: '10Gi' }) },
    'bind v | CLM-12 | - | -',
  ],
  [
    'CLM-12 T-10: named and lacking a mode',
    { claim: claim({ volumeName: 'v', modes: ['ReadWriteMany'] }), namedVolume: volume() },
    'markPending | CLM-12 | Warning VolumeMismatch | namedVolumeUnfit',
  ],
  [
    'CLM-13 T-14: both name each other, nothing is checked',
    {
      claim: claim({ volumeName: 'v', request: '9Gi', className: 'x' }),
      namedVolume: volume({ claimRef: { name: 'c' } }),
    },
    'bind v | CLM-13 | - | -',
  ],
  [
    'CLM-14 T-15: it belongs to somebody else',
    { claim: claim({ volumeName: 'v' }), namedVolume: volume({ claimRef: { name: 'd', uid: 'x' } }) },
    'markPending | CLM-14 | Warning FailedBinding | namedVolumeTaken',
  ],
  [
    'CLM-15 T-15: the same after our own bind is an error',
    {
      claim: claim({ volumeName: 'v', annotations: ours }),
      namedVolume: volume({ claimRef: { name: 'd', uid: 'x' } }),
    },
    'fail | CLM-15 | Warning FailedBinding | namedVolumeTaken',
  ],
  [
    'CLM-16 T-17: bound, but to nothing',
    { claim: claim({ annotations: done }) },
    'markLost | CLM-16 | Warning ClaimLost | volumeLost',
  ],
  [
    'CLM-17 T-17 REC-11: bound, the volume is gone',
    { claim: claim({ volumeName: 'v', annotations: done }) },
    'markLost | CLM-17 | Warning ClaimLost | volumeLost',
  ],
  [
    'CLM-18 CLM-22 T-18: the volume forgot us: bind again',
    {
      claim: claim({
        volumeName: 'v',
        annotations: done,
        phase: 'Lost',
        spec: { selector: { matchLabels: { a: 'b' } } },
      }),
      namedVolume: volume(),
    },
    'bind v | CLM-18 | - | -',
  ],
  [
    'CLM-19 T-6 T-20: right pair, finish the bind',
    {
      claim: claim({ volumeName: 'v', annotations: done }),
      namedVolume: volume({ claimRef: { name: 'c', uid: 'uid-c' } }),
    },
    'bind v | CLM-19 | - | -',
  ],
  [
    'CLM-20 T-19: the volume has another uid',
    {
      claim: claim({ volumeName: 'v', annotations: done }),
      namedVolume: volume({ claimRef: { name: 'c', uid: 'other' } }),
    },
    'markLost | CLM-20 | Warning ClaimMisbound | misbound',
  ],
  [
    'CLM-20: or none',
    { claim: claim({ volumeName: 'v', annotations: done }), namedVolume: volume({ claimRef: { name: 'c' } }) },
    'markLost | CLM-20 | Warning ClaimMisbound | misbound',
  ],
]

for (const [name, given, expected] of table) test(name, () => assert.equal(told(given), expected))

test('CLM-5: an error of the search is an error of the look', () => {
  const broken = () => {
    throw new Error('invalid selector')
  }
  assert.throws(() => planClaim(facts({ findVolume: broken })), /invalid selector/)
})

test('CLM-10: several pods are named in one sentence, without their namespace', () => {
  const plan = planClaim(
    facts({ claim: claim({ className: 'late' }), storageClass: late, unscheduledPods: () => [pod('b'), pod('a')] }),
  )
  assert.equal(plan.event?.message, 'waiting for pods a,b to be scheduled')
})

test('PRV-5: the sentence that users know', () => {
  const plan = planClaim(facts({ claim: claim({ className: 'x' }), storageClass: storageClass('x') }))
  assert.equal(
    plan.event?.message,
    "Waiting for a volume to be created either by the external provisioner 'example.com/csi' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.",
  )
})
