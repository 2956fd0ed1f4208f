// How is a node asked over the network? HTTPS, for callers with a certificate or a token only; requests and upgraded streams,
// with limits on time, size and number.
import { createServer } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Clock } from '../../clock/clock.ts'
import type { Audit } from '../../telemetry/audit.ts'
import type { Log } from '../../telemetry/log.ts'
import type { NodeServer, NodeResponse, NodeRequest } from '../../streams/node-server.ts'
import { answerUpgrade, drained } from '../../streams/socket.ts'
import { textAnswer, wantsUpgrade } from '../../streams/upgrade.ts'
import type { Access, Caller, Credentials, Verdict } from './access.ts'
import { isAudited, isStream, nodeAuditRecord } from './audit.ts'

export interface ListenerOptions {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** PEM texts. */
  readonly certificate: string
  readonly key: string
  /** Who signs the certificates of clients; without it only tokens are taken. */
  readonly authority: string | undefined
}

export interface ListenerDeps {
  readonly nodeServer: NodeServer
  readonly access: Access
  readonly log: Log
  readonly clock: Clock
  readonly audit: Audit
  /** The name of this node. */
  readonly node: string
}

export interface Listener extends AsyncDisposable {
  readonly port: number
}

const mostConnections = 512
const limits = { requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 75_000, maxHeaderSize: 32 * 1024 }

/** Rejects with the system's error when the address is in use. */
export async function listenForNode(deps: ListenerDeps, options: ListenerOptions): Promise<Listener> {
  const { authority } = options
  const server = createServer({
    ...limits,
    key: options.key,
    cert: options.certificate,
    minVersion: 'TLSv1.2',
    // Whoever has no certificate may bring a token; one of a foreign authority is nobody.
    ...(authority === undefined ? {} : { ca: authority, requestCert: true, rejectUnauthorized: false }),
  })
  server.maxConnections = mostConnections
  const sockets = new Set<Duplex>()
  const gone = new AbortController()
  server.on('connection', (socket: Duplex) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  server.on('request', (incoming, outgoing) => void answerRequest(deps, incoming, outgoing, gone.signal))
  server.on('upgrade', (incoming, socket, head) => void serveUpgrade(deps, incoming, socket, head, gone.signal))
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  server.on('error', (error) => deps.log.warn('the node server failed', { error }))
  return {
    port: (server.address() as AddressInfo).port, // listening on TCP
    async [Symbol.asyncDispose]() {
      gone.abort(new Error('the node is stopping'))
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

async function answerRequest(
  deps: ListenerDeps,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  stopping: AbortSignal,
): Promise<void> {
  const left = new AbortController()
  outgoing.on('close', () => left.abort(new Error('the client has gone')))
  // Nothing that is answered here has a body.
  incoming.resume()
  try {
    const answer = await answerOf(deps, incoming, AbortSignal.any([left.signal, stopping]))
    outgoing.writeHead(answer.status, answer.headers)
    if (answer.body instanceof Uint8Array) return void outgoing.end(answer.body)
    outgoing.flushHeaders()
    for await (const piece of answer.body) {
      if (left.signal.aborted) break
      if (!outgoing.write(piece)) await drained(outgoing)
    }
    outgoing.end()
  } catch (error) {
    if (!left.signal.aborted) deps.log.debug('a request to the node failed', { error })
    outgoing.destroy()
  }
}

async function serveUpgrade(
  deps: ListenerDeps,
  incoming: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  stopping: AbortSignal,
): Promise<void> {
  // Before anything is waited for: an error that nobody hears would end the process.
  socket.on('error', () => {})
  try {
    await answerUpgrade(await answerOf(deps, incoming, stopping), socket, head)
  } catch (error) {
    deps.log.debug('a stream of the node failed', { error })
  } finally {
    socket.destroy()
  }
}

/** Streams into pods and refusals are written down before they are answered, as the API server does. */
async function answerOf(deps: ListenerDeps, incoming: IncomingMessage, signal: AbortSignal): Promise<NodeResponse> {
  const started = deps.clock.now()
  const headers = incoming.headers as NodeRequest['headers'] // only `set-cookie` may be a list, and nobody sends it
  const request: NodeRequest = { method: incoming.method ?? 'GET', path: incoming.url ?? '/', headers, signal }
  const { user, answer } = await judge(deps, incoming, request)
  if (!isAudited(request, answer.status)) return answer
  const asked = { user, source: incoming.socket.remoteAddress, node: deps.node }
  const outcome = { code: answer.status, ms: deps.clock.now() - started }
  try {
    await deps.audit.write(nodeAuditRecord(request, asked, outcome))
    return answer
  } catch {
    return textAnswer(503, 'the audit log of this node cannot be written: nothing was done')
  }
}

interface Judged {
  readonly user: string
  readonly answer: NodeResponse
}

async function judge(deps: ListenerDeps, incoming: IncomingMessage, request: NodeRequest): Promise<Judged> {
  let verdict: Verdict
  try {
    verdict = await deps.access(credentialsOf(incoming), request)
  } catch (error) {
    deps.log.warn('the API server could not be asked who may look', { error })
    return { user: '', answer: textAnswer(503, 'the API server cannot be asked whether you may') }
  }
  if (verdict.kind === 'unknown') return { user: 'system:anonymous', answer: textAnswer(401, 'Unauthorized') }
  const { user } = verdict
  if (verdict.kind === 'forbidden') return { user, answer: textAnswer(403, 'Forbidden') }
  const unwritten = isStream(request) ? deps.audit.refusal() : undefined
  if (unwritten !== undefined) return { user, answer: textAnswer(503, `${unwritten}. Nothing was done.`) }
  if (!wantsUpgrade(request.headers) && isStream(request))
    return { user, answer: textAnswer(400, 'Upgrade request required') }
  return { user, answer: await deps.nodeServer(request) }
}

function credentialsOf(incoming: IncomingMessage): Credentials {
  const [, token] = /^Bearer\s+(\S+)$/i.exec(incoming.headers.authorization ?? '') ?? []
  return { token, certificate: certificateOf(incoming.socket as TLSSocket) }
}

function certificateOf(socket: TLSSocket): Caller | undefined {
  if (!socket.authorized) return undefined
  const { subject } = socket.getPeerCertificate()
  const [name] = [subject?.CN].flat()
  return name ? { name, groups: [subject?.O ?? []].flat() } : undefined
}
