// How does an API server come to life? Assembles store, tokens, handler, caretakers and, if wanted, a listener.
import type { KindName } from '../api/kinds.ts'
import type { Clock } from '../clock/clock.ts'
import type { Random } from '../clock/random.ts'
import type { Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { NodeSigner } from './access/node-certificates.ts'
import type { StaticToken, Tokens } from './access/tokens.ts'
import { createTokens } from './access/tokens.ts'
import type { Audit } from '../telemetry/audit.ts'
import type { User } from './request/call.ts'
import type { ObjectApi } from '../api/verbs.ts'
import type { ServerContext } from './objects/context.ts'
import type { ApiHandler } from './request/handle.ts'
import { createApiHandler } from './request/handle.ts'
import { expireEvents } from './lifecycle/expiry.ts'
import { collectGarbage } from './lifecycle/garbage.ts'
import { ensureNamespaces, keepNamespaces } from './lifecycle/namespaces.ts'
import { createStoredObjects } from './objects/stored-objects.ts'
import { createOpenApi } from './openapi/openapi.ts'
import { createObjectApi } from './objects/object-api.ts'
import type { NodeClient } from './request/pass-through.ts'

export interface ApiServerOptions {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Bearer tokens with the users they stand for. */
  readonly tokens: readonly StaticToken[]
  /** Signs service account tokens; at least 32 secret bytes, the same after every start. */
  readonly signingKey: Uint8Array
  /** Takes a record of every change, secret read, refusal and stream; without it they are lines of the log. */
  readonly audit?: Audit
  readonly metrics?: Metrics
  /** The authority (PEM) that signed the server's certificate: every namespace gets it as ConfigMap `kube-root-ca.crt`. */
  readonly rootCertificate?: string | undefined
  /** As Kubernetes: every pod gets the token of its account, which must exist. */
  readonly mountsTokens?: boolean | undefined
  /** How nodes are asked for logs, streams and their own documents. */
  readonly nodeClient?: NodeClient
  /** Signs the certificates of nodes; without it no node joins. */
  readonly nodeSigner?: NodeSigner
  /** Requests other than watches served at the same time (default 400). */
  readonly concurrency?: number
  /** Watches and logs open at the same time (default 10,000). */
  readonly streams?: number
  /** Those of one user (default: half of all, and half of the connections that a listener takes at most). */
  readonly streamsPerUser?: number
}

export interface ApiServer {
  /** In-process access as this user; `system:masters` unless told otherwise. Not subject to roles. */
  api(user?: User): ObjectApi
  readonly handle: ApiHandler
  readonly tokens: Tokens
  /** Ends the caretakers. Does not close the store. */
  close(): Promise<void>
}

export const adminUser: User = { name: 'admin', groups: ['system:masters'] }

/** Namespaces exist and the caretakers (garbage, namespaces, event expiry) run when this resolves. */
export async function createApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const { store, clock, random, log } = options
  const { mountsTokens = false } = options
  const context: ServerContext = { store, clock, random, objects: createStoredObjects(), mountsTokens }
  await ensureNamespaces(context)
  const tokens = createTokens(context, options.tokens, options.signingKey)
  const stop = new AbortController()
  let stopped = false
  const handle = createApiHandler({
    context,
    tokens,
    log,
    audit: options.audit ?? auditTo(log),
    nodeClient: options.nodeClient,
    nodeSigner: options.nodeSigner,
    concurrency: options.concurrency ?? 400,
    streams: options.streams ?? 10_000,
    streamsPerUser: options.streamsPerUser ?? Math.min(2_000, Math.ceil((options.streams ?? 10_000) / 2)),
    metrics: options.metrics && (() => options.metrics?.text() ?? Promise.resolve('')),
    notReady: () => (stopped ? ['shutdown'] : []),
    openApi: createOpenApi(),
    ...(options.metrics === undefined ? {} : { observe: observer(options.metrics) }),
  })
  const care = { context, log, rootCertificate: options.rootCertificate }
  const caretakers = [collectGarbage, keepNamespaces, expireEvents].map((each) => each(care, stop.signal))
  return {
    api: (user = adminUser) => createObjectApi({ context, tokens }, user),
    handle,
    tokens,
    async close() {
      stopped = true
      stop.abort()
      await Promise.allSettled(caretakers)
    },
  }
}

function auditTo(log: Log): Audit {
  return { refusal: () => undefined, write: async (record) => log.info('api request', { audit: record }) }
}

function observer(metrics: Metrics) {
  const requests = metrics.counter('apiserver_request_total', 'Requests by verb, resource and code', [
    'verb',
    'resource',
    'code',
  ])
  const durations = metrics.histogram(
    'apiserver_request_duration_seconds',
    'How long requests took, without watches',
    ['verb', 'resource'],
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
  )
  return (verb: string, resource: KindName | string, code: number, seconds: number): void => {
    requests.inc({ verb, resource, code: String(code) })
    durations.observe({ verb, resource }, seconds)
  }
}
