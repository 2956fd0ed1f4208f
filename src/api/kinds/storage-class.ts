// What is a storage class? It names who makes volumes and how; nearly nothing of it may change.
import { duplicate, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { StorageClass, TopologySelectorTerm } from '../generated/types.ts'
import { isDefaultClass } from '../storage-class.ts'
import { forbidChange, validateParameters, validateQualified } from '../validation/common.ts'
import { isQualifiedName } from '../validation/formats.ts'
import { checked, duplicates, repeated, unchanged } from '../validation/metadata.ts'
import { storageClassWarnings } from '../validation/warnings.ts'
import { age } from './age.ts'
import { defineKind, reading } from './define-kind.ts'
import { ageColumn, column, nameColumn } from './printer.ts'

export const storageClassKind = defineKind<StorageClass>({
  kind: 'StorageClass',
  group: 'storage.k8s.io',
  plural: 'storageclasses',
  scope: 'Cluster',
  shortNames: ['sc'],
  message: 'storage.StorageClass',
  description: 'A kind of storage that can be asked for, and who makes it.',
  fieldDescriptions: {
    'StorageClass.provisioner': 'Who makes the volumes of this class.',
    'StorageClass.reclaimPolicy': 'The reclaim policy of the volumes made: Delete (the default) or Retain.',
    'StorageClass.volumeBindingMode': 'Immediate (the default), or WaitForFirstConsumer to wait for a pod.',
    'StorageClass.allowVolumeExpansion': 'Whether claims of this class may grow.',
    'StorageClass.mountOptions': 'The mount options of the volumes made.',
    'StorageClass.allowedTopologies': 'Where volumes of this class may be made.',
  },
  defaults: (storageClass) => ({ reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate', ...storageClass }),
  validation: { whole: validateClass, change: validateClassUpdate },
  warnings: storageClassWarnings,
  strategy: { deleteAnswersObject: true },
  access: { controllers: { verbs: reading }, nodes: { may: 'readAll' } },
  table: {
    columns: [
      nameColumn,
      column('Provisioner', 'Who makes the volumes.'),
      column('ReclaimPolicy', 'The reclaim policy of the volumes made.'),
      column('VolumeBindingMode', 'When claims are bound.'),
      column('AllowVolumeExpansion', 'Whether claims may grow.'),
      ageColumn,
    ],
    cells: (storageClass, now) => [
      isDefaultClass(storageClass) ? `${storageClass.metadata.name} (default)` : storageClass.metadata.name,
      storageClass.provisioner,
      storageClass.reclaimPolicy ?? 'Delete',
      storageClass.volumeBindingMode ?? 'Immediate',
      storageClass.allowVolumeExpansion ?? false,
      age(storageClass.metadata.creationTimestamp, now),
    ],
  },
})

function validateClass(storageClass: StorageClass): readonly FieldError[] {
  const { reclaimPolicy: policy, volumeBindingMode: mode } = storageClass
  const policies = ['Delete', 'Retain']
  const modes = ['Immediate', 'WaitForFirstConsumer']
  return [
    ...validateQualified(storageClass.provisioner, 'provisioner'),
    ...validateParameters(storageClass.parameters, 'parameters'),
    ...(policy && !policies.includes(policy) ? [notSupported('reclaimPolicy', policy, policies)] : []),
    ...(mode === undefined ? [required('volumeBindingMode')] : []),
    ...(mode !== undefined && !modes.includes(mode) ? [notSupported('volumeBindingMode', mode, modes)] : []),
    ...validateTopologies(storageClass.allowedTopologies ?? [], 'allowedTopologies'),
  ]
}

function validateClassUpdate(next: StorageClass, previous: StorageClass): readonly FieldError[] {
  return [
    ...forbidChange(next.parameters, previous.parameters, 'parameters'),
    ...forbidChange(next.provisioner, previous.provisioner, 'provisioner'),
    ...forbidChange(next.reclaimPolicy, previous.reclaimPolicy, 'reclaimPolicy'),
    ...unchanged(next.volumeBindingMode, previous.volumeBindingMode, 'volumeBindingMode'),
  ]
}

function validateTopologies(terms: readonly TopologySelectorTerm[], path: string): readonly FieldError[] {
  const twins = new Set(repeated(terms.map((term) => JSON.stringify(term))))
  return terms.flatMap((term, termIndex) => {
    const at = `${path}[${termIndex}]`
    const expressions = term.matchLabelExpressions ?? []
    const keys = expressions.map(({ key }) => key)
    return [
      ...expressions.flatMap(({ key, values }, index) => {
        const here = `${at}.matchLabelExpressions[${index}]`
        return [
          ...((values ?? []).length === 0 ? [required(`${here}.values`)] : []),
          ...duplicates(values ?? [], (valueIndex) => `${here}.values[${valueIndex}]`),
          ...checked(`${here}.key`, key, isQualifiedName),
        ]
      }),
      ...duplicates(keys, (index) => `${at}.matchLabelExpressions[${index}].key`),
      ...(twins.has(termIndex) ? [duplicate(`${at}.matchLabelExpressions`, '')] : []),
    ]
  })
}
