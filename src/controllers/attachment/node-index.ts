// Which volumes concern this node? Kept beside the worlds, so that a Node's event costs what that node has to do with,
// and nothing more.
import type { NodeName, UniqueVolumeName } from '../../api/names.ts'
import type { AttachedVolume } from '../../api/generated/types.ts'
import type { ActualWorld } from './actual.ts'
import type { DesiredWorld } from './desired.ts'
import type { AttachmentWaiting } from './plan.ts'

export interface NodeIndex {
  /** node.status.volumesAttached as it should be. */
  reported(node: NodeName): readonly AttachedVolume[]
  attachedTo(node: NodeName): Iterable<UniqueVolumeName>
  /** Is anything wanted on, or attached to, this node? */
  concerns(node: NodeName): boolean
  /** Remembers which nodes' words the volume waits for. */
  waitsOn(volume: UniqueVolumeName, waiting: readonly AttachmentWaiting[]): void
  waitingFor(node: NodeName): Iterable<UniqueVolumeName>
}

type Sets = Map<NodeName, Set<UniqueVolumeName>>

export function createNodeIndex(desired: DesiredWorld, actual: ActualWorld): NodeIndex {
  const wanted: Sets = new Map()
  const present: Sets = new Map()
  const waited: Sets = new Map()
  const waitsFor = new Map<UniqueVolumeName, ReadonlySet<NodeName>>()
  desired.subscribe((volume, { node }) =>
    put(wanted, node, volume, desired.items.get(volume)?.nodes.has(node) === true),
  )
  actual.subscribe((volume, { node }) => put(present, node, volume, actual.items.get(volume)?.nodes.has(node) === true))
  return {
    reported(node) {
      const list: AttachedVolume[] = []
      for (const volume of present.get(node) ?? []) {
        const onNode = actual.items.get(volume)?.nodes.get(node)
        if (onNode?.reported) list.push({ name: volume, devicePath: onNode.devicePath })
      }
      return list.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    },
    attachedTo: (node) => present.get(node) ?? [],
    concerns: (node) => wanted.has(node) || present.has(node),
    waitsOn(volume, waiting) {
      const before = waitsFor.get(volume)
      if (before === undefined && waiting.length === 0) return
      const after = new Set(waiting.filter(({ reason }) => isAboutUse(reason)).map(({ node }) => node))
      for (const node of before ?? []) if (!after.has(node)) put(waited, node, volume, false)
      for (const node of after) put(waited, node, volume, true)
      if (after.size > 0) waitsFor.set(volume, after)
      else waitsFor.delete(volume)
    },
    waitingFor: (node) => [...(waited.get(node) ?? [])],
  }
}

/** Reasons that a word of the node can end. */
function isAboutUse(reason: AttachmentWaiting['reason']): boolean {
  return reason === 'inUse' || reason === 'inUseOnUnhealthyNode' || reason === 'forceDetachDisabled'
}

function put(sets: Sets, node: NodeName, volume: UniqueVolumeName, member: boolean): void {
  const set = sets.get(node)
  if (member) {
    if (set) set.add(volume)
    else sets.set(node, new Set([volume]))
    return
  }
  set?.delete(volume)
  if (set?.size === 0) sets.delete(node)
}
