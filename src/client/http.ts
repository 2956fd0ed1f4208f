// How do we talk to an API server on the other end of a network connection?
// One keep-alive pool for requests, one connection per watch; answers are parsed JSON or a StatusError.
import http from 'node:http'
import https from 'node:https'
import type { IncomingMessage, RequestOptions } from 'node:http'
import { errorFromAnswer } from './http-errors.ts'
import { createRestClient } from './rest.ts'
import type { RestRequest, RestTransport } from './rest.ts'
import type { Client } from './client.ts'

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

  const send = (request: RestRequest, agent: http.Agent, signal: AbortSignal): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const body = request.body === undefined ? undefined : Buffer.from(request.body, 'utf8')
      const options: RequestOptions = {
        protocol: base.protocol,
        hostname: base.hostname,
        port: base.port,
        path: prefix + request.path,
        method: request.method,
        agent,
        signal,
        headers: {
          accept: request.accept ?? 'application/json',
          'user-agent': config.userAgent ?? 'hawser',
          ...(config.token === undefined ? {} : { authorization: `Bearer ${config.token}` }),
          ...(body === undefined
            ? {}
            : {
                'content-type': request.contentType ?? 'application/json',
                'content-length': String(body.byteLength),
              }),
        },
      }
      const outgoing = library.request(options, resolve)
      outgoing.on('error', reject)
      outgoing.end(body)
    })

  return {
    async request(request, signal) {
      signal.throwIfAborted()
      const abort = new AbortController()
      const onAbort = () => abort.abort(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      const timer = setTimeout(
        () => abort.abort(new Error(`no answer to ${request.method} ${request.path} within ${timeoutMs} ms`)),
        timeoutMs,
      )
      try {
        const response = await send(request, requests, abort.signal)
        const text = await readText(response)
        const status = response.statusCode ?? 0
        if (status >= 300) throw errorFromAnswer(status, text)
        return text === '' ? undefined : (JSON.parse(text) as unknown)
      } catch (error) {
        throw abort.signal.aborted ? abort.signal.reason : error
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
      }
    },
    async *stream(request, signal) {
      signal.throwIfAborted()
      const response = await send(request, watches, signal)
      const status = response.statusCode ?? 0
      if (status >= 300) throw errorFromAnswer(status, await readText(response))
      // A connection that died without a word must not silence an informer for ever; servers send bookmarks meanwhile.
      response.setTimeout(silenceMs, () => response.destroy(new Error(`no word for ${silenceMs} ms`)))
      try {
        yield* jsonLines(response)
      } finally {
        response.destroy()
      }
    },
    async *bytes(request, signal) {
      signal.throwIfAborted()
      const response = await send(request, watches, signal)
      const status = response.statusCode ?? 0
      if (status >= 300) throw errorFromAnswer(status, await readText(response))
      try {
        for await (const chunk of response) yield chunk as Buffer
      } finally {
        response.destroy()
      }
    },
    [Symbol.dispose]() {
      requests.destroy()
      watches.destroy()
    },
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
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
