// Which CSIStorageCapacity objects should there be, and what must be done about one of them? Pure (SIDE-50).
import { createHash } from 'node:crypto'
import type { CSINode, CSIStorageCapacity, Node, StorageClass } from '../../api/generated/types.ts'
import { quantityOfBytes } from '../../api/quantity.ts'
import type { Segments } from '../values.ts'
import { allSegments } from './topology.ts'

/** One class in one segment of the topology; undefined when the driver knows no topology. */
export interface Place {
  readonly storageClass: StorageClass
  readonly segment: Segments | undefined
}

export interface PlacesFacts {
  readonly driver: string
  readonly hasTopology: boolean
  readonly classes: Iterable<StorageClass>
  readonly nodes: readonly Node[]
  readonly csiNodes: readonly CSINode[]
  /** Set when each node runs its own instance: only its own segment counts. */
  readonly ownNode?: string
}

/** The objects that should exist, by name. */
export function placesOf(facts: PlacesFacts): ReadonlyMap<string, Place> {
  const { driver, csiNodes, ownNode } = facts
  const nodes = facts.nodes.filter(({ metadata }) => ownNode === undefined || metadata.name === ownNode)
  const segments = facts.hasTopology ? allSegments({ driver, nodes, csiNodes }, undefined) : [undefined]
  const places = new Map<string, Place>()
  for (const storageClass of facts.classes) {
    if (storageClass.provisioner !== driver || storageClass.volumeBindingMode !== 'WaitForFirstConsumer') continue
    for (const segment of segments)
      places.set(nameFor(driver, storageClass.metadata.name, segment), { storageClass, segment })
  }
  return places
}

function nameFor(driver: string, storageClass: string, segment: Segments | undefined): string {
  const text = JSON.stringify([driver, storageClass, segment ?? null])
  return `csisc-${createHash('sha256').update(text).digest('hex').slice(0, 20)}`
}

export interface Owner {
  readonly driver: string
  /** Where the objects live. */
  readonly namespace: string
  /** Whose objects they are; another instance's are left alone. */
  readonly managedBy: string
}

const driverLabel = 'csi.storage.k8s.io/drivername'
const managerLabel = 'csi.storage.k8s.io/managed-by'

export function isOwn(
  { metadata }: CSIStorageCapacity,
  { driver, managedBy }: Pick<Owner, 'driver' | 'managedBy'>,
): boolean {
  return metadata.labels?.[driverLabel] === driver && metadata.labels?.[managerLabel] === managedBy
}

export type CapacityPlan = { readonly kind: 'nothing' | 'remove' } | { readonly kind: 'ask'; readonly place: Place }

export function planCapacity(
  present: CSIStorageCapacity | undefined,
  place: Place | undefined,
  owner: Owner,
): CapacityPlan {
  if (place) return { kind: 'ask', place }
  return { kind: present && isOwn(present, owner) ? 'remove' : 'nothing' }
}

export interface Answer {
  readonly availableBytes: bigint
  readonly maximumVolumeBytes?: bigint | undefined
}

export function capacityObject(
  name: string,
  { storageClass, segment }: Place,
  { availableBytes, maximumVolumeBytes }: Answer,
  { driver, namespace, managedBy }: Owner,
): CSIStorageCapacity {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIStorageCapacity',
    metadata: { name, namespace, labels: { [driverLabel]: driver, [managerLabel]: managedBy } },
    storageClassName: storageClass.metadata.name,
    nodeTopology: segment ? { matchLabels: segment.segments } : {},
    capacity: quantityOfBytes(availableBytes),
    ...(maximumVolumeBytes !== undefined && { maximumVolumeSize: quantityOfBytes(maximumVolumeBytes) }),
  }
}

/** The present object with the wanted sizes; the same object when they are equal. */
export function withCapacity(present: CSIStorageCapacity, wanted: CSIStorageCapacity): CSIStorageCapacity {
  if (present.capacity === wanted.capacity && present.maximumVolumeSize === wanted.maximumVolumeSize) return present
  const { maximumVolumeSize: _old, ...rest } = present
  return {
    ...rest,
    ...(wanted.capacity !== undefined && { capacity: wanted.capacity }),
    ...(wanted.maximumVolumeSize !== undefined && { maximumVolumeSize: wanted.maximumVolumeSize }),
  }
}
