// How do requests arrive? HTTP/1.1 and HTTP/2 over TLS, or plain HTTP on a socket of our own; bodies are bounded,
// answers wait for slow readers and give up on dead ones.
import { createServer as createPlainServer } from 'node:http'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { createSecureServer } from 'node:http2'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { AddressInfo, Server, Socket } from 'node:net'
import { DEFAULT_CIPHERS } from 'node:tls'
import type { Duplex } from 'node:stream'
import type { DetailedPeerCertificate, Server as TlsServer, TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { badRequest, serviceUnavailable, StatusError } from '../../api/status-error.ts'
import type { Tokens } from '../access/tokens.ts'
import type { User } from '../request/call.ts'
import { createConnections, peerOf } from './connections.ts'
import type { ConnectionLimits } from './connections.ts'
import type { ByteBudget } from './byte-budget.ts'
import { createByteBudget } from './byte-budget.ts'
import type { ApiHandler, ApiRequest } from '../request/handle.ts'
import type { ApiResponse } from './respond.ts'
import { errorResponse } from './respond.ts'
import { dropBody, noBody, readBody } from './server-body.ts'
import { queryOf, rawPath } from './request-target.ts'

export interface ListenOptions {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** Without it the server speaks plain HTTP. */
  readonly tls?: ServerTls | undefined
  readonly limits?: Partial<ServerLimits> | undefined
}

export interface ServerLimits extends ConnectionLimits {
  /** Bytes of bodies in memory at once. */
  readonly bytes: number
  /** Those of one user. */
  readonly bytesPerUser: number
}

const defaultLimits: ServerLimits = {
  bytes: 128 * 1024 * 1024,
  bytesPerUser: 64 * 1024 * 1024,
  connections: 4_000,
  connectionsPerAddress: 2_000,
  headersMs: 20_000,
}

/** PEM texts. */
export interface ServerTls {
  readonly certificate: string
  readonly key: string
  /** Who signs the certificates of clients. */
  readonly authority: string
}

export interface HttpServer {
  readonly url: string
  readonly port: number
  /** From the next connection on. Only with TLS. */
  useCertificate(tls: ServerTls): void
  /** Ends watches, lets running requests finish for a moment, then closes every connection. */
  close(): Promise<void>
}

export interface HttpServerDeps {
  readonly handle: ApiHandler
  readonly tokens: Tokens
  readonly onError: (error: unknown) => void
}

type Incoming = IncomingMessage | Http2ServerRequest
type Outgoing = ServerResponse | Http2ServerResponse
/** Node joins headers that come twice; only `set-cookie`, which no client sends, stays a list. */
type Headers = ApiRequest['headers']

const gzipAbove = 128 * 1024
const drainTimeoutMs = 30_000
const closeTimeoutMs = 2_000
/** HTTP/1, with TLS or without. A connection that rests must not be closed under the next request of a busy client. */
const http1Limits = { requestTimeout: 60_000, keepAliveTimeout: 75_000 }
/** Go's order, and so that of a Kubernetes server: with SHA-256, which processors help with, a handshake costs less. */
const ciphers = `TLS_AES_128_GCM_SHA256:${DEFAULT_CIPHERS}`
const compress = promisify(gzip)

/** Rejects with the system's error when the address is in use. */
export async function listen(deps: HttpServerDeps, options: ListenOptions): Promise<HttpServer> {
  const limits = { ...defaultLimits, ...options.limits }
  const budget = createByteBudget({ total: limits.bytes, perUser: limits.bytesPerUser })
  /** How to leave each request that is being served. */
  const live = new Set<() => void>()
  const connections = createConnections<Socket>(limits, later)
  const serve = (incoming: Incoming, outgoing: Outgoing): void => {
    const peer = peerOf(socketOf(incoming))
    const served = { deps, budget, tooMany: connections.isSurplus(peer) }
    const end = connections.begin(peer)
    serveRequest(served, live, incoming, outgoing)
      .catch((error: unknown) => {
        deps.onError(error)
        abandon(outgoing)
      })
      .finally(end)
  }
  const upgrade = (incoming: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const peer = peerOf(socketOf(incoming))
    // Until it is closed: such a connection never rests.
    socket.once('close', connections.begin(peer))
    serveUpgrade({ deps, budget, tooMany: connections.isSurplus(peer) }, live, incoming, socket, head).catch(
      (error: unknown) => {
        deps.onError(error)
        socket.destroy()
      },
    )
  }
  const http1 = { ...http1Limits, headersTimeout: limits.headersMs }
  const server: Server = options.tls ? secureServer(options.tls, http1, serve) : plainServer(http1, serve)
  server.on('upgrade', upgrade)
  server.maxConnections = limits.connections * 2
  server.on('connection', (socket: Socket) => {
    connections.add(socket)
    // A peer that vanishes in the middle of a request is no failure of ours.
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  server.on('error', deps.onError)
  const { port } = server.address() as AddressInfo // listening on TCP
  const host = options.host.includes(':') ? `[${options.host}]` : options.host
  return {
    url: `${options.tls ? 'https' : 'http'}://${host}:${port}`,
    port,
    useCertificate: ({ certificate, key, authority }) =>
      (server as unknown as TlsServer).setSecureContext({ cert: certificate, key, ca: authority, ciphers }),
    async close() {
      for (const leave of live) leave()
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      const timer = setTimeout(() => [...connections.all()].forEach((socket) => socket.destroy()), closeTimeoutMs)
      // Idle connections would keep the server open; they have nothing left to say.
      setTimeout(() => [...connections.all()].forEach((socket) => socket.end()), 50)
      await closed
      clearTimeout(timer)
    },
  }
}

type Serve = (incoming: Incoming, outgoing: Outgoing) => void
type Http1Limits = typeof http1Limits & { readonly headersTimeout: number }

function later(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

function plainServer(limits: Http1Limits, serve: Serve): Server {
  return createPlainServer({ maxHeaderSize: 32 * 1024, noDelay: true, ...limits }, serve)
}

function secureServer(tls: ServerTls, limits: Http1Limits, serve: Serve): Server {
  const server = createSecureServer({
    allowHTTP1: true,
    ...limits,
    key: tls.key,
    cert: tls.certificate,
    ca: tls.authority,
    requestCert: true,
    // Clients without a certificate may still bring a token; one with a foreign certificate is nobody.
    rejectUnauthorized: false,
    minVersion: 'TLSv1.2',
    ciphers,
    maxSessionMemory: 100,
    settings: { maxConcurrentStreams: 1000, maxHeaderListSize: 32 * 1024, initialWindowSize: 1024 * 1024 },
  })
  server.on('request', serve)
  server.on('sessionError', () => {})
  server.on('tlsClientError', () => {})
  return server as unknown as Server // a net.Server by another declaration
}

/** One reason for all: making an exception with its stack for every request costs more than routing it. */
const over = new Error('the request is over')

interface Served {
  readonly deps: HttpServerDeps
  readonly budget: ByteBudget
  /** Whether its connection is one too many. */
  readonly tooMany: boolean
}

async function serveRequest(
  served: Served,
  live: Set<() => void>,
  incoming: Incoming,
  outgoing: Outgoing,
): Promise<void> {
  const gone = new AbortController()
  let finished = false
  const leave = (): void => {
    if (!finished) gone.abort(over)
  }
  outgoing.on('close', leave)
  outgoing.on('error', leave)
  live.add(leave)
  try {
    const response = await answer(served, incoming, gone.signal)
    await send(incoming, outgoing, response, gone.signal)
    // Nobody listens any more: the usual end costs nothing.
    finished = true
  } finally {
    live.delete(leave)
    leave()
  }
}

/** Streams into pods; whoever asks to upgrade anything else gets the plain answer. */
async function serveUpgrade(
  { deps, tooMany }: Served,
  live: Set<() => void>,
  incoming: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const gone = new AbortController()
  const leave = (): void => gone.abort(over)
  const close = (): void => void socket.destroy()
  // Before anything is waited for: an error that nobody hears would end the process.
  socket.on('error', leave)
  socket.on('close', leave)
  live.add(close)
  try {
    // Loaded when somebody first comes: it brings the streams with it.
    const { answerUpgrade } = await import('../../streams/socket.ts')
    const query = queryOf(incoming.url ?? '/')
    const path = rawPath(incoming.url ?? '/')
    const headers = incoming.headers as Headers
    const user = await userOf(deps.tokens, incoming, headers)
    const source = sourceOf(incoming)
    const asked = { method: incoming.method ?? 'GET', path, headers, body: noBody, user, source, signal: gone.signal }
    const refusal = tooMany ? tooManyConnections() : query === undefined ? unreadable() : undefined
    const response = refusal ?? (await deps.handle({ ...asked, query: query ?? new URLSearchParams() }))
    await answerUpgrade(response, socket, head)
  } catch (error) {
    // Clients leave in the middle; what a session was about is told to them, not to our log.
    if (!gone.signal.aborted) throw error
  } finally {
    live.delete(close)
    socket.destroy()
  }
}

const unreadable = () => errorResponse(badRequest('the path of the request cannot be read'))

/** Who it is comes before what it sends: the body of a stranger is not kept. */
async function answer(served: Served, incoming: Incoming, signal: AbortSignal): Promise<ApiResponse> {
  const { deps, budget, tooMany } = served
  const query = queryOf(incoming.url ?? '/')
  if (tooMany || query === undefined) {
    dropBody(incoming)
    return tooMany ? tooManyConnections() : unreadable()
  }
  const headers = incoming.headers as Headers
  const user = await userOf(deps.tokens, incoming, headers)
  using account = budget.open(user?.name ?? '')
  const body = user === undefined ? dropBody(incoming) : await readBody(incoming, account)
  if (body instanceof StatusError) return errorResponse(body)
  const path = rawPath(incoming.url ?? '/')
  // Waited for here: the bytes are in use until the request is answered.
  const asked = { method: incoming.method ?? 'GET', path, query, headers, body, user, source: sourceOf(incoming) }
  return await deps.handle({ ...asked, signal })
}

function tooManyConnections(): ApiResponse {
  const response = errorResponse(serviceUnavailable('too many connections are open, please try again later.'))
  return { ...response, headers: { ...response.headers, 'retry-after': '1' } }
}

/** A bearer token first: whoever brings one wants to be that user. */
async function userOf(tokens: Tokens, incoming: Incoming, headers: Headers): Promise<User | undefined> {
  const authorization = headers['authorization']
  if (authorization !== undefined) {
    const token = bearerToken(authorization)
    if (token === undefined) return undefined
    const found = await tokens.authenticate(token)
    return found && withAuthenticated(found.user)
  }
  const found = certificateUser(incoming)
  return found && (await tokens.acceptCertificate(found.user, found.fingerprint)) ? found.user : undefined
}

function bearerToken(authorization: string): string | undefined {
  // How nearly everybody writes it.
  if (authorization.startsWith('Bearer ') && authorization.indexOf(' ', 7) < 0)
    return authorization.slice(7) || undefined
  const [scheme = '', token = ''] = authorization.trim().split(/\s+/, 2)
  return scheme.toLowerCase() === 'bearer' && token !== '' ? token : undefined
}

/** In HTTP/2 the request's own socket is a proxy; the session has the real one. */
function socketOf(incoming: Incoming): Partial<TLSSocket> {
  const session = 'stream' in incoming ? incoming.stream.session : undefined
  return (session?.socket ?? incoming.socket) as Partial<TLSSocket> // with TLS; else without its members
}

/** The peer's own address; what a header says about it could be a lie. */
function sourceOf(incoming: Incoming): string | undefined {
  return socketOf(incoming).remoteAddress
}

function certificateUser(incoming: Incoming): { readonly user: User; readonly fingerprint: string } | undefined {
  const socket = socketOf(incoming)
  if (socket.authorized !== true || socket.getPeerCertificate === undefined) return undefined
  const { subject, fingerprint256 = '' } = socket.getPeerCertificate() as Partial<DetailedPeerCertificate>
  const name = Array.isArray(subject?.CN) ? subject.CN[0] : subject?.CN
  if (!name) return undefined
  const groups = subject?.O === undefined ? [] : [subject.O].flat()
  return { user: withAuthenticated({ name, groups }), fingerprint: fingerprint256 }
}

function withAuthenticated(user: User): User {
  return user.groups.includes('system:authenticated')
    ? user
    : { ...user, groups: [...user.groups, 'system:authenticated'] }
}

async function send(incoming: Incoming, outgoing: Outgoing, response: ApiResponse, signal: AbortSignal): Promise<void> {
  const { body, headers, status } = response
  if (!(body instanceof Uint8Array)) {
    writeHead(outgoing, status, headers)
    // Clients wait for the headers of a quiet watch; HTTP/2 sends them with the first write, so write nothing.
    if (isHttp2(outgoing)) outgoing.write('')
    else outgoing.flushHeaders()
    await sendStream(outgoing, body, signal)
    return
  }
  const accepts = incoming.headers['accept-encoding'] ?? ''
  const zip = body.length > gzipAbove && String(accepts).includes('gzip')
  const bytes = zip ? await compress(body, { level: 1 }) : body
  if (signal.aborted) return
  const zipped = zip ? { 'content-encoding': 'gzip', vary: 'Accept-Encoding' } : {}
  writeHead(outgoing, status, { ...headers, ...zipped, 'content-length': String(bytes.length) })
  if (incoming.method === 'HEAD') outgoing.end()
  else outgoing.end(bytes)
}

/** At once, not header by header: Node then keeps no table of them. */
function writeHead(outgoing: Outgoing, status: number, headers: OutgoingHttpHeaders): void {
  // Declared for each of the two apart, and the same for both.
  ;(outgoing.writeHead as (status: number, headers: OutgoingHttpHeaders) => unknown).call(outgoing, status, headers)
}

function isHttp2(outgoing: Outgoing): outgoing is Http2ServerResponse {
  return 'stream' in outgoing
}

function abandon(outgoing: Outgoing): void {
  if (isHttp2(outgoing)) outgoing.stream.destroy()
  else outgoing.destroy()
}

/** One piece at a time: while a reader is slow, its watch falls behind in the log instead of filling memory here. */
async function sendStream(outgoing: Outgoing, body: AsyncIterable<Buffer>, signal: AbortSignal): Promise<void> {
  for await (const piece of body) {
    if (signal.aborted) break
    const room = (outgoing.write as (bytes: Buffer) => boolean).call(outgoing, piece)
    if (!room && !(await drained(outgoing, signal))) break
  }
  if (!outgoing.writableEnded) outgoing.end()
}

/** False when the reader took nothing for too long, or left. */
function drained(outgoing: Outgoing, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const finish = (room: boolean): void => {
      clearTimeout(timer)
      outgoing.off('drain', onDrain)
      signal.removeEventListener('abort', onAbort)
      if (!room && !signal.aborted) abandon(outgoing)
      resolve(room)
    }
    const onDrain = (): void => finish(true)
    const onAbort = (): void => finish(false)
    const timer = setTimeout(() => finish(false), drainTimeoutMs)
    outgoing.on('drain', onDrain)
    signal.addEventListener('abort', onAbort, { once: true })
  })
}
