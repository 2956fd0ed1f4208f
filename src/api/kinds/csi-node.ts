// What is a CSINode? The drivers that run on a node; the node itself keeps the list.
import { invalid, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { CSINode, CSINodeDriver } from '../generated/types.ts'
import { validateDriverName } from '../validation/common.ts'
import { immutable, isQualifiedName, notNegative } from '../validation/formats.ts'
import { checked, duplicates, sameData } from '../validation/metadata.ts'
import { age } from './age.ts'
import { defineKind, reading, statusOf } from './define-kind.ts'
import { ageColumn, column, nameColumn } from './printer.ts'

const largestNodeId = 256

export const csiNodeKind = defineKind<CSINode>({
  kind: 'CSINode',
  group: 'storage.k8s.io',
  plural: 'csinodes',
  scope: 'Cluster',
  subresources: [statusOf('CSINode')],
  message: 'storage.CSINode',
  description: 'The CSI drivers that run on a node.',
  fieldDescriptions: {
    'CSINodeSpec.drivers': 'The drivers that are registered on the node.',
  },
  validation: { whole: validateCsiNode, change: validateCsiNodeUpdate, metadataErrorsOnce: true },
  strategy: { updateNeedsVersion: true, deleteAnswersObject: true },
  access: { controllers: { verbs: reading }, nodes: { may: 'ownName' } },
  table: {
    columns: [nameColumn, column('Drivers', 'The number of drivers on the node.', 'integer'), ageColumn],
    cells: (node, now) => [
      node.metadata.name,
      (node.spec.drivers ?? []).length,
      age(node.metadata.creationTimestamp, now),
    ],
  },
})

function validateCsiNode(node: CSINode): readonly FieldError[] {
  const drivers = node.spec.drivers
  return [
    ...drivers.flatMap((driver, index) => validateNodeDriver(driver, `spec.drivers[${index}]`)),
    ...duplicates(
      drivers.map(({ name }) => name),
      (index) => `spec.drivers[${index}].name`,
    ),
  ]
}

function validateNodeDriver(driver: CSINodeDriver, path: string): readonly FieldError[] {
  const { name, nodeID, topologyKeys = [], allocatable } = driver
  const count = allocatable?.count
  return [
    ...validateDriverName(name, `${path}.name`),
    ...(nodeID === '' ? [required(`${path}.nodeID`)] : []),
    ...(nodeID.length > largestNodeId
      ? [invalid(`${path}.nodeID`, nodeID, `must be ${largestNodeId} characters or less`)]
      : []),
    ...(count !== undefined && count < 0 ? [invalid(`${path}.allocatable.count`, count, notNegative)] : []),
    ...topologyKeys.flatMap((key) => [...(key === '' ? [required(path)] : []), ...checked(path, key, isQualifiedName)]),
    ...duplicates(topologyKeys, () => path),
  ]
}

/** A driver that stays may only change how much it can take. */
function validateCsiNodeUpdate(next: CSINode, previous: CSINode): readonly FieldError[] {
  const before = new Map(previous.spec.drivers.map((driver) => [driver.name, driver]))
  return next.spec.drivers.flatMap((driver) => {
    const { name, nodeID, topologyKeys } = driver
    const old = before.get(name)
    if (old === undefined || (old.nodeID === nodeID && sameData(old.topologyKeys, topologyKeys))) return []
    // The value is shown with the member names of Go's internal type.
    const value = { Name: name, NodeID: nodeID, TopologyKeys: topologyKeys ?? null, Allocatable: null }
    return [invalid('spec.drivers', value, immutable)]
  })
}
