// What is asked of a node's own server, and what does it answer? The same whether it is called as a function or over HTTPS.
import type { ByteStream } from './byte-stream.ts'

export interface NodeRequest {
  readonly method: string
  /** With its query, as a kubelet would be asked. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Aborts when whoever asked has gone. */
  readonly signal: AbortSignal
}

export interface NodeResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | AsyncIterable<Uint8Array>
  /** With status 101: takes over the connection, and resolves when it is done with it. */
  readonly upgrade?: (connection: ByteStream) => Promise<void>
}

/** What a connection to `/csi/DRIVER` is upgraded to: gRPC with a driver of the node. */
export const driverProtocol = 'hawser-csi'

export type NodeServer = (request: NodeRequest) => Promise<NodeResponse>

/** The path without its query, decoded, and the query. */
export function parsePath(path: string): { readonly words: readonly string[]; readonly query: URLSearchParams } {
  const cut = path.indexOf('?')
  const plain = cut < 0 ? path : path.slice(0, cut)
  const words = plain.split('/').filter((word) => word !== '')
  return { words: words.map(decode), query: new URLSearchParams(cut < 0 ? '' : path.slice(cut + 1)) }
}

function decode(word: string): string {
  try {
    return decodeURIComponent(word)
  } catch {
    return word
  }
}
