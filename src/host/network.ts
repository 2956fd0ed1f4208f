// What may we ask of the network? What probes, hooks and port-forwards need: a request, a connection, a health check.
// Linux implements it in `linux/network.ts`, the simulator's twin is `model/network.ts`.

import type { ByteStream } from '../streams/byte-stream.ts'

export interface Network {
  /** One GET. Redirects on the same host are followed; certificates are not checked, for a probe asks about life, not identity. */
  httpGet(request: HttpGet, signal: AbortSignal): Promise<HttpAnswer>
  /** Resolves when a TCP connection was made (and closed again). */
  connect(request: Connect, signal: AbortSignal): Promise<void>
  /** A connection that stays, for whoever forwards a port. */
  open(request: Pick<Connect, 'host' | 'port'>, signal: AbortSignal): Promise<ByteStream>
  /** The answer of grpc.health.v1.Health/Check: `SERVING`, `NOT_SERVING`, … */
  grpcHealth(request: Connect & { readonly service: string }, signal: AbortSignal): Promise<string>
}

export interface Connect {
  readonly host: string
  readonly port: number
  readonly timeoutMs: number
}

export interface HttpGet extends Connect {
  readonly scheme: 'HTTP' | 'HTTPS'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

export interface HttpAnswer {
  readonly status: number
  /** At most ten kilobytes. */
  readonly body: string
}
