// Every branch of a modification as a table.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { PersistentVolume, PersistentVolumeClaim, VolumeAttributesClass } from '../../api/generated/types.ts'
import { planModify } from './modify-plan.ts'

type Status = NonNullable<PersistentVolumeClaim['status']>
const claim = (wanted: string | undefined, status: Partial<Status> = {}): PersistentVolumeClaim => ({
  metadata: { name: 'c', namespace: 'ns' },
  spec: { ...(wanted === undefined ? {} : { volumeAttributesClassName: wanted }) },
  status: { phase: 'Bound', ...status },
})
const volume: PersistentVolume = { metadata: { name: 'v' }, spec: { csi: { driver: 'd', volumeHandle: 'h' } } }
const classes = new Map<string, VolumeAttributesClass>(
  [
    ['gold', 'd'],
    ['silver', 'd'],
    ['alien', 'x'],
  ].map(([name = '', driverName = '']) => [name, { metadata: { name }, driverName, parameters: { tier: name } }]),
)
const inProgress = (name: string) => ({
  modifyVolumeStatus: { targetVolumeAttributesClassName: name, status: 'InProgress' as const },
})

const table: readonly [string, PersistentVolumeClaim, string, { wasRefused?: boolean; volume?: undefined }?][] = [
  [
    'a claim with the class it wants is left alone',
    claim('gold', { currentVolumeAttributesClassName: 'gold' }),
    'nothing',
  ],
  ['another class is applied (SIDE-39)', claim('gold'), 'modify gold'],
  ['not before the claim is bound', claim('gold', { phase: 'Pending' }), 'nothing'],
  ['nor to another driver’s volume', claim('gold'), 'nothing', { volume: undefined }],
  ['a class that does not exist is waited for (MOD-1)', claim('lead'), 'postpone lead'],
  ['one of another driver is refused (E4)', claim('alien'), 'refuse alien'],
  ['what is in progress is finished first (MOD-3)', claim('gold', inProgress('silver')), 'modify silver'],
  ['unless it was refused for good', claim('gold', inProgress('silver')), 'modify gold', { wasRefused: true }],
  ['also when the claim wants no class any more', claim(undefined, inProgress('silver')), 'modify silver'],
  [
    'a change that was only announced is cancelled',
    claim(undefined, {
      currentVolumeAttributesClassName: 'gold',
      conditions: [{ type: 'ModifyingVolume', status: 'True' }],
    }),
    'cancel',
  ],
  ['once', claim(undefined, { currentVolumeAttributesClassName: 'gold' }), 'nothing'],
]
for (const [name, given, expected, rest = {}] of table) {
  test(name, () => {
    const facts = {
      claim: given,
      volume,
      driver: 'd',
      wasRefused: false,
      attributesClass: (each: string) => classes.get(each),
    }
    const plan = planModify({ ...facts, ...rest })
    assert.equal('target' in plan ? `${plan.kind} ${plan.target}` : plan.kind, expected)
  })
}
