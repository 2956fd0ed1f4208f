// Which pods does the server itself have in a namespace? One list is shared by all claims that ask at the same time,
// but never with a claim that is newer than the list (WC-8, WC-30).
import type { PersistentVolumeClaim, Pod } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import { versionNumber, versionOf } from '../../client/versions.ts'

export interface PodLists {
  /** Pods of the claim's namespace, as of a version not older than the claim's. */
  since(claim: PersistentVolumeClaim, signal: AbortSignal): Promise<readonly Pod[]>
}

export function createPodLists(client: Client): PodLists {
  const running = new Map<string, Promise<{ readonly items: readonly Pod[]; readonly resourceVersion: string }>>()
  const list = (namespace: string, signal: AbortSignal) => {
    const known = running.get(namespace)
    if (known !== undefined) return known
    const listed = client.list('Pod', { namespace }, signal).finally(() => running.delete(namespace))
    running.set(namespace, listed)
    return listed
  }
  return {
    async since(claim, signal) {
      const namespace = claim.metadata.namespace ?? ''
      for (;;) {
        const { items, resourceVersion } = await list(namespace, signal)
        if (versionNumber(resourceVersion) >= versionOf(claim)) return items
        signal.throwIfAborted()
      }
    },
  }
}
