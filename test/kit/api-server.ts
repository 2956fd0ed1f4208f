// A server in memory on virtual time, and a way to send it requests without sockets.
import type { ApiServer } from '../../src/apiserver/start.ts'
import type { User } from '../../src/apiserver/request/call.ts'
import type { NodeClient } from '../../src/apiserver/request/pass-through.ts'
import type { ApiResponse } from '../../src/apiserver/http/respond.ts'
import { createRandom } from '../../src/clock/random.ts'
import type { VirtualClock } from '../../src/clock/virtual-clock.ts'
import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import type { HistoryLimits } from '../../src/store/compaction.ts'
import { createMemoryStore } from '../../src/store/memory-store.ts'
import type { Store } from '../../src/store/store.ts'
import type { Audit } from '../../src/telemetry/audit.ts'
import { createLog } from '../../src/telemetry/log.ts'
import type { Fields } from '../../src/telemetry/log.ts'
import type { Metrics } from '../../src/telemetry/metrics.ts'
import { createTestApi } from './api.ts'
import { claimRequest, podRequest, volumeRequest } from './objects.ts'

interface Answer {
  readonly code: number
  readonly headers: Readonly<Record<string, string>>
  // Tests look into answers as a client would; what is not there is undefined and fails the assertion.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
}

interface Request {
  readonly body?: unknown
  readonly raw?: string | Uint8Array
  readonly type?: string
  readonly accept?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly user?: User | undefined
  readonly query?: Readonly<Record<string, string>>
  /** The address it comes from. */
  readonly source?: string
}

export interface TestServer extends AsyncDisposable {
  readonly server: ApiServer
  readonly store: Store
  readonly clock: VirtualClock
  readonly lines: { readonly level: string; readonly message: string; readonly fields: Fields }[]
  /** The answer as the listener gets it. */
  open(method: string, path: string, request?: Request): Promise<ApiResponse>
  send(method: string, path: string, request?: Request): Promise<Answer>
  /** Opens a watch; `next` answers the next event. */
  watch(path: string, request?: Request): Promise<{ next(): Promise<Answer['body']>; stop(): void }>
  get(path: string, request?: Request): Promise<Answer>
  post(path: string, body: unknown, request?: Request): Promise<Answer>
  put(path: string, body: unknown, request?: Request): Promise<Answer>
  patch(path: string, kind: 'merge' | 'json' | 'strategic' | 'apply', body: unknown, request?: Request): Promise<Answer>
  delete(path: string, body?: unknown, request?: Request): Promise<Answer>
}

export const admin: User = { name: 'admin', groups: ['system:masters', 'system:authenticated'] }

const patchTypes = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

export async function makeServer(
  options: {
    readonly history?: HistoryLimits
    readonly streams?: number
    readonly nodeClient?: NodeClient
    readonly metrics?: Metrics
    readonly rootCertificate?: string
    readonly mountsTokens?: boolean
    readonly audit?: Audit
    readonly streamsPerUser?: number
  } = {},
): Promise<TestServer> {
  const clock = createVirtualClock()
  const lines: TestServer['lines'] = []
  const log = createLog((level, message, fields) => lines.push({ level, message, fields }))
  const api = await createTestApi({
    store: createMemoryStore(options),
    clock,
    random: createRandom(1),
    log,
    tokens: [{ token: 'admin-token', user: admin }],
    ...(options.nodeClient === undefined ? {} : { nodeClient: options.nodeClient }),
    ...(options.metrics === undefined ? {} : { metrics: options.metrics }),
    rootCertificate: options.rootCertificate,
    mountsTokens: options.mountsTokens,
    ...(options.audit === undefined ? {} : { audit: options.audit }),
    ...(options.streamsPerUser === undefined ? {} : { streamsPerUser: options.streamsPerUser }),
    ...(options.streams === undefined ? {} : { streams: options.streams }),
  })
  const { server, store } = api
  const stop = new AbortController()
  const open = (method: string, path: string, request: Request, signal: AbortSignal) => {
    const url = new URL(path, 'http://test')
    for (const [name, value] of Object.entries(request.query ?? {})) url.searchParams.set(name, value)
    const sent = request.raw ?? (request.body === undefined ? '' : JSON.stringify(request.body))
    return server.handle({
      method,
      path: path.split('?', 1)[0] ?? '',
      query: url.searchParams,
      headers: {
        'content-type': request.type ?? 'application/json',
        accept: request.accept ?? 'application/json',
        'user-agent': 'test/1',
        ...request.headers,
      },
      body: typeof sent === 'string' ? Buffer.from(sent) : sent,
      user: 'user' in request ? request.user : admin,
      source: request.source,
      signal,
    })
  }
  const send = async (method: string, path: string, request: Request = {}): Promise<Answer> => {
    const response = await open(method, path, request, stop.signal)
    if (!(response.body instanceof Uint8Array)) throw new Error('this answer is a stream')
    const text = response.body.toString()
    const json = /json/.test(response.headers['content-type'] ?? '')
    return { code: response.status, headers: response.headers, body: json ? JSON.parse(text) : text }
  }
  return {
    server,
    store,
    clock,
    lines,
    open: (method, path, request = {}) => open(method, path, request, stop.signal),
    send,
    async watch(path, request = {}) {
      const own = new AbortController()
      const response = await open('GET', path, request, own.signal)
      if (response.body instanceof Uint8Array) throw new Error(`no stream: ${response.body.toString()}`)
      const iterator = response.body[Symbol.asyncIterator]()
      return {
        async next() {
          const step = await iterator.next()
          return step.done === true ? undefined : JSON.parse(step.value.toString())
        },
        stop: () => own.abort(),
      }
    },
    get: (path, request) => send('GET', path, request),
    post: (path, body, request) => send('POST', path, { ...request, body }),
    put: (path, body, request) => send('PUT', path, { ...request, body }),
    patch: (path, kind, body, request) => send('PATCH', path, { ...request, body, type: patchTypes[kind] }),
    delete: (path, body, request) => send('DELETE', path, { ...request, ...(body === undefined ? {} : { body }) }),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await api[Symbol.asyncDispose]()
    },
  }
}

/** Requests name the namespace in their path. */
export function claim(name: string, spec: Record<string, unknown> = {}): object {
  return claimRequest(name, spec, {})
}

export function volume(name: string, spec: Record<string, unknown> = {}): object {
  return volumeRequest(name, { csi: { driver: 'd.example', volumeHandle: name }, ...spec })
}

export function storageClass(
  name: string,
  changes: Record<string, unknown> = {},
  labels: Record<string, string> = {},
): object {
  const metadata = { name, ...(Object.keys(labels).length > 0 ? { labels } : {}) }
  return { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata, provisioner: 'd.example', ...changes }
}

export function pod(name: string, spec: Record<string, unknown> = {}, metadata: Record<string, unknown> = {}): object {
  return podRequest(name, spec, metadata)
}

export const paths = {
  volumes: '/api/v1/persistentvolumes',
  claims: '/api/v1/namespaces/default/persistentvolumeclaims',
  classes: '/apis/storage.k8s.io/v1/storageclasses',
  pods: '/api/v1/namespaces/default/pods',
  namespaces: '/api/v1/namespaces',
  configMaps: '/api/v1/namespaces/default/configmaps',
  secrets: '/api/v1/namespaces/default/secrets',
} as const
