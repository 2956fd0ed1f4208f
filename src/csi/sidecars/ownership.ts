// Which instance of a driver does a job? A driver that knows a topology may have an instance on each node: then each claim,
// volume and snapshot has exactly one instance, found from objects that all instances see. Pure, on what the caches hold.
import type { CSINode, Node, PersistentVolume, VolumeSnapshotContent } from '../../api/generated/types.ts'
import { factsOfNode, matchesNodeSelector } from '../../api/node-selector.ts'
import type { Caches } from './fresh-view.ts'

/** Upstream's label for the same purpose. */
export const managedByLabel = 'snapshot.storage.kubernetes.io/managed-by'

export type JobsMode =
  /** The jobs of the whole cluster. */
  | 'all'
  /** The jobs of what lies on this instance's node. */
  | 'own'
  /** Another instance does them, or this one is not registered yet. */
  | 'none'

export interface ModeFacts {
  readonly driver: string
  /** Absent: an instance without a node, which does everything. */
  readonly ownNode: string | undefined
  /** Of a driver without topology, the instance on this node works, if there is one; else the first by name. */
  readonly prefers: string | undefined
  readonly csiNodes: Iterable<CSINode>
}

export function planMode({ driver, ownNode, prefers, csiNodes }: ModeFacts): JobsMode {
  if (ownNode === undefined) return 'all'
  const instances = instancesOf(driver, csiNodes)
  const own = instances.find(({ node }) => node === ownNode)
  if (!own) return 'none'
  if (own.hasTopology) return 'own'
  const chosen = instances.find(({ node }) => node === prefers) ?? instances[0]
  return chosen === own ? 'all' : 'none'
}

export interface Ownership {
  /** A claim for which this node was selected, or none. */
  claim(selectedNode: string | undefined): boolean
  volume(volume: PersistentVolume): boolean
  snapshot(content: VolumeSnapshotContent): boolean
}

const ownsAll: Ownership = { claim: () => true, volume: () => true, snapshot: () => true }

export interface OwnershipFacts {
  readonly driver: string
  readonly ownNode: string
  readonly csiNodes: Iterable<CSINode>
  node(name: string): Node | undefined
  /** The volume of this driver with this handle. */
  volumeOf(handle: string): PersistentVolume | undefined
}

/** Asked anew for each decision: nodes come and go. */
export function ownershipOf(facts: OwnershipFacts): Ownership {
  const { driver, ownNode } = facts
  const names = instancesOf(driver, facts.csiNodes).map(({ node }) => node)
  const [first] = names
  const owner = (volume: PersistentVolume): string | undefined => {
    const required = volume.spec?.nodeAffinity?.required
    if (!required) return first
    // Nobody else may touch it while its node is away.
    return names.find((name) => {
      const node = facts.node(name)
      return node !== undefined && matchesNodeSelector(required, factsOfNode(node))
    })
  }
  return {
    claim: (selected) => (selected !== undefined && names.includes(selected) ? selected : first) === ownNode,
    volume: (volume) => owner(volume) === ownNode,
    snapshot({ metadata, spec }) {
      const manager = metadata.labels?.[managedByLabel]
      if (manager !== undefined) return manager === ownNode
      const volume = spec.source.volumeHandle === undefined ? undefined : facts.volumeOf(spec.source.volumeHandle)
      return (volume ? owner(volume) : first) === ownNode
    },
  }
}

/** From the caches of a job. */
export function ownershipFrom(informers: Caches, driver: string, ownNode: string | undefined): Ownership {
  if (ownNode === undefined) return ownsAll
  const volumes = informers.of('PersistentVolume')
  return ownershipOf({
    driver,
    ownNode,
    csiNodes: informers.of('CSINode').items.values(),
    node: (name) => informers.of('Node').get(name),
    volumeOf: (handle) => {
      for (const each of volumes.items.values())
        if (each.spec?.csi?.driver === driver && each.spec.csi.volumeHandle === handle) return each
      return undefined
    },
  })
}

function instancesOf(driver: string, csiNodes: Iterable<CSINode>) {
  return [...csiNodes]
    .flatMap(({ metadata, spec }) => {
      const entry = spec.drivers.find(({ name }) => name === driver)
      return entry ? [{ node: metadata.name, hasTopology: (entry.topologyKeys ?? []).length > 0 }] : []
    })
    .toSorted((a, b) => (a.node < b.node ? -1 : 1))
}
