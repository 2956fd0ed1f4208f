// How does the API server reach a node's own server? In this process by a call; elsewhere over HTTPS, at the address and with the
// certificate that the Node object tells. Both look the same to whoever asks.
import { request as httpRequest } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { connect as connectTls } from 'node:tls'
import type { TLSSocket } from 'node:tls'
import { annotations } from '../../api/annotations.ts'
import type { Node } from '../../api/generated/types.ts'
import type { NodeClient } from './pass-through.ts'
import { joinStreams } from '../../streams/byte-stream.ts'
import type { NodeServer, NodeResponse, NodeRequest } from '../../streams/node-server.ts'
import { silenceMs } from '../../streams/keep-alive.ts'
import { probeMs, streamOfSocket } from '../../streams/socket.ts'

export interface NodeClientDeps {
  /** Nodes of this process. */
  readonly local: ReadonlyMap<string, NodeServer>
  node(name: string): Promise<Node>
  /** PEM texts: who we are to the nodes. */
  identity(): Identity
}

const connectMs = 10_000

export function createNodeClient(deps: NodeClientDeps): NodeClient {
  return async (name, request) => {
    const local = deps.local.get(name)
    if (local) return await local(request)
    const { metadata } = await deps.node(name)
    const address = metadata.annotations?.[annotations.nodeServer]
    const fingerprint = metadata.annotations?.[annotations.nodeServerCertificate]
    if (!address || !fingerprint) throw new Error(`node ${name} has no agent address yet: it has not reported one`)
    return await ask(new URL(`https://${address}`), fingerprint, deps.identity(), request)
  }
}

interface Identity {
  readonly certificate: string
  readonly key: string
}

async function ask(base: URL, fingerprint: string, identity: Identity, asked: NodeRequest): Promise<NodeResponse> {
  const { method, path, headers, signal } = asked
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(connectMs)])
  const socket = await connect(base, fingerprint, identity, deadline)
  return await new Promise((resolve, reject) => {
    const createConnection = () => socket
    const outgoing = httpRequest({
      method,
      path,
      headers: forwarded(headers),
      host: base.host,
      createConnection,
      signal,
    })
    const timer = setTimeout(() => outgoing.destroy(new Error(`${base.host} did not answer in time`)), connectMs)
    outgoing.on('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
    outgoing.on('response', (response) => {
      clearTimeout(timer)
      resolve({ status: response.statusCode ?? 502, headers: headersOf(response), body: response })
    })
    outgoing.on('upgrade', (response, _socket, head) => {
      clearTimeout(timer)
      socket.setKeepAlive(true, probeMs).setTimeout(silenceMs, () => socket.destroy())
      // Whoever asked may go before it takes the stream over; the node has begun by then.
      const leave = () => void socket.destroy()
      signal.addEventListener('abort', leave, { once: true })
      if (signal.aborted) leave()
      const body = new Uint8Array()
      const upgrade: NodeResponse['upgrade'] = async (client) => {
        signal.removeEventListener('abort', leave)
        await joinStreams(client, streamOfSocket(socket, head))
      }
      resolve({ status: 101, headers: headersOf(response), body, upgrade })
    })
    outgoing.end()
  })
}

/**
 * A node that has said all still listens: were the line closed under a client's words, it would lose what it has not read.
 * (An option of Node's that its declarations do not know.)
 */
const halfOpen = { allowHalfOpen: true }

/** Nothing is said before it is sure that this is the node: a command may hold a password. */
function connect(base: URL, fingerprint: string, identity: Identity, signal: AbortSignal): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({
      host: base.hostname.replace(/^\[|\]$/g, ''),
      port: Number(base.port || 443),
      cert: identity.certificate,
      key: identity.key,
      ...halfOpen,
      // Not its names count, and not who signed it, but that it is the very certificate the Node object tells.
      rejectUnauthorized: false,
    })
    const give = (error: Error) => {
      socket.destroy()
      reject(error)
    }
    const onAbort = () => give(new Error(`${base.host} did not answer in time`, { cause: signal.reason }))
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    socket.on('error', give) // a line that breaks later is heard of by whoever uses it
    socket.once('secureConnect', () => {
      signal.removeEventListener('abort', onAbort)
      if (socket.getPeerCertificate().fingerprint256 === fingerprint) resolve(socket)
      else give(new Error(`whoever listens on ${base.host} is not the node: it has another certificate`))
    })
  })
}

const passed = ['connection', 'upgrade', 'accept', 'x-stream-protocol-version']

/** What a stream is opened with; who asked is none of the node's business. */
function forwarded(headers: NodeRequest['headers']): Record<string, string> {
  const kept = Object.entries(headers).filter(([name]) => passed.includes(name) || name.startsWith('sec-websocket-'))
  return Object.fromEntries(kept.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}

const answered = ['connection', 'upgrade', 'content-type', 'content-length', 'x-stream-protocol-version']

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  const kept = Object.entries(headers).filter(([name]) => answered.includes(name) || name.startsWith('sec-websocket-'))
  return Object.fromEntries(kept.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])))
}
