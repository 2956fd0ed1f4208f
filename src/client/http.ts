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
import { streamOfSocket } from '../streams/socket.ts'
import { acceptKey } from '../streams/websocket-frames.ts'

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

export type HttpClient = Client & Disposable

export interface HttpTransport extends RestTransport, Disposable {
  /** An answer that is no JSON (a pod's log), piece by piece as it arrives; no time limit. */
  bytes(request: RestRequest, signal: AbortSignal): AsyncIterable<Uint8Array>
  /** A connection that became a WebSocket with one of these subprotocols; a refusal is thrown as StatusError. */
  upgrade(path: string, protocols: readonly string[], signal: AbortSignal): Promise<ByteStream>
}

export function createHttpClient(config: HttpConfig): HttpClient {
  const transport = createHttpTransport(config)
  return Object.assign(createRestClient(transport), {
    [Symbol.dispose]: () => transport[Symbol.dispose](),
  })
}

export function createHttpTransport(config: HttpConfig): HttpTransport {
  const base = new URL(config.url)
  const library = base.protocol === 'https:' ? https : http
  const tls = {
    ...(config.ca === undefined ? {} : { ca: config.ca }),
    ...(config.cert === undefined ? {} : { cert: config.cert }),
    ...(config.key === undefined ? {} : { key: config.key }),
    ...(config.insecureSkipTlsVerify === true ? { rejectUnauthorized: false } : {}),
  }
  const requests = new library.Agent({
    keepAlive: true,
    maxSockets: config.maxSockets ?? 64,
    keepAliveMsecs: 15_000,
    ...tls,
  })
  const watches = new library.Agent({ keepAlive: true, keepAliveMsecs: 15_000, ...tls })
  const timeoutMs = config.timeoutMs ?? 35_000
  const prefix = base.pathname.replace(/\/+$/, '')

  const begin = (
    request: RestRequest,
    agent: http.Agent,
    signal?: AbortSignal,
    more: Readonly<Record<string, string>> = {},
  ): http.ClientRequest => {
    const { body } = request
    const options: RequestOptions = {
      protocol: base.protocol,
      hostname: base.hostname,
      port: base.port,
      path: prefix + request.path,
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
  /** An answer whose body its reader takes as it comes; a refusal is read here. */
  const open = async (request: RestRequest, signal: AbortSignal): Promise<IncomingMessage> => {
    signal.throwIfAborted()
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = begin(request, watches, signal)
      outgoing.on('error', reject)
      outgoing.on('response', resolve)
    })
    const { statusCode = 0 } = response
    if (statusCode >= 300) throw errorFromAnswer(statusCode, await readText(response))
    return response
  }

  return {
    request: (request, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        const outgoing = begin(request, requests)
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
          () => giveUp(new Error(`no answer to ${request.method} ${request.path} within ${timeoutMs} ms`)),
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
      }),
    async *stream(request, signal) {
      const response = await open(request, signal)
      // A connection that died without a word must not silence an informer for ever; servers send bookmarks meanwhile.
      response.setTimeout(silenceMs, () => response.destroy(new Error(`no word for ${silenceMs} ms`)))
      try {
        yield* jsonLines(response)
      } finally {
        response.destroy()
      }
    },
    async *bytes(request, signal) {
      const response = await open(request, signal)
      try {
        for await (const chunk of response) yield chunk as Buffer
      } finally {
        response.destroy()
      }
    },
    upgrade: (path, protocols, signal) =>
      new Promise((resolve, reject) => {
        const key = randomBytes(16).toString('base64')
        const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
        const wish = { 'sec-websocket-key': key, 'sec-websocket-protocol': protocols.join(', ') }
        const outgoing = begin({ method: 'GET', path, accept: '*/*' }, watches, signal, { ...headers, ...wish })
        outgoing.on('error', reject)
        outgoing.on('upgrade', (response, socket, head) => {
          if (response.headers['sec-websocket-accept'] === acceptKey(key)) return resolve(streamOfSocket(socket, head))
          socket.destroy()
          reject(new Error('whoever answered does not speak WebSocket'))
        })
        outgoing.on('response', (response) => {
          const { statusCode = 0 } = response
          readText(response).then((text) => reject(errorFromAnswer(statusCode, text)), reject)
        })
      }),
    [Symbol.dispose]() {
      requests.destroy()
      watches.destroy()
    },
  }
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
