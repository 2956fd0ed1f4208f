// What is a storage capacity? How much of a class is left in a part of the cluster, as a driver reports it.
import type { FieldError } from '../field-errors.ts'
import type { CSIStorageCapacity } from '../generated/types.ts'
import { validateNonNegativeQuantity } from '../validation/common.ts'
import { isSubdomain } from '../validation/formats.ts'
import { checked, unchanged, validateLabelSelector } from '../validation/metadata.ts'
import { capacityWarnings } from '../validation/warnings.ts'
import { defineKind, reading } from './define-kind.ts'
import { column, nameColumn } from './printer.ts'

export const csiStorageCapacityKind = defineKind<CSIStorageCapacity>({
  kind: 'CSIStorageCapacity',
  group: 'storage.k8s.io',
  plural: 'csistoragecapacities',
  scope: 'Namespaced',
  message: 'storage.CSIStorageCapacity',
  description: 'How much storage of a class is left in a part of the cluster.',
  validation: { whole: validateStorageCapacity, change: validateStorageCapacityUpdate },
  warnings: capacityWarnings,
  strategy: { updateNeedsVersion: true },
  access: { controllers: { verbs: [...reading, 'create', 'update', 'patch', 'delete'] } },
  table: {
    columns: [
      nameColumn,
      column('StorageClassName', 'The class this capacity is for.'),
      column('Capacity', 'How much is free.'),
    ],
    cells: (capacity) => [capacity.metadata.name, capacity.storageClassName, capacity.capacity ?? '<unset>'],
  },
})

function validateStorageCapacity(capacity: CSIStorageCapacity): readonly FieldError[] {
  return [
    ...validateLabelSelector(capacity.nodeTopology, 'nodeTopology'),
    ...checked('storageClassName', capacity.storageClassName, isSubdomain),
    ...validateNonNegativeQuantity(capacity.capacity, 'capacity'),
  ]
}

function validateStorageCapacityUpdate(next: CSIStorageCapacity, previous: CSIStorageCapacity): readonly FieldError[] {
  return [
    ...unchanged(next.nodeTopology, previous.nodeTopology, 'nodeTopology'),
    ...unchanged(next.storageClassName, previous.storageClassName, 'storageClassName'),
  ]
}
