// Which volumes are wanted on which nodes, and by which pods? One record per volume (rules ADD-1 … ADD-4).
// A pure reducer: it sees one record and one event, and answers the same record when nothing changed.
import type { NodeName, PodUid, UniqueVolumeName } from '../../api/names.ts'
import type { World } from '../../loop/world.ts'
import { createWorld } from '../../loop/world.ts'
import type { VolumeSpec } from '../../volume/spec.ts'

export interface DesiredVolume {
  readonly volume: UniqueVolumeName
  readonly spec: VolumeSpec
  /** In the order in which they began to want it: the first node of an exclusive volume is served first. */
  readonly nodes: ReadonlyMap<NodeName, WantedOnNode>
}

interface WantedOnNode {
  /** Two PersistentVolumes may name the same storage; each node is served under the name that its pods use (ADD-1). */
  readonly spec: VolumeSpec
  readonly pods: ReadonlyMap<PodUid, PodReference>
  /** When the first pod asked for it here. */
  readonly since: number
  /** The users of this node were told that another node holds the volume (once per wish, MA-4). */
  readonly multiAttachReported: boolean
}

export interface PodReference {
  readonly namespace: string
  readonly name: string
  readonly uid: PodUid
}

export type DesiredEvent =
  | {
      readonly kind: 'wanted'
      readonly volume: UniqueVolumeName
      readonly node: NodeName
      readonly spec: VolumeSpec
      readonly pod: PodReference
      readonly at: number
    }
  | { readonly kind: 'unwanted'; readonly volume: UniqueVolumeName; readonly node: NodeName; readonly pod: PodUid }
  | { readonly kind: 'multiAttachReported'; readonly volume: UniqueVolumeName; readonly node: NodeName }

export type DesiredWorld = World<UniqueVolumeName, DesiredVolume, DesiredEvent>

export function createDesiredWorld(): DesiredWorld {
  return createWorld<UniqueVolumeName, DesiredVolume, DesiredEvent>((event) => event.volume, reduceDesired)
}

export function reduceDesired(item: DesiredVolume | undefined, event: DesiredEvent): DesiredVolume | undefined {
  switch (event.kind) {
    case 'wanted':
      return wanted(item, event)
    case 'unwanted':
      return unwanted(item, event.node, event.pod)
    case 'multiAttachReported': {
      const onNode = item?.nodes.get(event.node)
      if (!item || !onNode || onNode.multiAttachReported) return item
      return withNode(item, event.node, { ...onNode, multiAttachReported: true })
    }
    default:
      return event satisfies never
  }
}

/** A node's first spec stays: a volume's source cannot change while somebody wants it (ADD-2). */
function wanted(
  item: DesiredVolume | undefined,
  { volume, node, spec, pod, at }: Extract<DesiredEvent, { kind: 'wanted' }>,
): DesiredVolume {
  const onNode = item?.nodes.get(node) ?? { spec, pods: new Map(), since: at, multiAttachReported: false }
  if (item && onNode.pods.has(pod.uid)) return item
  const pods = new Map(onNode.pods).set(pod.uid, pod)
  return withNode(item ?? { volume, spec, nodes: new Map() }, node, { ...onNode, pods })
}

/** The last pod takes the node's wish with it, and the last node the volume's (ADD-3). */
function unwanted(item: DesiredVolume | undefined, node: NodeName, pod: PodUid): DesiredVolume | undefined {
  const onNode = item?.nodes.get(node)
  if (!item || !onNode?.pods.has(pod)) return item
  const pods = new Map(onNode.pods)
  pods.delete(pod)
  if (pods.size > 0) return withNode(item, node, { ...onNode, pods })
  const nodes = new Map(item.nodes)
  nodes.delete(node)
  return nodes.size === 0 ? undefined : { ...item, nodes }
}

function withNode(item: DesiredVolume, node: NodeName, onNode: WantedOnNode): DesiredVolume {
  return { ...item, nodes: new Map(item.nodes).set(node, onNode) }
}
