// Where are volumes really? A storage system that attaches whatever it is asked to: it refuses nothing, so that every
// mistake of the parts above shows up as a violated invariant instead of an error.

export interface ModelStorage {
  /** Nodes that hold the volume right now. */
  holders(handle: string): ReadonlySet<string>
  publish(handle: string, node: string): void
  unpublish(handle: string, node: string): void
  readonly published: number
}

export interface StorageObserver {
  onPublish(handle: string, node: string): void
  onUnpublish(handle: string, node: string): void
}

const none: ReadonlySet<string> = new Set()

export function createModelStorage(observer: StorageObserver): ModelStorage {
  const byHandle = new Map<string, Set<string>>()
  return {
    holders: (handle) => byHandle.get(handle) ?? none,
    publish(handle, node) {
      const nodes = byHandle.get(handle) ?? new Set()
      if (nodes.has(node)) return
      observer.onPublish(handle, node)
      byHandle.set(handle, nodes.add(node))
    },
    unpublish(handle, node) {
      const nodes = byHandle.get(handle)
      if (!nodes?.has(node)) return
      observer.onUnpublish(handle, node)
      nodes.delete(node)
      if (nodes.size === 0) byHandle.delete(handle)
    },
    get published() {
      return [...byHandle.values()].reduce((sum, nodes) => sum + nodes.size, 0)
    },
  }
}
