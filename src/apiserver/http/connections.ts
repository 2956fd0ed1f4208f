// How many connections does a listener keep? As many as its limit. When there is one more, the one that has rested longest is
// closed for it: whoever only holds connections open keeps nobody out. If all of them are at work, the new one is told to come back.

interface Peer {
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
}

/** As much of a socket as is needed here. */
interface Connection extends Peer {
  destroy(): unknown
  on(event: 'close', listener: () => void): unknown
}

interface Connections<C> {
  add(socket: C): void
  /** A request or a stream begins on the connection of this peer; call the answer when it is over. */
  begin(peer: string): () => void
  /** Whether the connection of this peer is one too many. */
  isSurplus(peer: string): boolean
  all(): MapIterator<C>
}

/** The same on a socket and on the encrypted one above it. */
export const peerOf = ({ remoteAddress, remotePort }: Peer): string => `${remoteAddress} ${remotePort}`

export function createConnections<C extends Connection>(limit: number): Connections<C> {
  /** In the order in which they last had something to do. */
  const open = new Map<string, C>()
  const atWork = new Map<string, number>()
  const surplus = new Set<string>()
  const closeResting = (): boolean => {
    for (const [peer, socket] of open) {
      if (atWork.has(peer)) continue
      open.delete(peer)
      socket.destroy()
      return true
    }
    return false
  }
  return {
    add(socket) {
      const peer = peerOf(socket)
      if (open.size >= limit && !closeResting()) surplus.add(peer)
      open.set(peer, socket)
      socket.on('close', () => {
        if (open.get(peer) === socket) open.delete(peer)
        surplus.delete(peer)
        if (open.size <= limit) surplus.clear()
      })
    },
    begin(peer) {
      atWork.set(peer, (atWork.get(peer) ?? 0) + 1)
      return () => {
        const left = (atWork.get(peer) ?? 1) - 1
        if (left > 0) return void atWork.set(peer, left)
        atWork.delete(peer)
        const socket = open.get(peer)
        if (!socket) return
        open.delete(peer)
        open.set(peer, socket)
      }
    },
    isSurplus: (peer) => surplus.has(peer),
    all: () => open.values(),
  }
}
