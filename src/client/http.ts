// How do we talk to an API server on the other end of a network connection?
// One keep-alive pool for requests, one connection per watch; answers are parsed JSON or a StatusError.
import { randomBytes } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import type { IncomingMessage, RequestOptions } from 'node:http'
import { errorFromAnswer } from './http-errors.ts'
import { createRestClient } from './rest.ts'
import type { RestRequest, RestTransport } from './rest.ts'
import type { Client } from './client.ts'
import type { ByteStream } from '../streams/byte-stream.ts'

export interface HttpConfig {
  readonly url: string
  /** PEM texts, not file names: reading kubeconfig and files belongs to main and cli. */
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly token?: string
  readonly insecureSkipTlsVerify?: boolean
  readonly userAgent?: string
  /** No answer within this time fails the request; watches are not concerned. */
  readonly timeoutMs?: number
  readonly maxSockets?: number
}

const silenceMs = 300_000
const usualTimeoutMs = 35_000

export type HttpClient = Client & Disposable

export interface HttpTransport extends RestTransport, Disposable {
  /** From the next connection on; requests under way end on the old one. PEM texts. */
  useCertificate(pair: { readonly cert: string; readonly key: string }): void
  /** An answer that is no JSON (a pod's log), piece by piece as it arrives; no time limit. */
  bytes(request: RestRequest, signal: AbortSignal): AsyncIterable<Uint8Array>
  /** What the server's clock shows, to the second; undefined if it does not tell. */
  time(signal: AbortSignal): Promise<number | undefined>
  /** A connection that became a WebSocket with one of these subprotocols; a refusal is thrown as StatusError. */
  upgrade(path: string, protocols: readonly string[], signal: AbortSignal): Promise<ByteStream>
}

export function createHttpClient(config: HttpConfig): HttpClient {
  const transport = createHttpTransport(config)
  return Object.assign(createRestClient(transport), {
    [Symbol.dispose]: () => transport[Symbol.dispose](),
  })
}

/** A server and the two pools of connections to it. */
interface Connections {
  readonly config: HttpConfig
  readonly base: URL
  readonly library: typeof http | typeof https
  readonly requests: http.Agent
  /** Watches and upgraded connections hold a connection each. */
  readonly watches: http.Agent
}

export function createHttpTransport(config: HttpConfig): HttpTransport {
  const connections = createConnections(config)
  const { requests, watches } = connections
  return {
    request: (request, signal) => send(connections, request, signal),
    useCertificate: (pair) => [requests, watches].forEach((pool) => Object.assign(optionsOf(pool), pair)),
    async time(signal) {
      const response = await open(connections, { method: 'GET', path: '/version' }, signal)
      response.resume()
      const shown = Date.parse(response.headers.date ?? '')
      return Number.isNaN(shown) ? undefined : shown
    },
    async *stream(request, signal) {
      const response = await open(connections, request, signal)
      // A connection can die without an error. Servers send bookmarks meanwhile, so silence means that it is dead.
      response.setTimeout(silenceMs, () => response.destroy(new Error(`nothing received for ${silenceMs} ms`)))
      try {
        yield* jsonLines(response)
      } finally {
        response.destroy()
      }
    },
    async *bytes(request, signal) {
      const response = await open(connections, request, signal)
      try {
        for await (const chunk of response) yield chunk as Buffer
      } finally {
        response.destroy()
      }
    },
    upgrade: (path, protocols, signal) => upgrade(connections, path, protocols, signal),
    [Symbol.dispose]() {
      requests.destroy()
      watches.destroy()
    },
  }
}

function createConnections(config: HttpConfig): Connections {
  const base = new URL(config.url)
  const library = base.protocol === 'https:' ? https : http
  const options = {
    keepAlive: true,
    keepAliveMsecs: 15_000,
    ...(config.ca === undefined ? {} : { ca: config.ca }),
    ...(config.cert === undefined ? {} : { cert: config.cert }),
    ...(config.key === undefined ? {} : { key: config.key }),
    ...(config.insecureSkipTlsVerify === true ? { rejectUnauthorized: false } : {}),
  }
  return {
    config,
    base,
    library,
    requests: new library.Agent({ ...options, maxSockets: config.maxSockets ?? 64 }),
    watches: new library.Agent(options),
  }
}

/** Node's own; its declaration leaves them out. Connections are pooled by them, so old ones are not used again. */
function optionsOf(pool: http.Agent): object {
  return (pool as unknown as { readonly options: object }).options
}

function begin(
  { config, base, library }: Connections,
  request: RestRequest,
  agent: http.Agent,
  signal?: AbortSignal,
  more: Readonly<Record<string, string>> = {},
): http.ClientRequest {
  const { body } = request
  const options: RequestOptions = {
    protocol: base.protocol,
    hostname: base.hostname,
    port: base.port,
    path: base.pathname.replace(/\/+$/, '') + request.path,
    method: request.method,
    agent,
    ...(signal === undefined ? {} : { signal }),
    headers: {
      accept: request.accept ?? 'application/json',
      'user-agent': config.userAgent ?? 'hawser',
      ...more,
      ...(config.token === undefined ? {} : { authorization: `Bearer ${config.token}` }),
      ...(body === undefined
        ? {}
        : {
            'content-type': request.contentType ?? 'application/json',
            'content-length': String(Buffer.byteLength(body)),
          }),
    },
  }
  const outgoing = library.request(options)
  // As a text the body travels with the headers, in one piece.
  outgoing.end(body)
  return outgoing
}

/** One request and its whole answer, within the time limit. */
function send(connections: Connections, request: RestRequest, signal: AbortSignal): Promise<unknown> {
  const timeoutMs = connections.config.timeoutMs ?? usualTimeoutMs
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const outgoing = begin(connections, request, connections.requests)
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    }
    const fail = (error: unknown) => {
      end()
      reject(error)
    }
    const giveUp = (reason: unknown) => {
      fail(reason)
      outgoing.destroy()
    }
    const onAbort = () => giveUp(signal.reason)
    const timer = setTimeout(
      () => giveUp(noAnswer(`no answer to ${request.method} ${request.path} within ${timeoutMs} ms`)),
      timeoutMs,
    )
    signal.addEventListener('abort', onAbort, { once: true })
    outgoing.on('error', fail)
    outgoing.on('response', (response) => {
      collectText(response, fail, (text) => {
        end()
        try {
          resolve(valueOf(response, text))
        } catch (error) {
          reject(error)
        }
      })
    })
  })
}

const noAnswer = (sentence: string) => Object.assign(new Error(sentence), { code: 'ETIMEDOUT' })

/** An answer whose body the caller reads as it arrives; a refusal is read here and thrown. */
async function open(connections: Connections, request: RestRequest, signal: AbortSignal): Promise<IncomingMessage> {
  signal.throwIfAborted()
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = begin(connections, request, connections.watches, signal)
    outgoing.on('error', reject)
    outgoing.on('response', resolve)
  })
  const { statusCode = 0 } = response
  if (statusCode >= 300) throw errorFromAnswer(statusCode, await readText(response))
  return response
}

async function upgrade(
  connections: Connections,
  path: string,
  protocols: readonly string[],
  signal: AbortSignal,
): Promise<ByteStream> {
  // Loaded when first asked for: few clients open streams.
  const [{ streamOfSocket }, { acceptKey }] = await Promise.all([
    import('../streams/socket.ts'),
    import('../streams/websocket-frames.ts'),
  ])
  const key = randomBytes(16).toString('base64')
  const headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': key,
    'sec-websocket-protocol': protocols.join(', '),
  }
  return await new Promise((resolve, reject) => {
    const outgoing = begin(connections, { method: 'GET', path, accept: '*/*' }, connections.watches, signal, headers)
    outgoing.on('error', reject)
    outgoing.on('upgrade', (response, socket, head) => {
      if (response.headers['sec-websocket-accept'] === acceptKey(key)) return resolve(streamOfSocket(socket, head))
      socket.destroy()
      reject(new Error(`the server's answer to ${path} is no WebSocket handshake`))
    })
    outgoing.on('response', (response) => {
      const { statusCode = 0 } = response
      readText(response).then((text) => reject(errorFromAnswer(statusCode, text)), reject)
    })
  })
}

function valueOf({ statusCode = 0 }: IncomingMessage, text: string): unknown {
  if (statusCode >= 300) throw errorFromAnswer(statusCode, text)
  return text === '' ? undefined : JSON.parse(text)
}

function readText(response: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => collectText(response, reject, resolve))
}

/** By events: iterating over a stream costs as much as the rest of a small answer. */
function collectText(response: IncomingMessage, failed: (error: unknown) => void, done: (text: string) => void): void {
  let text = ''
  response.setEncoding('utf8')
  response.on('data', (part: string) => (text += part))
  response.on('error', failed)
  response.on('end', () => done(text))
}

/** One JSON value per line; a line may arrive in many pieces, and a piece may hold many lines. */
async function* jsonLines(response: IncomingMessage): AsyncGenerator<unknown> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of response) {
    rest += decoder.decode(chunk as Buffer, { stream: true })
    let start = 0
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n', start)) {
      const line = rest.slice(start, end)
      start = end + 1
      if (line.trim() !== '') yield JSON.parse(line) as unknown
    }
    if (start > 0) rest = rest.slice(start)
  }
  if (rest.trim() !== '') yield JSON.parse(rest) as unknown
}
