// What is a claim? Its rules and defaults are shared with claim templates in pods: validation/claim.ts, defaults/claim.ts.
import { accessModesText } from '../access-modes.ts'
import { withConditionTimes } from '../defaults/absent.ts'
import { defaultClaimSpec } from '../defaults/claim.ts'
import type { PersistentVolumeClaim } from '../generated/types.ts'
import { classOf } from '../storage-class.ts'
import { validateClaim, validateClaimStatusUpdate, validateClaimUpdate } from '../validation/claim.ts'
import { claimWarnings } from '../validation/warnings.ts'
import { age } from './age.ts'
import { defineKind, reading, statusOf, statusVerbs } from './define-kind.ts'
import { ageColumn, column, nameColumn, wideColumn } from './printer.ts'

export const persistentVolumeClaimKind = defineKind<PersistentVolumeClaim>({
  kind: 'PersistentVolumeClaim',
  group: '',
  plural: 'persistentvolumeclaims',
  scope: 'Namespaced',
  shortNames: ['pvc'],
  subresources: [statusOf('PersistentVolumeClaim')],
  message: 'core.PersistentVolumeClaim',
  description: 'A user asks for storage; the claim is bound to a volume that satisfies it.',
  fieldDescriptions: {
    PersistentVolumeClaimSpec: 'What kind of volume is wanted.',
    'PersistentVolumeClaimSpec.accessModes':
      'How the volume must be mountable: ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod.',
    'PersistentVolumeClaimSpec.resources': 'The least size; it may be raised later if the class allows it.',
    'PersistentVolumeClaimSpec.selector': 'Only volumes with these labels are considered.',
    'PersistentVolumeClaimSpec.storageClassName':
      'The class of volume; "" asks for a volume without class, nothing for the default class.',
    'PersistentVolumeClaimSpec.volumeMode': 'Filesystem (the default) or Block.',
    'PersistentVolumeClaimSpec.volumeName': 'The volume that the claim is bound to.',
    'PersistentVolumeClaimSpec.dataSource': 'The snapshot or claim whose content the new volume starts with.',
    'PersistentVolumeClaimSpec.dataSourceRef': 'Like dataSource, for any kind of object.',
    'PersistentVolumeClaimSpec.volumeAttributesClassName':
      'The class of changeable attributes that the volume should have.',
    PersistentVolumeClaimStatus: 'What the claim has got; written by the controllers.',
    'PersistentVolumeClaimStatus.capacity': 'The size of the bound volume.',
    'PersistentVolumeClaimStatus.accessModes': 'The access modes of the bound volume.',
  },
  defaults: defaultClaim,
  validation: { whole: validateClaim, change: validateClaimUpdate, status: validateClaimStatusUpdate },
  warnings: claimWarnings,
  strategy: {
    deleteAnswersObject: true,
    protectionFinalizer: 'kubernetes.io/pvc-protection',
    initialStatus: () => ({ phase: 'Pending' }),
    statusWrite: (status) => ({ ...status, phase: status?.['phase'] ?? 'Pending' }),
  },
  // The node reports finished expansions in the claim's status.
  access: {
    controllers: { verbs: [...reading, 'create', 'update', 'patch'], subresources: { status: statusVerbs } },
    nodes: { may: 'usedByPods', as: 'claims', writes: 'status' },
  },
  table: {
    columns: [
      nameColumn,
      column('Status', 'The phase of the claim.'),
      column('Volume', 'The volume that the claim is bound to.'),
      column('Capacity', 'The size of that volume.'),
      column('Access Modes', 'How that volume may be mounted.'),
      column('StorageClass', 'The class the claim asks for.'),
      column('VolumeAttributesClass', 'The class of mutable attributes the claim asks for.'),
      ageColumn,
      wideColumn('VolumeMode', 'Filesystem or Block.'),
    ],
    cells(claim, now) {
      const { spec, status, metadata } = claim
      const named = (spec?.volumeName ?? '') !== ''
      return [
        metadata.name,
        metadata.deletionTimestamp !== undefined ? 'Terminating' : (status?.phase ?? ''),
        spec?.volumeName ?? '',
        named ? (status?.capacity?.['storage'] ?? '0') : '',
        named ? accessModesText(status?.accessModes) : '',
        classOf(claim),
        spec?.volumeAttributesClassName ?? '<unset>',
        age(metadata.creationTimestamp, now),
        spec?.volumeMode ?? '<unset>',
      ]
    },
  },
})

function defaultClaim(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  return { ...withConditionTimes(claim, ['lastProbeTime', 'lastTransitionTime']), spec: defaultClaimSpec(claim.spec) }
}
