// What must never happen between storage and nodes? Checked at the very moment it would happen.
//
// 1. An exclusive volume is held by one node at most (INV-3, MA-1).
// 2. A volume is taken from a node only while that machine does not have it mounted, unless it was taken by force (INV-1).
// 3. While a volume is being taken, its node's volumesAttached does not name it (INV-2).
// 4. A machine mounts only what the storage has brought to it (the point of K3 and K4 in NSP-2).
// 5. Force is used only on a node that is unhealthy, gone or out of service (FD-2 … FD-4).
import type { Node } from '../../api/generated/types.ts'

export interface AttachmentWatch {
  onPublish(handle: string, node: string): void
  onUnpublish(handle: string, node: string): void
  onMount(node: string, volume: string): void
  /** The controller says it takes the volume by force. */
  onForce(volume: string, node: string): void
  /** The node as the API holds it, right before its volume is taken. */
  beforeUnpublish(handle: string, node: string, live: Node | undefined): void
}

export interface AttachmentWatchDeps {
  volumeOf(handle: string): string
  isExclusive(handle: string): boolean
  holders(handle: string): ReadonlySet<string>
  isMounted(node: string, volume: string): boolean
  /** Was the node cut off, powered off, deleted or tainted lately? */
  wasTroubled(node: string): boolean
  violated(rule: string, details: string): void
}

export function watchAttachments(deps: AttachmentWatchDeps): AttachmentWatch {
  const { volumeOf, isExclusive, holders, isMounted, wasTroubled, violated } = deps
  const forced = new Set<string>()
  const pair = (volume: string, node: string) => `${volume} on ${node}`
  return {
    onPublish(handle, node) {
      forced.delete(pair(volumeOf(handle), node))
      const others = [...holders(handle)].filter((holder) => holder !== node)
      if (isExclusive(handle) && others.length > 0) {
        violated('one writer node', `${handle} goes to ${node} while ${others.join(', ')} holds it`)
      }
    },
    onUnpublish(handle, node) {
      const volume = volumeOf(handle)
      if (isMounted(node, volume) && !forced.has(pair(volume, node))) {
        violated('no detach under a mount', `${handle} is taken from ${node}, which has it mounted`)
      }
    },
    onMount(node, volume) {
      const handle = volume.slice(volume.indexOf('^') + 1)
      if (!holders(handle).has(node)) violated('mount only what is attached', `${node} mounts ${volume}`)
    },
    onForce(volume, node) {
      forced.add(pair(volume, node))
      if (!wasTroubled(node)) violated('force only on lost nodes', `${volume} is forced from ${node}`)
    },
    beforeUnpublish(handle, node, live) {
      const volume = volumeOf(handle)
      if (!live?.status?.volumesAttached?.some(({ name }) => name === volume)) return
      violated('leave volumesAttached first', `${handle} is taken from ${node}, whose status still names it`)
    },
  }
}
