// Which connections does a listener keep? As many as its limit. When there is one more, the one that has rested longest is
// closed for it: whoever only holds connections open keeps nobody out. If all of them are at work, the new one is told to come back.
// The same holds for those of one address; far beyond its share they are closed at once. One that never sends a request is closed.

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
  all(): Iterable<C>
}

export interface ConnectionLimits {
  /** For one more, the one that rests longest is closed; if all are at work, its requests are told to come back. */
  readonly connections: number
  /** The same for one address. */
  readonly connectionsPerAddress: number
  /** How long a connection may take until its first request has a whole head. */
  readonly headersMs: number
}

interface Known<C> {
  readonly socket: C
  /** A closed socket does not tell it any more. */
  readonly address: string
  /** While it has sent no request: how not to close it. */
  keepSilent: (() => void) | undefined
  isSurplus: boolean
  requests: number
}

/** How much of its share one address may have, to be told to come back. */
const surplusShare = 1.5

/** The same on a socket and on the encrypted one above it. */
export const peerOf = ({ remoteAddress, remotePort }: Peer): string => `${remoteAddress} ${remotePort}`

/** `later` runs something once after a while; call its answer if it is not to run. */
export function createConnections<C extends Connection>(
  limits: ConnectionLimits,
  later: (ms: number, run: () => void) => () => void,
): Connections<C> {
  /** In the order in which they last had something to do. */
  const open = new Map<string, Known<C>>()
  const perAddress = new Map<string, number>()
  const countOf = (address: string): number => perAddress.get(address) ?? 0
  const forget = (peer: string, known: Known<C>): void => {
    if (open.get(peer) !== known) return
    open.delete(peer)
    known.keepSilent?.()
    const left = countOf(known.address) - 1
    if (left > 0) perAddress.set(known.address, left)
    else perAddress.delete(known.address)
  }
  const closeResting = (address?: string): void => {
    for (const [peer, known] of open) {
      if (known.requests > 0 || (address !== undefined && known.address !== address)) continue
      forget(peer, known)
      known.socket.destroy()
      return
    }
  }
  /** Whether there is room for one more, once one that rests is closed. */
  const hasRoom = (address: string): boolean => {
    if (countOf(address) >= limits.connectionsPerAddress) closeResting(address)
    else if (open.size >= limits.connections) closeResting()
    return countOf(address) < limits.connectionsPerAddress && open.size < limits.connections
  }
  return {
    add(socket) {
      const [peer, address] = [peerOf(socket), socket.remoteAddress ?? '']
      const isSurplus = !hasRoom(address)
      if (isSurplus && countOf(address) >= limits.connectionsPerAddress * surplusShare) return void socket.destroy()
      const keepSilent = later(limits.headersMs, () => void socket.destroy())
      const known: Known<C> = { socket, address, keepSilent, isSurplus, requests: 0 }
      open.set(peer, known)
      perAddress.set(address, countOf(address) + 1)
      socket.on('close', () => forget(peer, known))
    },
    begin(peer) {
      const known = open.get(peer)
      if (known === undefined) return () => {}
      known.keepSilent?.()
      known.keepSilent = undefined
      known.requests += 1
      return () => {
        known.requests -= 1
        if (known.requests > 0 || open.get(peer) !== known) return
        open.delete(peer)
        open.set(peer, known)
      }
    },
    isSurplus(peer) {
      const known = open.get(peer)
      if (known?.isSurplus !== true) return false
      known.isSurplus = open.size > limits.connections || countOf(known.address) > limits.connectionsPerAddress
      return known.isSurplus
    },
    all: () => open.values().map(({ socket }) => socket),
  }
}
