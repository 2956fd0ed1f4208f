// What is a volume attributes class? Parameters of a volume that may change while it is in use.
import { required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { VolumeAttributesClass } from '../generated/types.ts'
import { forbidChange, validateParameters, validateQualified } from '../validation/common.ts'
import { age } from './age.ts'
import { defineKind, reading } from './define-kind.ts'
import { ageColumn, column, nameColumn } from './printer.ts'

export const volumeAttributesClassKind = defineKind<VolumeAttributesClass>({
  kind: 'VolumeAttributesClass',
  group: 'storage.k8s.io',
  plural: 'volumeattributesclasses',
  scope: 'Cluster',
  shortNames: ['vac'],
  message: 'storage.VolumeAttributesClass',
  description: 'Parameters of a volume that may change while it is in use.',
  validation: { whole: validateAttributesClass, change: validateAttributesClassUpdate },
  strategy: { deleteAnswersObject: true, protectionFinalizer: 'kubernetes.io/vac-protection' },
  access: { controllers: { verbs: [...reading, 'update', 'patch'] } },
  table: {
    columns: [nameColumn, column('DriverName', 'The driver that knows the parameters.'), ageColumn],
    cells: (attributesClass, now) => [
      attributesClass.metadata.name,
      attributesClass.driverName,
      age(attributesClass.metadata.creationTimestamp, now),
    ],
  },
})

function validateAttributesClass(attributesClass: VolumeAttributesClass): readonly FieldError[] {
  const empty = Object.keys(attributesClass.parameters ?? {}).length === 0
  return [
    ...validateQualified(attributesClass.driverName, 'driverName'),
    ...(empty ? [required('parameters', 'must contain at least one key/value pair')] : []),
    ...validateParameters(attributesClass.parameters, 'parameters'),
  ]
}

function validateAttributesClassUpdate(
  next: VolumeAttributesClass,
  previous: VolumeAttributesClass,
): readonly FieldError[] {
  return [
    ...forbidChange(next.driverName, previous.driverName, 'driverName'),
    ...forbidChange(next.parameters, previous.parameters, 'parameters'),
  ]
}
