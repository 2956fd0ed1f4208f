// How does a node in a process of its own become reachable? A listener with a certificate of its own, whose fingerprint the Node
// object tells, and callers that the API server vouches for.
import { X509Certificate } from 'node:crypto'
import type { RestTransport } from '../client/rest.ts'
import type { Clock } from '../clock/clock.ts'
import { createAccess } from '../node/server/access.ts'
import { listenForNode } from '../node/server/listener.ts'
import type { NodeServerAddress } from '../node/report/node-status.ts'
import type { NodeServer } from '../streams/node-server.ts'
import type { Audit } from '../telemetry/audit.ts'
import type { Log } from '../telemetry/log.ts'
import { UsageError } from '../installation/config.ts'
import { loadNodeCertificate } from '../installation/certificates.ts'
import { hostAddress } from '../installation/machine.ts'

export interface NodeServerConfig {
  readonly dataDirectory: string
  readonly node: string
  /** Where to listen; without it on the kubelet's port, or on a free one when that is taken. */
  readonly listen: { readonly host: string; readonly port: number } | undefined
  /** The server does the jobs of the drivers on this node. */
  readonly takesDriverCalls: boolean
  readonly server: { readonly url: string; readonly ca?: string }
}

export interface OpenNodeServer extends AsyncDisposable {
  readonly address: NodeServerAddress
}

const kubeletPort = 10_250
const allAddresses: readonly string[] = ['0.0.0.0', '::']

export async function openNodeServer(
  config: NodeServerConfig,
  deps: {
    readonly clock: Clock
    readonly log: Log
    readonly transport: RestTransport
    readonly nodeServer: NodeServer
    readonly audit: Audit
  },
): Promise<OpenNodeServer> {
  const { clock, log, transport, nodeServer, audit } = deps
  const host = config.listen?.host ?? defaultHost(config.server.url)
  const pair = await loadNodeCertificate(config.dataDirectory, [config.node, hostAddress(), '127.0.0.1'], clock.now())
  const access = createAccess({
    clock,
    node: config.node,
    review: (path, body) => {
      const signal = AbortSignal.timeout(reviewMs)
      return transport.request({ method: 'POST', path, body: JSON.stringify(body) }, signal)
    },
  })
  const start = (port: number) =>
    listenForNode(
      { nodeServer, access, log, clock, audit, node: config.node },
      { host, port, ...pair, authority: config.server.ca },
    )
  const listener = await start(config.listen?.port ?? kubeletPort).catch(async (error: unknown) => {
    const { code } = error as NodeJS.ErrnoException
    // Several nodes may share a machine; the Node object tells the port, so any will do.
    if (config.listen === undefined && code === 'EADDRINUSE') return await start(0)
    const where = `${host}:${config.listen?.port ?? kubeletPort}`
    throw new UsageError(`this node cannot listen on ${where}: ${code}`, 'choose another address with --node-listen')
  })
  const { fingerprint256: fingerprint } = new X509Certificate(pair.certificate)
  const told = allAddresses.includes(host) ? hostAddress() : host
  return {
    address: { host: told, port: listener.port, fingerprint, takesDriverCalls: config.takesDriverCalls },
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  }
}

const reviewMs = 10_000

/** A server on this very machine is the only one that asks: then nobody else need reach us. */
function defaultHost(url: string): string {
  const { hostname } = new URL(url)
  return ['127.0.0.1', 'localhost', '[::1]'].includes(hostname) ? '127.0.0.1' : hostAddress()
}
