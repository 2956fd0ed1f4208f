// Since when does the control plane call a node lost? Read from the Node objects as they are, not as a controller sees them.
import { findCondition } from '../../api/meta.ts'
import type { Node } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import type { Clock } from '../../clock/clock.ts'

export interface LostNodes extends Disposable {
  /** The last moment at which the API said that this node was not Ready; never, if it never did. */
  lastLost(node: string): number
}

/**
 * Lost is a node whose Ready is False or Unknown, which somebody said after forty silent seconds, and one whose object has
 * never had a Ready, because its agent did not come up since it was made. One whose Ready was there and vanished is not: a
 * controller that uses force then is right by FD-2, but whoever took the Ready away was wrong (seed 1066).
 */
export function followLostNodes(admin: Pick<Client, 'watch'>, clock: Pick<Clock, 'now'>): LostNodes {
  const stopping = new AbortController()
  const lost = new Set<string>()
  const lastLost = new Map<string, number>()
  /** The objects that have had a Ready, by uid. */
  const spoken = new Set<string | undefined>()
  const isLost = ({ metadata: { uid }, status }: Node) => {
    const ready = findCondition(status?.conditions, 'Ready')
    if (ready) spoken.add(uid)
    return ready ? ready.status !== 'True' : !spoken.has(uid)
  }
  const follow = async () => {
    for await (const event of admin.watch('Node', {}, stopping.signal)) {
      if (event.type === 'bookmark') continue
      const { name } = event.object.metadata
      if (event.type !== 'deleted' && isLost(event.object)) lost.add(name)
      else if (lost.delete(name)) lastLost.set(name, clock.now())
    }
  }
  void follow().catch((error: unknown) => {
    if (!stopping.signal.aborted) throw error
  })
  return {
    lastLost: (node) => (lost.has(node) ? clock.now() : (lastLost.get(node) ?? -Infinity)),
    [Symbol.dispose]: () => stopping.abort(new Error('the simulation is over')),
  }
}
